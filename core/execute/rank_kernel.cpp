// SPDX-License-Identifier: Apache-2.0
// Local shapes and places of one rank. Axes that cut one dimension do so in mesh order, outer axis
// major, so that the index of a part is a mixed-radix number of the rank's coordinates.
#include "core/execute/rank_kernel.h"

#include "core/error.h"

namespace shardlens {

RankContext::RankContext(const OpView& whole, const FactorRule& rule, const Choice& choice,
                         Communicator& communicator, Observer observer)
    : KernelContext(whole, rule), m_choice(choice), m_communicator(communicator),
      m_observer(std::move(observer)) {
}

Shape RankContext::operandShape(std::size_t operand) const {
    const Mesh& mesh = m_communicator.mesh();
    return localShape(whole().inputs[operand].shape,
                      valueSide(operandLayout(m_choice, rule(), operand, mesh)), mesh);
}

Shape RankContext::resultShape(std::size_t result) const {
    const Mesh& mesh = m_communicator.mesh();
    return localShape(whole().outputs[result].shape,
                      valueSide(resultLayout(m_choice, rule(), result, mesh)), mesh);
}

std::int64_t RankContext::operandBegin(std::size_t operand, std::size_t dim) const {
    const Mesh& mesh = m_communicator.mesh();
    return localBegin(whole().inputs[operand].shape,
                      valueSide(operandLayout(m_choice, rule(), operand, mesh)), mesh,
                      m_communicator.coordinates())[dim];
}

std::int64_t RankContext::resultBegin(std::size_t result, std::size_t dim) const {
    const Mesh& mesh = m_communicator.mesh();
    return localBegin(whole().outputs[result].shape,
                      valueSide(resultLayout(m_choice, rule(), result, mesh)), mesh,
                      m_communicator.coordinates())[dim];
}

bool RankContext::leads() const {
    for (std::size_t a = 0; a < m_communicator.mesh().axes.size(); ++a) {
        const AxisChoice f = m_choice.axis[a];
        if (f >= 0 && m_communicator.coordinate(a) != 0 &&
            rule().factors[static_cast<std::size_t>(f)].kind == FactorKind::Reduction)
            return false;
    }
    return true;
}

void RankContext::allReduce(Array& statistic, ReduceOp reduce) const {
    for (std::size_t a = 0; a < m_communicator.mesh().axes.size(); ++a) {
        const AxisChoice f = m_choice.axis[a];
        if (f < 0 || !rule().factors[static_cast<std::size_t>(f)].exchanges) continue;
        m_communicator.allReduce(a, statistic, reduce);
        m_observer(a, static_cast<double>(statistic.size()));
    }
}

Shape localBegin(const Shape& shape, const SideLayout& side, const Mesh& mesh,
                 std::span<const int> coordinates) {
    Shape index(shape.size(), 0), parts(shape.size(), 1);
    for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
        if (side[a] < 0) continue;
        const auto dim = static_cast<std::size_t>(side[a]);
        index[dim] = index[dim] * mesh.axes[a].size + coordinates[a];
        parts[dim] *= mesh.axes[a].size;
    }
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (shape[d] % parts[d] != 0) throw Error("a dimension is not cut evenly");
        index[d] *= shape[d] / parts[d];
    }
    return index;
}

Array localPart(const Array& whole, const SideLayout& side, const Communicator& communicator) {
    const Mesh& mesh = communicator.mesh();
    const Shape size = localShape(whole.shape, side, mesh);
    for (std::size_t a = 0; a < mesh.axes.size(); ++a)
        if (side[a] == kStatePartial && communicator.coordinate(a) != 0)
            return Array::like(whole, size);
    return block(whole, localBegin(whole.shape, side, mesh, communicator.coordinates()), size);
}

} // namespace shardlens
