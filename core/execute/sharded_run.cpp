// SPDX-License-Identifier: Apache-2.0
// All ranks of a plan in this process, and their shards put together again.
#include "core/execute/sharded_run.h"

#include "core/execute/rank_kernel.h"

#include <algorithm>
#include <cmath>

namespace shardlens {

namespace {

double differenceOf(const Array& a, const Array& b) {
    if (a.shape != b.shape || a.integral != b.integral) return INFINITY;
    double worst = a.ints == b.ints ? 0 : INFINITY;
    for (std::size_t i = 0; i < a.reals.size(); ++i) {
        const bool both = std::isnan(a.reals[i]) && std::isnan(b.reals[i]);
        const double difference = std::abs(a.reals[i] - b.reals[i]);
        if (!both && a.reals[i] != b.reals[i])
            worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
    }
    return worst;
}

/// Puts the ranks' parts together. Blocks are laid side by side, partial sums added up; where an
/// axis keeps copies, the first one counts and the others are compared with it.
class Assembly {
public:
    explicit Assembly(const Mesh& mesh) : m_mesh(mesh) {}

    /// @param local the part of a rank, nullptr if it has none
    template <typename LocalOf>
    Array whole(const TensorSpec& spec, const SideLayout& side, LocalOf local) {
        if (!local(0) || local(0)->empty()) return {};
        Array whole = Array::zeros(spec, spec.shape);
        for (int rank = 0; rank < m_mesh.devices(); ++rank) {
            std::vector<int> at = m_mesh.coordinates(rank);
            const int first = firstCopy(side, at);
            if (first == rank) {
                Shape begin = localBegin(spec.shape, side, m_mesh, at);
                begin.resize(whole.shape.size(), 0); // parts of complex numbers
                addBlock(whole, begin, *local(rank));
            } else {
                m_difference = std::max(m_difference, differenceOf(*local(first), *local(rank)));
            }
        }
        return whole;
    }

    double difference() const { return m_difference; }

private:
    /// The rank that holds the first copy of what a rank holds.
    int firstCopy(const SideLayout& side, const std::vector<int>& at) const {
        int rank = 0;
        for (std::size_t a = 0; a < m_mesh.axes.size(); ++a)
            rank = rank * m_mesh.axes[a].size + (side[a] == kStateReplicated ? 0 : at[a]);
        return rank;
    }

    const Mesh& m_mesh;
    double m_difference = 0;
};

} // namespace

ShardedRun runSharded(const Plan& plan, const Feeds& feeds) {
    const Pricing& pricing = *plan.context->pricing;
    const Graph& graph = pricing.graph();
    const Mesh& mesh = pricing.mesh();
    std::vector<RankStep> ranks(static_cast<std::size_t>(mesh.devices()));
    runInProcess(mesh, [&](int rank, Communicator& communicator) {
        ranks[static_cast<std::size_t>(rank)] = runRank(plan, feeds, communicator);
    });

    ShardedRun run;
    Assembly assembly(mesh);
    const auto at = [&](int rank) -> const RankStep& {
        return ranks[static_cast<std::size_t>(rank)];
    };
    for (TensorId id = 0; id < graph.tensors().size(); ++id) {
        const Tensor& tensor = graph.tensor(id);
        const PricedOp& op = pricing.op(tensor.producer);
        const int choice = op.choiceIndex(plan.decisions.op[tensor.producer]);
        const Layout& layout =
            op.resultSides[tensor.producerPort][static_cast<std::size_t>(choice)].layout;
        run.step.values.push_back(assembly.whole(
            tensor.spec, valueSide(layout), [&](int rank) { return &at(rank).local.values[id]; }));
        run.step.gradients.push_back(
            assembly.whole(tensor.spec, at(0).gradientSides[id],
                           [&](int rank) { return &at(rank).local.gradients[id]; }));
        if (!at(0).local.updated.contains(tensor.producer)) continue;
        run.step.updated.emplace(tensor.producer,
                                 assembly.whole(tensor.spec, valueSide(layout), [&](int rank) {
                                     return &at(rank).local.updated.at(tensor.producer);
                                 }));
    }
    run.replicaDifference = assembly.difference();
    run.collectives = std::move(ranks.front().collectives);
    return run;
}

} // namespace shardlens
