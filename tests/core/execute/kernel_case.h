// SPDX-License-Identifier: Apache-2.0
// One op with operands, to run its kernels whole, on one device: values against closed forms,
// gradients against central finite differences in double precision.
#pragma once

#include "core/execute/kernel.h"

#include <fmt/format.h>

#include <QTest>

#include <cmath>
#include <random>

namespace shardlens::test {

/// An operand: numbers, integers (held as i64) or none.
using Operand = std::optional<Array>;

inline Array numbers(Shape shape, std::vector<double> values) {
    Array array = Array::real(std::move(shape));
    array.reals = std::move(values);
    return array;
}
inline Array integers(Shape shape, std::vector<std::int64_t> values) {
    Array array = Array::integer(std::move(shape));
    array.ints = std::move(values);
    return array;
}
/// Uniform in [low, high], no two elements equal: where there are kinks, none is hit.
inline Array noise(Shape shape, double low = -1, double high = 1, unsigned seed = 1) {
    Array array = Array::real(std::move(shape));
    std::mt19937 engine(seed);
    std::uniform_real_distribution<double> draw(low, high);
    for (double& each : array.reals) each = draw(engine);
    return array;
}

class KernelCase {
public:
    KernelCase(OpKind kind, std::vector<Operand> operands, Attributes attributes = {},
               std::size_t results = 1)
        : m_operands(std::move(operands)) {
        Op op{"op", kind, {}, std::move(attributes), {}, {}};
        for (std::size_t i = 0; i < m_operands.size(); ++i) {
            if (!m_operands[i]) {
                op.inputs.push_back(kNoTensor);
                continue;
            }
            const Array& operand = *m_operands[i];
            const TensorSpec spec{operand.integral ? DType::I64 : DType::F64, operand.shape};
            const OpId source =
                m_graph.addOp({fmt::format("in{}", i), OpKind::Input, {}, {}, {}, {}}, {spec});
            op.inputs.push_back(m_graph.op(source).outputs[0]);
        }
        op.outputs.resize(results);
        OpView view{op, {}, {}};
        for (const TensorId id : op.inputs)
            view.inputs.push_back(id == kNoTensor ? TensorSpec{} : m_graph.tensor(id).spec);
        std::vector<TensorSpec> specs = inferShapes(view);
        op.outputs.clear();
        m_op = m_graph.addOp(std::move(op), std::move(specs));
    }

    Arrays forward() const { return run(m_operands); }

    /// @param gradients of the results, by default noise for those that are numbers
    Arrays backward(Arrays gradients = {}) const {
        const OpView view = viewOf(m_graph, m_op);
        const FactorRule rule = factorRule(view);
        const KernelContext context(view, rule);
        const Arrays results = run(m_operands);
        if (gradients.empty()) gradients = weights(results);
        return kernelOf(view.op.kind).backward(context, pointers(m_operands), results, gradients);
    }

    /// The largest difference between a gradient and its finite difference, relative to the
    /// largest gradient of that operand (or to 1). Also fails (infinity) on a wrong shape.
    double gradientError(double step = 1e-5) const {
        const Arrays given = backward();
        double worst = given.size() == m_operands.size() ? 0 : INFINITY;
        for (std::size_t i = 0; i < m_operands.size(); ++i) {
            if (!m_operands[i] || m_operands[i]->integral) {
                if (!given[i].empty()) return INFINITY;
                continue;
            }
            if (given[i].shape != m_operands[i]->shape || given[i].integral) return INFINITY;
            double scale = 1;
            for (const double g : given[i].reals) scale = std::max(scale, std::abs(g));
            for (std::size_t e = 0; e < given[i].reals.size(); ++e) {
                const double slope = (lossWith(i, e, step) - lossWith(i, e, -step)) / (2 * step);
                const double error = std::abs(slope - given[i].reals[e]) / scale;
                worst = std::isnan(error) ? INFINITY : std::max(worst, error);
            }
        }
        return worst;
    }

private:
    static std::vector<const Array*> pointers(const std::vector<Operand>& operands) {
        std::vector<const Array*> list;
        for (const Operand& operand : operands) list.push_back(operand ? &*operand : nullptr);
        return list;
    }
    Arrays run(const std::vector<Operand>& operands) const {
        const OpView view = viewOf(m_graph, m_op);
        const FactorRule rule = factorRule(view);
        const KernelContext context(view, rule);
        return kernelOf(view.op.kind).forward(context, pointers(operands));
    }
    /// One weight an element of each result of the op; what a kernel keeps is no result.
    Arrays weights(const Arrays& results) const {
        Arrays list;
        for (std::size_t r = 0; r < m_graph.op(m_op).outputs.size(); ++r)
            list.push_back(results[r].integral
                               ? Array{}
                               : noise(results[r].shape, -1, 1, 77 + static_cast<unsigned>(r)));
        return list;
    }
    double lossWith(std::size_t operand, std::size_t element, double step) const {
        std::vector<Operand> moved = m_operands;
        moved[operand]->reals[element] += step;
        const Arrays results = run(moved), weight = weights(results);
        double loss = 0;
        for (std::size_t r = 0; r < weight.size(); ++r)
            for (std::size_t e = 0; e < weight[r].reals.size(); ++e)
                loss += weight[r].reals[e] * results[r].reals[e];
        return loss;
    }

    Graph m_graph;
    OpId m_op = kNoOp;
    std::vector<Operand> m_operands;
};

} // namespace shardlens::test

/// The backward kernels of a KernelCase agree with central differences of step 1e-5. For QtTest
/// slots.
#define VERIFY_GRADIENT(kernelCase)                                                                \
    do {                                                                                           \
        const double error = (kernelCase).gradientError();                                         \
        QVERIFY2(error < 1e-7, qPrintable(QString("gradient error %1").arg(error)));               \
    } while (false)
