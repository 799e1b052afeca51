// SPDX-License-Identifier: Apache-2.0
// Entries are taken over while the JSON is parsed, in the file's order. PartitionSpecs of
// activations are Python text ("P('fsdp', None)"); text that would be written back differently is
// refused.
#include "core/import/sharding_dump.h"

#include "core/error.h"
#include "core/import/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

namespace shardlens {

namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;
using Dimensions = std::vector<DumpDimension>;

constexpr std::string_view kActivations = "Activation Sharding Dump";
constexpr std::int64_t kLargestSize = std::int64_t{1} << 40;
constexpr int kMostDumpDepth = 8;

// --- Python text: P('a', None, ('b', 'c')) ------------------------------------------------------

class PythonReader {
public:
    explicit PythonReader(std::string_view text) : m_text(text) {}

    /// A tuple, with `prefix` before its bracket. std::nullopt if the text is anything else.
    std::optional<Dimensions> tuple(std::string_view prefix) {
        if (!accept(prefix) || !accept("(")) return std::nullopt;
        Dimensions result;
        while (!accept(")")) {
            auto dimension = element();
            if (!dimension) return std::nullopt;
            result.push_back(std::move(*dimension));
            if (!accept(",") && !m_text.starts_with(")")) return std::nullopt;
        }
        if (!m_text.empty()) return std::nullopt;
        return result;
    }

private:
    bool accept(std::string_view token) {
        while (m_text.starts_with(" ")) m_text.remove_prefix(1);
        if (!m_text.starts_with(token)) return false;
        m_text.remove_prefix(token.size());
        while (m_text.starts_with(" ")) m_text.remove_prefix(1);
        return true;
    }

    std::optional<std::string> name() {
        if (!accept("'")) return std::nullopt;
        const auto end = m_text.find('\'');
        if (end == std::string_view::npos) return std::nullopt;
        std::string result(m_text.substr(0, end));
        m_text.remove_prefix(end + 1);
        accept("");
        return result;
    }

    std::optional<DumpDimension> element() {
        DumpDimension result;
        if (accept("None")) return result;
        if (auto single = name()) {
            result.names.push_back(std::move(*single));
            return result;
        }
        if (!accept("(")) return std::nullopt;
        result.tuple = true;
        while (!accept(")")) {
            auto part = name();
            if (!part) return std::nullopt;
            result.names.push_back(std::move(*part));
            if (!accept(",") && !m_text.starts_with(")")) return std::nullopt;
        }
        return result;
    }

    std::string_view m_text;
};

std::string pythonTuple(const Dimensions& dimensions) {
    std::vector<std::string> parts;
    for (const DumpDimension& dimension : dimensions) {
        std::vector<std::string> names;
        for (const std::string& name : dimension.names) names.push_back("'" + name + "'");
        if (dimension.tuple)
            parts.push_back(
                fmt::format("({}{})", fmt::join(names, ", "), names.size() == 1 ? "," : ""));
        else
            parts.push_back(names.empty() ? "None" : names.front());
    }
    return fmt::format("({}{})", fmt::join(parts, ", "), parts.size() == 1 ? "," : "");
}

struct Named {
    DType dtype;
    std::string_view name;
};
constexpr std::array<Named, 16> kDumpTypes{{
    {DType::F64, "float64"},
    {DType::F32, "float32"},
    {DType::F16, "float16"},
    {DType::BF16, "bfloat16"},
    {DType::F8E4M3, "float8_e4m3fn"},
    {DType::F8E5M2, "float8_e5m2"},
    {DType::I64, "int64"},
    {DType::I32, "int32"},
    {DType::I16, "int16"},
    {DType::I8, "int8"},
    {DType::I4, "int4"},
    {DType::U32, "uint32"},
    {DType::U16, "uint16"},
    {DType::U8, "uint8"},
    {DType::U4, "uint4"},
    {DType::Bool, "bool"},
}};

/// "attention_op/arr: int8[1,4,2]"
std::string activationKey(const DumpEntry& entry) {
    const auto named = std::ranges::find(kDumpTypes, entry.dtype, &Named::dtype);
    return fmt::format("{}: {}[{}]", entry.name,
                       named == kDumpTypes.end() ? std::string_view("?") : named->name,
                       fmt::join(entry.shape, ","));
}

struct Activation {
    std::string key, logical, spec;
};

/// The three texts of an activation.
Activation activationOf(const DumpEntry& entry) {
    return {activationKey(entry), entry.logical.empty() ? "Unknown" : pythonTuple(entry.logical),
            "P" + pythonTuple(entry.spec)};
}

// --- reading ------------------------------------------------------------------------------------

class DumpReader {
public:
    explicit DumpReader(const std::string& where) : m_where(where) {}

    ShardingDump read(std::string_view text) {
        try {
            const Json root =
                Json::parse(text, [this](int depth, Json::parse_event_t event, Json& value) {
                    return visit(depth, event, value);
                });
            if (!root.is_object()) fail("a sharding dump is a JSON object, this is not one");
        } catch (const Json::parse_error& error) {
            throw InputError(fmt::format("not valid JSON at byte {}", error.byte), m_where,
                             "the file may be cut off");
        } catch (const Json::exception&) {
            fail("a number is out of range");
        }
        if (m_dump.entries.empty()) fail("the dump lists no arrays");
        return std::move(m_dump);
    }

private:
    [[noreturn]] void fail(const std::string& problem) const {
        throw InputError(
            m_name.empty() ? problem : fmt::format("{} ({})", problem, shardlens::inQuotes(m_name)),
            m_where, "write the dump again with MaxText");
    }

    bool visit(int depth, Json::parse_event_t event, Json& value) {
        using Event = Json::parse_event_t;
        if (depth > kMostDumpDepth) fail("the JSON nests too deeply");
        if (depth == 0 && event == Event::array_start)
            fail("a sharding dump is a JSON object, this is not one");
        if (depth != 1) return true;
        if (event == Event::key) {
            m_name = value.get<std::string>();
            if (!m_names.insert(m_name).second) fail("an array is listed twice");
            return true;
        }
        if (event != Event::object_end && event != Event::array_end && event != Event::value)
            return true;
        if (m_name == kActivations)
            addActivations(value);
        else
            addArray(value);
        return false; // it has been taken over
    }

    void kind(ShardingDump::Kind kind) {
        if (!m_dump.entries.empty() && m_dump.kind != kind)
            fail("the dump mixes arrays of different kinds");
        m_dump.kind = kind;
    }

    const Json& member(const Json& value, const char* key, Json::value_t type) const {
        const auto found = value.is_object() ? value.find(key) : value.end();
        if (found == value.end() || found->type() != type)
            fail(fmt::format("an array has no proper \"{}\"", key));
        return *found;
    }

    void addArray(const Json& value) {
        DumpEntry entry;
        entry.name = m_name;
        const bool named = value.is_object() && value.contains("mesh");
        kind(named ? ShardingDump::Kind::Named : ShardingDump::Kind::Logical);
        const Json& spec = member(value, "partition_spec", Json::value_t::array);
        for (const Json& size : member(value, "shape", Json::value_t::array))
            entry.shape.push_back(sizeOf(size));
        if (value.size() != (named ? 3 : 2)) fail("an array has a key that is not known");
        if (named) mesh(member(value, "mesh", Json::value_t::object));
        for (const Json& dimension : spec) entry.spec.push_back(dimensionOf(dimension));
        if (!named) entry.logical = entry.spec;
        check(entry);
        m_dump.entries.push_back(std::move(entry));
    }

    std::int64_t sizeOf(const Json& value) const {
        if (!value.is_number_unsigned() ||
            value.get<std::uint64_t>() > static_cast<std::uint64_t>(kLargestSize))
            fail("a size is no number, or out of range");
        return value.get<std::int64_t>();
    }

    DumpDimension dimensionOf(const Json& value) const {
        DumpDimension result;
        if (value.is_null()) return result;
        if (value.is_string()) {
            result.names.push_back(value.get<std::string>());
            return result;
        }
        if (!value.is_array()) fail("a partition spec holds something else than names");
        result.tuple = true;
        for (const Json& name : value) {
            if (!name.is_string()) fail("a partition spec holds something else than names");
            result.names.push_back(name.get<std::string>());
        }
        return result;
    }

    void mesh(const Json& value) {
        std::vector<PartitionAxis> axes;
        const Json& sizes = member(value, "shape", Json::value_t::object);
        double devices = 1;
        for (const Json& name : member(value, "axis_names", Json::value_t::array)) {
            if (!name.is_string()) fail("the name of a mesh axis is no text");
            const auto size = sizes.find(name.get<std::string>());
            if (size == sizes.end()) fail("a mesh axis has no size");
            axes.push_back({name.get<std::string>(), sizeOf(*size)});
            devices *= static_cast<double>(axes.back().size);
        }
        if (axes.size() != sizes.size() || value.size() != 2)
            fail("the names and sizes of the mesh do not fit together");
        if (axes.size() > 255) fail("the mesh has more than 255 axes");
        if (devices < 1 || devices > static_cast<double>(kLargestSize))
            fail("the mesh has no devices, or more than there are");
        if (m_dump.entries.empty()) m_dump.mesh = axes;
        if (m_dump.mesh != axes) fail("the arrays are spread over different meshes");
    }

    void addActivations(const Json& list) {
        kind(ShardingDump::Kind::Activation);
        if (!list.is_array()) fail("the activations are no list");
        for (const Json& item : list) {
            if (!item.is_object() || item.size() != 1) fail("an activation has not one name");
            addActivation(item.begin().key(), item.begin().value());
        }
    }

    void addActivation(const std::string& key, const Json& value) {
        m_name = key;
        DumpEntry entry;
        const auto colon = key.rfind(": ");
        const auto open = key.rfind('[');
        if (colon == std::string::npos || open == std::string::npos || open < colon ||
            !key.ends_with("]"))
            fail("an activation does not say its type and shape");
        entry.name = key.substr(0, colon);
        const std::string type = key.substr(colon + 2, open - colon - 2);
        const auto dtype = std::ranges::find(kDumpTypes, type, &Named::name);
        if (dtype == kDumpTypes.end())
            fail(fmt::format("the element type {} is not known", shardlens::inQuotes(type)));
        entry.dtype = dtype->dtype;
        entry.shape = shapeOf(std::string_view(key).substr(open + 1, key.size() - open - 2));
        const std::string spec =
            member(value, "PartitionSpec", Json::value_t::string).get<std::string>();
        const std::string logical =
            member(value, "logic_axes", Json::value_t::string).get<std::string>();
        if (value.size() != 2) fail("an activation has a key that is not known");
        auto parsed = PythonReader(spec).tuple("P");
        if (!parsed) fail(fmt::format("{} is no PartitionSpec", shardlens::inQuotes(spec)));
        entry.spec = std::move(*parsed);
        if (logical != "Unknown") {
            auto names = PythonReader(logical).tuple("");
            if (!names)
                fail(fmt::format("{} are no names of dimensions", shardlens::inQuotes(logical)));
            entry.logical = std::move(*names);
        }
        const Activation again = activationOf(entry);
        if (again.key != key || again.logical != logical || again.spec != spec)
            fail("the texts of an activation are not in the usual form");
        check(entry);
        m_dump.entries.push_back(std::move(entry));
    }

    Shape shapeOf(std::string_view text) const {
        Shape shape;
        while (!text.empty()) {
            std::int64_t size = -1;
            const char* stop = text.data() + text.size();
            const auto [end, error] = std::from_chars(text.data(), stop, size);
            if (error != std::errc{} || size < 0 || size > kLargestSize ||
                (end != stop && *end != ','))
                fail("a size is no number, or out of range");
            shape.push_back(size);
            text.remove_prefix(static_cast<std::size_t>(end - text.data()) + (end != stop ? 1 : 0));
        }
        return shape;
    }

    void check(const DumpEntry& entry) const {
        if (entry.spec.size() > entry.shape.size())
            fail("a partition spec has more dimensions than its array");
        if (m_dump.kind == ShardingDump::Kind::Logical) return;
        std::set<std::string_view> used;
        for (const DumpDimension& dimension : entry.spec)
            for (const std::string& name : dimension.names) {
                if (!used.insert(name).second)
                    fail(fmt::format("the axis {} is used twice", shardlens::inQuotes(name)));
                if (m_dump.kind == ShardingDump::Kind::Named &&
                    std::ranges::find(m_dump.mesh, name, &PartitionAxis::name) == m_dump.mesh.end())
                    fail(fmt::format("the mesh has no axis {}", shardlens::inQuotes(name)));
            }
    }

    const std::string& m_where;
    ShardingDump m_dump;
    std::string m_name;
    std::set<std::string> m_names;
};

// --- writing ------------------------------------------------------------------------------------

OrderedJson specJson(const Dimensions& spec) {
    OrderedJson result = OrderedJson::array();
    for (const DumpDimension& dimension : spec) {
        if (dimension.tuple)
            result.push_back(dimension.names);
        else
            result.push_back(dimension.names.empty() ? OrderedJson(nullptr)
                                                     : OrderedJson(dimension.names.front()));
    }
    return result;
}

OrderedJson meshJson(const std::vector<PartitionAxis>& mesh) {
    OrderedJson names = OrderedJson::array(), sizes = OrderedJson::object();
    for (const PartitionAxis& axis : mesh) {
        names.push_back(axis.name);
        sizes[axis.name] = axis.size;
    }
    return {{"axis_names", names}, {"shape", sizes}};
}

} // namespace

std::int64_t ShardingDump::devices() const {
    std::int64_t product = 1;
    for (const PartitionAxis& axis : mesh) product *= axis.size;
    return product;
}

bool looksLikeShardingDump(std::string_view head) {
    const auto has = [head](std::string_view part) {
        return head.find(part) != std::string_view::npos;
    };
    return (has("\"partition_spec\"") && has("\"shape\"")) ||
           has(fmt::format("\"{}\"", kActivations));
}

ShardingDump parseShardingDump(std::string_view json, const std::string& where) {
    return DumpReader(where).read(json);
}

std::string writeShardingDump(const ShardingDump& dump) {
    if (dump.kind == ShardingDump::Kind::Activation) {
        OrderedJson list = OrderedJson::array();
        for (const DumpEntry& entry : dump.entries) {
            const Activation texts = activationOf(entry);
            list.push_back(
                {{texts.key, {{"logic_axes", texts.logical}, {"PartitionSpec", texts.spec}}}});
        }
        return OrderedJson{{std::string(kActivations), list}}.dump(2, ' ', true);
    }
    // One value after the other: objects of this type look each new key up in all before it.
    std::string text = "{";
    const OrderedJson mesh = meshJson(dump.mesh);
    for (const DumpEntry& entry : dump.entries) {
        OrderedJson value = OrderedJson::object();
        if (dump.kind == ShardingDump::Kind::Named) value["mesh"] = mesh;
        value["partition_spec"] = specJson(entry.spec);
        value["shape"] = entry.shape;
        const std::string one = OrderedJson{{entry.name, value}}.dump(2, ' ', true);
        text += text.size() == 1 ? "" : ",";
        text += one.substr(1, one.size() - 3); // "{" and "\n}"
    }
    return text + "\n}";
}

std::size_t addLogicalNames(ShardingDump& dump, const ShardingDump& logical) {
    std::map<std::string_view, const DumpEntry*> byName;
    for (const DumpEntry& entry : logical.entries) byName.emplace(entry.name, &entry);
    std::size_t found = 0;
    for (DumpEntry& entry : dump.entries) {
        const auto named = byName.find(entry.name);
        if (named == byName.end() || named->second->shape != entry.shape) continue;
        entry.logical = named->second->logical;
        ++found;
    }
    return found;
}

std::optional<TensorSharding> shardingOf(const ShardingDump& dump, const DumpEntry& entry) {
    TensorSharding sharding;
    sharding.dims.resize(entry.shape.size());
    for (std::size_t d = 0; d < entry.spec.size() && d < sharding.dims.size(); ++d)
        for (const std::string& name : entry.spec[d].names) {
            const auto axis = std::ranges::find(dump.mesh, name, &PartitionAxis::name);
            const auto index = axis - dump.mesh.begin();
            if (axis == dump.mesh.end() || index > 255) return std::nullopt;
            sharding.dims[d].push_back(static_cast<std::uint8_t>(index));
        }
    return sharding;
}

double shardElements(const ShardingDump& dump, const DumpEntry& entry) {
    double elements = 1;
    for (std::size_t d = 0; d < entry.shape.size(); ++d) {
        double pieces = 1;
        if (d < entry.spec.size())
            for (const std::string& name : entry.spec[d].names) {
                const auto axis = std::ranges::find(dump.mesh, name, &PartitionAxis::name);
                if (axis != dump.mesh.end()) pieces *= static_cast<double>(axis->size);
            }
        elements *= std::ceil(static_cast<double>(entry.shape[d]) / pieces);
    }
    return elements;
}

double bytesPerDevice(const ShardingDump& dump, double bytesPerElement) {
    double bytes = 0;
    for (const DumpEntry& entry : dump.entries)
        bytes += shardElements(dump, entry) *
                 (entry.dtype == DType::Unknown ? bytesPerElement : bitsOf(entry.dtype) / 8.0);
    return bytes;
}

} // namespace shardlens
