// SPDX-License-Identifier: Apache-2.0
// Fused experts: the router's gates, and every expert's products weighted by them. An expert whose
// gate is 0 adds nothing, so that running it for every token is the same as routing.
#include "core/execute/kernel_recorded.h"

#include <algorithm>
#include <numeric>

namespace shardlens::kernels {

namespace {

struct GatesProgram {
    template <typename T>
    NumberLists<T> operator()(const KernelContext& context, Operands,
                              const NumberLists<T>& numbers) const {
        const Attributes& a = context.op().attributes;
        const auto k = static_cast<std::size_t>(a.integer("top_k", 1));
        const auto experts = static_cast<std::size_t>(context.operandShape(0).back());
        const bool normalised = a.integer("normalize", 0) != 0;
        std::vector<T> gates(numbers[0].size(), T(0));
        for (std::size_t first = 0; first < gates.size(); first += experts) {
            const std::vector<std::size_t> order = ranked(numbers[0], first, experts);
            const double most = valueOf(numbers[0][first + order[0]]);
            T all(0), chosen(0);
            std::vector<T> weights;
            for (std::size_t i = 0; i < experts; ++i) {
                weights.push_back(exponential(numbers[0][first + order[i]] - T(most)));
                all = all + weights.back();
                if (i < k) chosen = chosen + weights.back();
            }
            for (std::size_t i = 0; i < k; ++i)
                gates[first + order[i]] = weights[i] / (normalised ? chosen : all);
        }
        return {std::move(gates)};
    }

    /// Experts of a row, the largest logit first, of equal ones the first.
    template <typename T>
    static std::vector<std::size_t> ranked(const std::vector<T>& logits, std::size_t first,
                                           std::size_t experts) {
        std::vector<std::size_t> order(experts);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::stable_sort(order, std::ranges::greater{},
                                 [&](std::size_t e) { return valueOf(logits[first + e]); });
        return order;
    }
};

struct ExpertsProgram {
    template <typename T>
    NumberLists<T> operator()(const KernelContext& context, Operands operands,
                              const NumberLists<T>& numbers) const {
        const std::string name = context.op().attributes.text("function", "relu");
        const ScalarFunction* function = findScalarFunction(name);
        if (function == nullptr) fail(context, "there is no activation '" + name + "'");
        const ScalarSettings settings =
            scalarSettings(*function, context.op().attributes, DType::F64, DType::F64);
        const Shape weights = context.operandShape(2);
        const auto experts = static_cast<std::size_t>(weights[0]),
                   h = static_cast<std::size_t>(weights[1]),
                   f = static_cast<std::size_t>(weights[2]);
        const std::vector<T>&x = numbers[0], &gates = numbers[1];
        std::vector<T> y(x.size(), T(0));
        /// Row e of tokens t times column j of an expert's first or third weights.
        const auto product = [&](std::size_t operand, std::size_t t, std::size_t e, std::size_t j) {
            T sum(0);
            for (std::size_t i = 0; i < h; ++i)
                sum = sum + x[t * h + i] * numbers[operand][(e * h + i) * f + j];
            return sum;
        };
        for (std::size_t t = 0; t < x.size() / h; ++t)
            for (std::size_t e = 0; e < experts; ++e)
                for (std::size_t j = 0; j < f; ++j) {
                    T inner = product(2, t, e, j);
                    if (hasOperand(operands, 4)) inner = inner + numbers[4][e * f + j];
                    T out = applied(*function, settings, inner);
                    if (hasOperand(operands, 5)) out = out * product(5, t, e, j);
                    out = out * gates[t * experts + e];
                    for (std::size_t i = 0; i < h; ++i)
                        y[t * h + i] = y[t * h + i] + out * numbers[3][(e * f + j) * h + i];
                }
        return {std::move(y)};
    }
};

} // namespace

} // namespace shardlens::kernels

namespace shardlens {

std::vector<Kernel> expertKernels() {
    using namespace kernels;
    return {recordedKernel<GatesProgram>(OpKind::Gates),
            recordedKernel<ExpertsProgram>(OpKind::Experts)};
}

} // namespace shardlens
