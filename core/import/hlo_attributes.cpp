// SPDX-License-Identifier: Apache-2.0
// Small readers of attribute values. A value that is not what it should be gives std::nullopt; the
// op is then opaque, the file still opens.
#include "core/import/hlo_attributes.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace shardlens::hlo {

namespace {

using Ints = std::vector<std::int64_t>;

bool isDigit(char c) {
    return c >= '0' && c <= '9';
}

/// Reads one integer at the front of `text` and removes it.
std::optional<std::int64_t> takeInteger(std::string_view& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

bool take(std::string_view& text, char c) {
    if (text.empty() || text.front() != c) return false;
    text.remove_prefix(1);
    return true;
}

/// The value of `key=` in a window: up to a blank or the closing brace.
std::string_view part(std::string_view text, std::string_view key) {
    for (std::size_t at = text.find(key); at != std::string_view::npos;
         at = text.find(key, at + 1)) {
        const bool begins = at == 0 || text[at - 1] == ' ' || text[at - 1] == '{';
        const std::size_t value = at + key.size();
        if (!begins || value >= text.size() || text[value] != '=') continue;
        text.remove_prefix(value + 1);
        return text.substr(0, text.find_first_of(" }"));
    }
    return {};
}

/// "3x3", each at least 1 unless `zero`.
std::optional<Ints> extents(std::string_view text, std::size_t rank, std::int64_t fallback) {
    if (text.empty()) return Ints(rank, fallback);
    Ints result;
    do {
        const auto value = takeInteger(text);
        if (!value || *value < 0) return std::nullopt;
        result.push_back(*value);
    } while (take(text, 'x'));
    if (!text.empty() || (rank > 0 && result.size() != rank)) return std::nullopt;
    return result;
}

constexpr std::int64_t kMaxDevices = std::int64_t{1} << 20;

/// Product of extents, std::nullopt if one is not positive or it is more than kMaxDevices.
std::optional<std::int64_t> deviceCount(const Ints& dims) {
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) {
        if (dim < 1 || dim > kMaxDevices) return std::nullopt;
        count *= dim;
        if (count > kMaxDevices) return std::nullopt;
    }
    return count;
}

bool areDevices(const Ints& devices) {
    return std::ranges::all_of(devices,
                               [](std::int64_t id) { return id >= 0 && id < kMaxDevices; });
}

/// iota(product of dims), reshaped to dims, transposed by perm; row-major.
std::optional<Ints> iotaDevices(const Ints& dims, const Ints& perm) {
    const auto count = deviceCount(dims);
    if (!count || perm.size() != dims.size()) return std::nullopt;
    Ints strides(dims.size(), 1);
    for (std::size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
    std::vector<bool> seen(dims.size(), false);
    Ints sizes, steps;
    for (const std::int64_t p : perm) {
        if (p < 0 || p >= static_cast<std::int64_t>(dims.size())) return std::nullopt;
        const auto d = static_cast<std::size_t>(p);
        if (seen[d]) return std::nullopt;
        seen[d] = true;
        sizes.push_back(dims[d]);
        steps.push_back(strides[d]);
    }
    Ints result(static_cast<std::size_t>(*count)), index(dims.size(), 0);
    std::int64_t device = 0;
    for (std::int64_t& entry : result) {
        entry = device;
        for (std::size_t d = dims.size(); d-- > 0;) {
            device += steps[d];
            if (++index[d] < sizes[d]) break;
            device -= steps[d] * sizes[d];
            index[d] = 0;
        }
    }
    return result;
}

/// What a bracket holds, and the text after it.
std::optional<std::string_view> bracket(std::string_view& text, char open, char close) {
    if (text.empty() || text.front() != open) return std::nullopt;
    const std::size_t end = text.find(close);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view inside = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    return inside;
}

} // namespace

std::optional<Ints> integersIn(std::string_view text) {
    Ints result;
    while (!text.empty()) {
        const bool negative = text.size() > 1 && text[0] == '-' && isDigit(text[1]);
        if (!isDigit(text.front()) && !negative) {
            text.remove_prefix(1);
            continue;
        }
        const auto value = takeInteger(text);
        if (!value) return std::nullopt;
        result.push_back(*value);
    }
    return result;
}

std::optional<std::vector<SliceRange>> slicesIn(std::string_view text) {
    std::vector<SliceRange> result;
    for (std::size_t at = text.find('['); at != std::string_view::npos; at = text.find('[')) {
        text.remove_prefix(at);
        const auto inside = bracket(text, '[', ']');
        if (!inside) return std::nullopt;
        const auto numbers = integersIn(*inside);
        if (!numbers || numbers->size() < 2 || numbers->size() > 3) return std::nullopt;
        result.push_back({(*numbers)[0], (*numbers)[1], numbers->size() == 3 ? (*numbers)[2] : 1});
    }
    return result;
}

std::optional<std::vector<PadRange>> padsIn(std::string_view text) {
    std::vector<PadRange> result;
    if (text.empty()) return result;
    do {
        const auto low = takeInteger(text);
        if (!low || !take(text, '_')) return std::nullopt;
        const auto high = takeInteger(text);
        if (!high) return std::nullopt;
        PadRange range{*low, *high, 0};
        if (take(text, '_')) {
            const auto interior = takeInteger(text);
            if (!interior) return std::nullopt;
            range.interior = *interior;
        }
        result.push_back(range);
    } while (take(text, 'x'));
    if (!text.empty()) return std::nullopt;
    return result;
}

std::optional<Window> windowIn(std::string_view text) {
    Window window;
    const auto size = extents(part(text, "size"), 0, 1);
    if (!size) return std::nullopt;
    window.size = *size;
    const std::size_t rank = size->size();
    const auto stride = extents(part(text, "stride"), rank, 1);
    const auto lhs = extents(part(text, "lhs_dilate"), rank, 1);
    const auto rhs = extents(part(text, "rhs_dilate"), rank, 1);
    const auto reversal = extents(part(text, "rhs_reversal"), rank, 0);
    auto pad = padsIn(part(text, "pad"));
    if (!stride || !lhs || !rhs || !reversal || !pad) return std::nullopt;
    if (pad->empty()) pad->resize(rank);
    if (pad->size() != rank) return std::nullopt;
    window.stride = *stride;
    window.lhsDilate = *lhs;
    window.rhsDilate = *rhs;
    window.reversal = *reversal;
    window.pad = *pad;
    return window;
}

std::optional<DimLabels> dimLabelsIn(std::string_view text) {
    const std::size_t bar = text.find('_'), arrow = text.find("->");
    if (bar == std::string_view::npos || arrow == std::string_view::npos || arrow < bar)
        return std::nullopt;
    const auto side = [](std::string_view labels, char first,
                         char second) -> std::optional<DimLabels::Side> {
        DimLabels::Side result;
        if (labels.size() < 2) return std::nullopt;
        result.spatial.resize(labels.size() - 2);
        std::vector<bool> seen(labels.size(), false);
        for (std::size_t d = 0; d < labels.size(); ++d) {
            const char c = labels[d];
            const auto spatial = static_cast<std::size_t>(c - '0');
            const bool isSpatial = isDigit(c) && spatial < result.spatial.size();
            if (!isSpatial && c != first && c != second) return std::nullopt;
            const std::size_t slot = isSpatial ? spatial + 2 : c == first ? 0 : 1;
            if (seen[slot]) return std::nullopt;
            seen[slot] = true;
            (isSpatial ? result.spatial[spatial] : c == first ? result.first : result.second) = d;
        }
        return result;
    };
    const auto input = side(text.substr(0, bar), 'b', 'f');
    const auto kernel = side(text.substr(bar + 1, arrow - bar - 1), 'o', 'i');
    const auto output = side(text.substr(arrow + 2), 'b', 'f');
    if (!input || !kernel || !output || input->spatial.size() != kernel->spatial.size() ||
        input->spatial.size() != output->spatial.size())
        return std::nullopt;
    return DimLabels{*input, *kernel, *output};
}

std::optional<DeviceArray> deviceArrayIn(std::string_view text) {
    DeviceArray result;
    const auto extent = bracket(text, '[', ']');
    if (!extent) return std::nullopt;
    const auto dims = integersIn(*extent);
    if (!dims) return std::nullopt;
    const auto count = deviceCount(*dims);
    if (!count) return std::nullopt;
    result.dims = *dims;
    if (text.starts_with("<=")) {
        text.remove_prefix(2);
        const auto reshape = bracket(text, '[', ']');
        if (!reshape) return std::nullopt;
        const auto from = integersIn(*reshape);
        if (!from) return std::nullopt;
        Ints perm(from->size());
        std::iota(perm.begin(), perm.end(), std::int64_t{0});
        if (take(text, 'T')) {
            const auto order = bracket(text, '(', ')');
            const auto numbers = order ? integersIn(*order) : std::nullopt;
            if (!numbers) return std::nullopt;
            perm = *numbers;
        }
        const auto devices = iotaDevices(*from, perm);
        if (!devices) return std::nullopt;
        result.devices = *devices;
    } else {
        const auto devices = integersIn(text.substr(0, text.find_first_of(" }")));
        if (!devices) return std::nullopt;
        result.devices = *devices;
    }
    if (result.devices.size() != static_cast<std::size_t>(*count) || !areDevices(result.devices))
        return std::nullopt;
    return result;
}

std::optional<DeviceArray> deviceGroupsIn(std::string_view text) {
    if (text.starts_with('[')) {
        auto result = deviceArrayIn(text);
        if (result && result->dims.size() != 2) return std::nullopt;
        return result;
    }
    DeviceArray result{{0, 0}, {}};
    if (text.empty() || text.front() != '{') return std::nullopt;
    text.remove_prefix(1);
    for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{')) {
        text.remove_prefix(at);
        const auto inside = bracket(text, '{', '}');
        const auto group = inside ? integersIn(*inside) : std::nullopt;
        if (!group || !areDevices(*group)) return std::nullopt;
        ++result.dims[0];
        result.dims[1] = std::max(result.dims[1], static_cast<std::int64_t>(group->size()));
        result.devices.insert(result.devices.end(), group->begin(), group->end());
    }
    return result;
}

} // namespace shardlens::hlo
