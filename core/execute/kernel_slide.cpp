// SPDX-License-Identifier: Apache-2.0
// Windows that slide over all dimensions of their operands: reductions of each window, and sums
// that go to the element which each window chooses. Where a dimension is cut, windows lie one
// behind the other in it, so that the part of a rank is a smaller case of the same.
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_support.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace shardlens::kernels {

namespace {

struct Sliding {
    Shape x, places, kernel;
    Window window;

    Sliding(const KernelContext& context, Shape operand, Shape windows)
        : x(std::move(operand)), places(std::move(windows)),
          kernel(context.op().attributes.integers("kernel")), window(windowOf(context, kernel)) {}

    /// Elements of x under the window at a place, in row-major order.
    std::vector<std::size_t> under(const Shape& at) const {
        std::vector<std::size_t> elements;
        for (Counter tap(kernel); !tap.done(); tap.next())
            if (const auto place = placeOf(window, x, at, tap.index())) elements.push_back(*place);
        return elements;
    }

    /// Calls use(number of the window, elements under it).
    template <typename Use>
    void each(Use use) const {
        std::size_t number = 0;
        for (Counter at(places); !at.done(); at.next(), ++number) use(number, under(at.index()));
    }
};

enum class Function { Sum, Max, Min, Prod };

Function functionOf(const KernelContext& context) {
    const std::string name = context.op().attributes.text("function", "sum");
    if (name == "max") return Function::Max;
    if (name == "min") return Function::Min;
    if (name == "prod") return Function::Prod;
    if (name != "sum") fail(context, "there is no reduction '" + name + "'");
    return Function::Sum;
}

/// What the reduction of nothing gives.
template <typename T>
T neutral(Function function) {
    using Limits = std::numeric_limits<T>;
    const T most = Limits::has_infinity ? Limits::infinity() : Limits::max();
    const T least = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    switch (function) {
    case Function::Max:
        return least;
    case Function::Min:
        return most;
    case Function::Prod:
        return 1;
    case Function::Sum:
        break;
    }
    return 0;
}

template <typename T>
T combined(Function function, T a, T b) {
    switch (function) {
    case Function::Max:
        return std::max(a, b);
    case Function::Min:
        return std::min(a, b);
    case Function::Prod:
        return a * b;
    case Function::Sum:
        break;
    }
    return a + b;
}

/// The first of the largest (smallest) elements under a window.
std::size_t winnerOf(const Numbers& x, const std::vector<std::size_t>& under, Function function) {
    std::size_t winner = under.front();
    for (const std::size_t e : under)
        if (function == Function::Min ? x[e] < x[winner] : x[e] > x[winner]) winner = e;
    return winner;
}

// --- ReduceWindow -------------------------------------------------------------------------------

template <typename T>
void reduceWindows(const Sliding& sliding, Function function, const std::vector<T>& x,
                   std::vector<T>& result) {
    sliding.each([&](std::size_t number, const std::vector<std::size_t>& under) {
        T value = neutral<T>(function);
        for (const std::size_t e : under) value = combined(function, value, x[e]);
        result[number] = value;
    });
}

Arrays reduceWindowForward(const KernelContext& context, Operands operands) {
    const Sliding sliding(context, operands[0]->shape, context.resultShape(0));
    const Function function = functionOf(context);
    Arrays results;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        Array result = emptyResult(context, i);
        if (result.integral)
            reduceWindows(sliding, function, operands[i]->ints, result.ints);
        else
            reduceWindows(sliding, function, operands[i]->reals, result.reals);
        results.push_back(std::move(result));
    }
    return results;
}

void addWindowGradient(const std::vector<std::size_t>& under, Function function, const Numbers& x,
                       double gradient, Numbers& given) {
    if (under.empty()) return;
    if (function == Function::Max || function == Function::Min) {
        given[winnerOf(x, under, function)] += gradient;
        return;
    }
    for (const std::size_t e : under) {
        double slope = 1;
        if (function == Function::Prod) // the product of the others, without division
            for (const std::size_t other : under)
                if (other != e) slope *= x[other];
        given[e] += slope * gradient;
    }
}

Arrays reduceWindowBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                            std::span<const Array> gradients) {
    const Sliding sliding(context, operands[0]->shape, context.resultShape(0));
    const Function function = functionOf(context);
    Arrays given = noGradients(operands);
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const Array* gradient = gradientOf(gradients, i);
        if (gradient == nullptr || !differentiable(operands, i)) continue;
        given[i] = zerosLike(operands, i);
        sliding.each([&](std::size_t number, const std::vector<std::size_t>& under) {
            addWindowGradient(under, function, operands[i]->reals, gradient->reals[number],
                              given[i].reals);
        });
    }
    return given;
}

// --- SelectAndScatter ---------------------------------------------------------------------------

/// Of each window the element that it chooses; kElsewhere where it lies in the padding.
Places chosen(const KernelContext& context, Operands operands) {
    const Sliding sliding(context, operands[0]->shape, operands[1]->shape);
    const Function function =
        context.op().attributes.text("function", "max") == "min" ? Function::Min : Function::Max;
    const Numbers x = numbersOf(*operands[0]);
    Places places;
    sliding.each([&](std::size_t, const std::vector<std::size_t>& under) {
        places.push_back(under.empty() ? kElsewhere
                                       : static_cast<std::ptrdiff_t>(winnerOf(x, under, function)));
    });
    return places;
}

Arrays selectForward(const KernelContext& context, Operands operands) {
    Array result = emptyResult(context, 0);
    const Places places = chosen(context, operands);
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (places[i] == kElsewhere) continue;
        const auto to = static_cast<std::size_t>(places[i]);
        if (result.integral)
            result.ints[to] += operands[1]->ints[i];
        else
            result.reals[to] += operands[1]->reals[i];
    }
    return {std::move(result)};
}

/// Small changes of x do not change what is chosen: the gradient goes to the source alone.
Arrays selectBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                      std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr || !differentiable(operands, 1)) return given;
    given[1] = zerosLike(operands, 1);
    const Places places = chosen(context, operands);
    for (std::size_t i = 0; i < places.size(); ++i)
        if (places[i] != kElsewhere)
            given[1].reals[i] = gradient->reals[static_cast<std::size_t>(places[i])];
    return given;
}

} // namespace

Kernel reduceWindowKernel() {
    return {OpKind::ReduceWindow, reduceWindowForward, reduceWindowBackward};
}

Kernel selectAndScatterKernel() {
    return {OpKind::SelectAndScatter, selectForward, selectBackward};
}

} // namespace shardlens::kernels
