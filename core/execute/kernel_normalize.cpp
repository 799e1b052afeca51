// SPDX-License-Identifier: Apache-2.0
// Normalisations. All but the lp norm are y = (x - m) r * scale + bias with m and r taken over a
// set of elements, which differs by mode; so there is one forward and one backward pass.
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_support.h"

#include <algorithm>
#include <cmath>

namespace shardlens::kernels {

namespace {

enum class NormMode { Layer, Rms, Batch, Group, Instance, Lp };

struct Normalised {
    NormMode mode = NormMode::Layer;
    Shape shape;         ///< of x; group: with the channels split in two
    Ints axes;           ///< dims whose elements share statistics
    Shape rows;          ///< the shape with those dims 1
    double count = 1;    ///< elements that share them, of the whole op
    double epsilon = 0;  ///< added to the variance
    double power = 2;    ///< of the lp norm
    bool given = false;  ///< mean and variance are operands (batch, in inference)
    Strides scale, bias; ///< strides of these operands in the shape

    /// Offsets of an element, its row, its scale and its bias.
    StridedWalk walk() const {
        return {shape, {signedStrides(shape), rowStrides(shape, axes), scale, bias}};
    }
};

NormMode modeOf(const KernelContext& context) {
    const std::string mode = context.op().attributes.text("mode", "layer");
    if (mode == "rms") return NormMode::Rms;
    if (mode == "batch") return NormMode::Batch;
    if (mode == "group") return NormMode::Group;
    if (mode == "instance") return NormMode::Instance;
    if (mode == "lp") return NormMode::Lp;
    if (mode != "layer") fail(context, "there is no normalisation mode '" + mode + "'");
    return NormMode::Layer;
}

Ints allBut(std::size_t rank, std::initializer_list<std::int64_t> kept) {
    Ints axes;
    for (std::size_t d = 0; d < rank; ++d)
        if (!holds(kept, d)) axes.push_back(static_cast<std::int64_t>(d));
    return axes;
}

/// Channels split into groups; statistics over everything behind the group.
Shape grouped(const KernelContext& context, const Shape& shape) {
    const std::int64_t groups = context.op().attributes.integer("groups", 1);
    if (groups <= 0 || shape[1] % groups != 0) fail(context, "groups do not divide the channels");
    Shape split{shape[0], groups, shape[1] / groups};
    split.insert(split.end(), shape.begin() + 2, shape.end());
    return split;
}

/// One number a channel, in a shape whose dim 1 (and for groups dim 2) are the channels.
Strides channelStrides(const Normalised& n) {
    Strides strides(n.shape.size(), 0);
    if (n.shape.size() > 1) strides[1] = 1;
    if (n.mode != NormMode::Group) return strides;
    strides[1] = n.shape[2];
    strides[2] = 1;
    return strides;
}

Normalised normalised(const KernelContext& context, Operands operands) {
    const Attributes& attributes = context.op().attributes;
    Normalised n;
    n.mode = modeOf(context);
    n.shape = context.resultShape(0);
    n.axes = attributes.integers("axes");
    n.epsilon = attributes.number("epsilon", 1e-5);
    n.power = static_cast<double>(attributes.integer("p", 2));
    Shape whole = context.whole().inputs[0].shape;
    if (n.mode == NormMode::Batch) n.axes = allBut(n.shape.size(), {1});
    if (n.mode == NormMode::Instance) n.axes = allBut(n.shape.size(), {0, 1});
    if (n.mode == NormMode::Group) {
        n.shape = grouped(context, n.shape);
        whole = grouped(context, whole);
        n.axes = allBut(n.shape.size(), {0, 1});
    }
    n.given = n.mode == NormMode::Batch && attributes.integer("training", 0) == 0;
    if (n.given && !(hasOperand(operands, 3) && hasOperand(operands, 4)))
        fail(context, "batch normalisation outside training needs a mean and a variance");
    n.rows = rowShape(n.shape, n.axes);
    n.count = countAlong(whole, n.axes);
    const auto strides = [&](std::size_t i) {
        if (!hasOperand(operands, i)) return Strides(n.shape.size(), 0);
        return n.mode == NormMode::Layer || n.mode == NormMode::Rms
                   ? broadcastStrides(operands[i]->shape, n.shape)
                   : channelStrides(n);
    };
    n.scale = strides(1);
    n.bias = strides(2);
    return n;
}

/// Mean and reciprocal deviation of each row.
struct Statistics {
    Array mean, inverse;
};

bool centres(const Normalised& n) {
    return n.mode != NormMode::Rms && n.mode != NormMode::Lp;
}

/// Sums of x and x^2 of each row, or of x^2 alone; exchanged together.
Array momentSums(const KernelContext& context, const Normalised& n, const Numbers& x) {
    const std::size_t each = centres(n) ? 2 : 1;
    Array sums = Array::real({static_cast<std::int64_t>(countOf(n.rows) * each)});
    for (StridedWalk at = n.walk(); !at.done(); at.next()) {
        sums.reals[at[1] * each] += x[at[0]] * x[at[0]];
        if (each == 2) sums.reals[at[1] * 2 + 1] += x[at[0]];
    }
    if (n.mode == NormMode::Layer || n.mode == NormMode::Rms || n.mode == NormMode::Batch)
        context.allReduce(sums, ReduceOp::Sum);
    return sums;
}

Statistics statisticsOf(const KernelContext& context, const Normalised& n, const Numbers& x) {
    const Array sums = momentSums(context, n, x);
    Statistics result{Array::real(n.rows), Array::real(n.rows)};
    for (std::size_t row = 0; row < result.mean.reals.size(); ++row) {
        const std::size_t at = centres(n) ? 2 * row : row;
        const double mean = centres(n) ? sums.reals[at + 1] / n.count : 0;
        const double variance = std::max(sums.reals[at] / n.count - mean * mean, 0.0);
        result.mean.reals[row] = mean;
        result.inverse.reals[row] = 1 / std::sqrt(variance + n.epsilon);
    }
    return result;
}

/// The rows of batch normalisation are the channels, whose statistics the operands have.
Statistics givenStatistics(const Normalised& n, Operands operands) {
    Statistics result{realArray(n.rows, numbersOf(*operands[3])), Array::real(n.rows)};
    for (std::size_t row = 0; row < result.mean.reals.size(); ++row)
        result.inverse.reals[row] = 1 / std::sqrt(operands[4]->at(row) + n.epsilon);
    return result;
}

// --- lp: x / |x|, no scale ----------------------------------------------------------------------

Arrays lpForward(const KernelContext& context, const Normalised& n, Numbers x) {
    Array length = Array::real(n.rows);
    for (StridedWalk at = n.walk(); !at.done(); at.next())
        length.reals[at[1]] += std::pow(std::abs(x[at[0]]), n.power);
    context.allReduce(length, ReduceOp::Sum);
    for (double& each : length.reals) each = std::pow(each, 1 / n.power);
    for (StridedWalk at = n.walk(); !at.done(); at.next())
        x[at[0]] = length.reals[at[1]] == 0 ? 0 : x[at[0]] / length.reals[at[1]];
    return {resultOf(context, 0, std::move(x)), std::move(length)};
}

/// With y = x / L and dL/dx = sign(x) |y|^(p-1): dx = (g - sum(g y) dL/dx) / L.
Array lpBackward(const KernelContext& context, const Normalised& n, std::span<const Array> results,
                 const Numbers& g) {
    const Numbers &y = results[0].reals, &length = results[1].reals;
    Array sum = Array::real(n.rows);
    for (StridedWalk at = n.walk(); !at.done(); at.next()) sum.reals[at[1]] += g[at[0]] * y[at[0]];
    context.allReduce(sum, ReduceOp::Sum);
    Array given = Array::real(n.shape);
    for (StridedWalk at = n.walk(); !at.done(); at.next()) {
        const double slope = std::copysign(std::pow(std::abs(y[at[0]]), n.power - 1), y[at[0]]);
        if (length[at[1]] != 0)
            given.reals[at[0]] = (g[at[0]] - sum.reals[at[1]] * slope) / length[at[1]];
    }
    return given;
}

// --- the others ---------------------------------------------------------------------------------

/// Results behind the first: layer and rms have the statistics themselves, batch the running
/// averages it updates (momentum is the weight of the old value, the variance is biased).
void addStatisticsResults(const KernelContext& context, const Normalised& n, Operands operands,
                          const Statistics& statistics, Arrays& results) {
    const std::size_t count = context.whole().outputs.size();
    if (count < 2) return;
    if (n.mode != NormMode::Batch) {
        if (count > 2) results.push_back(resultOf(context, 1, statistics.mean.reals));
        results.push_back(resultOf(context, count - 1, statistics.inverse.reals));
        return;
    }
    const double momentum = context.op().attributes.number("momentum", 0.9);
    Numbers mean = numbersOf(*operands[3]), variance = numbersOf(*operands[4]);
    for (std::size_t c = 0; c < mean.size(); ++c) {
        const double r = statistics.inverse.reals[c];
        mean[c] = momentum * mean[c] + (1 - momentum) * statistics.mean.reals[c];
        variance[c] = momentum * variance[c] + (1 - momentum) * (1 / (r * r) - n.epsilon);
    }
    results.push_back(resultOf(context, 1, std::move(mean)));
    results.push_back(resultOf(context, 2, std::move(variance)));
}

/// The statistics are kept behind the op's own results.
Arrays normForward(const KernelContext& context, Operands operands) {
    const Normalised n = normalised(context, operands);
    Numbers x = numbersOf(*operands[0]);
    if (n.mode == NormMode::Lp) return lpForward(context, n, std::move(x));
    const Statistics statistics =
        n.given ? givenStatistics(n, operands) : statisticsOf(context, n, x);
    const Numbers scale = hasOperand(operands, 1) ? numbersOf(*operands[1]) : Numbers{1},
                  bias = hasOperand(operands, 2) ? numbersOf(*operands[2]) : Numbers{};
    for (StridedWalk at = n.walk(); !at.done(); at.next()) {
        const double centred = x[at[0]] - statistics.mean.reals[at[1]];
        x[at[0]] = centred * statistics.inverse.reals[at[1]] * scale[at[2]];
        if (!bias.empty()) x[at[0]] += bias[at[3]];
    }
    Arrays results{resultOf(context, 0, std::move(x))};
    addStatisticsResults(context, n, operands, statistics, results);
    results.push_back(statistics.mean);
    results.push_back(statistics.inverse);
    return results;
}

/// sum(h xhat) and sum(h) of each row, h = g * scale; without centring the first alone.
Array gradientSums(const KernelContext& context, const Normalised& n, const Numbers& h,
                   const Numbers& normal) {
    const std::size_t each = centres(n) ? 2 : 1;
    Array sums = Array::real({static_cast<std::int64_t>(countOf(n.rows) * each)});
    for (StridedWalk at = n.walk(); !at.done(); at.next()) {
        sums.reals[at[1] * each] += h[at[0]] * normal[at[0]];
        if (each == 2) sums.reals[at[1] * 2 + 1] += h[at[0]];
    }
    if (n.mode == NormMode::Layer || n.mode == NormMode::Rms || n.mode == NormMode::Batch)
        context.allReduce(sums, ReduceOp::Sum);
    return sums;
}

/// Gradients of statistics that are results of their own: dm/dx = 1/n, dr/dx = -r^3 (x - m)/n.
void addStatisticsGradients(const KernelContext& context, const Normalised& n,
                            const Numbers& normal, const Numbers& inverse,
                            std::span<const Array> gradients, Array& given) {
    const std::size_t count = context.whole().outputs.size();
    if (count < 2 || n.mode == NormMode::Batch) return;
    const Array *mean = count > 2 ? gradientOf(gradients, 1) : nullptr,
                *deviation = gradientOf(gradients, count - 1);
    for (StridedWalk at = n.walk(); !at.done(); at.next()) {
        const double r = inverse[at[1]];
        if (mean != nullptr) given.reals[at[0]] += mean->reals[at[1]] / n.count;
        if (deviation != nullptr)
            given.reals[at[0]] -= deviation->reals[at[1]] * r * r * normal[at[0]] / n.count;
    }
}

/// dx = r (h - mean(h) - xhat mean(h xhat)); with given statistics dx = r h.
Array toOperand(const KernelContext& context, const Normalised& n, const Numbers& h,
                const Numbers& normal, const Numbers& inverse) {
    const Array sums = n.given ? Array{} : gradientSums(context, n, h, normal);
    Array given = Array::real(n.shape);
    for (StridedWalk at = n.walk(); !at.done(); at.next()) {
        double value = h[at[0]];
        if (!n.given) {
            const std::size_t row = centres(n) ? 2 * at[1] : at[1];
            value -= normal[at[0]] * sums.reals[row] / n.count;
            if (centres(n)) value -= sums.reals[row + 1] / n.count;
        }
        given.reals[at[0]] = value * inverse[at[1]];
    }
    return given;
}

Arrays normBackward(const KernelContext& context, Operands operands, std::span<const Array> results,
                    std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Normalised n = normalised(context, operands);
    const Array* gradient = gradientOf(gradients, 0);
    const Numbers g = gradient != nullptr ? gradient->reals : Numbers(countOf(n.shape), 0.0);
    if (n.mode == NormMode::Lp) {
        given[0] = lpBackward(context, n, results, g);
        return given;
    }
    const Numbers &mean = results[results.size() - 2].reals, &inverse = results.back().reals;
    const Numbers scale = hasOperand(operands, 1) ? numbersOf(*operands[1]) : Numbers{1};
    Numbers normal = numbersOf(*operands[0]), h(g.size());
    for (std::size_t i = 1; i < 5; ++i)
        if (differentiable(operands, i) && (i < 3 || n.given)) given[i] = zerosLike(operands, i);
    for (StridedWalk at = n.walk(); !at.done(); at.next()) {
        normal[at[0]] = (normal[at[0]] - mean[at[1]]) * inverse[at[1]];
        h[at[0]] = g[at[0]] * scale[at[2]];
        if (differentiable(operands, 1)) given[1].reals[at[2]] += g[at[0]] * normal[at[0]];
        if (differentiable(operands, 2)) given[2].reals[at[3]] += g[at[0]];
        if (!n.given) continue;
        const double r = inverse[at[1]];
        if (differentiable(operands, 3)) given[3].reals[at[1]] -= h[at[0]] * r;
        if (differentiable(operands, 4))
            given[4].reals[at[1]] -= 0.5 * h[at[0]] * normal[at[0]] * r * r;
    }
    given[0] = toOperand(context, n, h, normal, inverse);
    addStatisticsGradients(context, n, normal, inverse, gradients, given[0]);
    given[0].shape = operands[0]->shape;
    return given;
}

} // namespace

Kernel normKernel() {
    return {OpKind::Norm, normForward, normBackward};
}

} // namespace shardlens::kernels
