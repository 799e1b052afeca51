// SPDX-License-Identifier: Apache-2.0
// Opcodes that move data: shapes are those the file states, and a row whose meaning has no exact
// counterpart in the catalogue gives up.
#include "core/import/hlo_attributes.h"
#include "core/import/hlo_translation.h"

#include <algorithm>
#include <numeric>

namespace shardlens::hlo {

namespace {

using Ints = std::vector<std::int64_t>;

std::optional<Ints> dimensions(const Site& site, std::string_view key = "dimensions") {
    return integersIn(site.instruction.attribute(key));
}

bool areDims(const Ints& dims, std::size_t rank) {
    return std::ranges::all_of(
        dims, [&](std::int64_t d) { return d >= 0 && d < static_cast<std::int64_t>(rank); });
}

TensorId reshapeTo(Translation& t, const Site& site, TensorId from, const Shape& shape) {
    const TensorSpec& spec = t.spec(from);
    if (spec.shape == shape) return from;
    return t.emit(site, OpKind::Reshape, {{"shape", shape}}, {from}, {spec.dtype, shape});
}

std::optional<Leaf> reshape(Translation& t, const Site& site) {
    const TensorSpec& spec = site.instruction.type.spec;
    const TensorId from = t.tensor(site, 0);
    if (elementsOf(t.spec(from).shape) != elementsOf(spec.shape)) return std::nullopt;
    if (const auto value = t.splatValue(from)) return t.splat(spec, *value);
    return reshapeTo(t, site, from, spec.shape);
}

/// Reinterprets memory: another shape of as many elements is a reshape, or a transpose that costs
/// nothing; which one is not told apart.
std::optional<Leaf> bitcast(Translation& t, const Site& site) {
    const Leaf from = t.leaf(site, 0);
    if (t.spec(from) == site.instruction.type.spec) return from;
    if (t.spec(from).dtype != site.instruction.type.spec.dtype) return std::nullopt;
    return reshape(t, site);
}

std::optional<Leaf> transpose(Translation& t, const Site& site) {
    const auto perm = dimensions(site);
    if (!perm) return std::nullopt;
    const TensorId from = t.tensor(site, 0);
    if (const auto value = t.splatValue(from)) return t.splat(site.instruction.type.spec, *value);
    return t.tryEmit(site, OpKind::Transpose, {{"perm", *perm}}, {from},
                     site.instruction.type.spec);
}

/// Operand dimension i becomes dimension dims[i] of the result: a transpose if they are not in
/// order, ones in between, and an expansion.
std::optional<Leaf> broadcast(Translation& t, const Site& site) {
    const TensorSpec& spec = site.instruction.type.spec;
    TensorId from = t.tensor(site, 0);
    const Shape shape = t.spec(from).shape;
    const auto dims = dimensions(site);
    if (!dims || dims->size() != shape.size() || !areDims(*dims, spec.shape.size()))
        return std::nullopt;
    for (std::size_t i = 0; i < shape.size(); ++i)
        if (spec.shape[static_cast<std::size_t>((*dims)[i])] != shape[i] ||
            std::ranges::count(*dims, (*dims)[i]) != 1)
            return std::nullopt;
    if (const auto value = t.splatValue(from)) return t.splat(spec, *value);
    if (!std::ranges::is_sorted(*dims)) {
        Ints order(shape.size());
        std::iota(order.begin(), order.end(), std::int64_t{0});
        std::ranges::sort(order, {},
                          [&](std::int64_t i) { return (*dims)[static_cast<std::size_t>(i)]; });
        TensorSpec moved = t.spec(from);
        for (std::size_t i = 0; i < order.size(); ++i)
            moved.shape[i] = shape[static_cast<std::size_t>(order[i])];
        from = t.emit(site, OpKind::Transpose, {{"perm", order}}, {from}, moved);
    }
    // Leading ones need not be written: Expand aligns to the right.
    const std::size_t first =
        dims->empty() ? spec.shape.size() : static_cast<std::size_t>(std::ranges::min(*dims));
    Shape with(spec.shape.size() - first, 1);
    for (const std::int64_t d : *dims)
        with[static_cast<std::size_t>(d) - first] = spec.shape[static_cast<std::size_t>(d)];
    from = reshapeTo(t, site, from, with);
    if (with == spec.shape) return from;
    return t.emit(site, OpKind::Expand, {{"shape", spec.shape}}, {from}, spec);
}

std::optional<Leaf> concatenate(Translation& t, const Site& site) {
    const auto dims = dimensions(site);
    if (!dims || dims->size() != 1) return std::nullopt;
    const std::vector<TensorId> inputs = t.arrays(site);
    if (inputs.size() == 1) return inputs.front();
    return t.tryEmit(site, OpKind::Concat, {{"axis", (*dims)[0]}}, inputs,
                     site.instruction.type.spec);
}

// --- slices -------------------------------------------------------------------------------------

/// A box of the operand: nothing to do, the piece that was written there, or a Slice.
std::optional<Leaf> cut(Translation& t, const Site& site, const Buffers::Box& box,
                        const Ints& strides) {
    const Leaf from = t.leaf(site, 0);
    const TensorSpec spec = t.spec(from);
    Ints starts, ends, axes, steps;
    for (std::size_t d = 0; d < spec.shape.size(); ++d) {
        if (box.sizes[d] == spec.shape[d] && strides[d] == 1) continue;
        starts.push_back(box.starts[d]);
        ends.push_back(box.starts[d] + box.sizes[d]);
        axes.push_back(static_cast<std::int64_t>(d));
        steps.push_back(strides[d]);
    }
    if (axes.empty()) return from;
    const bool whole = std::ranges::all_of(strides, [](std::int64_t s) { return s == 1; });
    if (whole && Buffers::isVirtual(from))
        if (const auto piece = t.buffers().read(from, box)) return piece;
    const TensorId tensor = t.materialise(from);
    if (const auto value = t.splatValue(tensor)) return t.splat(site.instruction.type.spec, *value);
    return t.tryEmit(site, OpKind::Slice,
                     {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}},
                     {tensor}, site.instruction.type.spec);
}

std::optional<Leaf> slice(Translation& t, const Site& site) {
    const auto ranges = slicesIn(site.instruction.attribute("slice"));
    const Shape& shape = t.spec(t.leaf(site, 0)).shape;
    if (!ranges || ranges->size() != shape.size()) return std::nullopt;
    Buffers::Box box;
    Ints strides;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        const SliceRange& range = (*ranges)[d];
        if (range.start < 0 || range.limit < range.start || range.limit > shape[d] ||
            range.stride < 1)
            return std::nullopt;
        box.starts.push_back(range.start);
        box.sizes.push_back(range.limit - range.start);
        strides.push_back(range.stride);
    }
    return cut(t, site, box, strides);
}

/// Start indices from operand `first` on: scalars, or one vector. Where the box fills a dimension
/// the index does not matter; elsewhere it must be known, and is clamped as HLO does.
std::optional<Shape> startsAt(Translation& t, const Site& site, std::size_t first,
                              const Shape& shape, const Shape& sizes) {
    if (site.instruction.operands.size() <= first && !shape.empty()) return std::nullopt;
    const bool vector = site.instruction.operands.size() == first + 1 &&
                        t.spec(t.leaf(site, first)).shape.size() == 1;
    if (!vector && site.instruction.operands.size() != first + shape.size()) return std::nullopt;
    Shape starts;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (sizes[d] < 0 || sizes[d] > shape[d]) return std::nullopt;
        if (sizes[d] == shape[d]) {
            starts.push_back(0);
            continue;
        }
        const KnownInts* ints = t.known().ints(t.tensor(site, vector ? first : first + d));
        const std::size_t at = vector ? d : 0;
        if (!ints || ints->size() <= at) return std::nullopt;
        starts.push_back(std::clamp<std::int64_t>((*ints)[at], 0, shape[d] - sizes[d]));
    }
    return starts;
}

std::optional<Leaf> dynamicSlice(Translation& t, const Site& site) {
    const Shape shape = t.spec(t.leaf(site, 0)).shape;
    const Shape sizes = site.instruction.type.spec.shape;
    if (sizes.size() != shape.size()) return std::nullopt;
    const auto starts = startsAt(t, site, 1, shape, sizes);
    if (!starts)
        return t.tryEmit(site, OpKind::DynamicSlice, {{"sizes", sizes}}, t.arrays(site),
                         site.instruction.type.spec);
    return cut(t, site, {*starts, sizes}, Ints(shape.size(), 1));
}

std::optional<Leaf> dynamicUpdateSlice(Translation& t, const Site& site) {
    const Leaf base = t.leaf(site, 0);
    const TensorId update = t.tensor(site, 1);
    const TensorSpec spec = t.spec(base);
    const Shape sizes = t.spec(update).shape;
    if (sizes.size() != spec.shape.size() || spec != site.instruction.type.spec)
        return std::nullopt;
    const auto starts = startsAt(t, site, 2, spec.shape, sizes);
    if (!starts)
        return t.tryEmit(site, OpKind::DynamicUpdate, {}, t.arrays(site),
                         site.instruction.type.spec);
    if (sizes == spec.shape) return update;
    return t.buffers().write(base, spec, update, {*starts, sizes});
}

/// Cuts where the padding is negative, then pads. Padding between elements has no counterpart.
std::optional<Leaf> pad(Translation& t, const Site& site) {
    const auto ranges = padsIn(site.instruction.attribute("padding"));
    if (site.instruction.operands.size() != 2 || !ranges) return std::nullopt;
    TensorId from = t.tensor(site, 0);
    TensorSpec spec = t.spec(from);
    const std::size_t rank = spec.shape.size();
    if (ranges->size() != rank) return std::nullopt;
    constexpr std::int64_t kSane = std::int64_t{1} << 60;
    Ints pads(2 * rank, 0), starts, ends, axes;
    for (std::size_t d = 0; d < rank; ++d) {
        const PadRange& range = (*ranges)[d];
        if (range.interior != 0 || range.low > kSane || range.low < -kSane || range.high > kSane ||
            range.high < -kSane)
            return std::nullopt;
        pads[d] = std::max<std::int64_t>(range.low, 0);
        pads[rank + d] = std::max<std::int64_t>(range.high, 0);
        if (range.low >= 0 && range.high >= 0) continue;
        const std::int64_t from0 = std::max<std::int64_t>(-range.low, 0);
        const std::int64_t to = spec.shape[d] + std::min<std::int64_t>(range.high, 0);
        if (from0 > to) return std::nullopt;
        axes.push_back(static_cast<std::int64_t>(d));
        starts.push_back(from0);
        ends.push_back(to);
        spec.shape[d] = to - from0;
    }
    if (!axes.empty())
        from = t.emit(
            site, OpKind::Slice,
            {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", Ints(axes.size(), 1)}},
            {from}, spec);
    if (std::ranges::all_of(pads, [](std::int64_t p) { return p == 0; }))
        return spec == site.instruction.type.spec ? std::optional<Leaf>(from) : std::nullopt;
    std::vector<TensorId> inputs{from};
    const TensorId value = t.tensor(site, 1);
    if (t.splatValue(value) != 0.0) inputs.push_back(value);
    return t.tryEmit(site, OpKind::Pad, {{"pads", pads}}, inputs, site.instruction.type.spec);
}

/// The form of an embedding: whole rows along one axis, one index each.
std::optional<Leaf> findRows(Translation& t, const Site& site) {
    const Instruction& instruction = site.instruction;
    if (instruction.operands.size() != 2) return std::nullopt;
    const TensorId table = t.tensor(site, 0);
    TensorId indices = t.tensor(site, 1);
    const Shape shape = t.spec(table).shape;
    const auto collapsed = dimensions(site, "collapsed_slice_dims");
    const auto map = dimensions(site, "start_index_map");
    const auto sizes = dimensions(site, "slice_sizes");
    const auto offsets = dimensions(site, "offset_dims");
    const auto vectorDim = dimensions(site, "index_vector_dim");
    const auto batching = dimensions(site, "operand_batching_dims");
    if (!collapsed || collapsed->size() != 1 || map != collapsed || !sizes ||
        sizes->size() != shape.size() || !areDims(*collapsed, shape.size()) || !offsets ||
        !vectorDim || vectorDim->size() != 1 || (batching && !batching->empty()))
        return std::nullopt;
    const auto axis = static_cast<std::size_t>((*collapsed)[0]);
    for (std::size_t d = 0; d < shape.size(); ++d)
        if ((*sizes)[d] != (d == axis ? 1 : shape[d])) return std::nullopt;
    Shape index = t.spec(indices).shape;
    if ((*vectorDim)[0] + 1 == static_cast<std::int64_t>(index.size())) {
        if (index.back() != 1) return std::nullopt;
        index.pop_back();
    } else if ((*vectorDim)[0] != static_cast<std::int64_t>(index.size())) {
        return std::nullopt;
    }
    Ints expected;
    for (std::size_t d = 0; d + 1 < shape.size(); ++d)
        expected.push_back(static_cast<std::int64_t>(d < axis ? d : d + index.size()));
    if (*offsets != expected) return std::nullopt;
    indices = reshapeTo(t, site, indices, index);
    return t.tryEmit(site, OpKind::Gather, {{"axis", static_cast<std::int64_t>(axis)}},
                     {table, indices}, instruction.type.spec);
}

/// Rows, else windows; dimension numbers that are not written are empty.
std::optional<Leaf> gather(Translation& t, const Site& site) {
    if (const auto rows = findRows(t, site)) return rows;
    const auto vectorDim = dimensions(site, "index_vector_dim");
    if (site.instruction.operands.size() != 2 || !vectorDim || vectorDim->size() != 1)
        return std::nullopt;
    const auto list = [&](std::string_view key) { return dimensions(site, key).value_or(Ints{}); };
    return t.tryEmit(site, OpKind::GatherWindows,
                     {{"slice_sizes", list("slice_sizes")},
                      {"offset_dims", list("offset_dims")},
                      {"collapsed_dims", list("collapsed_slice_dims")},
                      {"index_map", list("start_index_map")},
                      {"index_vector_dim", (*vectorDim)[0]},
                      {"batching_dims", list("operand_batching_dims")},
                      {"index_batching_dims", list("start_indices_batching_dims")}},
                     t.arrays(site), site.instruction.type.spec);
}

} // namespace

std::span<const OpcodeRow> movementRows() {
    static constexpr std::array kRows{
        OpcodeRow{"reshape", reshape},
        OpcodeRow{"bitcast", bitcast},
        OpcodeRow{"transpose", transpose},
        OpcodeRow{"broadcast", broadcast},
        OpcodeRow{"concatenate", concatenate},
        OpcodeRow{"slice", slice},
        OpcodeRow{"dynamic-slice", dynamicSlice},
        OpcodeRow{"dynamic-update-slice", dynamicUpdateSlice},
        OpcodeRow{"pad", pad},
        OpcodeRow{"gather", gather},
    };
    return kRows;
}

} // namespace shardlens::hlo
