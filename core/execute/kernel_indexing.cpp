// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters, by element, by index vector and of windows. An entry that lies in another
// rank's part of the data gives zero when it is read, and is left out when it is written.
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_support.h"
#include "core/model/index_windows.h"

#include <algorithm>

namespace shardlens::kernels {

namespace {

/// The local index along a dimension of operand 0 that an index of the whole means.
std::int64_t localIndex(const KernelContext& context, std::int64_t index, std::size_t dim) {
    if (index < 0) index += context.whole().inputs[0].shape[dim];
    return index - context.operandBegin(0, dim);
}

std::ptrdiff_t placeOf(const Shape& index, const Shape& shape, const Strides& strides) {
    std::ptrdiff_t place = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (index[d] < 0 || index[d] >= shape[d]) return kElsewhere;
        place += index[d] * strides[d];
    }
    return place;
}

/// For each element of `indices` the element of the data along the axis.
Places elementPlaces(const KernelContext& context, Operands operands) {
    const Array &data = *operands[0], &indices = *operands[1];
    const std::size_t axis = axisOf(context, data.shape.size());
    const Strides strides = signedStrides(data.shape);
    Places places;
    for (Counter at(indices.shape); !at.done(); at.next()) {
        Shape index = at.index();
        index[axis] = localIndex(context, indices.ints[places.size()], axis);
        places.push_back(placeOf(index, data.shape, strides));
    }
    return places;
}

/// data[B.., K.., R..] at indices[B.., I.., n]: for each element [B.., I.., R..].
Places vectorPlaces(const KernelContext& context, Operands operands) {
    const Array &data = *operands[0], &indices = *operands[1];
    const auto batch = static_cast<std::size_t>(context.op().attributes.integer("batch_dims", 0)),
               n = static_cast<std::size_t>(indices.shape.back());
    const Strides strides = signedStrides(data.shape);
    const Shape entries(indices.shape.begin(), indices.shape.end() - 1),
        rest(data.shape.begin() + static_cast<std::ptrdiff_t>(batch + n), data.shape.end());
    Places places;
    std::size_t vector = 0;
    for (Counter entry(entries); !entry.done(); entry.next(), vector += n) {
        Shape index(entry.index().begin(),
                    entry.index().begin() + static_cast<std::ptrdiff_t>(batch));
        for (std::size_t k = 0; k < n; ++k)
            index.push_back(localIndex(context, indices.ints[vector + k], batch + k));
        index.resize(data.shape.size(), 0);
        for (Counter inner(rest); !inner.done(); inner.next()) {
            std::ranges::copy(inner.index(),
                              index.begin() + static_cast<std::ptrdiff_t>(batch + n));
            places.push_back(placeOf(index, data.shape, strides));
        }
    }
    return places;
}

/// Updates of a cache begin where each batch entry says.
Places cachePlaces(const KernelContext& context, Operands operands) {
    const Array& data = *operands[0];
    const std::size_t axis = axisOf(context, data.shape.size());
    const bool circular = context.op().attributes.integer("circular", 0) != 0;
    const std::int64_t length = context.whole().inputs[0].shape[axis];
    const Strides strides = signedStrides(data.shape);
    Places places;
    for (Counter at(operands[2]->shape); !at.done(); at.next()) {
        Shape index = at.index();
        if (hasOperand(operands, 1))
            index[axis] += operands[1]->ints[static_cast<std::size_t>(index[0])];
        if (circular) index[axis] %= length;
        index[axis] -= context.operandBegin(0, axis);
        places.push_back(placeOf(index, data.shape, strides));
    }
    return places;
}

// --- gathers ------------------------------------------------------------------------------------

using PlacesFunction = Places (*)(const KernelContext&, Operands);

template <PlacesFunction kPlaces>
Arrays gatherForward(const KernelContext& context, Operands operands) {
    const Array& data = *operands[0];
    const Places places = kPlaces(context, operands);
    Array result = Array::like(data, context.resultShape(0));
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (places[i] == kElsewhere) continue;
        const auto place = static_cast<std::size_t>(places[i]);
        if (data.integral)
            result.ints[i] = data.ints[place];
        else
            result.reals[i] = data.reals[place];
    }
    return {std::move(result)};
}

template <PlacesFunction kPlaces>
Arrays gatherBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                      std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr || !differentiable(operands, 0)) return given;
    given[0] = zerosLike(operands, 0);
    const Places places = kPlaces(context, operands);
    for (std::size_t i = 0; i < places.size(); ++i)
        if (places[i] != kElsewhere)
            given[0].reals[static_cast<std::size_t>(places[i])] += gradient->reals[i];
    return given;
}

// --- Scatter ------------------------------------------------------------------------------------

enum class ScatterReduction { None, Add, Mul, Max, Min };

ScatterReduction reductionOf(const KernelContext& context) {
    const std::string name = context.op().attributes.text("reduction", "none");
    if (name == "add") return ScatterReduction::Add;
    if (name == "mul") return ScatterReduction::Mul;
    if (name == "max") return ScatterReduction::Max;
    if (name == "min") return ScatterReduction::Min;
    if (name != "none") fail(context, "there is no reduction '" + name + "'");
    return ScatterReduction::None;
}

Places scatterPlaces(const KernelContext& context, Operands operands) {
    if (context.op().kind == OpKind::ScatterWindows) return scatteredPlaces(context, operands);
    if (context.op().kind == OpKind::DynamicUpdate) return updatePlaces(context, operands);
    const std::string mode = context.op().attributes.text("mode", "elements");
    if (mode == "cache") return cachePlaces(context, operands);
    return mode == "nd" ? vectorPlaces(context, operands) : elementPlaces(context, operands);
}

/// Operand of the updates of array 0; those of the next arrays follow.
std::size_t firstUpdates(const KernelContext& context) {
    switch (context.op().kind) {
    case OpKind::DynamicUpdate:
        return 1;
    case OpKind::ScatterWindows:
        return scatteredArrays(context.whole()) + 1;
    default:
        return 2;
    }
}

template <typename T>
void write(std::vector<T>& data, const std::vector<T>& updates, const Places& places,
           ScatterReduction reduction) {
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (places[i] == kElsewhere) continue;
        T& target = data[static_cast<std::size_t>(places[i])];
        switch (reduction) {
        case ScatterReduction::None:
            target = updates[i];
            break;
        case ScatterReduction::Add:
            target += updates[i];
            break;
        case ScatterReduction::Mul:
            target *= updates[i];
            break;
        case ScatterReduction::Max:
            target = std::max(target, updates[i]);
            break;
        case ScatterReduction::Min:
            target = std::min(target, updates[i]);
            break;
        }
    }
}

Arrays scatterForward(const KernelContext& context, Operands operands) {
    const Places places = scatterPlaces(context, operands);
    const ScatterReduction reduction = reductionOf(context);
    Arrays results;
    for (std::size_t i = 0; i < context.whole().outputs.size(); ++i) {
        const Array &data = *operands[i], &updates = *operands[firstUpdates(context) + i];
        // Where updates are cut the results add up: the data themselves go in once.
        Array result = context.leads() ? data : Array::like(data, data.shape);
        if (result.integral)
            write(result.ints, updates.ints, places, reduction);
        else
            write(result.reals, updates.reals, places, reduction);
        results.push_back(std::move(result));
    }
    return results;
}

/// What the gradient of one array is made from, and the gradients of it and of its updates.
struct Scattered {
    const Array &data, &updates, &result, &gradient;
    Array toData, toUpdates;
};

/// Of several updates of one element the last stays.
void overwrittenGradients(const Places& places, Scattered& s) {
    s.toData = s.gradient;
    for (std::size_t i = places.size(); i-- > 0;) {
        if (places[i] == kElsewhere) continue;
        double& left = s.toData.reals[static_cast<std::size_t>(places[i])];
        s.toUpdates.reals[i] = left;
        left = 0;
    }
}

void addedGradients(const Places& places, Scattered& s) {
    s.toData = s.gradient;
    for (std::size_t i = 0; i < places.size(); ++i)
        if (places[i] != kElsewhere)
            s.toUpdates.reals[i] = s.gradient.reals[static_cast<std::size_t>(places[i])];
}

/// The gradient of a product by a factor is that of the product of the others, without division.
void productGradients(const Places& places, Scattered& s) {
    std::vector<std::vector<std::size_t>> at(s.gradient.size());
    for (std::size_t i = 0; i < places.size(); ++i)
        if (places[i] != kElsewhere) at[static_cast<std::size_t>(places[i])].push_back(i);
    for (std::size_t e = 0; e < at.size(); ++e) {
        s.toData.reals[e] = s.gradient.reals[e];
        for (const std::size_t i : at[e]) {
            s.toData.reals[e] *= s.updates.reals[i];
            s.toUpdates.reals[i] = s.gradient.reals[e] * s.data.reals[e];
            for (const std::size_t other : at[e])
                if (other != i) s.toUpdates.reals[i] *= s.updates.reals[other];
        }
    }
}

/// The gradient goes in equal parts to all that are as large as the result.
void extremumGradients(const Places& places, Scattered& s) {
    Numbers winners(s.gradient.size(), 0.0);
    for (std::size_t e = 0; e < winners.size(); ++e)
        winners[e] = s.data.reals[e] == s.result.reals[e] ? 1 : 0;
    const auto wins = [&](std::size_t i) {
        return places[i] != kElsewhere &&
               s.updates.reals[i] == s.result.reals[static_cast<std::size_t>(places[i])];
    };
    for (std::size_t i = 0; i < places.size(); ++i)
        if (wins(i)) winners[static_cast<std::size_t>(places[i])] += 1;
    for (std::size_t e = 0; e < winners.size(); ++e)
        if (s.data.reals[e] == s.result.reals[e])
            s.toData.reals[e] = s.gradient.reals[e] / winners[e];
    for (std::size_t i = 0; i < places.size(); ++i)
        if (wins(i)) {
            const auto e = static_cast<std::size_t>(places[i]);
            s.toUpdates.reals[i] = s.gradient.reals[e] / winners[e];
        }
}

Arrays scatterBackward(const KernelContext& context, Operands operands,
                       std::span<const Array> results, std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Places places = scatterPlaces(context, operands);
    for (std::size_t i = 0; i < context.whole().outputs.size(); ++i) {
        const std::size_t updates = firstUpdates(context) + i;
        const Array* gradient = gradientOf(gradients, i);
        if (gradient == nullptr || !differentiable(operands, i)) continue;
        Scattered s{*operands[i], *operands[updates],     results[i],
                    *gradient,    zerosLike(operands, i), zerosLike(operands, updates)};
        switch (reductionOf(context)) {
        case ScatterReduction::None:
            overwrittenGradients(places, s);
            break;
        case ScatterReduction::Add:
            addedGradients(places, s);
            break;
        case ScatterReduction::Mul:
            productGradients(places, s);
            break;
        case ScatterReduction::Max:
        case ScatterReduction::Min:
            extremumGradients(places, s);
            break;
        }
        given[i] = std::move(s.toData);
        given[updates] = std::move(s.toUpdates);
    }
    return given;
}

} // namespace

} // namespace shardlens::kernels

namespace shardlens {

std::vector<Kernel> indexingKernels() {
    using namespace kernels;
    return {
        {OpKind::GatherElements, gatherForward<elementPlaces>, gatherBackward<elementPlaces>},
        {OpKind::GatherND, gatherForward<vectorPlaces>, gatherBackward<vectorPlaces>},
        {OpKind::Scatter, scatterForward, scatterBackward},
        {OpKind::DynamicSlice, gatherForward<slicePlaces>, gatherBackward<slicePlaces>},
        {OpKind::DynamicUpdate, scatterForward, scatterBackward},
        {OpKind::GatherWindows, gatherForward<gatheredPlaces>, gatherBackward<gatheredPlaces>},
        {OpKind::ScatterWindows, scatterForward, scatterBackward},
        reduceWindowKernel(),
        selectAndScatterKernel(),
    };
}

} // namespace shardlens
