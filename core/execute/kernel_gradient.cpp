// SPDX-License-Identifier: Apache-2.0
// Gradient ops: the backward kernel of the forward op, run on what the gradient op has. What it
// does not have (an operand whose elements the gradient does not depend on) is taken as zeros.
#include "core/execute/kernel_support.h"
#include "core/model/gradient.h"

#include <optional>

namespace shardlens::kernels {

namespace {

using gradient::Forward;

/// The surroundings of the forward op, as far as the gradient op's tell.
class ForwardContext : public KernelContext {
public:
    ForwardContext(const KernelContext& outer, const OpView& view, const FactorRule& rule)
        : KernelContext(view, rule), m_outer(outer) {}

    Shape operandShape(std::size_t operand) const override {
        if (const auto at = operandWith(gradient::kForwardOperand, operand))
            return m_outer.operandShape(*at);
        if (const auto at = resultFor(operand)) return m_outer.resultShape(*at);
        return whole().inputs[operand].shape;
    }
    Shape resultShape(std::size_t result) const override {
        if (const auto at = resultPlace(result)) return m_outer.operandShape(*at);
        return whole().outputs[result].shape;
    }
    std::int64_t operandBegin(std::size_t operand, std::size_t dim) const override {
        if (const auto at = operandWith(gradient::kForwardOperand, operand))
            return m_outer.operandBegin(*at, dim);
        if (const auto at = resultFor(operand)) return m_outer.resultBegin(*at, dim);
        return 0;
    }
    std::int64_t resultBegin(std::size_t result, std::size_t dim) const override {
        const auto at = resultPlace(result);
        return at ? m_outer.operandBegin(*at, dim) : 0;
    }
    bool leads() const override { return m_outer.leads(); }
    void allReduce(Array& statistic, ReduceOp reduce) const override {
        m_outer.allReduce(statistic, reduce);
    }

    /// Which operand of the gradient op has this role.
    std::optional<std::size_t> operandWith(std::int64_t role, std::size_t port) const {
        return find("roles", role + static_cast<std::int64_t>(port));
    }

private:
    std::optional<std::size_t> resultFor(std::size_t operand) const {
        return find("wanted", static_cast<std::int64_t>(operand));
    }
    std::optional<std::size_t> resultPlace(std::size_t result) const {
        const auto at = operandWith(gradient::kResultGradient, result);
        return at ? at : operandWith(gradient::kForwardResult, result);
    }
    std::optional<std::size_t> find(std::string_view list, std::int64_t value) const {
        const Ints values = m_outer.op().attributes.integers(list);
        for (std::size_t i = 0; i < values.size(); ++i)
            if (values[i] == value) return i;
        return std::nullopt;
    }

    const KernelContext& m_outer;
};

/// What the forward kernel keeps, in order; zeros where a gradient op leaves one out (the mean of a
/// norm that does not centre).
Arrays keptArrays(const KernelContext& context, Operands operands) {
    Arrays kept;
    const Ints roles = context.op().attributes.integers("roles");
    for (std::size_t i = 0; i < roles.size(); ++i) {
        if (roles[i] < gradient::kRowStatistic || !hasOperand(operands, i)) continue;
        const auto k = static_cast<std::size_t>(roles[i] - gradient::kRowStatistic);
        if (k >= kept.size()) kept.resize(k + 1, Array::like(*operands[i], operands[i]->shape));
        kept[k] = *operands[i];
    }
    return kept;
}

/// Results of the forward op: those that are given; else computed again, if that exchanges nothing
/// and all operands are there; else zeros, which the gradient does not depend on.
Arrays resultsFor(const ForwardContext& context, const Forward& forward, const FactorRule& rule,
                  Operands inputs, bool complete, Operands operands) {
    Arrays results;
    bool given = false;
    for (std::size_t r = 0; r < forward.outputs.size(); ++r) {
        const auto at = context.operandWith(gradient::kForwardResult, r);
        given = given || at;
        results.push_back(at ? *operands[*at]
                             : Array::zeros(forward.outputs[r], context.resultShape(r)));
    }
    if (!given && complete && rule.forwardStatistics.empty())
        return kernelOf(forward.op.kind).forward(context, inputs);
    return results;
}

Arrays gradientForward(const KernelContext& context, Operands operands) {
    const Forward forward = gradient::forwardOf(context.whole());
    const OpView view = forward.view();
    const FactorRule rule = factorRule(view);
    const ForwardContext inner(context, view, rule);
    const Kernel& kernel = kernelOf(forward.op.kind);
    if (kernel.backward == nullptr) fail(context, "the forward op passes no gradient");
    Arrays made; // stand-ins
    made.reserve(forward.inputs.size());
    std::vector<const Array*> inputs(forward.inputs.size(), nullptr);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (const auto at = inner.operandWith(gradient::kForwardOperand, i)) {
            inputs[i] = operands[*at];
        } else if (forward.inputs[i].dtype != DType::Unknown) {
            made.push_back(Array::zeros(forward.inputs[i], inner.operandShape(i)));
            inputs[i] = &made.back();
        }
    }
    Arrays results = resultsFor(inner, forward, rule, inputs, made.empty(), operands);
    for (Array& kept : keptArrays(context, operands)) results.push_back(std::move(kept));
    Arrays gradients(forward.outputs.size());
    for (std::size_t r = 0; r < gradients.size(); ++r)
        if (const auto given = inner.operandWith(gradient::kResultGradient, r))
            gradients[r] = *operands[*given];
    Arrays all = kernel.backward(inner, inputs, results, gradients), wanted;
    const Ints ports = context.op().attributes.integers("wanted");
    for (std::size_t r = 0; r < ports.size(); ++r) {
        Array& given = all[static_cast<std::size_t>(ports[r])];
        wanted.push_back(given.empty() ? emptyResult(context, r) : std::move(given));
    }
    return wanted;
}

} // namespace

} // namespace shardlens::kernels

namespace shardlens {

std::vector<Kernel> gradientKernels() {
    return {{OpKind::Gradient, kernels::gradientForward, nullptr}};
}

} // namespace shardlens
