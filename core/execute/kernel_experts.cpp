// SPDX-License-Identifier: Apache-2.0
// Fused experts: the router's gates, and every expert's products weighted by them. An expert whose
// gate is 0 adds nothing, so that running it for every token is the same as routing.
#include "core/execute/kernel_recorded.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

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

/// What an expert does with its first product and, if there is one, its third.
class Activation {
public:
    explicit Activation(const KernelContext& context)
        : m_name(context.op().attributes.text("function", "relu")),
          m_function(findScalarFunction(m_name)) {
        const Attributes& a = context.op().attributes;
        m_alpha = a.number("alpha", 1);
        m_beta = a.number("beta", 0);
        m_limit = a.number("limit", 0);
        if (isGated()) return;
        if (m_function == nullptr) fail(context, "there is no activation '" + m_name + "'");
        m_settings = scalarSettings(*m_function, a, DType::F64, DType::F64);
    }

    template <typename T>
    T operator()(const T& first, const std::optional<T>& third) const {
        if (isGated()) return gated(first, third.value_or(T(1)));
        const T out = applied(*m_function, m_settings, first);
        return third ? out * *third : out;
    }

private:
    bool isGated() const { return m_name == "swiglu"; }

    template <typename T>
    T gated(const T& first, const T& third) const {
        const auto cut = [&](const T& x, double least) {
            if (m_limit <= 0) return x;
            return valueOf(x) > m_limit ? T(m_limit) : valueOf(x) < least ? T(least) : x;
        };
        const T a = cut(first, -std::numeric_limits<double>::infinity()), b = cut(third, -m_limit);
        return a / (T(1) + exponential(T(-m_alpha) * a)) * (b + T(m_beta));
    }

    std::string m_name;
    const ScalarFunction* m_function;
    ScalarSettings m_settings;
    double m_alpha = 1, m_beta = 0, m_limit = 0;
};

struct ExpertsProgram {
    template <typename T>
    NumberLists<T> operator()(const KernelContext& context, Operands operands,
                              const NumberLists<T>& numbers) const {
        const Activation activation(context);
        const Shape weights = context.operandShape(2);
        const auto experts = static_cast<std::size_t>(weights[0]),
                   h = static_cast<std::size_t>(weights[1]),
                   f = static_cast<std::size_t>(weights[2]);
        const std::vector<T>&x = numbers[0], &gates = numbers[1];
        std::vector<T> y(x.size(), T(0));
        /// Row t of the tokens times column j of an expert's first or third weights, with its bias.
        const auto product = [&](std::size_t operand, std::size_t bias, std::size_t t,
                                 std::size_t e, std::size_t j) {
            T sum = hasOperand(operands, bias) ? numbers[bias][e * f + j] : T(0);
            for (std::size_t i = 0; i < h; ++i)
                sum = sum + x[t * h + i] * numbers[operand][(e * h + i) * f + j];
            return sum;
        };
        for (std::size_t t = 0; t < x.size() / h; ++t)
            for (std::size_t e = 0; e < experts; ++e)
                for (std::size_t j = 0; j < f; ++j) {
                    std::optional<T> third;
                    if (hasOperand(operands, 5)) third = product(5, 6, t, e, j);
                    const T out =
                        activation(product(2, 4, t, e, j), third) * gates[t * experts + e];
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
