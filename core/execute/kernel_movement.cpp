// SPDX-License-Identifier: Apache-2.0
// Ops that move data: for each element of the result, the element of the operand it is read from.
// The gradient goes the same way back, summed where an element is read more than once.
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_support.h"

#include <algorithm>
#include <numeric>

namespace shardlens::kernels {

namespace {

constexpr std::ptrdiff_t kNowhere = -1; ///< a padded element, a row of another rank's table
using Sources = std::vector<std::ptrdiff_t>;

/// Where the elements of result `r` come from in operand 0.
using SourceFunction = Sources (*)(const KernelContext&, Operands operands, std::size_t r);

Array moved(const KernelContext& context, const Array& from, const Sources& sources, std::size_t r,
            double fill = 0) {
    Array result = Array::like(from, context.resultShape(r));
    for (std::size_t i = 0; i < sources.size(); ++i) {
        const auto source = static_cast<std::size_t>(sources[i]);
        if (from.integral)
            result.ints[i] =
                sources[i] == kNowhere ? static_cast<std::int64_t>(fill) : from.ints[source];
        else
            result.reals[i] = sources[i] == kNowhere ? fill : from.reals[source];
    }
    return result;
}

template <SourceFunction kSources>
Arrays moveForward(const KernelContext& context, Operands operands) {
    Arrays results;
    for (std::size_t r = 0; r < context.whole().outputs.size(); ++r)
        results.push_back(moved(context, *operands[0], kSources(context, operands, r), r));
    return results;
}

template <SourceFunction kSources>
Arrays moveBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                    std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    if (!differentiable(operands, 0)) return given;
    for (std::size_t r = 0; r < gradients.size(); ++r) {
        const Array* gradient = gradientOf(gradients, r);
        if (gradient == nullptr) continue;
        if (given[0].empty()) given[0] = zerosLike(operands, 0);
        const Sources sources = kSources(context, operands, r);
        for (std::size_t i = 0; i < sources.size(); ++i)
            if (sources[i] != kNowhere)
                given[0].reals[static_cast<std::size_t>(sources[i])] += gradient->reals[i];
    }
    return given;
}

/// Reads at start + sum of index * stride.
Sources strided(const Shape& result, Strides strides, std::ptrdiff_t start = 0) {
    Sources sources;
    sources.reserve(countOf(result));
    for (Counter at(result); !at.done(); at.next()) {
        std::ptrdiff_t source = start;
        for (std::size_t d = 0; d < strides.size(); ++d) source += at.index()[d] * strides[d];
        sources.push_back(source);
    }
    return sources;
}

// --- one operand --------------------------------------------------------------------------------

Sources transposeSources(const KernelContext& context, Operands operands, std::size_t) {
    const Strides own = signedStrides(operands[0]->shape);
    Strides strides;
    for (const std::int64_t p : context.op().attributes.integers("perm"))
        strides.push_back(own[static_cast<std::size_t>(p)]);
    return strided(context.resultShape(0), std::move(strides));
}

Sources reshapeSources(const KernelContext& context, Operands, std::size_t) {
    Sources sources(countOf(context.resultShape(0)));
    std::iota(sources.begin(), sources.end(), std::ptrdiff_t{0});
    return sources;
}

Sources expandSources(const KernelContext& context, Operands operands, std::size_t) {
    const Shape result = context.resultShape(0);
    return strided(result, broadcastStrides(operands[0]->shape, result));
}

Sources tileSources(const KernelContext& context, Operands operands, std::size_t) {
    const Shape& in = operands[0]->shape;
    const Strides own = signedStrides(in);
    Sources sources;
    for (Counter at(context.resultShape(0)); !at.done(); at.next()) {
        std::ptrdiff_t source = 0;
        for (std::size_t d = 0; d < in.size(); ++d) source += at.index()[d] % in[d] * own[d];
        sources.push_back(source);
    }
    return sources;
}

/// The parts lie one behind the other along the axis, which is whole.
Sources splitSources(const KernelContext& context, Operands operands, std::size_t r) {
    const Shape& in = operands[0]->shape;
    const std::size_t axis = axisOf(context, in.size());
    std::int64_t start = 0;
    for (std::size_t before = 0; before < r; ++before) start += context.resultShape(before)[axis];
    const Strides own = signedStrides(in);
    return strided(context.resultShape(r), own, start * own[axis]);
}

/// Starts count from the end when negative, and are taken inside the dimension.
Sources sliceSources(const KernelContext& context, Operands operands, std::size_t) {
    const Attributes& attributes = context.op().attributes;
    const Ints axes = attributes.integers("axes"), starts = attributes.integers("starts"),
               steps = attributes.integers("steps");
    const Shape& in = operands[0]->shape;
    Strides strides = signedStrides(in);
    std::ptrdiff_t first = 0;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto axis = static_cast<std::size_t>(
            axes[i] < 0 ? axes[i] + static_cast<std::int64_t>(in.size()) : axes[i]);
        // A cut axis is one that the slice takes whole: it starts at 0 locally too.
        std::int64_t start = starts[i] < 0 ? starts[i] + in[axis] : starts[i];
        start = steps[i] > 0 ? std::clamp<std::int64_t>(start, 0, in[axis])
                             : std::clamp<std::int64_t>(start, -1, in[axis] - 1);
        first += start * strides[axis];
        strides[axis] *= steps[i];
    }
    return strided(context.resultShape(0), std::move(strides), first);
}

// --- Pad ----------------------------------------------------------------------------------------

/// Where an index before the start or behind the end of a dim is read; kNowhere: nowhere.
std::int64_t paddedIndex(std::string_view mode, std::int64_t index, std::int64_t size) {
    if (index >= 0 && index < size) return index;
    if (size == 0 || mode == "constant") return kNowhere;
    if (mode == "edge") return std::clamp<std::int64_t>(index, 0, size - 1);
    if (mode == "wrap") return (index % size + size) % size;
    if (size == 1) return 0; // reflect: the border itself is not repeated
    const std::int64_t period = 2 * (size - 1), at = (index % period + period) % period;
    return at < size ? at : period - at;
}

Sources padSources(const KernelContext& context, Operands operands, std::size_t) {
    const Ints pads = context.op().attributes.integers("pads");
    const std::string mode = context.op().attributes.text("mode", "constant");
    const Shape& in = operands[0]->shape;
    const Strides own = signedStrides(in);
    Sources sources;
    for (Counter at(context.resultShape(0)); !at.done(); at.next()) {
        std::ptrdiff_t source = 0;
        for (std::size_t d = 0; d < in.size() && source != kNowhere; ++d) {
            const std::int64_t index = paddedIndex(mode, at.index()[d] - pads[d], in[d]);
            source = index == kNowhere ? kNowhere : source + index * own[d];
        }
        sources.push_back(source);
    }
    return sources;
}

/// The filling is an attribute, or operand 1.
double padValue(const KernelContext& context, Operands operands) {
    return hasOperand(operands, 1) ? operands[1]->at(0)
                                   : context.op().attributes.number("value", 0);
}

Arrays padForward(const KernelContext& context, Operands operands) {
    return {moved(context, *operands[0], padSources(context, operands, 0), 0,
                  padValue(context, operands))};
}

Arrays padBackward(const KernelContext& context, Operands operands, std::span<const Array> results,
                   std::span<const Array> gradients) {
    Arrays given = moveBackward<padSources>(context, operands, results, gradients);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr || !differentiable(operands, 1)) return given;
    given[1] = zerosLike(operands, 1);
    const Sources sources = padSources(context, operands, 0);
    for (std::size_t i = 0; i < sources.size(); ++i)
        if (sources[i] == kNowhere) given[1].reals[0] += gradient->reals[i];
    return given;
}

// --- Gather: rows of a table; those that another rank has give zeros -----------------------------

Sources gatherSources(const KernelContext& context, Operands operands, std::size_t) {
    const Shape &table = operands[0]->shape, &indices = operands[1]->shape;
    const std::size_t axis = axisOf(context, table.size());
    const std::int64_t whole = context.whole().inputs[0].shape[axis],
                       begin = context.operandBegin(0, axis);
    const auto split = table.begin() + static_cast<std::ptrdiff_t>(axis);
    const std::size_t outer = countOf({table.begin(), split}),
                      inner = countOf({split + 1, table.end()}),
                      rows = static_cast<std::size_t>(table[axis]);
    Sources sources;
    for (std::size_t o = 0; o < outer; ++o)
        for (std::size_t i = 0; i < countOf(indices); ++i) {
            const std::int64_t index = operands[1]->ints[i];
            const std::int64_t row = (index < 0 ? index + whole : index) - begin;
            const bool here = row >= 0 && row < table[axis];
            const std::size_t first = here ? (o * rows + static_cast<std::size_t>(row)) * inner : 0;
            for (std::size_t e = 0; e < inner; ++e)
                sources.push_back(here ? static_cast<std::ptrdiff_t>(first + e) : kNowhere);
        }
    return sources;
}

// --- Concat -------------------------------------------------------------------------------------

Arrays concatForward(const KernelContext& context, Operands operands) {
    Arrays parts;
    for (const Array* operand : operands) parts.push_back(*operand);
    return {joined(parts, axisOf(context, parts.front().shape.size()))};
}

Arrays concatBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                      std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr) return given;
    const std::size_t axis = axisOf(context, operands[0]->shape.size());
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const std::int64_t size = operands[i]->shape[axis];
        if (differentiable(operands, i)) given[i] = sliceOf(*gradient, axis, begin, size);
        begin += size;
    }
    return given;
}

template <SourceFunction kSources>
Kernel moving(OpKind kind) {
    return {kind, moveForward<kSources>, moveBackward<kSources>};
}

} // namespace

} // namespace shardlens::kernels

namespace shardlens {

std::vector<Kernel> movementKernels() {
    using namespace kernels;
    return {
        moving<transposeSources>(OpKind::Transpose),
        moving<reshapeSources>(OpKind::Reshape),
        moving<expandSources>(OpKind::Expand),
        moving<tileSources>(OpKind::Tile),
        moving<splitSources>(OpKind::Split),
        moving<sliceSources>(OpKind::Slice),
        moving<gatherSources>(OpKind::Gather),
        {OpKind::Pad, padForward, padBackward},
        {OpKind::Concat, concatForward, concatBackward},
        rotaryKernel(),
    };
}

} // namespace shardlens
