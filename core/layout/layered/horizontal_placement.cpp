// SPDX-License-Identifier: Apache-2.0
// Vertical alignment into blocks and horizontal compaction of blocks, from all four corners; the
// result is the mean of the two middle coordinates.
#include "core/layout/layered/horizontal_placement.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <numeric>

namespace shardlens::layered {

namespace {

using Index = std::uint32_t;
constexpr Index none = std::numeric_limits<Index>::max();

// What alignment has to respect, the same from all four corners.
struct Precedence {
    std::vector<Index> chainAbove, chainBelow; // a node's neighbour on the chain, or none
    std::vector<char> refused;                 // segments that give way to a more important one
};

// The reach of the more important segments of one layer, by the position of their upper end.
class Reach {
public:
    explicit Reach(std::size_t positions)
        : m_greatestUpTo(positions, -1), m_leastFrom(positions, none) {}

    void add(Index upper, Index lower) {
        m_greatestUpTo[upper] = std::max(m_greatestUpTo[upper], std::int64_t{lower});
        m_leastFrom[upper] = std::min(m_leastFrom[upper], std::int64_t{lower});
    }

    void close() {
        for (std::size_t i = 1; i < m_greatestUpTo.size(); ++i) {
            const std::size_t j = m_leastFrom.size() - 1 - i;
            m_greatestUpTo[i] = std::max(m_greatestUpTo[i], m_greatestUpTo[i - 1]);
            m_leastFrom[j] = std::min(m_leastFrom[j], m_leastFrom[j + 1]);
        }
    }

    bool crosses(Index upper, Index lower) const {
        return (upper > 0 && m_greatestUpTo[upper - 1] > lower) ||
               (upper + 1 < m_leastFrom.size() && m_leastFrom[upper + 1] < lower);
    }

private:
    std::vector<std::int64_t> m_greatestUpTo, m_leastFrom;
};

class PrecedenceFinder {
public:
    explicit PrecedenceFinder(const LayerGraph& graph) : m_graph(graph) {
        m_result.chainAbove.assign(graph.nodeCount(), none);
        m_result.chainBelow.assign(graph.nodeCount(), none);
        m_result.refused.assign(graph.segments().size(), 0);
        for (Index s : longestChain(graph)) {
            const auto [upper, lower] = graph.segments()[s];
            m_result.chainBelow[upper] = lower;
            m_result.chainAbove[lower] = upper;
        }
    }

    Precedence run() && {
        for (Index layer = 0; layer + 1 < m_graph.layerCount(); ++layer) compareLayer(layer);
        return std::move(m_result);
    }

private:
    // The chain goes before inner segments (of long edges), and these before all others. It is
    // the paper's type 1 conflict, with one level more.
    void compareLayer(Index layer) {
        Reach reach(m_graph.layer(layer).size());
        forEachSegment(layer, [&](Index s, Index upper, Index lower) {
            if (isChain(s)) reach.add(upper, lower);
        });
        reach.close();
        forEachSegment(layer, [&](Index s, Index upper, Index lower) {
            m_result.refused[s] = !isChain(s) && (reach.crosses(upper, lower) || leavesChain(s));
        });
        Reach inner(m_graph.layer(layer).size());
        forEachSegment(layer, [&](Index s, Index upper, Index lower) {
            if (isInner(s) && !m_result.refused[s]) inner.add(upper, lower);
        });
        inner.close();
        forEachSegment(layer, [&](Index s, Index upper, Index lower) {
            if (!isChain(s) && !isInner(s) && inner.crosses(upper, lower)) m_result.refused[s] = 1;
        });
    }

    template <class Function>
    void forEachSegment(Index layer, Function function) const {
        for (Index node : m_graph.layer(layer))
            for (Index s : m_graph.segmentsBelow(node))
                function(s, m_graph.position(node), m_graph.position(m_graph.segments()[s].to));
    }

    bool isChain(Index segment) const {
        const auto [upper, lower] = m_graph.segments()[segment];
        return m_result.chainBelow[upper] == lower;
    }

    // One end lies on the chain, whose place there is taken.
    bool leavesChain(Index segment) const {
        const auto [upper, lower] = m_graph.segments()[segment];
        return m_result.chainBelow[upper] != none || m_result.chainAbove[lower] != none;
    }

    bool isInner(Index segment) const {
        const auto [upper, lower] = m_graph.segments()[segment];
        return !m_graph.isBox(upper) && !m_graph.isBox(lower);
    }

    const LayerGraph& m_graph;
    Precedence m_result;
};

// One of the four passes. It is written for the top left corner (blocks grow downwards, everything
// as far left as possible); mirrored views of the graph give the other three.
class Pass {
public:
    Pass(const LayerGraph& graph, const Precedence& precedence, double nodeGap, bool upwards,
         bool rightmost)
        : m_graph(graph), m_precedence(precedence), m_gap(nodeGap), m_upwards(upwards),
          m_rightmost(rightmost), m_root(graph.nodeCount()), m_align(graph.nodeCount()),
          m_sink(graph.nodeCount()), m_x(graph.nodeCount(), 0) {
        std::iota(m_root.begin(), m_root.end(), 0u);
        std::iota(m_align.begin(), m_align.end(), 0u);
        std::iota(m_sink.begin(), m_sink.end(), 0u);
    }

    std::vector<double> run(const std::stop_token& stop) {
        align();
        throwIfStopped(stop);
        placeBlocks();
        throwIfStopped(stop);
        shiftClasses();
        if (m_rightmost)
            for (double& x : m_x) x = -x;
        return std::move(m_x);
    }

private:
    enum class State : char { New, Waiting, Placed };

    Index layerAt(Index step) const { return m_upwards ? m_graph.layerCount() - 1 - step : step; }
    Index size(Index layer) const { return static_cast<Index>(m_graph.layer(layer).size()); }
    Index position(Index node) const {
        const Index left = m_graph.position(node);
        return m_rightmost ? size(m_graph.layerOf(node)) - 1 - left : left;
    }
    Index nodeAt(Index layer, Index position) const {
        return m_graph.layer(layer)[m_rightmost ? size(layer) - 1 - position : position];
    }
    Index leftNeighbour(Index node) const {
        const Index p = position(node);
        return p == 0 ? none : nodeAt(m_graph.layerOf(node), p - 1);
    }
    std::span<const Index> segmentsBack(Index node) const {
        return m_upwards ? m_graph.segmentsBelow(node) : m_graph.segmentsAbove(node);
    }
    Index backEnd(Index segment) const {
        return m_upwards ? m_graph.segments()[segment].to : m_graph.segments()[segment].from;
    }

    double separation(Index left, Index right) const {
        const double gap = m_graph.isBox(left) && m_graph.isBox(right) ? m_gap : m_gap / 2;
        return (m_graph.width(left) + m_graph.width(right)) / 2 + gap;
    }

    void align() {
        for (Index step = 1; step < m_graph.layerCount(); ++step) {
            const Index layer = layerAt(step);
            std::int64_t taken = -1; // positions up to here are used by nodes further left
            for (Index p = 0; p < size(layer); ++p) alignNode(nodeAt(layer, p), taken);
        }
    }

    void alignNode(Index node, std::int64_t& taken) {
        m_candidates.clear();
        for (Index s : segmentsBack(node)) m_candidates.push_back({position(backEnd(s)), s});
        std::ranges::sort(m_candidates);
        const Index chain =
            m_upwards ? m_precedence.chainBelow[node] : m_precedence.chainAbove[node];
        const std::size_t count = m_candidates.size();
        // The two medians, or the place on the chain wherever it is.
        std::size_t first = count == 0 ? 0 : (count - 1) / 2, last = count / 2 + 1;
        if (chain != none) first = 0, last = count;
        for (std::size_t i = first; i < std::min(last, count); ++i) {
            const auto [at, segment] = m_candidates[i];
            const Index back = backEnd(segment);
            if (m_align[node] != node || m_precedence.refused[segment] || taken >= at) continue;
            if (chain != none && back != chain) continue;
            m_align[back] = node;
            m_root[node] = m_root[back];
            m_align[node] = m_root[node];
            taken = at;
        }
    }

    void placeBlocks() {
        std::vector<State> state(m_graph.nodeCount(), State::New);
        for (Index step = 0; step < m_graph.layerCount(); ++step)
            for (Index p = 0; p < size(layerAt(step)); ++p)
                placeAfterLeftBlocks(m_root[nodeAt(layerAt(step), p)], state);
    }

    // Recursion in the paper, an explicit stack here because a layer may hold 100,000 blocks.
    void placeAfterLeftBlocks(Index root, std::vector<State>& state) {
        if (state[root] != State::New) return;
        std::vector<Index> open{root};
        while (!open.empty()) {
            const Index block = open.back();
            if (state[block] == State::New) {
                state[block] = State::Waiting;
                forEachNode(block, [&](Index v) {
                    const Index left = leftNeighbour(v);
                    if (left != none && state[m_root[left]] == State::New)
                        open.push_back(m_root[left]);
                });
                continue;
            }
            if (state[block] == State::Waiting) placeBlock(block);
            state[block] = State::Placed;
            open.pop_back();
        }
    }

    template <class Function>
    void forEachNode(Index root, Function function) const {
        Index node = root;
        do {
            function(node);
            node = m_align[node];
        } while (node != root);
    }

    // All blocks to the left are placed. The block joins the class of the first of them and keeps
    // its distance from those of the same class.
    void placeBlock(Index root) {
        forEachNode(root, [&](Index v) {
            const Index left = leftNeighbour(v);
            if (left == none) return;
            const Index other = m_root[left];
            if (m_sink[root] == root) m_sink[root] = m_sink[other];
            if (m_sink[root] == m_sink[other])
                m_x[root] = std::max(m_x[root], m_x[other] + separation(left, v));
        });
        forEachNode(root, [&](Index v) {
            m_x[v] = m_x[root];
            m_sink[v] = m_sink[root];
        });
    }

    // Classes are moved together, as far right as the classes to their right allow. A class only
    // bounds classes whose leftmost block starts in a later layer, so that one pass over the layers
    // meets every bound before it is used (the second correction of the erratum).
    void shiftClasses() {
        constexpr double unbounded = std::numeric_limits<double>::infinity();
        std::vector<LayoutEdge> pairs;
        for (Index v = 0; v < m_graph.nodeCount(); ++v)
            if (const Index left = leftNeighbour(v); left != none && m_sink[left] != m_sink[v])
                pairs.push_back({left, v});
        std::vector<LayoutEdge> classes;
        for (const auto [left, v] : pairs) classes.push_back({m_sink[left], m_sink[v]});
        const Adjacency bounds(m_graph.nodeCount(), classes, &LayoutEdge::to);
        std::vector<double> shift(m_graph.nodeCount(), unbounded);
        for (Index step = 0; step < m_graph.layerCount(); ++step) {
            const Index sink = nodeAt(layerAt(step), 0);
            if (m_sink[sink] != sink) continue;
            if (shift[sink] == unbounded) shift[sink] = 0;
            for (Index i : bounds.of(sink)) {
                const auto [left, v] = pairs[i];
                shift[m_sink[left]] = std::min(
                    shift[m_sink[left]], shift[sink] + m_x[v] - m_x[left] - separation(left, v));
            }
        }
        for (Index v = 0; v < m_graph.nodeCount(); ++v) m_x[v] += shift[m_sink[v]];
    }

    const LayerGraph& m_graph;
    const Precedence& m_precedence;
    double m_gap;
    bool m_upwards, m_rightmost;
    std::vector<Index> m_root, m_align, m_sink;
    std::vector<double> m_x;
    std::vector<std::pair<Index, Index>> m_candidates;
};

// Smallest and largest border of a placement.
std::pair<double, double> extent(const LayerGraph& graph, const std::vector<double>& x) {
    double least = std::numeric_limits<double>::infinity(), greatest = -least;
    for (Index v = 0; v < graph.nodeCount(); ++v) {
        least = std::min(least, x[v] - graph.width(v) / 2);
        greatest = std::max(greatest, x[v] + graph.width(v) / 2);
    }
    return {least, greatest};
}

// The paper's balancing: leftmost passes share their left border with the narrowest one,
// rightmost ones their right border.
void alignToNarrowest(const LayerGraph& graph, std::array<std::vector<double>, 4>& passes) {
    std::array<std::pair<double, double>, 4> extents;
    std::ranges::transform(passes, extents.begin(),
                           [&](const auto& x) { return extent(graph, x); });
    const auto [least, greatest] = *std::ranges::min_element(
        extents, {}, [](const auto& range) { return range.second - range.first; });
    for (std::size_t i = 0; i < passes.size(); ++i) {
        const bool rightmost = i % 2 == 1;
        const double move = rightmost ? greatest - extents[i].second : least - extents[i].first;
        for (double& x : passes[i]) x += move;
    }
}

} // namespace

std::vector<Index> longestChain(const LayerGraph& graph) {
    std::vector<Index> boxesBelow(graph.nodeCount(), 0); // on the best path from here, inclusive
    for (Index layer = graph.layerCount(); layer-- > 0;)
        for (Index node : graph.layer(layer)) {
            Index best = 0;
            for (Index s : graph.segmentsBelow(node))
                best = std::max(best, boxesBelow[graph.segments()[s].to]);
            boxesBelow[node] = best + (graph.isBox(node) ? 1 : 0);
        }
    const auto middle = [](const std::vector<Index>& found) {
        return found.empty() ? none : found[(found.size() - 1) / 2];
    };
    const auto longest = std::ranges::max_element(boxesBelow);
    if (longest == boxesBelow.end()) return {};
    const auto startLayer = graph.layerOf(static_cast<Index>(longest - boxesBelow.begin()));
    std::vector<Index> found, chain;
    std::ranges::copy_if(graph.layer(startLayer), std::back_inserter(found),
                         [&](Index node) { return boxesBelow[node] == *longest; });
    for (Index node = middle(found); node != none;) {
        const Index remaining = boxesBelow[node] - (graph.isBox(node) ? 1 : 0);
        found.clear();
        if (remaining > 0)
            std::ranges::copy_if(
                graph.segmentsBelow(node), std::back_inserter(found),
                [&](Index s) { return boxesBelow[graph.segments()[s].to] == remaining; });
        std::ranges::stable_sort(found, {},
                                 [&](Index s) { return graph.position(graph.segments()[s].to); });
        const Index segment = middle(found);
        if (segment != none) chain.push_back(segment);
        node = segment == none ? none : graph.segments()[segment].to;
    }
    return chain;
}

std::vector<double> placeHorizontally(const LayerGraph& graph, double nodeGap,
                                      const std::stop_token& stop) {
    const Precedence precedence = PrecedenceFinder(graph).run();
    std::array<std::vector<double>, 4> passes;
    for (std::size_t i = 0; i < passes.size(); ++i) {
        throwIfStopped(stop);
        passes[i] = Pass(graph, precedence, nodeGap, i >= 2, i % 2 == 1).run(stop);
    }
    alignToNarrowest(graph, passes);
    std::vector<double> x(graph.nodeCount());
    for (std::size_t v = 0; v < x.size(); ++v) {
        std::array<double, 4> four{passes[0][v], passes[1][v], passes[2][v], passes[3][v]};
        std::ranges::sort(four);
        x[v] = (four[1] + four[2]) / 2;
    }
    return x;
}

} // namespace shardlens::layered
