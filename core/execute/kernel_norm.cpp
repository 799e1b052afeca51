// SPDX-License-Identifier: Apache-2.0
// Softmax and its relatives over any dims. Cut along those dims, the ranks agree on each row's
// maximum and on its sum of exponentials; the backward pass exchanges one sum a row.
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_support.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace shardlens::kernels {

namespace {

struct Rows {
    Ints axes;
    Shape shape, rows;
    StridedWalk walk() const { return {shape, {signedStrides(shape), rowStrides(shape, axes)}}; }
};

Rows rowsOf(const KernelContext& context) {
    Rows r;
    r.axes = context.op().attributes.integers("axes");
    r.shape = context.resultShape(0);
    r.rows = rowShape(r.shape, r.axes);
    return r;
}

/// 1 for the first of the largest in each row.
Arrays hardmaxForward(const KernelContext& context, const Rows& r, const Numbers& x) {
    Numbers most(countOf(r.rows), -std::numeric_limits<double>::infinity());
    std::vector<std::size_t> winner(most.size(), 0);
    for (StridedWalk at = r.walk(); !at.done(); at.next()) {
        if (x[at[0]] <= most[at[1]]) continue;
        most[at[1]] = x[at[0]];
        winner[at[1]] = at[0];
    }
    Numbers result(x.size(), 0.0);
    for (const std::size_t i : winner)
        if (i < result.size()) result[i] = 1;
    return {resultOf(context, 0, std::move(result))};
}

Arrays softmaxForward(const KernelContext& context, Operands operands) {
    const Rows r = rowsOf(context);
    const std::string function = context.op().attributes.text("function", "softmax");
    Numbers x = numbersOf(*operands[0]);
    if (function == "hardmax") return hardmaxForward(context, r, x);
    Array most = Array::real(r.rows, -std::numeric_limits<double>::infinity());
    for (StridedWalk at = r.walk(); !at.done(); at.next())
        most.reals[at[1]] = std::max(most.reals[at[1]], x[at[0]]);
    context.allReduce(most, ReduceOp::Max);
    Array sum = Array::real(r.rows);
    for (StridedWalk at = r.walk(); !at.done(); at.next())
        sum.reals[at[1]] += std::exp(x[at[0]] - most.reals[at[1]]);
    context.allReduce(sum, ReduceOp::Sum);
    for (StridedWalk at = r.walk(); !at.done(); at.next()) {
        const double shifted = x[at[0]] - most.reals[at[1]];
        x[at[0]] = function == "logsoftmax" ? shifted - std::log(sum.reals[at[1]])
                                            : std::exp(shifted) / sum.reals[at[1]];
    }
    return {resultOf(context, 0, std::move(x))};
}

/// softmax: y (g - sum(g y)); logsoftmax: g - exp(y) sum(g).
Arrays softmaxBackward(const KernelContext& context, Operands operands,
                       std::span<const Array> results, std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    const std::string function = context.op().attributes.text("function", "softmax");
    if (gradient == nullptr || function == "hardmax") return given;
    const bool isLog = function == "logsoftmax";
    const Rows r = rowsOf(context);
    const Numbers &g = gradient->reals, &y = results[0].reals;
    Array sum = Array::real(r.rows);
    for (StridedWalk at = r.walk(); !at.done(); at.next())
        sum.reals[at[1]] += isLog ? g[at[0]] : g[at[0]] * y[at[0]];
    context.allReduce(sum, ReduceOp::Sum);
    Numbers result(g.size());
    for (StridedWalk at = r.walk(); !at.done(); at.next())
        result[at[0]] = isLog ? g[at[0]] - std::exp(y[at[0]]) * sum.reals[at[1]]
                              : y[at[0]] * (g[at[0]] - sum.reals[at[1]]);
    given[0] = realArray(r.shape, std::move(result));
    return given;
}

// --- cross-entropy: log(sum(exp(x))) - x[label] of each row, or the mean over all rows -----------

struct Classified {
    std::size_t rows = 0, classes = 0;
    std::int64_t firstClass = 0;
    double count = 1;        ///< rows of the whole op
    bool mean = true;        ///< else the loss of each row
    bool normalised = false; ///< the logits are log-probabilities

    /// Where the row's label stands in the local logits; nothing if another rank has it.
    std::optional<std::size_t> place(std::size_t row, std::int64_t label) const {
        const std::int64_t local = label - firstClass;
        if (local < 0 || local >= static_cast<std::int64_t>(classes)) return std::nullopt;
        return row * classes + static_cast<std::size_t>(local);
    }
};

Classified classified(const KernelContext& context, Operands operands) {
    const Shape& logits = operands[0]->shape;
    const Attributes& attributes = context.op().attributes;
    return {operands[1]->size(),
            static_cast<std::size_t>(logits.back()),
            context.operandBegin(0, logits.size() - 1),
            elementsOf(context.whole().inputs[1].shape),
            attributes.text("reduction", "mean") == "mean",
            attributes.integer("log_probabilities", 0) != 0};
}

/// The log-sum-exp of each row (0 for log-probabilities) and its label's logit, which are exchanged
/// together.
struct RowLosses {
    Array logSum;
    Numbers picked;
};

RowLosses rowLosses(const KernelContext& context, const Classified& c, Operands operands) {
    const Numbers x = numbersOf(*operands[0]);
    const auto rows = static_cast<std::int64_t>(c.rows);
    const std::size_t each = c.normalised ? 1 : 2;
    Array most = Array::real({rows}, c.normalised ? 0 : -std::numeric_limits<double>::infinity());
    Array sums = Array::real({rows, static_cast<std::int64_t>(each)});
    if (!c.normalised) {
        for (std::size_t i = 0; i < x.size(); ++i)
            most.reals[i / c.classes] = std::max(most.reals[i / c.classes], x[i]);
        context.allReduce(most, ReduceOp::Max);
        for (std::size_t i = 0; i < x.size(); ++i)
            sums.reals[2 * (i / c.classes) + 1] += std::exp(x[i] - most.reals[i / c.classes]);
    }
    for (std::size_t row = 0; row < c.rows; ++row)
        if (const auto at = c.place(row, operands[1]->ints[row])) sums.reals[each * row] = x[*at];
    context.allReduce(sums, ReduceOp::Sum);
    RowLosses losses{std::move(most), {}};
    for (std::size_t row = 0; row < c.rows; ++row) {
        losses.picked.push_back(sums.reals[each * row]);
        if (!c.normalised) losses.logSum.reals[row] += std::log(sums.reals[2 * row + 1]);
    }
    return losses;
}

Arrays crossEntropyForward(const KernelContext& context, Operands operands) {
    const Classified c = classified(context, operands);
    RowLosses losses = rowLosses(context, c, operands);
    Numbers result(c.mean ? 1 : c.rows, 0.0);
    for (std::size_t row = 0; row < c.rows; ++row) {
        const double loss = losses.logSum.reals[row] - losses.picked[row];
        result[c.mean ? 0 : row] += c.mean ? loss / c.count : loss;
    }
    return {resultOf(context, 0, std::move(result)), std::move(losses.logSum)};
}

Arrays crossEntropyBackward(const KernelContext& context, Operands operands,
                            std::span<const Array> results, std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr || !differentiable(operands, 0)) return given;
    const Classified c = classified(context, operands);
    const auto reaching = [&](std::size_t row) {
        return c.mean ? gradient->reals[0] / c.count : gradient->reals[row];
    };
    Numbers x(operands[0]->reals.size(), 0.0);
    for (std::size_t i = 0; i < x.size() && !c.normalised; ++i) {
        const std::size_t row = i / c.classes;
        x[i] = reaching(row) * std::exp(operands[0]->reals[i] - results[1].reals[row]);
    }
    for (std::size_t row = 0; row < c.rows; ++row)
        if (const auto at = c.place(row, operands[1]->ints[row])) x[*at] -= reaching(row);
    given[0] = realArray(operands[0]->shape, std::move(x));
    return given;
}

} // namespace

Kernel crossEntropyKernel() {
    return {OpKind::CrossEntropy, crossEntropyForward, crossEntropyBackward};
}

} // namespace shardlens::kernels

namespace shardlens {

std::vector<Kernel> normKernels() {
    using namespace kernels;
    return {{OpKind::Softmax, softmaxForward, softmaxBackward}, normKernel(), crossEntropyKernel()};
}

} // namespace shardlens
