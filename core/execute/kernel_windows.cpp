// SPDX-License-Identifier: Apache-2.0
// Where the elements of windows lie in the data, for gathers and scatters of windows and for slices
// at positions that are data. Everything is counted in the whole tensors, then moved into the part
// of the data that is here.
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_support.h"
#include "core/model/index_windows.h"

#include <algorithm>

namespace shardlens::kernels {

namespace {

/// Index in the whole tensor of a local index. `Begin` gives the first of each dim.
template <typename Begin>
Shape wholeIndex(Shape index, Begin begin) {
    for (std::size_t d = 0; d < index.size(); ++d) index[d] += begin(d);
    return index;
}

std::ptrdiff_t placeIn(const KernelContext& context, const Shape& whole, const Shape& local,
                       const Strides& strides) {
    std::ptrdiff_t place = 0;
    for (std::size_t d = 0; d < local.size(); ++d) {
        const std::int64_t at = whole[d] - context.operandBegin(0, d);
        if (at < 0 || at >= local[d]) return kElsewhere;
        place += at * strides[d];
    }
    return place;
}

/// Position of each dim, moved so that the window lies inside.
Shape positions(const KernelContext& context, Operands operands, std::size_t first,
                const Shape& part) {
    const Shape& whole = context.whole().inputs[0].shape;
    Shape begin;
    for (std::size_t d = 0; d < whole.size(); ++d)
        begin.push_back(
            std::clamp<std::int64_t>(operands[first + d]->ints[0], 0, whole[d] - part[d]));
    return begin;
}

template <typename Begin>
Places boxPlaces(const KernelContext& context, const Array& data, const Shape& local,
                 const Shape& at, Begin begin) {
    const Strides strides = signedStrides(data.shape);
    Places places;
    for (Counter index(local); !index.done(); index.next()) {
        Shape whole = wholeIndex(index.index(), begin);
        for (std::size_t d = 0; d < whole.size(); ++d) whole[d] += at[d];
        places.push_back(placeIn(context, whole, data.shape, strides));
    }
    return places;
}

/// The windows of a gather or scatter: the entry of the indices that an element belongs to, and
/// where its window begins.
class Windows {
public:
    Windows(const KernelContext& context, const IndexWindows& windows, const Array& indices)
        : m_context(context), m_windows(windows), m_indices(indices),
          m_strides(signedStrides(indices.shape)) {
        m_components = windows.vectorDim < indices.shape.size() ? m_strides[windows.vectorDim] : 0;
    }

    /// Begin of the window along each dim of the data; `moves`: kept inside, else as it is.
    Shape beginOf(const Shape& local, bool moves) const {
        std::ptrdiff_t entry = 0;
        for (std::size_t d = 0; d < m_windows.entries.size(); ++d)
            if (m_windows.entries[d] != IndexWindows::kNone)
                entry += local[m_windows.entries[d]] * m_strides[d];
        const Shape& data = m_context.whole().inputs[0].shape;
        Shape begin(data.size(), 0);
        for (std::size_t d = 0; d < data.size(); ++d) {
            const IndexWindows::DataDim& dim = m_windows.data[d];
            if (dim.component == IndexWindows::kNone) continue;
            const auto at = static_cast<std::size_t>(
                entry + static_cast<std::ptrdiff_t>(dim.component) * m_components);
            begin[d] = m_indices.ints[at];
            if (moves) begin[d] = std::clamp<std::int64_t>(begin[d], 0, data[d] - dim.size);
        }
        return begin;
    }

    bool isInside(const Shape& begin) const {
        const Shape& data = m_context.whole().inputs[0].shape;
        for (std::size_t d = 0; d < data.size(); ++d)
            if (begin[d] < 0 || begin[d] > data[d] - m_windows.data[d].size) return false;
        return true;
    }

    /// The element of the whole data under an element of the windows.
    Shape dataIndex(const Shape& whole, Shape begin) const {
        for (std::size_t d = 0; d < begin.size(); ++d) {
            const IndexWindows::DataDim& dim = m_windows.data[d];
            if (dim.batch != IndexWindows::kNone) begin[d] = whole[dim.batch];
            if (dim.window != IndexWindows::kNone) begin[d] += whole[dim.window];
        }
        return begin;
    }

private:
    const KernelContext& m_context;
    const IndexWindows& m_windows;
    const Array& m_indices;
    Strides m_strides;
    std::ptrdiff_t m_components = 0;
};

} // namespace

Places slicePlaces(const KernelContext& context, Operands operands) {
    const Shape at = positions(context, operands, 1, context.whole().outputs[0].shape);
    return boxPlaces(context, *operands[0], context.resultShape(0), at,
                     [&](std::size_t d) { return context.resultBegin(0, d); });
}

Places updatePlaces(const KernelContext& context, Operands operands) {
    const Shape at = positions(context, operands, 2, context.whole().inputs[1].shape);
    return boxPlaces(context, *operands[0], operands[1]->shape, at,
                     [&](std::size_t d) { return context.operandBegin(1, d); });
}

Places gatheredPlaces(const KernelContext& context, Operands operands) {
    const OpView& whole = context.whole();
    const IndexWindows w =
        indexWindows(whole, whole.inputs[0].shape, whole.inputs[1].shape, whole.outputs[0].shape,
                     context.op().attributes.integers("slice_sizes"));
    const Windows windows(context, w, *operands[1]);
    const Array& data = *operands[0];
    const Strides strides = signedStrides(data.shape);
    Places places;
    for (Counter at(context.resultShape(0)); !at.done(); at.next()) {
        const Shape index =
            wholeIndex(at.index(), [&](std::size_t d) { return context.resultBegin(0, d); });
        places.push_back(placeIn(context,
                                 windows.dataIndex(index, windows.beginOf(at.index(), true)),
                                 data.shape, strides));
    }
    return places;
}

Places scatteredPlaces(const KernelContext& context, Operands operands) {
    const OpView& whole = context.whole();
    const std::size_t arrays = scatteredArrays(whole);
    const IndexWindows w = indexWindows(whole, whole.inputs[0].shape, whole.inputs[arrays].shape,
                                        whole.inputs[arrays + 1].shape, {});
    const Windows windows(context, w, *operands[arrays]);
    const Array& data = *operands[0];
    const Strides strides = signedStrides(data.shape);
    Places places;
    for (Counter at(operands[arrays + 1]->shape); !at.done(); at.next()) {
        const Shape begin = windows.beginOf(at.index(), false);
        if (!windows.isInside(begin)) {
            places.push_back(kElsewhere);
            continue;
        }
        const Shape index = wholeIndex(
            at.index(), [&](std::size_t d) { return context.operandBegin(arrays + 1, d); });
        places.push_back(placeIn(context, windows.dataIndex(index, begin), data.shape, strides));
    }
    return places;
}

} // namespace shardlens::kernels
