// SPDX-License-Identifier: Apache-2.0
// Private to the kernels: a forward and a backward kernel from one program over a type of number.
// The program is a class with
//   template <typename T> std::vector<std::vector<T>> operator()(const KernelContext&, Operands,
//                                                                const
//                                                                std::vector<std::vector<T>>&)
// which gets the operands' elements (none for absent ones) and returns those of the results. What
// it computes on a rank must depend on the rank's operands alone: it exchanges nothing.
#pragma once

#include "core/execute/kernel_support.h"
#include "core/execute/tape.h"

namespace shardlens::kernels {

template <typename T>
using NumberLists = std::vector<std::vector<T>>;

template <typename Program>
Arrays recordedForward(const KernelContext& context, Operands operands) {
    NumberLists<double> numbers(operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i)
        if (hasOperand(operands, i)) numbers[i] = numbersOf(*operands[i]);
    NumberLists<double> values = Program{}(context, operands, numbers);
    Arrays results;
    for (std::size_t r = 0; r < values.size(); ++r)
        results.push_back(resultOf(context, r, std::move(values[r])));
    return results;
}

template <typename Program>
Arrays recordedBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                        std::span<const Array> gradients) {
    Tape tape;
    NumberLists<Recorded> numbers(operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
        if (!hasOperand(operands, i)) continue;
        for (const double x : numbersOf(*operands[i]))
            numbers[i].push_back(differentiable(operands, i) ? tape.variable(x) : Recorded(x));
    }
    const NumberLists<Recorded> results = Program{}(context, operands, numbers);
    for (std::size_t r = 0; r < results.size(); ++r)
        if (const Array* gradient = gradientOf(gradients, r))
            for (std::size_t e = 0; e < results[r].size(); ++e)
                tape.seed(results[r][e], gradient->reals[e]);
    const Numbers back = tape.gradients();
    Arrays given = noGradients(operands);
    for (std::size_t i = 0; i < operands.size(); ++i) {
        if (!differentiable(operands, i)) continue;
        given[i] = zerosLike(operands, i);
        for (std::size_t e = 0; e < numbers[i].size(); ++e)
            given[i].reals[e] = back[numbers[i][e].index()];
    }
    return given;
}

template <typename Program>
Kernel recordedKernel(OpKind kind) {
    return {kind, recordedForward<Program>, recordedBackward<Program>};
}

} // namespace shardlens::kernels
