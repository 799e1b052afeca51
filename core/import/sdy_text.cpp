// SPDX-License-Identifier: Apache-2.0
// One scanner a text; errors carry the place inside the attribute.
#include "core/import/sdy_text.h"

#include "core/error.h"
#include "core/import/mlir_scanner.h"
#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace shardlens {

namespace {

using mlir::Scanner;

constexpr std::int64_t kMostDevices = std::int64_t{1} << 40;
constexpr std::size_t kMostAxes = 200;

class SdyParser {
public:
    SdyParser(std::string_view text, const std::string& where)
        : m_scan(text, where + ", sdy attribute") {}

    SdyMesh mesh() {
        prefix({"#sdy.mesh", "mesh"});
        SdyMesh result;
        m_scan.expect("<", "a mesh");
        m_scan.expect("[", "a mesh");
        double devices = 1;
        while (m_scan.peek() == '"') {
            PartitionAxis axis{quotedName(), 1};
            m_scan.expect("=", "an axis of a mesh");
            axis.size = integer(1, kMostDevices);
            devices *= static_cast<double>(axis.size);
            if (std::ranges::find(result.axes, axis.name, &PartitionAxis::name) !=
                result.axes.end())
                m_scan.fail(
                    fmt::format("the mesh has the axis {} twice", shardlens::inQuotes(axis.name)));
            result.axes.push_back(std::move(axis));
            if (!m_scan.accept(",")) break;
        }
        if (devices > static_cast<double>(kMostDevices) || result.axes.size() > kMostAxes)
            m_scan.fail("the mesh is larger than any machine");
        m_scan.expect("]", "a mesh");
        if (m_scan.accept(",")) {
            if (m_scan.name() != "device_ids") m_scan.fail("device_ids must follow the axes");
            m_scan.expect("=", "a mesh");
            m_scan.expect("[", "a mesh");
            while (m_scan.peek() != ']') {
                result.deviceIds.push_back(integer(0, kMostDevices));
                if (!m_scan.accept(",")) break;
            }
            m_scan.expect("]", "a mesh");
        }
        m_scan.expect(">", "a mesh");
        return result;
    }

    SdySharding sharding() {
        prefix({"#sdy.sharding"});
        SdySharding result;
        m_scan.expect("<", "a sharding");
        if (m_scan.peek() == '@') {
            std::string_view name = m_scan.sigilName().substr(1);
            if (name.starts_with("\"")) name = name.substr(1, name.size() - 2);
            result.mesh = name;
        } else {
            result.inPlace = mesh();
        }
        m_scan.expect(",", "a sharding");
        m_scan.expect("[", "a sharding");
        while (m_scan.peek() == '{') {
            result.dims.push_back(dimension());
            if (!m_scan.accept(",")) break;
        }
        m_scan.expect("]", "a sharding");
        while (m_scan.accept(",")) {
            const std::string_view name = m_scan.name();
            if (name != "replicated" && name != "unreduced")
                m_scan.fail("replicated={…} or unreduced={…} must follow the dimensions");
            m_scan.expect("=", "a sharding");
            m_scan.expect("{", "a sharding");
            axes(name == "replicated" ? result.replicated : result.unreduced);
            m_scan.expect("}", "a sharding");
        }
        m_scan.expect(">", "a sharding");
        return result;
    }

    std::vector<SdySharding> list() {
        std::vector<SdySharding> result;
        const bool wrapped = m_scan.accept("#sdy.sharding_per_value");
        if (wrapped) m_scan.expect("<", "a list of shardings");
        m_scan.expect("[", "a list of shardings");
        while (m_scan.peek() == '<' || m_scan.peek() == '#') {
            result.push_back(sharding());
            if (!m_scan.accept(",")) break;
        }
        m_scan.expect("]", "a list of shardings");
        if (wrapped) m_scan.expect(">", "a list of shardings");
        return result;
    }

    void finish() {
        if (!m_scan.atEnd()) m_scan.fail("there is more text than a sharding or mesh has");
    }

private:
    void prefix(std::initializer_list<std::string_view> names) {
        for (const std::string_view name : names)
            if (m_scan.accept(name)) return;
    }

    std::string quotedName() { return cleaned(m_scan.string()); }

    std::int64_t integer(std::int64_t least, std::int64_t most) {
        const std::string_view digits = m_scan.number();
        std::int64_t value = 0;
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (digits.empty() || error != std::errc{} || value < least || value > most)
            m_scan.fail("a number is missing or out of range");
        return value;
    }

    void axes(std::vector<SdyAxis>& into) {
        while (m_scan.peek() == '"') {
            SdyAxis axis{quotedName()};
            if (m_scan.accept(":")) {
                m_scan.expect("(", "a part of an axis");
                axis.preSize = integer(1, kMostDevices);
                m_scan.expect(")", "a part of an axis");
                axis.size = integer(2, kMostDevices);
            }
            into.push_back(std::move(axis));
            if (!m_scan.accept(",")) break;
        }
    }

    SdyDimension dimension() {
        SdyDimension result;
        m_scan.expect("{", "a dimension");
        axes(result.axes);
        result.open = m_scan.accept("?");
        m_scan.expect("}", "a dimension");
        if (m_scan.peekAhead(0) == 'p') {
            m_scan.skipCharacter();
            result.priority = integer(0, 1'000'000);
        }
        return result;
    }

    Scanner m_scan;
};

} // namespace

SdyMesh parseSdyMesh(std::string_view text, const std::string& where) {
    SdyParser parser(text, where);
    SdyMesh result = parser.mesh();
    parser.finish();
    return result;
}

SdySharding parseSdySharding(std::string_view text, const std::string& where) {
    SdyParser parser(text, where);
    SdySharding result = parser.sharding();
    parser.finish();
    return result;
}

std::vector<SdySharding> parseSdyShardings(std::string_view text, const std::string& where) {
    SdyParser parser(text, where);
    std::vector<SdySharding> result = parser.list();
    parser.finish();
    return result;
}

// --- axes ---------------------------------------------------------------------------------------

SdyAxes::SdyAxes(SdyMesh mesh) {
    for (PartitionAxis& axis : mesh.axes) {
        std::vector<std::int64_t> borders{1};
        if (axis.size > 1) borders.push_back(axis.size);
        m_axes.push_back({std::move(axis), std::move(borders)});
    }
}

const SdyAxes::Axis* SdyAxes::find(std::string_view name) const {
    const auto found =
        std::ranges::find_if(m_axes, [&](const Axis& axis) { return axis.whole.name == name; });
    return found == m_axes.end() ? nullptr : &*found;
}

void SdyAxes::add(const SdySharding& sharding, const std::string& where) {
    std::set<std::pair<std::string, std::int64_t>> used;
    const auto note = [&](const SdyAxis& part) {
        const Axis* axis = find(part.name);
        if (axis == nullptr)
            throw InputError(fmt::format("the mesh has no axis {}", shardlens::inQuotes(part.name)),
                             where);
        if (!used.emplace(part.name, part.preSize).second)
            throw InputError(
                fmt::format("a sharding uses the axis {} twice", shardlens::inQuotes(part.name)),
                where);
        if (part.size == 0) return;
        const std::int64_t size = axis->whole.size;
        if (size % part.preSize != 0 || (size / part.preSize) % part.size != 0)
            throw InputError(fmt::format("{}:({}){} does not divide the axis of size {}",
                                         shardlens::inQuotes(part.name), part.preSize, part.size,
                                         size),
                             where);
        auto& borders = m_axes[static_cast<std::size_t>(axis - m_axes.data())].borders;
        for (const std::int64_t border : {part.preSize, part.preSize * part.size})
            if (const auto at = std::ranges::lower_bound(borders, border);
                at == borders.end() || *at != border)
                borders.insert(at, border);
    };
    for (const SdyDimension& dim : sharding.dims) std::ranges::for_each(dim.axes, note);
    std::ranges::for_each(sharding.replicated, note);
    std::ranges::for_each(sharding.unreduced, note);
}

bool SdyAxes::dividesWell(const Axis& axis) const {
    for (std::size_t i = 1; i < axis.borders.size(); ++i)
        if (axis.borders[i] % axis.borders[i - 1] != 0) return false;
    return true;
}

std::vector<PartitionAxis> SdyAxes::axes() const {
    std::vector<PartitionAxis> result;
    for (const Axis& axis : m_axes) {
        if (axis.borders.size() <= 2 || !dividesWell(axis)) {
            result.push_back(axis.whole);
            continue;
        }
        for (std::size_t i = 1; i < axis.borders.size(); ++i)
            result.push_back({fmt::format("{}:({}){}", axis.whole.name, axis.borders[i - 1],
                                          axis.borders[i] / axis.borders[i - 1]),
                              axis.borders[i] / axis.borders[i - 1]});
    }
    return result;
}

bool SdyAxes::append(std::vector<std::uint8_t>& into, const SdyAxis& part) const {
    std::size_t index = 0;
    for (const Axis& axis : m_axes) {
        const bool whole = axis.borders.size() <= 2 || !dividesWell(axis);
        const std::size_t count = whole ? 1 : axis.borders.size() - 1;
        if (axis.whole.name != part.name) {
            index += count;
            continue;
        }
        if (part.size != 0 && !dividesWell(axis)) return false;
        const std::int64_t from = part.size == 0 ? 1 : part.preSize;
        const std::int64_t to = part.size == 0 ? axis.whole.size : part.preSize * part.size;
        for (std::size_t i = 0; i < count; ++i) {
            const bool inside = whole || (axis.borders[i] >= from && axis.borders[i + 1] <= to);
            if (index + i > 255) return false;
            if (inside) into.push_back(static_cast<std::uint8_t>(index + i));
        }
        return true;
    }
    return false;
}

std::optional<TensorSharding> SdyAxes::translate(const SdySharding& sharding) const {
    TensorSharding result;
    result.dims.resize(sharding.dims.size());
    bool good = true;
    for (std::size_t d = 0; d < sharding.dims.size(); ++d)
        for (const SdyAxis& part : sharding.dims[d].axes)
            good = good && append(result.dims[d], part);
    for (const SdyAxis& part : sharding.unreduced) good = good && append(result.partial, part);
    return good ? std::optional(result) : std::nullopt;
}

} // namespace shardlens
