// SPDX-License-Identifier: Apache-2.0
// Message passing and forest search take turns; rounding in the bound is paid for with a margin far
// above what the sums can lose.
#include "core/solve/wide_solver.h"

#include "core/error.h"

#include <cmath>

namespace shardlens::solve {
namespace {

constexpr int kPassesPerRound = 20; ///< message passes between two rounds of primal search
constexpr int kFirstPasses = 3;     ///< before the first, so that there is an assignment soon
constexpr int kMostForestRounds = 40;
constexpr int kForestPatience = 12; ///< forests without improvement in a round
constexpr double kStalled = 1e-5;   ///< relative progress of the bound a round, below: stop
constexpr double kMargin = 1e-11;   ///< of the magnitude of all costs

} // namespace

WideSolver::WideSolver(const Problem& problem, Choices& choices, Monitor& monitor)
    : m_problem(problem), m_choices(choices),
      m_lowered(lower(problem, choices, {}, Unfold::Everything)) {
    std::vector<std::uint32_t> dims = m_lowered.dims(choices);
    std::vector<Scope> scopes;
    for (const Lowered::Factor& factor : m_lowered.factors) scopes.push_back(factor.scope);
    m_order = eliminationOrder(dims, scopes, {}, {.table = 1e7, .degree = 2}, monitor);
    std::vector<char> gone(dims.size(), 0);
    for (const Var v : m_order.order) gone[v] = 1;
    m_place.resize(dims.size(), 0);
    for (Var v = 0; v < dims.size(); ++v) {
        if (gone[v]) continue;
        m_place[v] = static_cast<Var>(m_core.size());
        m_core.push_back(v);
        m_coreDims.push_back(dims[v]);
    }
    m_tree.emplace(std::move(dims), std::move(scopes), m_order.order, monitor);
}

void WideSolver::describe(Statistics& statistics) const {
    statistics.variables = m_lowered.variables.size();
    statistics.eliminated = m_order.order.size();
    statistics.largestTable = static_cast<std::size_t>(m_order.largestTable);
    statistics.width = m_order.width;
}

PairGraph WideSolver::makeCore() const {
    PairGraph core(m_coreDims);
    for (const Table* table : m_tree->remaining()) {
        if (table->scope.size() == 1) {
            core.addUnary(m_place[table->scope[0]], table->values.get());
        } else {
            core.addPair(m_place[table->scope[0]], m_place[table->scope[1]], table->values.get());
        }
    }
    return core;
}

Assignment WideSolver::decode(const std::vector<std::uint32_t>& core) const {
    std::vector<std::uint32_t> value(m_lowered.variables.size(), 0);
    for (std::size_t i = 0; i < core.size(); ++i) value[m_core[i]] = core[i];
    m_tree->decode(value);
    Assignment out;
    out.choice.resize(m_problem.nodes.size());
    for (NodeId id = 0; id < m_problem.nodes.size(); ++id) {
        out.choice[id].resize(m_problem.copies(id));
    }
    for (Var v = 0; v < value.size(); ++v) {
        const Lowered::Variable& variable = m_lowered.variables[v];
        out.choice[variable.node][variable.copy] = m_choices.of(variable.node)[value[v]];
    }
    return out;
}

WideSolver::Answer WideSolver::solve(const Weights& weights, double target, Monitor& monitor) {
    const bool forbid = weights.edgesForbidOnly;
    for (std::size_t f = 0; f < m_lowered.factors.size(); ++f) {
        const Lowered::Factor& factor = m_lowered.factors[f];
        if (factor.kind == Lowered::Kind::Unary) {
            m_tree->setFactor(f, m_choices.unary(static_cast<NodeId>(factor.index), weights));
            continue;
        }
        const Edge& edge = m_problem.edges[factor.index];
        m_tree->setFactor(f, factor.kind == Lowered::Kind::Diagonal
                                 ? m_choices.diagonal(*edge.cost, edge.u, forbid)
                                 : m_choices.pair(edge.cost, edge.u, edge.v, forbid));
    }
    m_tree->eliminate(monitor);
    const double constant = m_tree->constant();
    if (m_core.empty()) return {constant, constant < kInfinite ? decode({}) : Assignment{}};
    PairGraph core = makeCore();
    if (m_last) core.startFrom(*m_last);
    const double margin = kMargin * (core.magnitude() + std::abs(constant)) + weights.rounding;

    Answer answer;
    std::vector<std::uint32_t> best;
    double least = kInfinite, before = -kInfinite;
    try {
        for (int round = 0; round < kMostForestRounds; ++round) {
            const int passes = round == 0 ? kFirstPasses : kPassesPerRound;
            for (int i = 0; i < passes; ++i) {
                const double bound = core.improveBound(monitor) + constant - margin;
                answer.bound = std::max(answer.bound, bound);
                if (answer.bound == kInfinite) return answer;
            }
            std::vector<std::uint32_t> value = core.round();
            if (best.empty()) best = value;
            core.improve(best, kForestPatience, monitor); // keeps it whole when stopped
            core.improve(value, kForestPatience, monitor);
            if (core.cost(value) < core.cost(best)) best = std::move(value);
            least = core.cost(best) + constant;
            monitor.report("message passing", least, answer.bound);
            if (least - answer.bound <= std::max(target * std::abs(least), 2 * margin)) break;
            if (round > 0 && answer.bound - before <= kStalled * std::abs(answer.bound)) break;
            before = answer.bound;
        }
    } catch (const Cancelled&) {
        if (best.empty()) throw;
        least = core.cost(best) + constant;
        if (least == kInfinite) throw;
    }
    if (least < kInfinite) answer.assignment = decode(best);
    m_last = std::move(core);
    return answer;
}

} // namespace shardlens::solve
