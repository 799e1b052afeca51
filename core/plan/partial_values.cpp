// SPDX-License-Identifier: Apache-2.0
// Which ops hand a partial sum on is the usual list: f(a + b) must be f(a) + f(b).
#include "core/plan/partial_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace shardlens {

namespace {

class Follower {
public:
    Follower(const Graph& local, const std::vector<TensorId>& starts)
        : m_local(local), m_starts(local.tensors().size(), false) {
        m_flow.origin.assign(local.tensors().size(), kNoTensor);
        for (const TensorId start : starts) m_starts[start] = true;
    }

    PartialFlow run() {
        for (const Op& op : m_local.ops()) {
            visit(op);
            for (const TensorId out : op.outputs)
                if (m_starts[out]) m_flow.origin[out] = out;
        }
        for (const TensorId output : m_local.outputs())
            if (isPartial(output))
                m_flow.unreduced.push_back(fmt::format(
                    "The result '{}' is only this device's part of a sum: nothing reduces it.",
                    m_local.tensor(output).name));
        return std::move(m_flow);
    }

private:
    bool isPartial(TensorId tensor) const {
        return tensor != kNoTensor && m_flow.origin[tensor] != kNoTensor;
    }

    /// A number that is zero, or a constant whose value the file does not hold.
    bool mayBeZero(TensorId tensor) const {
        const Tensor& t = m_local.tensor(tensor);
        if (m_local.op(t.producer).kind != OpKind::Constant) return false;
        return !t.reals || std::ranges::all_of(*t.reals, [](double x) { return x == 0; });
    }

    void visit(const Op& op) {
        if (op.kind == OpKind::Collective) return collective(op);
        std::vector<std::size_t> ports;
        for (std::size_t i = 0; i < op.inputs.size(); ++i)
            if (isPartial(op.inputs[i])) ports.push_back(i);
        if (ports.empty()) return;
        const TensorId in = op.inputs[ports[0]];
        if (handsOn(op, ports)) {
            for (const TensorId out : op.outputs) m_flow.origin[out] = m_flow.origin[in];
            return;
        }
        const TensorId origin = m_flow.origin[in];
        m_flow.unreduced.push_back(fmt::format(
            "Op '{}' ({}) uses '{}', which is only this device's part of a sum that '{}' began: a "
            "reduction is missing before it.",
            op.name, nameOf(op.kind), m_local.tensor(in).name,
            m_local.op(m_local.tensor(origin).producer).name));
    }

    void collective(const Op& op) {
        const std::string function = op.attributes.text("function");
        const bool reduces = function == "all-reduce" || function == "reduce-scatter";
        for (std::size_t i = 0; i < op.inputs.size() && i < op.outputs.size(); ++i) {
            const TensorId in = op.inputs[i];
            if (in == kNoTensor) continue;
            if (reduces && !isPartial(in) && op.attributes.text("reduce") == "sum")
                m_flow.overReduced.push_back(fmt::format(
                    "Collective '{}' sums '{}', which is no part of a sum as far as the plan "
                    "tells.",
                    op.name, m_local.tensor(in).name));
            if (!reduces && isPartial(in))
                m_flow.unreduced.push_back(
                    fmt::format("Collective '{}' ({}) moves '{}', which is only this device's part "
                                "of a sum: a reduction is missing before it.",
                                op.name, function, m_local.tensor(in).name));
        }
    }

    /// Whether the results are partial in the same way.
    bool handsOn(const Op& op, const std::vector<std::size_t>& ports) const {
        switch (op.kind) {
        case OpKind::Transpose:
        case OpKind::Reshape:
        case OpKind::Slice:
        case OpKind::Split:
        case OpKind::Expand:
        case OpKind::Tile:
            return true;
        case OpKind::Concat:
            return ports.size() == op.inputs.size();
        case OpKind::Gather:
        case OpKind::GatherElements:
            return ports == std::vector<std::size_t>{0};
        case OpKind::MatMul:
            return ports.size() == 1 && (op.inputs.size() < 3 || op.inputs[2] == kNoTensor);
        case OpKind::Reduce: {
            const std::string function = op.attributes.text("function");
            return function == "sum" || function == "mean";
        }
        case OpKind::Elementwise:
            return linear(op, ports);
        default:
            return false;
        }
    }

    bool linear(const Op& op, const std::vector<std::size_t>& ports) const {
        const std::string function = op.attributes.text("function");
        if (function == "neg" || function == "cast" || function == "identity") return true;
        if (function == "add" || function == "sub") return ports.size() == op.inputs.size();
        if (function == "mul") return ports.size() == 1;
        if (function == "div") return ports == std::vector<std::size_t>{0};
        if (function != "where" || op.inputs.size() != 3 || ports[0] == 0) return false;
        // A mask that picks the part or nothing.
        return ports.size() == 2 || mayBeZero(op.inputs[ports[0] == 1 ? 2 : 1]);
    }

    const Graph& m_local;
    std::vector<bool> m_starts; ///< by tensor
    PartialFlow m_flow;
};

} // namespace

PartialFlow followPartialValues(const Graph& local, const std::vector<TensorId>& starts) {
    return Follower(local, starts).run();
}

} // namespace shardlens
