// SPDX-License-Identifier: Apache-2.0
// Reading and checking the header of a weights file, and opening the model its config describes.
#include "core/import/safetensors.h"

#include "core/error.h"
#include "core/import/hf_config.h"
#include "core/import/mapped_file.h"
#include "core/import/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>

namespace shardlens {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMostHeaderBytes = 100'000'000; // limit of the format
constexpr std::size_t kLengthBytes = 8;

struct TypeWidth {
    std::string_view name;
    std::uint64_t bits;
};
constexpr std::array<TypeWidth, 20> kTypes{{
    {"BOOL", 8}, {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},
    {"U16", 16}, {"F16", 16},    {"BF16", 16},   {"I32", 32},    {"U32", 32},
    {"F32", 32}, {"F64", 64},    {"I64", 64},    {"U64", 64},    {"C64", 64},
}};

std::uint64_t lengthOf(std::span<const std::byte> head) noexcept {
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < kLengthBytes; ++i)
        length |= std::to_integer<std::uint64_t>(head[i]) << (8 * i);
    return length;
}

/// Collects the tensors while the JSON is being parsed, so that no document is built.
class HeaderReader {
public:
    explicit HeaderReader(const std::string& where) : m_where(where) {}

    SafetensorsHeader read(std::string_view text) {
        try {
            const Json root =
                Json::parse(text, [this](int depth, Json::parse_event_t event, Json& value) {
                    return visit(depth, event, value);
                });
            if (!root.is_object()) fail("the header is no JSON object");
        } catch (const Json::parse_error& error) {
            fail(fmt::format("the header is not valid JSON at byte {}", error.byte + kLengthBytes));
        } catch (const Json::exception&) {
            fail("the header holds a number that is out of range");
        }
        return std::move(m_header);
    }

private:
    [[noreturn]] void fail(const std::string& problem) const {
        throw InputError(problem, m_where, "the file is damaged, fetch it again");
    }

    bool visit(int depth, Json::parse_event_t event, Json& value) {
        using Event = Json::parse_event_t;
        if (depth != 1) return true;
        if (event == Event::key) {
            m_name = value.get<std::string>();
            if (!m_names.insert(m_name).second)
                fail(fmt::format("the tensor {} is listed twice", shardlens::inQuotes(m_name)));
            return true;
        }
        if (event != Event::object_end && event != Event::array_end && event != Event::value)
            return true;
        if (m_name == "__metadata__")
            addMetadata(value);
        else
            addTensor(value);
        return false; // it has been taken over
    }

    void addMetadata(const Json& value) {
        if (!value.is_object()) fail("\"__metadata__\" is no map of texts");
        for (const auto& [key, text] : value.items()) {
            if (!text.is_string()) fail("\"__metadata__\" is no map of texts");
            m_header.metadata[key] = text.get<std::string>();
        }
    }

    std::uint64_t natural(const Json& value, std::string_view what) const {
        if (!value.is_number_unsigned())
            fail(fmt::format("the tensor {} has a bad {}", shardlens::inQuotes(m_name), what));
        return value.get<std::uint64_t>();
    }

    const Json& member(const Json& value, const char* key, Json::value_t type) const {
        const auto found = value.is_object() ? value.find(key) : value.end();
        if (found == value.end() || found->type() != type)
            fail(fmt::format("the tensor {} has no proper \"{}\"", shardlens::inQuotes(m_name),
                             key));
        return *found;
    }

    void addTensor(const Json& value) {
        SafetensorsEntry entry;
        entry.name = m_name;
        entry.dtype = member(value, "dtype", Json::value_t::string).get<std::string>();
        for (const Json& size : member(value, "shape", Json::value_t::array)) {
            const std::uint64_t number = natural(size, "shape");
            if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
                fail(fmt::format("the tensor {} has a bad shape", shardlens::inQuotes(m_name)));
            entry.shape.push_back(static_cast<std::int64_t>(number));
        }
        const Json& range = member(value, "data_offsets", Json::value_t::array);
        if (range.size() != 2)
            fail(
                fmt::format("the tensor {} has bad \"data_offsets\"", shardlens::inQuotes(m_name)));
        entry.begin = natural(range[0], "byte range");
        entry.end = natural(range[1], "byte range");
        checkSize(entry);
        m_header.tensors.push_back(std::move(entry));
    }

    void checkSize(const SafetensorsEntry& entry) const {
        const auto type = std::ranges::find(kTypes, entry.dtype, &TypeWidth::name);
        if (type == kTypes.end())
            fail(fmt::format("the tensor {} is of the unknown type {}", shardlens::inQuotes(m_name),
                             shardlens::inQuotes(entry.dtype)));
        const double bytes = elementsOf(entry.shape) * static_cast<double>(type->bits) / 8.0;
        if (entry.end < entry.begin ||
            static_cast<double>(entry.end - entry.begin) != std::ceil(bytes))
            fail(fmt::format("the tensor {} of shape {} does not fill bytes {} to {}",
                             shardlens::inQuotes(m_name), toString(entry.shape), entry.begin,
                             entry.end));
    }

    const std::string& m_where;
    SafetensorsHeader m_header;
    std::string m_name;
    std::set<std::string> m_names;
};

void checkTiling(const SafetensorsHeader& header, std::uint64_t dataBytes,
                 const std::string& where) {
    std::uint64_t at = 0;
    for (const SafetensorsEntry& entry : header.tensors) {
        if (entry.begin != at)
            throw InputError(fmt::format("the tensor {} begins at byte {} of the data, not at {}",
                                         shardlens::inQuotes(entry.name), entry.begin, at),
                             where, "the file is damaged, fetch it again");
        at = entry.end;
    }
    if (at != dataBytes)
        throw InputError(
            fmt::format("the tensors end at byte {} of the data, the file at {}", at, dataBytes),
            where, "the file is cut off or damaged, fetch it again");
}

} // namespace

// The longest X is taken first.
std::filesystem::path configBesideWeights(const std::filesystem::path& weights) {
    constexpr std::string_view kSuffix = "_config.json";
    const std::filesystem::path folder =
        weights.has_parent_path() ? weights.parent_path() : std::filesystem::path(".");
    const std::string stem = weights.stem().string();
    std::filesystem::path best;
    std::size_t bestLength = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        if (!name.ends_with(kSuffix)) continue;
        const std::string prefix = name.substr(0, name.size() - kSuffix.size());
        const bool whole =
            stem.size() == prefix.size() ||
            (stem.size() > prefix.size() &&
             std::string_view("_-.").find(stem[prefix.size()]) != std::string_view::npos);
        if (prefix.size() > bestLength && whole && stem.starts_with(prefix)) {
            best = entry.path();
            bestLength = prefix.size();
        }
    }
    if (!best.empty()) return best;
    const std::filesystem::path usual = folder / "config.json";
    if (std::filesystem::is_regular_file(usual, error)) return usual;
    throw InputError("a weights file holds no graph", weights.string(),
                     "put the model's config.json beside it and open it again");
}

void compareWithWeights(Graph& graph, const std::vector<SafetensorsEntry>& tensors) {
    std::size_t differing = 0;
    std::string first;
    for (const SafetensorsEntry& entry : tensors) {
        const std::optional<OpId> op = graph.findOp(entry.name);
        if (!op || graph.op(*op).kind != OpKind::Parameter) continue;
        const Shape& shape = graph.tensor(graph.op(*op).outputs.front()).spec.shape;
        if (shape == entry.shape) continue;
        if (differing++ == 0)
            first = fmt::format("{} is {} in the weights and {} by the config",
                                shardlens::inQuotes(entry.name), toString(entry.shape),
                                toString(shape));
    }
    if (differing > 0)
        graph.warnings.push_back(fmt::format(
            "{} of the {} tensors of the weights file do not fit the config beside it: {}.",
            differing, tensors.size(), first));
}

bool looksLikeSafetensors(std::span<const std::byte> head, std::uint64_t fileSize) noexcept {
    if (head.size() <= kLengthBytes || head[kLengthBytes] != std::byte{'{'}) return false;
    const std::uint64_t length = lengthOf(head);
    return length >= 2 && length <= kMostHeaderBytes && fileSize >= kLengthBytes &&
           length <= fileSize - kLengthBytes;
}

SafetensorsHeader parseSafetensorsHeader(std::span<const std::byte> head, std::uint64_t fileSize,
                                         const std::string& where) {
    if (!looksLikeSafetensors(head, fileSize) || lengthOf(head) > head.size() - kLengthBytes)
        throw InputError("this is no safetensors file, or its header is cut off", where,
                         "fetch the file again");
    const std::uint64_t length = lengthOf(head);
    const auto json = head.subspan(kLengthBytes, static_cast<std::size_t>(length));
    const std::string_view text(reinterpret_cast<const char*>(json.data()), json.size());
    SafetensorsHeader header = HeaderReader(where).read(text);
    header.headerBytes = length;
    std::ranges::sort(header.tensors, {}, [](const SafetensorsEntry& entry) {
        return std::tuple(entry.begin, entry.end, std::string_view(entry.name));
    });
    checkTiling(header, fileSize - kLengthBytes - length, where);
    return header;
}

Graph importSafetensors(const std::filesystem::path& path, const ImportOptions& options) {
    const MappedFile weights(path);
    const SafetensorsHeader header =
        parseSafetensorsHeader(weights.bytes(), weights.bytes().size(), path.string());
    const std::filesystem::path configPath = configBesideWeights(path);
    const MappedFile config(configPath);
    const std::string_view text(reinterpret_cast<const char*>(config.bytes().data()),
                                config.bytes().size());
    Graph graph = importHfConfig(text, configPath.string(), options);
    graph.format = "safetensors with HF config";
    compareWithWeights(graph, header.tensors);
    graph.facts["tensors in the weights file"] = fmt::format("{}", header.tensors.size());
    return graph;
}

} // namespace shardlens
