// SPDX-License-Identifier: Apache-2.0
// Fused attention, softmax(q k' * scale + mask) v, with grouped heads. Where the keys are cut, the
// ranks agree on the rows' maximum and sum of exponentials (the online softmax of Milakov &
// Gimelshein 2018, as in FlashAttention and ring attention), and the weighted values are a partial
// sum. The backward pass is that of FlashAttention (Dao et al. 2022): the log-sum-exp of each row
// is kept, and D = sum(dO * O) is the one number a row that is exchanged.
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_support.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardlens::kernels {

namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

/// Local sizes, and everything that says which key a query may see.
struct Attended {
    std::int64_t b, s, t, heads, kvHeads, d, e;
    std::int64_t firstQuery, firstKey; ///< positions of the local parts; of query 0 with the past
    bool causal = false;
    double scale = 1, softcap = 0;
    std::int64_t window = 0;
    const Array* mask = nullptr;
    Strides maskStrides; ///< in [b, H, s, t]

    std::size_t row(std::int64_t ib, std::int64_t is, std::int64_t ih) const {
        return static_cast<std::size_t>((ib * s + is) * heads + ih);
    }
    std::size_t query(std::int64_t ib, std::int64_t is, std::int64_t ih) const {
        return row(ib, is, ih) * static_cast<std::size_t>(d);
    }
    std::size_t keyRow(std::int64_t ib, std::int64_t it, std::int64_t ih) const {
        return static_cast<std::size_t>((ib * t + it) * kvHeads + ih / (heads / kvHeads));
    }
};

Attended attended(const KernelContext& context, Operands operands) {
    const Shape q = context.operandShape(0), k = context.operandShape(1),
                v = context.operandShape(2);
    const Attributes& attributes = context.op().attributes;
    Attended a{q[0], q[1], k[1], q[2], k[2], q[3], v[3], 0, 0, false, 1, 0, 0, nullptr, {}};
    a.firstQuery = context.operandBegin(0, 1) + attributes.integer("past", 0);
    a.firstKey = context.operandBegin(1, 1);
    a.causal = attributes.integer("causal", 0) != 0;
    a.scale = attributes.number("scale", 1 / std::sqrt(static_cast<double>(a.d)));
    a.softcap = attributes.number("softcap", 0);
    a.window = attributes.integer("window", 0);
    if (hasOperand(operands, 3)) {
        a.mask = operands[3];
        a.maskStrides = broadcastStrides(a.mask->shape, {a.b, a.heads, a.s, a.t});
    }
    return a;
}

std::size_t maskAt(const Attended& a, std::int64_t ib, std::int64_t ih, std::int64_t is,
                   std::int64_t it) {
    return static_cast<std::size_t>(ib * a.maskStrides[0] + ih * a.maskStrides[1] +
                                    is * a.maskStrides[2] + it * a.maskStrides[3]);
}

/// The scaled product of a query and a key.
double productOf(const Attended& a, const Numbers& q, const Numbers& k, std::int64_t ib,
                 std::int64_t is, std::int64_t ih, std::int64_t it) {
    const std::size_t from = a.query(ib, is, ih),
                      to = a.keyRow(ib, it, ih) * static_cast<std::size_t>(a.d);
    double product = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(a.d); ++i)
        product += q[from + i] * k[to + i];
    return product * a.scale;
}

bool sees(const Attended& a, std::int64_t is, std::int64_t it) {
    const std::int64_t query = a.firstQuery + is, key = a.firstKey + it;
    return !(a.causal && key > query) && !(a.window > 0 && key <= query - a.window);
}

double scoreOf(const Attended& a, const Numbers& q, const Numbers& k, std::int64_t ib,
               std::int64_t is, std::int64_t ih, std::int64_t it) {
    if (!sees(a, is, it)) return kNothing;
    double score = productOf(a, q, k, ib, is, ih, it);
    if (a.softcap != 0) score = a.softcap * std::tanh(score / a.softcap);
    if (a.mask == nullptr) return score;
    const std::size_t at = maskAt(a, ib, ih, is, it);
    if (!a.mask->integral) return score + a.mask->reals[at];
    return a.mask->ints[at] != 0 ? score : kNothing;
}

/// The slope of a score by the product of query and key.
double slopeOf(const Attended& a, const Numbers& q, const Numbers& k, std::int64_t ib,
               std::int64_t is, std::int64_t ih, std::int64_t it) {
    if (a.softcap == 0) return a.scale;
    const double y = std::tanh(productOf(a, q, k, ib, is, ih, it) / a.softcap);
    return a.scale * (1 - y * y);
}

/// Calls use(b, s, head, key) for every pair of a query and a key.
template <typename Use>
void eachPair(const Attended& a, Use use) {
    for (std::int64_t ib = 0; ib < a.b; ++ib)
        for (std::int64_t is = 0; is < a.s; ++is)
            for (std::int64_t ih = 0; ih < a.heads; ++ih)
                for (std::int64_t it = 0; it < a.t; ++it) use(ib, is, ih, it);
}

/// exp(score - reference), 0 where nothing is seen at all.
double weight(double score, double reference) {
    return score == kNothing || reference == kNothing ? 0 : std::exp(score - reference);
}

Arrays attentionForward(const KernelContext& context, Operands operands) {
    const Attended a = attended(context, operands);
    const Numbers q = numbersOf(*operands[0]), k = numbersOf(*operands[1]),
                  v = numbersOf(*operands[2]);
    const Shape rows{a.b, a.s, a.heads};
    Array most = Array::real(rows, kNothing), sum = Array::real(rows);
    eachPair(a, [&](auto ib, auto is, auto ih, auto it) {
        double& row = most.reals[a.row(ib, is, ih)];
        row = std::max(row, scoreOf(a, q, k, ib, is, ih, it));
    });
    context.allReduce(most, ReduceOp::Max);
    eachPair(a, [&](auto ib, auto is, auto ih, auto it) {
        const std::size_t row = a.row(ib, is, ih);
        sum.reals[row] += weight(scoreOf(a, q, k, ib, is, ih, it), most.reals[row]);
    });
    context.allReduce(sum, ReduceOp::Sum);
    Array kept = most; // the log-sum-exp
    for (std::size_t row = 0; row < sum.reals.size(); ++row)
        kept.reals[row] += std::log(sum.reals[row]);
    Array result = Array::real({a.b, a.s, a.heads, a.e});
    const auto width = static_cast<std::size_t>(a.e);
    eachPair(a, [&](auto ib, auto is, auto ih, auto it) {
        const std::size_t row = a.row(ib, is, ih), value = a.keyRow(ib, it, ih) * width;
        const double p = weight(scoreOf(a, q, k, ib, is, ih, it), kept.reals[row]);
        for (std::size_t i = 0; i < width; ++i) result.reals[row * width + i] += p * v[value + i];
    });
    return {std::move(result), std::move(kept)};
}

/// D: the sum of gradient * result over each row, over all keys.
Array rowProducts(const KernelContext& context, const Array& gradient, const Array& result) {
    const auto width = static_cast<std::size_t>(result.shape.back());
    Array rows = Array::real({result.shape.begin(), result.shape.end() - 1});
    for (std::size_t row = 0; row < rows.reals.size(); ++row)
        for (std::size_t i = 0; i < width; ++i)
            rows.reals[row] += gradient.reals[row * width + i] * result.reals[row * width + i];
    context.allReduce(rows, ReduceOp::Sum);
    return rows;
}

Arrays attentionBackward(const KernelContext& context, Operands operands,
                         std::span<const Array> results, std::span<const Array> gradients) {
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr) return noGradients(operands);
    const Attended a = attended(context, operands);
    const Numbers q = numbersOf(*operands[0]), k = numbersOf(*operands[1]),
                  v = numbersOf(*operands[2]);
    const Array rows = rowProducts(context, *gradient, results[0]);
    Arrays given = noGradients(operands);
    for (std::size_t i = 0; i < 3; ++i) given[i] = zerosLike(operands, i);
    const bool maskLearns = differentiable(operands, 3);
    if (maskLearns) given[3] = zerosLike(operands, 3);
    const auto width = static_cast<std::size_t>(a.e), depth = static_cast<std::size_t>(a.d);
    eachPair(a, [&](auto ib, auto is, auto ih, auto it) {
        const std::size_t row = a.row(ib, is, ih), key = a.keyRow(ib, it, ih);
        const double p = weight(scoreOf(a, q, k, ib, is, ih, it), results[1].reals[row]);
        double toWeight = 0;
        for (std::size_t i = 0; i < width; ++i) {
            const double g = gradient->reals[row * width + i];
            given[2].reals[key * width + i] += p * g;
            toWeight += g * v[key * width + i];
        }
        const double toScore = p * (toWeight - rows.reals[row]);
        if (maskLearns) given[3].reals[maskAt(a, ib, ih, is, it)] += toScore;
        const double toProduct = toScore * slopeOf(a, q, k, ib, is, ih, it);
        for (std::size_t i = 0; i < depth; ++i) {
            given[0].reals[row * depth + i] += toProduct * k[key * depth + i];
            given[1].reals[key * depth + i] += toProduct * q[row * depth + i];
        }
    });
    return given;
}

} // namespace

Kernel attentionKernel() {
    return {OpKind::Attention, attentionForward, attentionBackward};
}

} // namespace shardlens::kernels
