// SPDX-License-Identifier: Apache-2.0
// StableHLO's dimension numbers, checked and sorted by dimension (StableHLO specification, gather
// and scatter: offset_dims are the window dims of the result in the order of the data's dims that
// are neither collapsed nor batching; the other dims of the result are those of the indices).
#include "core/model/index_windows.h"

#include "core/model/catalogue_rows.h"

#include <algorithm>

namespace shardlens {

namespace {

using Ints = std::vector<std::int64_t>;

bool holds(const Ints& values, std::size_t value) {
    return std::ranges::find(values, static_cast<std::int64_t>(value)) != values.end();
}

/// Different dims of a tensor of that rank.
void requireDims(const OpView& view, Ints dims, std::size_t rank) {
    const auto end = static_cast<std::int64_t>(rank);
    catalogue::require(
        std::ranges::all_of(dims, [end](std::int64_t d) { return d >= 0 && d < end; }), view,
        "a dimension number does not exist");
    std::ranges::sort(dims);
    catalogue::require(std::ranges::adjacent_find(dims) == dims.end(), view,
                       "a dimension number is named twice");
}

struct Numbers {
    Ints offset, collapsed, batching, indexBatching, map;
    std::size_t vectorDim = 0;

    explicit Numbers(const Attributes& a)
        : offset(a.integers("offset_dims")), collapsed(a.integers("collapsed_dims")),
          batching(a.integers("batching_dims")), indexBatching(a.integers("index_batching_dims")),
          map(a.integers("index_map")),
          vectorDim(static_cast<std::size_t>(a.integer("index_vector_dim", 0))) {}

    void check(const OpView& view, std::size_t data, std::size_t indices,
               std::size_t windows) const {
        requireDims(view, offset, windows);
        Ints single = collapsed;
        single.insert(single.end(), batching.begin(), batching.end());
        requireDims(view, single, data);
        requireDims(view, map, data);
        requireDims(view, indexBatching, indices);
        const std::size_t entries = indices - (vectorDim < indices ? 1 : 0);
        catalogue::require(vectorDim <= indices && !holds(indexBatching, vectorDim), view,
                           "the dimension of the index vectors does not exist");
        catalogue::require(batching.size() == indexBatching.size() &&
                               data == offset.size() + single.size() &&
                               windows == offset.size() + entries,
                           view, "the dimension numbers do not fit the operands");
    }
};

} // namespace

std::size_t windowsRank(const OpView& view) {
    const Numbers numbers(view.op.attributes);
    const std::size_t indices = catalogue::shapeOf(view, 1).size();
    return numbers.offset.size() + indices - (numbers.vectorDim < indices ? 1 : 0);
}

IndexWindows indexWindows(const OpView& view, const Shape& data, const Shape& indices,
                          const Shape& windows, const Ints& sizes) {
    const Numbers numbers(view.op.attributes);
    numbers.check(view, data.size(), indices.size(), windows.size());
    const std::int64_t length = numbers.vectorDim < indices.size() ? indices[numbers.vectorDim] : 1;
    catalogue::require(static_cast<std::int64_t>(numbers.map.size()) == length &&
                           (sizes.empty() || sizes.size() == data.size()),
                       view, "the index vectors do not fit the data");
    IndexWindows result;
    result.vectorDim = numbers.vectorDim;
    result.entries.assign(indices.size(), IndexWindows::kNone);
    std::size_t entry = 0;
    for (std::size_t d = 0; d < windows.size(); ++d) {
        if (holds(numbers.offset, d)) continue;
        if (entry == numbers.vectorDim) ++entry;
        result.entries[entry++] = d;
    }
    Ints offset = numbers.offset;
    std::ranges::sort(offset);
    catalogue::require(offset == numbers.offset, view, "the window dimensions are not in order");
    result.data.resize(data.size());
    std::size_t next = 0;
    for (std::size_t d = 0; d < data.size(); ++d) {
        IndexWindows::DataDim& dim = result.data[d];
        if (const auto at = std::ranges::find(numbers.batching, static_cast<std::int64_t>(d));
            at != numbers.batching.end()) {
            const auto of = static_cast<std::size_t>(
                numbers.indexBatching[static_cast<std::size_t>(at - numbers.batching.begin())]);
            dim.batch = result.entries[of];
            catalogue::require(indices[of] == data[d] && !holds(numbers.map, d), view,
                               "data and indices differ in their batch dimensions");
        } else if (!holds(numbers.collapsed, d)) {
            dim.window = static_cast<std::size_t>(offset[next++]);
            dim.size = sizes.empty() ? windows[dim.window] : sizes[d];
        }
        catalogue::require(dim.size >= (dim.window == IndexWindows::kNone ? 1 : 0) &&
                               dim.size <= data[d] && (sizes.empty() || sizes[d] == dim.size),
                           view, "a window does not fit the data");
    }
    for (std::size_t k = 0; k < numbers.map.size(); ++k)
        result.data[static_cast<std::size_t>(numbers.map[k])].component = k;
    return result;
}

} // namespace shardlens
