// SPDX-License-Identifier: Apache-2.0
// Mixture-of-experts routing. Tokens are routed inside groups: a sequence is cut into the groups of
// the rule's shared factor, and each has its own slots of every expert, so that cutting batch,
// groups, width or experts changes nothing. In a group, tokens take the slots of an expert in the
// order of the sequence; those that come after the last slot are dropped (Switch Transformer, Fedus
// et al. 2021; capacity as in GShard, Lepikhin et al. 2020).
#include "core/execute/kernel_support.h"

#include <algorithm>
#include <numeric>

namespace shardlens::kernels {

namespace {

/// Local sizes. One group has `tokens` of the sequence and `slots` of each expert.
struct Routing {
    std::size_t batch = 0, sequence = 0, width = 0, capacity = 0;
    std::size_t experts = 0;     ///< local ones
    std::size_t firstExpert = 0; ///< in the whole
    std::size_t scores = 0;      ///< scores a token has locally
    std::size_t tokens = 1, slots = 1;

    std::size_t token(std::size_t b, std::size_t s) const { return (b * sequence + s) * width; }
    std::size_t row(std::size_t e, std::size_t b, std::size_t slot) const {
        return ((e * batch + b) * capacity + slot) * width;
    }
    std::size_t score(std::size_t b, std::size_t s, std::size_t e) const {
        return (b * sequence + s) * scores + e;
    }
};

void setGroups(Routing& r, std::int64_t wholeSequence, std::int64_t wholeCapacity) {
    const std::int64_t groups = std::gcd(wholeSequence, wholeCapacity);
    r.tokens = static_cast<std::size_t>(wholeSequence / groups);
    r.slots = static_cast<std::size_t>(wholeCapacity / groups);
}

/// Gives slots to the tokens that go to expert `e` and calls use(token of the sequence, slot).
template <typename Goes, typename Use>
void fillSlots(const Routing& r, Goes goes, Use use) {
    for (std::size_t first = 0; first < r.sequence; first += r.tokens) {
        std::size_t taken = 0;
        for (std::size_t s = first; s < first + r.tokens && taken < r.slots; ++s)
            if (goes(s)) use(s, first / r.tokens * r.slots + taken++);
    }
}

std::size_t sizeAt(const Shape& shape, std::size_t dim) {
    return static_cast<std::size_t>(shape[dim]);
}

// --- dispatch: tokens[b,s,h], scores[b,s,E] -> [E,b,c,h] ----------------------------------------

Routing dispatchRouting(const KernelContext& context) {
    const Shape x = context.operandShape(0), y = context.resultShape(0);
    Routing r;
    r.batch = sizeAt(x, 0);
    r.sequence = sizeAt(x, 1);
    r.width = sizeAt(x, 2);
    r.capacity = sizeAt(y, 2);
    r.experts = sizeAt(y, 0);
    r.firstExpert = static_cast<std::size_t>(context.resultBegin(0, 0));
    r.scores = sizeAt(context.operandShape(1), 2);
    setGroups(r, context.whole().inputs[0].shape[1], context.whole().outputs[0].shape[2]);
    return r;
}

/// Which experts every token goes to: those with its top_k scores, of equal ones the first.
std::vector<bool> chosen(const KernelContext& context, const Routing& r, const Numbers& scores) {
    const auto topK =
        std::min(static_cast<std::size_t>(context.op().attributes.integer("top_k", 1)), r.scores);
    std::vector<bool> goes(scores.size(), false);
    std::vector<std::size_t> order(r.scores);
    for (std::size_t first = 0; first < scores.size(); first += r.scores) {
        std::iota(order.begin(), order.end(), first);
        std::ranges::stable_sort(order, std::greater<>{}, [&](std::size_t i) { return scores[i]; });
        for (std::size_t k = 0; k < topK; ++k) goes[order[k]] = true;
    }
    return goes;
}

/// Calls use(offset of the token, offset of its row) for every copy that is made.
template <typename Use>
void eachDispatched(const KernelContext& context, Operands operands, Use use) {
    const Routing r = dispatchRouting(context);
    const std::vector<bool> goes = chosen(context, r, numbersOf(*operands[1]));
    for (std::size_t e = 0; e < r.experts; ++e)
        for (std::size_t b = 0; b < r.batch; ++b)
            fillSlots(
                r, [&](std::size_t s) { return goes[r.score(b, s, r.firstExpert + e)]; },
                [&](std::size_t s, std::size_t slot) {
                    for (std::size_t h = 0; h < r.width; ++h)
                        use(r.token(b, s) + h, r.row(e, b, slot) + h);
                });
}

Arrays dispatchForward(const KernelContext& context, Operands operands) {
    const Numbers x = numbersOf(*operands[0]);
    Numbers rows(countOf(context.resultShape(0)), 0.0);
    eachDispatched(context, operands,
                   [&](std::size_t token, std::size_t row) { rows[row] = x[token]; });
    return {resultOf(context, 0, std::move(rows))};
}

/// The scores decide alone; what they learn comes through the weights of combine.
Arrays dispatchBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                        std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr || !differentiable(operands, 0)) return given;
    given[0] = zerosLike(operands, 0);
    eachDispatched(context, operands, [&](std::size_t token, std::size_t row) {
        given[0].reals[token] += gradient->reals[row];
    });
    return given;
}

// --- combine: experts[E,b,c,h], weights[b,s,E] -> [b,s,h] ---------------------------------------

Routing combineRouting(const KernelContext& context) {
    const Shape x = context.operandShape(0), weights = context.operandShape(1);
    Routing r;
    r.batch = sizeAt(x, 1);
    r.sequence = sizeAt(weights, 1);
    r.width = sizeAt(x, 3);
    r.capacity = sizeAt(x, 2);
    r.experts = sizeAt(x, 0);
    r.scores = sizeAt(weights, 2);
    setGroups(r, context.whole().inputs[1].shape[1], context.whole().inputs[0].shape[2]);
    return r;
}

/// Calls use(weight, row, token) with the offset of a weight and the first elements of the row it
/// scales and of the token that the row is added to.
template <typename Use>
void eachCombined(const Routing& r, const Numbers& weights, Use use) {
    for (std::size_t e = 0; e < r.experts; ++e)
        for (std::size_t b = 0; b < r.batch; ++b)
            fillSlots(
                r, [&](std::size_t s) { return weights[r.score(b, s, e)] != 0; },
                [&](std::size_t s, std::size_t slot) {
                    use(r.score(b, s, e), r.row(e, b, slot), r.token(b, s));
                });
}

Arrays combineForward(const KernelContext& context, Operands operands) {
    const Routing r = combineRouting(context);
    const Numbers x = numbersOf(*operands[0]), weights = numbersOf(*operands[1]);
    Numbers y(countOf(context.resultShape(0)), 0.0);
    eachCombined(r, weights, [&](std::size_t weight, std::size_t row, std::size_t token) {
        for (std::size_t h = 0; h < r.width; ++h) y[token + h] += weights[weight] * x[row + h];
    });
    return {resultOf(context, 0, std::move(y))};
}

Arrays combineBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                       std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr) return given;
    const Routing r = combineRouting(context);
    const Numbers x = numbersOf(*operands[0]), weights = numbersOf(*operands[1]);
    for (std::size_t i = 0; i < 2; ++i)
        if (differentiable(operands, i)) given[i] = zerosLike(operands, i);
    eachCombined(r, weights, [&](std::size_t weight, std::size_t row, std::size_t token) {
        for (std::size_t h = 0; h < r.width; ++h) {
            const double g = gradient->reals[token + h];
            if (!given[0].empty()) given[0].reals[row + h] += g * weights[weight];
            if (!given[1].empty()) given[1].reals[weight] += g * x[row + h];
        }
    });
    return given;
}

} // namespace

} // namespace shardlens::kernels

namespace shardlens {

std::vector<Kernel> mixtureKernels() {
    using namespace kernels;
    return {
        {OpKind::MoeDispatch, dispatchForward, dispatchBackward},
        {OpKind::MoeCombine, combineForward, combineBackward},
    };
}

} // namespace shardlens
