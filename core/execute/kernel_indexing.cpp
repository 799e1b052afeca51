// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters by element and by index vector. An entry that lies in another rank's part of
// the data gives zero when it is read, and is left out when it is written.
#include "core/execute/kernel_support.h"

#include <algorithm>

namespace shardlens::kernels {

namespace {

constexpr std::ptrdiff_t kElsewhere = -1;
using Places = std::vector<std::ptrdiff_t>;

std::size_t axisOf(const KernelContext& context, std::size_t rank) {
    const std::int64_t axis = context.op().attributes.integer("axis", 0);
    return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

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
Places elementPlaces(const KernelContext& context, const Array& data, const Array& indices) {
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
Places vectorPlaces(const KernelContext& context, const Array& data, const Array& indices) {
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

using PlacesFunction = Places (*)(const KernelContext&, const Array& data, const Array& indices);

template <PlacesFunction kPlaces>
Arrays gatherForward(const KernelContext& context, Operands operands) {
    const Array& data = *operands[0];
    const Places places = kPlaces(context, data, *operands[1]);
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
    const Places places = kPlaces(context, *operands[0], *operands[1]);
    for (std::size_t i = 0; i < places.size(); ++i)
        if (places[i] != kElsewhere)
            given[0].reals[static_cast<std::size_t>(places[i])] += gradient->reals[i];
    return given;
}

// --- Scatter ------------------------------------------------------------------------------------

enum class Reduction { None, Add, Mul, Max, Min };

Reduction reductionOf(const KernelContext& context) {
    const std::string name = context.op().attributes.text("reduction", "none");
    if (name == "add") return Reduction::Add;
    if (name == "mul") return Reduction::Mul;
    if (name == "max") return Reduction::Max;
    if (name == "min") return Reduction::Min;
    if (name != "none") fail(context, "there is no reduction '" + name + "'");
    return Reduction::None;
}

Places scatterPlaces(const KernelContext& context, Operands operands) {
    const std::string mode = context.op().attributes.text("mode", "elements");
    if (mode == "cache") return cachePlaces(context, operands);
    return mode == "nd" ? vectorPlaces(context, *operands[0], *operands[1])
                        : elementPlaces(context, *operands[0], *operands[1]);
}

template <typename T>
void write(std::vector<T>& data, const std::vector<T>& updates, const Places& places,
           Reduction reduction) {
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (places[i] == kElsewhere) continue;
        T& target = data[static_cast<std::size_t>(places[i])];
        switch (reduction) {
        case Reduction::None:
            target = updates[i];
            break;
        case Reduction::Add:
            target += updates[i];
            break;
        case Reduction::Mul:
            target *= updates[i];
            break;
        case Reduction::Max:
            target = std::max(target, updates[i]);
            break;
        case Reduction::Min:
            target = std::min(target, updates[i]);
            break;
        }
    }
}

Arrays scatterForward(const KernelContext& context, Operands operands) {
    // Where updates are cut the results add up: the data themselves go in once.
    Array result = context.leads() ? *operands[0] : Array::like(*operands[0], operands[0]->shape);
    const Places places = scatterPlaces(context, operands);
    if (result.integral)
        write(result.ints, operands[2]->ints, places, reductionOf(context));
    else
        write(result.reals, operands[2]->reals, places, reductionOf(context));
    return {std::move(result)};
}

/// Of several updates of one element the last stays.
void overwrittenGradients(const Places& places, const Array& gradient, Array& data,
                          Array& updates) {
    data = gradient;
    for (std::size_t i = places.size(); i-- > 0;) {
        if (places[i] == kElsewhere) continue;
        double& left = data.reals[static_cast<std::size_t>(places[i])];
        updates.reals[i] = left;
        left = 0;
    }
}

/// The gradient of a product by a factor is that of the product of the others, without division.
void productGradients(const Places& places, const Array& gradient, Operands operands, Array& data,
                      Array& updates) {
    std::vector<std::vector<std::size_t>> at(gradient.size());
    for (std::size_t i = 0; i < places.size(); ++i)
        if (places[i] != kElsewhere) at[static_cast<std::size_t>(places[i])].push_back(i);
    for (std::size_t e = 0; e < at.size(); ++e) {
        data.reals[e] = gradient.reals[e];
        for (const std::size_t i : at[e]) {
            data.reals[e] *= operands[2]->reals[i];
            updates.reals[i] = gradient.reals[e] * operands[0]->reals[e];
            for (const std::size_t other : at[e])
                if (other != i) updates.reals[i] *= operands[2]->reals[other];
        }
    }
}

/// The gradient goes in equal parts to all that are as large as the result.
void extremumGradients(const Places& places, const Array& gradient, const Array& result,
                       Operands operands, Array& data, Array& updates) {
    Numbers winners(gradient.size(), 0.0);
    for (std::size_t e = 0; e < winners.size(); ++e)
        winners[e] = operands[0]->reals[e] == result.reals[e] ? 1 : 0;
    const auto wins = [&](std::size_t i) {
        return places[i] != kElsewhere &&
               operands[2]->reals[i] == result.reals[static_cast<std::size_t>(places[i])];
    };
    for (std::size_t i = 0; i < places.size(); ++i)
        if (wins(i)) winners[static_cast<std::size_t>(places[i])] += 1;
    for (std::size_t e = 0; e < winners.size(); ++e)
        if (operands[0]->reals[e] == result.reals[e])
            data.reals[e] = gradient.reals[e] / winners[e];
    for (std::size_t i = 0; i < places.size(); ++i)
        if (wins(i)) {
            const auto e = static_cast<std::size_t>(places[i]);
            updates.reals[i] = gradient.reals[e] / winners[e];
        }
}

Arrays scatterBackward(const KernelContext& context, Operands operands,
                       std::span<const Array> results, std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr || operands[0]->integral) return given;
    const Places places = scatterPlaces(context, operands);
    Array data = zerosLike(operands, 0), updates = zerosLike(operands, 2);
    switch (reductionOf(context)) {
    case Reduction::None:
        overwrittenGradients(places, *gradient, data, updates);
        break;
    case Reduction::Add:
        data = *gradient;
        for (std::size_t i = 0; i < places.size(); ++i)
            if (places[i] != kElsewhere)
                updates.reals[i] = gradient->reals[static_cast<std::size_t>(places[i])];
        break;
    case Reduction::Mul:
        productGradients(places, *gradient, operands, data, updates);
        break;
    case Reduction::Max:
    case Reduction::Min:
        extremumGradients(places, *gradient, results[0], operands, data, updates);
        break;
    }
    given[0] = std::move(data);
    given[2] = std::move(updates);
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
    };
}

} // namespace shardlens
