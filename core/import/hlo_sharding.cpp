// SPDX-License-Identifier: Apache-2.0
// Device arrays are decomposed into strides. A row-major mesh of axes a, b, c has strides bc, c, 1:
// an annotation is whole axes if its strides and extents fall on these boundaries.
#include "core/import/hlo_sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

namespace shardlens::hlo {

namespace {

/// Offsets along one dimension (0, then the others) as ranges, minor first.
std::optional<std::vector<DeviceRange>> decompose(std::vector<std::int64_t> offsets) {
    std::vector<DeviceRange> ranges;
    while (offsets.size() > 1) {
        const std::int64_t stride = offsets[1];
        if (stride <= 0) return std::nullopt;
        std::size_t size = 1;
        while (size < offsets.size() && offsets[size] == stride * static_cast<std::int64_t>(size))
            ++size;
        if (offsets.size() % size != 0) return std::nullopt;
        std::vector<std::int64_t> rest;
        for (std::size_t i = 0; i < offsets.size(); i += size) {
            for (std::size_t j = 0; j < size; ++j)
                if (offsets[i + j] != offsets[i] + stride * static_cast<std::int64_t>(j))
                    return std::nullopt;
            rest.push_back(offsets[i]);
        }
        ranges.push_back({stride, static_cast<std::int64_t>(size)});
        offsets = std::move(rest);
    }
    return ranges;
}

/// The value of `key=` up to a blank or the end; brackets are not looked into.
std::string_view after(std::string_view text, std::string_view key) {
    const std::size_t at = text.find(key);
    return at == std::string_view::npos ? std::string_view() : text.substr(at + key.size());
}

std::string_view inner(std::string_view braced) {
    if (braced.starts_with('{')) braced.remove_prefix(1);
    if (braced.ends_with('}')) braced.remove_suffix(1);
    return braced;
}

/// How many of the last tile dimensions are no dimension of the tensor.
std::size_t subgroupDims(std::string_view text) {
    if (text.find("last_tile_dim_replicate") != std::string_view::npos) return 1;
    const std::string_view types = after(text, "last_tile_dims={");
    if (types.empty()) return 0;
    const std::string_view list = types.substr(0, types.find('}'));
    return list.empty() ? 0 : 1 + static_cast<std::size_t>(std::ranges::count(list, ','));
}

} // namespace

std::optional<std::vector<std::vector<DeviceRange>>> rangesOf(const DeviceArray& array) {
    std::vector<std::vector<DeviceRange>> result(array.dims.size());
    std::vector<std::vector<std::int64_t>> offsets(array.dims.size());
    std::size_t step = 1;
    for (std::size_t d = array.dims.size(); d-- > 0;) {
        for (std::int64_t i = 0; i < array.dims[d]; ++i)
            offsets[d].push_back(array.devices[static_cast<std::size_t>(i) * step] -
                                 array.devices[0]);
        const auto ranges = decompose(offsets[d]);
        if (!ranges) return std::nullopt;
        result[d] = *ranges;
        std::ranges::reverse(result[d]);
        step *= static_cast<std::size_t>(array.dims[d]);
    }
    // Every device must be the sum of its offsets: the array is one lattice.
    for (std::size_t i = 0; i < array.devices.size(); ++i) {
        std::int64_t sum = array.devices[0];
        std::size_t rest = i;
        for (std::size_t d = array.dims.size(); d-- > 0;) {
            const auto extent = static_cast<std::size_t>(array.dims[d]);
            sum += offsets[d][rest % extent];
            rest /= extent;
        }
        if (sum != array.devices[i]) return std::nullopt;
    }
    return result;
}

std::optional<Tiling> tilingOf(std::string_view sharding) {
    const std::string_view text = inner(sharding);
    if (text.starts_with("replicated")) return Tiling{};
    const std::string_view tiles = after(text, "devices=");
    if (!text.starts_with("devices=") || tiles.empty()) return std::nullopt;
    const auto array = deviceArrayIn(tiles);
    if (!array) return std::nullopt;
    const std::size_t extra = subgroupDims(tiles);
    if (extra > array->dims.size()) return std::nullopt;
    auto ranges = rangesOf(*array);
    if (!ranges) return std::nullopt;
    ranges->resize(ranges->size() - extra);
    return Tiling{std::move(*ranges), static_cast<std::int64_t>(array->devices.size())};
}

std::vector<std::string_view> leafShardings(std::string_view sharding) {
    const std::string_view text = inner(sharding);
    std::vector<std::string_view> result;
    if (!text.starts_with('{')) return {sharding};
    std::size_t depth = 0, begin = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '{' && depth++ == 0) begin = i;
        if (text[i] == '}' && depth > 0 && --depth == 0)
            result.push_back(text.substr(begin, i - begin + 1));
    }
    return result;
}

void MeshFinder::add(const std::vector<DeviceRange>& ranges) {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    for (const DeviceRange& range : ranges) {
        if (range.size > kMost / std::max<std::int64_t>(range.stride, 1)) continue;
        m_boundaries.insert(range.stride);
        m_boundaries.insert(range.stride * range.size);
    }
}

void MeshFinder::atLeast(std::int64_t devices) {
    m_devices = std::max(m_devices, devices);
}

std::vector<PartitionAxis> MeshFinder::mesh() const {
    std::vector<std::int64_t> strides(m_boundaries.begin(), m_boundaries.end());
    for (const std::int64_t end : {std::int64_t{1}, m_devices})
        if (std::ranges::find(strides, end) == strides.end()) strides.push_back(end);
    std::ranges::sort(strides);
    std::vector<PartitionAxis> axes;
    for (std::size_t i = 1; i < strides.size(); ++i) {
        if (strides[i] % strides[i - 1] != 0 || strides[i] > m_devices) return {};
        axes.push_back({{}, strides[i] / strides[i - 1]});
    }
    constexpr std::size_t kMostAxes = 16;
    if (axes.size() > kMostAxes) return {};
    std::ranges::reverse(axes);
    for (std::size_t i = 0; i < axes.size(); ++i)
        axes[i].name = axes.size() == 1 ? "devices" : fmt::format("axis{}", i);
    return axes;
}

std::optional<std::vector<std::uint8_t>> axesOf(const std::vector<PartitionAxis>& mesh,
                                                const std::vector<DeviceRange>& ranges) {
    std::vector<std::uint8_t> result;
    for (const DeviceRange& range : ranges) {
        std::int64_t stride = 1, covered = 1;
        std::vector<std::uint8_t> axes; // minor first
        for (std::size_t i = mesh.size(); i-- > 0; stride *= mesh[i].size)
            if (stride >= range.stride && stride < range.stride * range.size) {
                axes.push_back(static_cast<std::uint8_t>(i));
                covered *= mesh[i].size;
                if (axes.size() == 1 && stride != range.stride) return std::nullopt;
            }
        if (covered != range.size) return std::nullopt;
        for (const std::uint8_t axis : axes | std::views::reverse) result.push_back(axis);
    }
    return result;
}

std::optional<TensorSharding> shardingOf(const std::vector<PartitionAxis>& mesh,
                                         const Tiling& tiling, std::size_t rank) {
    TensorSharding sharding;
    sharding.dims.resize(rank);
    if (tiling.dims.empty()) return sharding;
    if (tiling.dims.size() != rank || mesh.empty()) return std::nullopt;
    for (std::size_t d = 0; d < rank; ++d) {
        const auto axes = axesOf(mesh, tiling.dims[d]);
        if (!axes) return std::nullopt;
        sharding.dims[d] = *axes;
    }
    return sharding;
}

} // namespace shardlens::hlo
