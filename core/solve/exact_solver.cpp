// SPDX-License-Identifier: Apache-2.0
// Powers are tried first. Only where they need real work are the other ways to unfold weighed,
// since building those takes time itself.
#include "core/solve/exact_solver.h"

#include "core/solve/instances.h"

#include <bit>
#include <cmath>

namespace shardlens::solve {
namespace {

/// What a variable costs beside its additions (allocation, copies, decoding), in additions: a part,
/// and another for each pair of choices.
constexpr double kPerVariable = 2e4, kPerPair = 10;
constexpr double kMostVariables = 200'000; ///< beyond which runs are not unfolded further
/// All tables together may have this many times the entries allowed for one.
constexpr double kAllTables = 2;

Scope distinct(const Scope& scope) {
    Scope out;
    for (const Var v : scope) {
        if (!contains(out, v)) out.push_back(v);
    }
    return out;
}

/// What another way to unfold has at least, given the segments of Unfold::Powers.
struct Least {
    double variables = 0, work = 0;
};
Least leastOf(const Problem& problem, const Lowered& powers, const std::vector<Transfer>& transfers,
              Unfold unfold) {
    Least least;
    for (const Lowered::Segment& segment : powers.segments) {
        const bool whole = unfold == Unfold::Everything;
        const std::size_t nodes =
            whole ? problem.runs[segment.run].body.size() : segment.before.size();
        least.variables += double(segment.count * nodes);
        // each copy of a chain is a table that is read at least once
        if (!whole) least.work += double(segment.count) * transfers[segment.block].entries();
    }
    least.work += kPerVariable * least.variables;
    return least;
}

} // namespace

/// One way to unfold, priced.
struct ExactSolver::Plan {
    Lowered lowered;
    std::vector<std::uint32_t> dims;
    std::vector<Scope> scopes;
    std::vector<Transfer> transfers;
    EliminationOrder order;
    std::optional<Var> root;
    double work = 0, largest = 0, entries = 0;
    bool fits = true;
};

ExactSolver::Plan ExactSolver::planFor(Unfold unfold, std::span<const Spot> spots,
                                       std::optional<Spot> root, Monitor& monitor) const {
    Plan plan;
    plan.lowered = lower(m_problem, m_choices, spots, unfold);
    plan.dims = plan.lowered.dims(m_choices);
    const auto count = [&](double work, double table, double times) {
        plan.work += work;
        plan.largest = std::max(plan.largest, table);
        plan.entries += table * times;
    };
    for (const Block& block : plan.lowered.blocks) {
        const Transfer& transfer = plan.transfers.emplace_back(m_choices, block, monitor);
        const EliminationOrder& order = transfer.order();
        count(order.work, order.largestTable, 0);
        count(transfer.entries() * double(1 + block.edges.size()), transfer.entries(), 1);
        plan.entries += order.entries;
    }
    for (const Lowered::Segment& segment : plan.lowered.segments) {
        if (segment.count == 1) continue;
        const Transfer& transfer = plan.transfers[segment.block];
        const double products =
            double(std::bit_width(segment.count) - 1) + double(std::popcount(segment.count) - 1);
        count(transfer.productWork() * products, transfer.entries(), products);
    }
    for (const Lowered::Factor& factor : plan.lowered.factors) {
        plan.scopes.push_back(distinct(factor.scope));
    }
    if (root) plan.root = plan.lowered.variable(root->node, root->copy);
    Scope kept;
    if (plan.root) kept.push_back(*plan.root);
    plan.order = eliminationOrder(plan.dims, plan.scopes, kept, {.table = m_maxTable}, monitor);
    count(plan.order.work, plan.order.largestTable, 0);
    for (const double d : plan.dims) plan.work += kPerVariable + kPerPair * d * d;
    plan.entries += plan.order.entries;
    plan.fits = plan.order.complete && plan.largest <= m_maxTable &&
                plan.entries <= kAllTables * m_maxTable;
    return plan;
}

ExactSolver::ExactSolver(const Problem& problem, Choices& choices, std::size_t maxTableEntries,
                         Monitor& monitor, std::span<const Spot> spots, std::optional<Spot> root)
    : m_problem(problem), m_choices(choices),
      // tables are addressed with 32 bits in the inner loops
      m_maxTable(std::min(double(maxTableEntries), 0x1p32 - 1)) {
    std::vector<Spot> all(spots.begin(), spots.end());
    if (root) all.push_back(*root);
    Plan best = planFor(Unfold::Powers, all, root, monitor);
    std::map<Unfold, Least> least;
    for (const Unfold unfold : {Unfold::Chains, Unfold::Everything}) {
        least[unfold] = leastOf(problem, best.lowered, best.transfers, unfold);
    }
    const bool repeats = !best.lowered.segments.empty();
    for (const Unfold unfold : {Unfold::Chains, Unfold::Everything}) {
        if (!repeats || least[unfold].variables > kMostVariables) continue;
        // a way that its number of variables and tables alone makes worse need not be built
        if (best.fits && least[unfold].work > best.work) continue;
        Plan plan = planFor(unfold, all, root, monitor);
        if (std::pair(!plan.fits, plan.work) < std::pair(!best.fits, best.work)) {
            best = std::move(plan);
        }
    }
    m_fits = best.fits;
    m_work = best.work;
    m_lowered = std::move(best.lowered);
    m_order = std::move(best.order);
    m_transfers = std::move(best.transfers);
    m_root = best.root;
    if (m_fits)
        m_tree.emplace(std::move(best.dims), std::move(best.scopes), m_order.order, monitor);
}

void ExactSolver::describe(Statistics& statistics) const {
    statistics.variables = m_lowered.variables.size();
    statistics.eliminated = m_order.order.size();
    double largest = m_order.largestTable;
    int width = m_order.width;
    for (const Transfer& transfer : m_transfers) {
        largest = std::max({largest, transfer.order().largestTable, transfer.entries()});
        width = std::max(width, transfer.order().width);
    }
    statistics.largestTable = static_cast<std::size_t>(largest);
    statistics.width = width;
}

double ExactSolver::solve(const Weights& weights, Monitor& monitor) {
    for (Transfer& transfer : m_transfers) transfer.compute(m_choices, weights, monitor);
    setFactors(weights, monitor);
    m_tree->eliminate(monitor);
    return m_root ? std::ranges::min(rootMarginal()) : m_tree->constant();
}

void ExactSolver::setFactors(const Weights& weights, Monitor& monitor) {
    PlainTables tables(m_problem, m_choices, weights);
    for (std::size_t f = 0; f < m_lowered.factors.size(); ++f) {
        const Lowered::Factor& factor = m_lowered.factors[f];
        if (factor.kind == Lowered::Kind::Segment) {
            setSegment(f, m_lowered.segments[factor.index], monitor);
        } else {
            m_tree->setFactor(f, tables.of(factor));
        }
    }
}

void ExactSolver::setSegment(std::size_t factor, const Lowered::Segment& segment,
                             Monitor& monitor) {
    Values values = m_transfers[segment.block].power(segment.count, monitor);
    const Scope& scope = m_lowered.factors[factor].scope;
    if (m_tree->factorScope(factor).size() < scope.size()) {
        values = diagonal(m_tree->dims(), scope, values.get()).values;
    }
    m_tree->setFactor(factor, std::move(values));
}

Assignment ExactSolver::decode() {
    std::vector<std::uint32_t> value(m_lowered.variables.size(), 0);
    if (m_root) {
        const auto costs = rootMarginal();
        value[*m_root] =
            static_cast<std::uint32_t>(std::ranges::min_element(costs) - costs.begin());
    }
    m_tree->decode(value);
    return expand(value);
}

Assignment ExactSolver::decodeRoot(std::uint32_t place) {
    std::vector<std::uint32_t> value(m_lowered.variables.size(), 0);
    value[*m_root] = place;
    m_tree->decode(value);
    return expand(value);
}

std::vector<double> ExactSolver::rootMarginal() const {
    std::vector<double> out(m_tree->dims()[*m_root], m_tree->constant());
    for (const Table* table : m_tree->remaining()) {
        const double* values = table->values.get();
        for (std::size_t c = 0; c < out.size(); ++c) out[c] += values[c];
    }
    return out;
}

std::vector<double> ExactSolver::marginal(const Spot& spot, Monitor& monitor) const {
    return m_tree->marginal(*m_lowered.variable(spot.node, spot.copy), monitor);
}

Assignment ExactSolver::expand(const std::vector<std::uint32_t>& value) {
    Assignment out;
    out.choice.resize(m_problem.nodes.size());
    for (NodeId id = 0; id < m_problem.nodes.size(); ++id) {
        out.choice[id].resize(m_problem.copies(id));
    }
    for (Var v = 0; v < m_lowered.variables.size(); ++v) {
        const Lowered::Variable& variable = m_lowered.variables[v];
        out.choice[variable.node][variable.copy] = m_choices.of(variable.node)[value[v]];
    }
    for (const Lowered::Segment& segment : m_lowered.segments) expandSegment(segment, value, out);
    return out;
}

void ExactSolver::expandSegment(const Lowered::Segment& segment,
                                const std::vector<std::uint32_t>& value, Assignment& out) {
    Transfer& transfer = m_transfers[segment.block];
    const auto joint = [&](const Scope& scope) {
        std::size_t index = 0;
        for (const Var v : scope) index = index * m_tree->dims()[v] + value[v];
        return index;
    };
    const std::size_t shared = joint(segment.shared);
    std::size_t entry = joint(segment.before);
    std::vector<std::size_t> exits =
        transfer.path(shared, entry, joint(segment.after), segment.count);
    exits.push_back(joint(segment.after));
    const auto& body = m_problem.runs[segment.run].body;
    for (std::size_t i = 0; i < segment.count; ++i) {
        const auto& places = transfer.interior(shared, entry, exits[i]);
        for (std::size_t p = 0; p < body.size(); ++p) {
            out.choice[body[p]][segment.first + i] = m_choices.of(body[p])[places[p]];
        }
        entry = exits[i];
    }
}

} // namespace shardlens::solve
