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
constexpr double kFinishWork = 1e8; ///< additions, and entries of a table, of the last elimination
constexpr double kFinishTable = 1e7;

/// A better assignment, from the messages or from the best so far, which is whole when stopped.
void searchForest(PairGraph& core, std::vector<std::uint32_t>& best, Monitor& monitor) {
    std::vector<std::uint32_t> value = core.round();
    if (best.empty()) best = value;
    core.improve(best, kForestPatience, monitor);
    core.improve(value, kForestPatience, monitor);
    if (core.cost(value) < core.cost(best)) best = std::move(value);
}

/// The rows and columns of a table over core variables that are kept, in the order of its scope.
Values restrict(const Table& table, Dims dims, const std::vector<std::vector<std::uint32_t>>& kept,
                std::span<const Var> place) {
    std::vector<std::uint32_t> left;
    for (const Var v : table.scope) {
        left.push_back(static_cast<std::uint32_t>(kept[place[v]].size()));
    }
    const bool pair = table.scope.size() == 2;
    const auto& rows = kept[place[table.scope[0]]];
    const std::size_t cols = pair ? dims[table.scope[1]] : 1, width = pair ? left[1] : 1;
    auto out = std::make_shared_for_overwrite<double[]>(rows.size() * width);
    const double* from = table.values.get();
    double* next = out.get();
    for (const std::uint32_t r : rows) {
        for (std::size_t c = 0; c < width; ++c) {
            *next++ = from[r * cols + (pair ? kept[place[table.scope[1]]][c] : 0)];
        }
    }
    return out;
}

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
            core.addPair(m_place[table->scope[0]], m_place[table->scope[1]], table->values);
        }
    }
    return core;
}

std::optional<WideSolver::CoreOptimum> WideSolver::finish(const PairGraph& core, double most,
                                                          Monitor& monitor) const {
    std::vector<std::vector<std::uint32_t>> kept(m_core.size());
    std::vector<std::uint32_t> dims;
    for (Var v = 0; v < m_core.size(); ++v) {
        for (std::uint32_t c = 0; c < m_coreDims[v]; ++c) {
            if (core.boundWith(v, c) <= most) kept[v].push_back(c);
        }
        dims.push_back(static_cast<std::uint32_t>(kept[v].size()));
        if (kept[v].empty()) return std::nullopt; // only by rounding far beyond the margin
    }
    const std::vector<const Table*> tables = m_tree->remaining();
    std::vector<Scope> scopes;
    for (const Table* table : tables) {
        Scope& scope = scopes.emplace_back();
        for (const Var v : table->scope) scope.push_back(m_place[v]);
    }
    const EliminationOrder order =
        eliminationOrder(dims, scopes, {}, {.table = kFinishTable}, monitor);
    if (!order.complete || order.work > kFinishWork) return std::nullopt;
    BucketTree tree(dims, std::move(scopes), order.order, monitor);
    for (std::size_t t = 0; t < tables.size(); ++t) {
        tree.setFactor(t, restrict(*tables[t], m_tree->dims(), kept, m_place));
    }
    tree.eliminate(monitor);
    CoreOptimum out{tree.constant(), std::vector<std::uint32_t>(m_core.size(), 0)};
    tree.decode(out.value);
    for (Var v = 0; v < m_core.size(); ++v) out.value[v] = kept[v][out.value[v]];
    return out;
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
    PlainTables tables(m_problem, m_choices, weights);
    for (std::size_t f = 0; f < m_lowered.factors.size(); ++f) {
        m_tree->setFactor(f, tables.of(m_lowered.factors[f]));
    }
    m_tree->eliminate(monitor);
    const double constant = m_tree->constant();
    if (m_core.empty()) return {constant, constant < kInfinite ? decode({}) : Assignment{}, true};
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
            searchForest(core, best, monitor);
            least = core.cost(best) + constant;
            monitor.report("message passing", least, answer.bound);
            if (least - answer.bound <= target * std::abs(least)) break;
            if (auto optimum = finish(core, least - constant + margin, monitor)) {
                best = std::move(optimum->value);
                answer.bound = optimum->cost + constant - weights.rounding;
                answer.optimal = true;
                least = optimum->cost + constant;
                break;
            }
            if (least - answer.bound <= 2 * margin) break;
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
