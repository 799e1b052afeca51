// SPDX-License-Identifier: Apache-2.0
// Reductions, and what works along one whole axis. A sum over a cut dim is left partial; where an
// outer function follows the sum, or the reduced value decides the gradient, it is exchanged here.
#include "core/execute/kernel_support.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace shardlens::kernels {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum class Reduction { Sum, Mean, Max, Min, Prod, L1, L2, SumSquare, LogSumExp, LogSum };

struct Reduced {
    Reduction function = Reduction::Sum;
    Ints axes;
    Shape shape, rows;
    double count = 1; ///< elements a result is made of, in the whole op

    StridedWalk walk() const { return {shape, {signedStrides(shape), rowStrides(shape, axes)}}; }
    Array filled(double value) const { return Array::real(rows, value); }
};

Reduced reduced(const KernelContext& context) {
    static constexpr std::pair<std::string_view, Reduction> kFunctions[] = {
        {"sum", Reduction::Sum},       {"mean", Reduction::Mean},
        {"max", Reduction::Max},       {"min", Reduction::Min},
        {"prod", Reduction::Prod},     {"l1", Reduction::L1},
        {"l2", Reduction::L2},         {"sumsquare", Reduction::SumSquare},
        {"logsum", Reduction::LogSum}, {"logsumexp", Reduction::LogSumExp},
    };
    const std::string name = context.op().attributes.text("function", "sum");
    const auto* found = std::ranges::find(kFunctions, name, [](const auto& f) { return f.first; });
    if (found == std::end(kFunctions)) fail(context, "there is no reduction '" + name + "'");
    Reduced r;
    r.function = found->second;
    r.shape = context.operandShape(0);
    for (const std::int64_t axis : context.op().attributes.integers("axes"))
        r.axes.push_back(axis < 0 ? axis + static_cast<std::int64_t>(r.shape.size()) : axis);
    r.rows = rowShape(r.shape, r.axes);
    r.count = countAlong(context.whole().inputs[0].shape, r.axes);
    return r;
}

/// start combined with each element of a row.
template <typename Combine>
Array combined(const Reduced& r, const Numbers& x, double start, Combine combine) {
    Array rows = r.filled(start);
    for (StridedWalk at = r.walk(); !at.done(); at.next())
        rows.reals[at[1]] = combine(rows.reals[at[1]], x[at[0]]);
    return rows;
}

Array logSumExp(const KernelContext& context, const Reduced& r, const Numbers& x) {
    Array most = combined(r, x, -kInfinity, [](double a, double b) { return std::max(a, b); });
    context.allReduce(most, ReduceOp::Max);
    Array sum = r.filled(0);
    for (StridedWalk at = r.walk(); !at.done(); at.next())
        sum.reals[at[1]] += std::exp(x[at[0]] - most.reals[at[1]]);
    context.allReduce(sum, ReduceOp::Sum);
    for (std::size_t i = 0; i < sum.reals.size(); ++i)
        sum.reals[i] = most.reals[i] + std::log(sum.reals[i]);
    return sum;
}

Array rowsOf(const KernelContext& context, const Reduced& r, const Numbers& x) {
    const auto exchanged = [&](Array rows, ReduceOp reduce) {
        context.allReduce(rows, reduce);
        return rows;
    };
    const auto squares = [](double a, double b) { return a + b * b; };
    switch (r.function) {
    case Reduction::Sum:
        return combined(r, x, 0, std::plus<>{});
    case Reduction::Mean:
        return combined(r, x, 0, [&](double a, double b) { return a + b / r.count; });
    case Reduction::L1:
        return combined(r, x, 0, [](double a, double b) { return a + std::abs(b); });
    case Reduction::SumSquare:
        return combined(r, x, 0, squares);
    case Reduction::Max:
        return exchanged(
            combined(r, x, -kInfinity, [](double a, double b) { return std::max(a, b); }),
            ReduceOp::Max);
    case Reduction::Min:
        return exchanged(
            combined(r, x, kInfinity, [](double a, double b) { return std::min(a, b); }),
            ReduceOp::Min);
    case Reduction::Prod:
        return exchanged(combined(r, x, 1, std::multiplies<>{}), ReduceOp::Prod);
    case Reduction::L2: {
        Array rows = exchanged(combined(r, x, 0, squares), ReduceOp::Sum);
        for (double& each : rows.reals) each = std::sqrt(each);
        return rows;
    }
    case Reduction::LogSum: {
        Array rows = exchanged(combined(r, x, 0, std::plus<>{}), ReduceOp::Sum);
        for (double& each : rows.reals) each = std::log(each);
        return rows;
    }
    case Reduction::LogSumExp:
        return logSumExp(context, r, x);
    }
    return {};
}

Arrays reduceForward(const KernelContext& context, Operands operands) {
    const Reduced r = reduced(context);
    Array rows = rowsOf(context, r, numbersOf(*operands[0]));
    return {resultOf(context, 0, std::move(rows.reals))};
}

/// How a result y changes with one of its elements x; the extrema are handled by themselves. The
/// product of a row that has a zero in it sends nothing back.
double slopeOf(const Reduced& r, double x, double y) {
    switch (r.function) {
    case Reduction::Sum:
        return 1;
    case Reduction::Mean:
        return 1 / r.count;
    case Reduction::L1:
        return static_cast<double>((x > 0) - (x < 0));
    case Reduction::L2:
        return y == 0 ? 0 : x / y;
    case Reduction::SumSquare:
        return 2 * x;
    case Reduction::LogSum:
        return std::exp(-y);
    case Reduction::LogSumExp:
        return std::exp(x - y);
    case Reduction::Prod:
        return x == 0 ? 0 : y / x;
    case Reduction::Max:
    case Reduction::Min:
        return x == y ? 1 : 0;
    }
    return 0;
}

Arrays reduceBackward(const KernelContext& context, Operands operands,
                      std::span<const Array> results, std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr || !differentiable(operands, 0)) return given;
    const Reduced r = reduced(context);
    const Numbers &x = operands[0]->reals, &y = results[0].reals;
    Array share = r.filled(1);
    if (r.function == Reduction::Max || r.function == Reduction::Min) {
        share = r.filled(0); // how many elements reach the extremum: they share the gradient
        for (StridedWalk at = r.walk(); !at.done(); at.next())
            if (x[at[0]] == y[at[1]]) share.reals[at[1]] += 1;
        context.allReduce(share, ReduceOp::Sum);
    }
    given[0] = zerosLike(operands, 0);
    for (StridedWalk at = r.walk(); !at.done(); at.next())
        given[0].reals[at[0]] =
            gradient->reals[at[1]] * slopeOf(r, x[at[0]], y[at[1]]) / share.reals[at[1]];
    return given;
}

// --- one whole axis -----------------------------------------------------------------------------

/// The lines of a tensor along one axis: element i of a line is at first + i * stride.
struct Lines {
    std::size_t axis = 0, length = 0, stride = 1;
    Shape shape;

    template <typename Use>
    void each(Use use) const {
        Shape rows = shape;
        rows[axis] = 1;
        for (StridedWalk at(rows, {signedStrides(shape), signedStrides(rows)}); !at.done();
             at.next())
            use(at[0], at[1]);
    }
};

Lines linesOf(const KernelContext& context, std::int64_t fallback) {
    Lines lines;
    lines.shape = context.operandShape(0);
    std::int64_t axis = context.op().attributes.integer("axis", fallback);
    if (axis < 0) axis += static_cast<std::int64_t>(lines.shape.size());
    lines.axis = static_cast<std::size_t>(axis);
    lines.length = static_cast<std::size_t>(lines.shape[lines.axis]);
    lines.stride = stridesOf(lines.shape)[lines.axis];
    return lines;
}

/// Ties go to the lowest index, or with select_last to the highest.
Arrays argReduceForward(const KernelContext& context, Operands operands) {
    const Lines lines = linesOf(context, 0);
    const Attributes& attributes = context.op().attributes;
    const double sign = attributes.text("function", "argmax") == "argmin" ? -1 : 1;
    const bool last = attributes.integer("select_last", 0) != 0;
    const Numbers x = numbersOf(*operands[0]);
    Array result = emptyResult(context, 0);
    lines.each([&](std::size_t first, std::size_t line) {
        std::size_t best = 0;
        for (std::size_t i = 1; i < lines.length; ++i) {
            const double a = sign * x[first + i * lines.stride],
                         b = sign * x[first + best * lines.stride];
            if (a > b || (last && a == b)) best = i;
        }
        result.ints[line] = static_cast<std::int64_t>(best);
    });
    return {std::move(result)};
}

/// In order of size, ties by index.
Arrays topKForward(const KernelContext& context, Operands operands) {
    const Lines lines = linesOf(context, -1);
    const bool largest = context.op().attributes.integer("largest", 1) != 0;
    const Numbers x = numbersOf(*operands[0]);
    const Shape shape = context.resultShape(0);
    const auto k = static_cast<std::size_t>(shape[lines.axis]);
    Numbers values(countOf(shape));
    Array indices = emptyResult(context, 1);
    std::vector<std::size_t> order(lines.length);
    lines.each([&](std::size_t first, std::size_t line) {
        const auto at = [&](std::size_t i) { return x[first + i * lines.stride]; };
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
            return largest ? at(a) > at(b) : at(a) < at(b);
        });
        const std::size_t outer = line / lines.stride, inner = line % lines.stride;
        for (std::size_t i = 0; i < k; ++i) {
            const std::size_t to = (outer * k + i) * lines.stride + inner;
            values[to] = at(order[i]);
            indices.ints[to] = static_cast<std::int64_t>(order[i]);
        }
    });
    return {resultOf(context, 0, std::move(values)), std::move(indices)};
}

Arrays topKBackward(const KernelContext& context, Operands operands, std::span<const Array> results,
                    std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr || !differentiable(operands, 0)) return given;
    const Lines lines = linesOf(context, -1);
    const auto k = static_cast<std::size_t>(results[1].shape[lines.axis]);
    given[0] = zerosLike(operands, 0);
    lines.each([&](std::size_t first, std::size_t line) {
        const std::size_t outer = line / lines.stride, inner = line % lines.stride;
        for (std::size_t i = 0; i < k; ++i) {
            const std::size_t from = (outer * k + i) * lines.stride + inner;
            const auto index = static_cast<std::size_t>(results[1].ints[from]);
            given[0].reals[first + index * lines.stride] = gradient->reals[from];
        }
    });
    return given;
}

struct Cumulation {
    bool product = false, exclusive = false, reverse = false;

    explicit Cumulation(const Attributes& attributes)
        : product(attributes.text("function", "sum") == "prod"),
          exclusive(attributes.integer("exclusive", 0) != 0),
          reverse(attributes.integer("reverse", 0) != 0) {}

    Numbers along(const Numbers& line) const {
        Numbers result(line.size());
        double running = product ? 1 : 0;
        for (std::size_t i = 0; i < line.size(); ++i) {
            const std::size_t at = reverse ? line.size() - 1 - i : i;
            const double next = product ? running * line[at] : running + line[at];
            result[at] = exclusive ? running : next;
            running = next;
        }
        return result;
    }
};

template <typename Map>
Numbers mapLines(const Lines& lines, const Numbers& x, Map map) {
    Numbers result(x.size()), line(lines.length);
    lines.each([&](std::size_t first, std::size_t) {
        for (std::size_t i = 0; i < lines.length; ++i) line[i] = x[first + i * lines.stride];
        const Numbers mapped = map(line, first);
        for (std::size_t i = 0; i < lines.length; ++i) result[first + i * lines.stride] = mapped[i];
    });
    return result;
}

Arrays cumulateForward(const KernelContext& context, Operands operands) {
    const Cumulation cumulation(context.op().attributes);
    return {resultOf(
        context, 0,
        mapLines(linesOf(context, -1), numbersOf(*operands[0]),
                 [&](const Numbers& line, std::size_t) { return cumulation.along(line); }))};
}

/// A sum's gradient is the sum from the other end. A product's is the product without the element,
/// worked out without division.
Arrays cumulateBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                        std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr || !differentiable(operands, 0)) return given;
    const Lines lines = linesOf(context, -1);
    Cumulation cumulation(context.op().attributes);
    if (!cumulation.product) {
        cumulation.reverse = !cumulation.reverse;
        given[0] = realArray(operands[0]->shape, mapLines(lines, gradient->reals,
                                                          [&](const Numbers& line, std::size_t) {
                                                              return cumulation.along(line);
                                                          }));
        return given;
    }
    const auto products = [&](const Numbers& line, std::size_t first) {
        Numbers result(line.size(), 0.0);
        for (std::size_t i = 0; i < line.size(); ++i) {
            Numbers without = line;
            without[i] = 1;
            const Numbers partial = cumulation.along(without);
            for (std::size_t j = 0; j < line.size(); ++j) {
                const bool ahead = cumulation.reverse ? j < i : j > i;
                if (ahead || (j == i && !cumulation.exclusive))
                    result[i] += gradient->reals[first + j * lines.stride] * partial[j];
            }
        }
        return result;
    };
    given[0] = realArray(operands[0]->shape, mapLines(lines, operands[0]->reals, products));
    return given;
}

} // namespace

} // namespace shardlens::kernels

namespace shardlens {

std::vector<Kernel> reductionKernels() {
    using namespace kernels;
    return {
        {OpKind::Reduce, reduceForward, reduceBackward},
        {OpKind::ArgReduce, argReduceForward, nullptr},
        {OpKind::TopK, topKForward, topKBackward},
        {OpKind::CumSum, cumulateForward, cumulateBackward},
    };
}

} // namespace shardlens
