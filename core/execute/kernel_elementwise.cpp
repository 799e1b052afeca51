// SPDX-License-Identifier: Apache-2.0
// Elementwise functions over operands that broadcast, and what depends on an element's place alone:
// random numbers and dropout.
#include "core/execute/feeds.h"
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_support.h"
#include "core/execute/scalar_functions.h"

#include <algorithm>

namespace shardlens::kernels {

std::vector<std::uint64_t> wholeIndices(const KernelContext& context, std::size_t r) {
    const Shape whole = context.whole().outputs[r].shape, local = context.resultShape(r);
    const Strides strides = signedStrides(whole);
    std::ptrdiff_t first = 0;
    for (std::size_t d = 0; d < whole.size(); ++d) first += context.resultBegin(r, d) * strides[d];
    std::vector<std::uint64_t> indices;
    for (StridedWalk at(local, {strides}); !at.done(); at.next())
        indices.push_back(static_cast<std::uint64_t>(first) + at[0]);
    return indices;
}

namespace {

/// Operands as the function sees them: absent ones left out, all broadcast to the result.
struct Applied {
    const ScalarFunction* function = nullptr;
    ScalarSettings settings;
    std::vector<std::size_t> operands; ///< which of the op's
    std::vector<Strides> strides;      ///< of these, then of the result
    Shape shape;
};

Applied applied(const KernelContext& context, Operands operands) {
    Applied a;
    const std::string name = context.op().attributes.text("function");
    a.function = findScalarFunction(name);
    if (a.function == nullptr) fail(context, "there is no elementwise function '" + name + "'");
    for (std::size_t i = 0; i < operands.size(); ++i)
        if (hasOperand(operands, i)) a.operands.push_back(i);
    if (a.operands.empty()) fail(context, "an elementwise op needs an operand");
    a.settings = scalarSettings(*a.function, context.op().attributes,
                                context.whole().inputs[a.operands[0]].dtype,
                                context.whole().outputs[0].dtype);
    a.shape = context.resultShape(0);
    for (const std::size_t i : a.operands)
        a.strides.push_back(broadcastStrides(operands[i]->shape, a.shape));
    a.strides.push_back(signedStrides(a.shape));
    return a;
}

bool allIntegers(const Applied& a, Operands operands) {
    return isHeldAsInteger(a.settings.to) &&
           std::ranges::all_of(a.operands, [&](std::size_t i) { return operands[i]->integral; });
}

Arrays integersForward(const KernelContext& context, const Applied& a, Operands operands) {
    Array result = emptyResult(context, 0);
    Ints arguments(a.operands.size());
    for (StridedWalk at(a.shape, a.strides); !at.done(); at.next()) {
        for (std::size_t k = 0; k < arguments.size(); ++k)
            arguments[k] = operands[a.operands[k]]->ints[at[k]];
        result.ints[at[arguments.size()]] =
            wrapped(a.settings.to, a.function->integer(arguments, a.settings));
    }
    return {std::move(result)};
}

std::vector<Numbers> realOperands(const Applied& a, Operands operands) {
    std::vector<Numbers> numbers;
    for (const std::size_t i : a.operands) numbers.push_back(kernels::numbersOf(*operands[i]));
    return numbers;
}

/// Noise in [0, 1) that depends on the element's index alone.
Arrays randomForward(const KernelContext& context) {
    const auto seed = static_cast<std::uint64_t>(context.op().attributes.integer("seed", 0));
    Numbers result;
    for (const std::uint64_t index : wholeIndices(context, 0))
        result.push_back(uniformAt(seed, index));
    return {resultOf(context, 0, std::move(result))};
}

bool isRandom(const KernelContext& context) {
    return context.op().attributes.text("function") == "random";
}

Arrays elementwiseForward(const KernelContext& context, Operands operands) {
    if (isRandom(context)) return randomForward(context);
    const Applied a = applied(context, operands);
    if (a.function->integer != nullptr && allIntegers(a, operands))
        return integersForward(context, a, operands);
    if (a.function->value == nullptr)
        fail(context, "this elementwise function is for integers only");
    const std::vector<Numbers> numbers = realOperands(a, operands);
    Numbers result(countOf(a.shape)), arguments(numbers.size());
    for (StridedWalk at(a.shape, a.strides); !at.done(); at.next()) {
        for (std::size_t k = 0; k < arguments.size(); ++k) arguments[k] = numbers[k][at[k]];
        result[at[arguments.size()]] = a.function->value(arguments, a.settings);
    }
    return {resultOf(context, 0, std::move(result))};
}

Arrays elementwiseBackward(const KernelContext& context, Operands operands,
                           std::span<const Array> results, std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr || isRandom(context) || results[0].integral) return given;
    const Applied a = applied(context, operands);
    if (a.function->derivative == nullptr) return given;
    for (const std::size_t i : a.operands)
        if (differentiable(operands, i)) given[i] = zerosLike(operands, i);
    const std::vector<Numbers> numbers = realOperands(a, operands);
    Numbers arguments(numbers.size());
    for (StridedWalk at(a.shape, a.strides); !at.done(); at.next()) {
        for (std::size_t k = 0; k < arguments.size(); ++k) arguments[k] = numbers[k][at[k]];
        const std::size_t place = at[arguments.size()];
        for (std::size_t k = 0; k < arguments.size(); ++k)
            if (Array& operand = given[a.operands[k]]; !operand.empty())
                operand.reals[at[k]] +=
                    gradient->reals[place] *
                    a.function->derivative(arguments, results[0].reals[place], k, a.settings);
    }
    return given;
}

// --- Dropout: elements are dropped by a hash of their index, the others scaled up ----------------

/// What each element is multiplied with. Outside training everything is kept.
Numbers dropoutFactors(const KernelContext& context) {
    const Attributes& attributes = context.op().attributes;
    const double ratio =
        attributes.integer("training", 1) != 0 ? attributes.number("ratio", 0.5) : 0;
    const auto seed = static_cast<std::uint64_t>(attributes.integer("seed", 0));
    Numbers factors;
    for (const std::uint64_t index : wholeIndices(context, 0))
        factors.push_back(ratio > 0 && uniformAt(seed, index) < ratio ? 0 : 1 / (1 - ratio));
    return factors;
}

Arrays dropoutForward(const KernelContext& context, Operands operands) {
    Numbers result = dropoutFactors(context);
    Numbers kept(result.size());
    std::ranges::transform(result, kept.begin(), [](double factor) { return factor != 0; });
    std::ranges::transform(result, kernels::numbersOf(*operands[0]), result.begin(),
                           [](double factor, double x) { return factor == 0 ? 0 : factor * x; });
    Arrays results{resultOf(context, 0, std::move(result))};
    if (context.whole().outputs.size() > 1)
        results.push_back(resultOf(context, 1, std::move(kept)));
    return results;
}

Arrays dropoutBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                       std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr) return given;
    Numbers result = dropoutFactors(context);
    std::ranges::transform(result, gradient->reals, result.begin(), std::multiplies<>{});
    given[0] = realArray(gradient->shape, std::move(result));
    return given;
}

} // namespace

} // namespace shardlens::kernels

namespace shardlens {

std::vector<Kernel> elementwiseKernels() {
    using namespace kernels;
    return {
        {OpKind::Elementwise, elementwiseForward, elementwiseBackward},
        {OpKind::Dropout, dropoutForward, dropoutBackward},
    };
}

} // namespace shardlens
