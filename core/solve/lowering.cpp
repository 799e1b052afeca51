// SPDX-License-Identifier: Apache-2.0
// Each instance of an edge has an owner: the copy that prices it (the later one of a carry, the
// copy of the run for a shared node). It becomes a factor if that copy is full, and is inside a
// segment's block otherwise.
#include "core/solve/lowering.h"

#include "core/solve/instances.h"

#include <set>

namespace shardlens::solve {
namespace {

constexpr std::size_t kShortRun = 2; ///< copies up to which a run is unrolled

/// An edge between all copies of a run and a single node outside or a single copy of a node.
struct SharedEdge {
    std::size_t edge = 0;
    bool atU = false; ///< edge.u is the shared node
    Spot spot;
};

/// What the edges do to one run.
struct RunEdges {
    std::vector<std::size_t> inner, carry;
    std::vector<SharedEdge> shared;
    std::set<NodeId> carried;        ///< seen by the next copy
    std::set<std::size_t> touched;   ///< copies with an edge of their own
    std::set<std::size_t> exclusive; ///< touched at a node that is not carried
    bool unroll = false;
};

class Lowering {
public:
    Lowering(const Problem& problem, const Choices& choices, Unfold unfold)
        : m_problem(problem), m_choices(choices), m_unfold(unfold), m_edges(problem.runs.size()),
          m_full(problem.runs.size()) {
        m_out.byNode.resize(problem.nodes.size());
    }

    Lowered run(std::span<const Spot> spots) {
        sortCarries();
        for (const Spot& spot : spots) touch(spot);
        sortOthers();
        for (NodeId id = 0; id < m_problem.nodes.size(); ++id) {
            if (m_problem.nodes[id].run < 0) addVariable(id, 0);
        }
        for (std::size_t r = 0; r < m_problem.runs.size(); ++r) unrollRun(r);
        for (auto& known : m_out.byNode) std::ranges::sort(known);
        for (Lowered::Segment& segment : m_out.segments) fillSegment(segment);
        addUnaries();
        for (const std::size_t e : m_single) addSingle(e);
        for (std::size_t r = 0; r < m_problem.runs.size(); ++r) addFullCopies(r);
        addPairedRuns();
        return std::move(m_out);
    }

private:
    RunEdges* edgesOf(NodeId node) {
        const int run = m_problem.nodes[node].run;
        return run < 0 ? nullptr : &m_edges[static_cast<std::size_t>(run)];
    }

    void touch(const Spot& spot) {
        if (RunEdges* edges = edgesOf(spot.node)) {
            edges->touched.insert(spot.copy);
            if (!edges->carried.contains(spot.node)) edges->exclusive.insert(spot.copy);
        }
    }

    void sortCarries() {
        for (std::size_t e = 0; e < m_problem.edges.size(); ++e) {
            const Edge& edge = m_problem.edges[e];
            if (!edge.carry) continue;
            edgesOf(edge.u)->carry.push_back(e);
            edgesOf(edge.u)->carried.insert(edge.u);
        }
    }

    void sortOthers() {
        for (std::size_t e = 0; e < m_problem.edges.size(); ++e) {
            const Edge& edge = m_problem.edges[e];
            if (edge.carry) continue;
            const EdgeEnd u = edgeEnd(m_problem, edge.u, edge.atU);
            const EdgeEnd v = edgeEnd(m_problem, edge.v, edge.atV);
            if (u.single) touch({edge.u, u.copy});
            if (v.single) touch({edge.v, v.copy});
            if (u.single && v.single) {
                m_single.push_back(e);
            } else if (u.single) {
                edgesOf(edge.v)->shared.push_back({e, true, {edge.u, u.copy}});
            } else if (v.single) {
                edgesOf(edge.u)->shared.push_back({e, false, {edge.v, v.copy}});
            } else if (edgesOf(edge.u) == edgesOf(edge.v)) {
                edgesOf(edge.u)->inner.push_back(e);
            } else {
                edgesOf(edge.u)->unroll = edgesOf(edge.v)->unroll = true;
                m_paired.push_back(e);
            }
        }
    }

    void addVariable(NodeId node, std::size_t copy) {
        m_out.byNode[node].emplace_back(copy, static_cast<Var>(m_out.variables.size()));
        m_out.variables.push_back({node, copy});
    }

    /// Decides which copies are full, makes the variables of the run and its segments.
    void unrollRun(std::size_t r) {
        const Run& run = m_problem.runs[r];
        const RunEdges& edges = m_edges[r];
        std::set<std::size_t>& full = m_full[r];
        if (m_unfold == Unfold::Everything || edges.unroll || run.count <= kShortRun) {
            for (std::size_t i = 0; i < run.count; ++i) full.insert(full.end(), i);
        } else {
            full = edges.touched;
            if (!edges.carried.empty()) {
                full.insert(0);
                // the carried nodes of the last copy are variables anyway
                if (!edges.exclusive.contains(run.count - 1)) full.erase(run.count - 1);
            }
        }
        std::size_t first = 0;
        for (const std::size_t copy : full) {
            for (const NodeId id : run.body) addVariable(id, copy);
            addStretch(r, first, copy);
            first = copy + 1;
        }
        addStretch(r, first, run.count);
    }

    /// Segments for copies first … end-1, none of which is full.
    void addStretch(std::size_t r, std::size_t first, std::size_t end) {
        const auto& carried = m_edges[r].carried;
        const bool split = m_unfold == Unfold::Chains && !carried.empty();
        while (first < end) {
            const std::size_t count = split ? 1 : end - first;
            m_out.segments.push_back({r, blockOf(r), first, count, {}, {}, {}});
            first += count;
            for (const NodeId id : m_problem.runs[r].body) {
                if (carried.contains(id)) addVariable(id, first - 1);
            }
        }
    }

    /// The nodes that all copies of the run share, without repeats.
    std::vector<Spot> sharedSpots(std::size_t r) const {
        std::set<std::pair<NodeId, std::size_t>> spots;
        for (const SharedEdge& s : m_edges[r].shared) spots.emplace(s.spot.node, s.spot.copy);
        std::vector<Spot> out;
        for (const auto& [node, copy] : spots) out.push_back({node, copy});
        return out;
    }

    std::size_t blockOf(std::size_t r) {
        if (const auto known = m_blockOfRun.find(r); known != m_blockOfRun.end()) {
            return known->second;
        }
        Block block = makeBlock(r);
        std::size_t index = 0;
        while (index < m_out.blocks.size() &&
               !sameBlock(m_problem, m_choices, m_out.blocks[index], block)) {
            ++index;
        }
        if (index == m_out.blocks.size()) m_out.blocks.push_back(std::move(block));
        return m_blockOfRun[r] = index;
    }

    Block makeBlock(std::size_t r) const {
        const RunEdges& edges = m_edges[r];
        Block block;
        block.body = m_problem.runs[r].body;
        std::map<NodeId, Var> place, entry;
        for (Var p = 0; p < block.body.size(); ++p) {
            place[block.body[p]] = p;
            if (edges.carried.contains(block.body[p])) {
                entry[block.body[p]] = static_cast<Var>(block.carried.size());
                block.carried.push_back(p);
            }
        }
        for (const std::size_t e : edges.inner) {
            const Edge& edge = m_problem.edges[e];
            block.edges.push_back({place[edge.u], place[edge.v], edge.cost});
        }
        for (const std::size_t e : edges.carry) {
            const Edge& edge = m_problem.edges[e];
            block.edges.push_back({block.entry(entry[edge.u]), place[edge.v], edge.cost});
        }
        const std::vector<Spot> spots = sharedSpots(r);
        for (const Spot& spot : spots) block.shared.push_back(spot.node);
        for (const SharedEdge& s : edges.shared) {
            const Edge& edge = m_problem.edges[s.edge];
            const auto at = std::ranges::find_if(spots, [&](const Spot& spot) {
                return spot.node == s.spot.node && spot.copy == s.spot.copy;
            });
            const Var outside = block.sharedVar(static_cast<std::size_t>(at - spots.begin()));
            const Var inside = place[s.atU ? edge.v : edge.u];
            block.edges.push_back(s.atU ? Block::Edge{outside, inside, edge.cost}
                                        : Block::Edge{inside, outside, edge.cost});
        }
        sortEdges(block);
        return block;
    }

    /// By ends, so that runs whose edges come in another order have equal blocks; parallel edges
    /// stay in order.
    static void sortEdges(Block& block) {
        std::vector<std::tuple<Var, Var, std::size_t>> order;
        for (const Block::Edge& edge : block.edges)
            order.emplace_back(edge.u, edge.v, order.size());
        std::ranges::sort(order);
        std::vector<Block::Edge> sorted;
        for (const auto& [u, v, index] : order) sorted.push_back(std::move(block.edges[index]));
        block.edges = std::move(sorted);
    }

    void fillSegment(Lowered::Segment& segment) {
        for (const Spot& spot : sharedSpots(segment.run)) {
            segment.shared.push_back(*m_out.variable(spot.node, spot.copy));
        }
        for (const NodeId id : m_problem.runs[segment.run].body) {
            if (!m_edges[segment.run].carried.contains(id)) continue;
            segment.before.push_back(*m_out.variable(id, segment.first - 1));
            segment.after.push_back(*m_out.variable(id, segment.first + segment.count - 1));
        }
        Scope scope = segment.shared;
        scope.insert(scope.end(), segment.before.begin(), segment.before.end());
        scope.insert(scope.end(), segment.after.begin(), segment.after.end());
        const auto index = static_cast<std::size_t>(&segment - m_out.segments.data());
        m_out.factors.push_back({Lowered::Kind::Segment, index, std::move(scope)});
    }

    void addUnary(NodeId id, std::size_t copy) {
        m_out.factors.push_back({Lowered::Kind::Unary, id, {*m_out.variable(id, copy)}});
    }

    void addUnaries() {
        for (NodeId id = 0; id < m_problem.nodes.size(); ++id) {
            if (m_problem.nodes[id].run < 0) addUnary(id, 0);
        }
        for (std::size_t r = 0; r < m_problem.runs.size(); ++r) {
            for (const std::size_t copy : m_full[r]) {
                for (const NodeId id : m_problem.runs[r].body) addUnary(id, copy);
            }
        }
    }

    void addPair(std::size_t e, std::size_t copyU, std::size_t copyV) {
        const Var u = *m_out.variable(m_problem.edges[e].u, copyU);
        const Var v = *m_out.variable(m_problem.edges[e].v, copyV);
        if (u == v) {
            m_out.factors.push_back({Lowered::Kind::Diagonal, e, {u}});
        } else {
            m_out.factors.push_back({Lowered::Kind::Pair, e, {u, v}});
        }
    }

    void addSingle(std::size_t e) {
        const Edge& edge = m_problem.edges[e];
        addPair(e, edgeEnd(m_problem, edge.u, edge.atU).copy,
                edgeEnd(m_problem, edge.v, edge.atV).copy);
    }

    void addFullCopies(std::size_t r) {
        for (const std::size_t copy : m_full[r]) {
            for (const std::size_t e : m_edges[r].inner) addPair(e, copy, copy);
            for (const SharedEdge& s : m_edges[r].shared) {
                addPair(s.edge, s.atU ? s.spot.copy : copy, s.atU ? copy : s.spot.copy);
            }
            if (copy == 0) continue;
            for (const std::size_t e : m_edges[r].carry) addPair(e, copy - 1, copy);
        }
    }

    void addPairedRuns() {
        for (const std::size_t e : m_paired) {
            forEachInstance(m_problem, m_problem.edges[e],
                            [&](std::size_t i, std::size_t j) { addPair(e, i, j); });
        }
    }

    const Problem& m_problem;
    const Choices& m_choices;
    Unfold m_unfold;
    std::vector<RunEdges> m_edges;
    std::vector<std::size_t> m_single; ///< edges that join one copy with one
    std::vector<std::size_t> m_paired; ///< edges that join two runs copy by copy
    std::vector<std::set<std::size_t>> m_full;
    std::map<std::size_t, std::size_t> m_blockOfRun;
    Lowered m_out;
};

} // namespace

std::vector<std::uint32_t> Lowered::dims(const Choices& choices) const {
    std::vector<std::uint32_t> out;
    for (const Variable& variable : variables) out.push_back(choices.count(variable.node));
    return out;
}

std::optional<Var> Lowered::variable(NodeId node, std::size_t copy) const {
    const auto& known = byNode[node];
    const auto at =
        std::ranges::lower_bound(known, copy, {}, [](const auto& k) { return k.first; });
    if (at == known.end() || at->first != copy) return std::nullopt;
    return at->second;
}

Values PlainTables::of(const Lowered::Factor& factor) {
    if (factor.kind == Lowered::Kind::Unary) {
        Values& values = m_unary[factor.index];
        if (!values) values = m_choices.unary(static_cast<NodeId>(factor.index), m_weights);
        return values;
    }
    const Edge& edge = m_problem.edges[factor.index];
    const bool forbid = m_weights.edgesForbidOnly;
    return factor.kind == Lowered::Kind::Pair ? m_choices.pair(edge.cost, edge.u, edge.v, forbid)
                                              : m_choices.diagonal(*edge.cost, edge.u, forbid);
}

Lowered lower(const Problem& problem, const Choices& choices, std::span<const Spot> spots,
              Unfold unfold) {
    return Lowering(problem, choices, unfold).run(spots);
}

} // namespace shardlens::solve
