// SPDX-License-Identifier: Apache-2.0
// Layer sweeps with transposition from two depth-first starting orders.
#include "core/layout/layered/crossing_reduction.h"

#include <algorithm>
#include <random>
#include <ranges>
#include <utility>
#include <vector>

namespace shardlens::layered {

namespace {

using Index = std::uint32_t;

enum class Side { Above, Below };

// Counts inversions of a sequence of positions as they are appended.
class InversionCounter {
public:
    void reset(Index positions) {
        m_tree.assign(positions + 1, 0);
        m_inserted = 0;
    }

    // Returns how many inserted positions are greater, then inserts.
    std::uint64_t insert(Index position) {
        std::uint64_t notGreater = 0;
        for (Index i = position + 1; i > 0; i &= i - 1) notGreater += m_tree[i];
        for (Index i = position + 1; i < m_tree.size(); i += i & (~i + 1)) ++m_tree[i];
        return m_inserted++ - notGreater;
    }

private:
    std::vector<Index> m_tree;
    std::uint64_t m_inserted = 0;
};

class Reducer {
public:
    Reducer(LayerGraph& graph, const std::stop_token& stop)
        : m_graph(graph), m_stop(stop), m_large(graph.nodeCount() > 6000) {}

    void run() {
        const Index size = m_graph.nodeCount();
        m_best = m_graph.order();
        m_bestCrossings = countCrossings(m_graph);
        orderByDepthFirstSearch(Side::Below);
        improve(size > 50000 ? 8 : m_large ? 12 : 24);
        if (size <= 50000) {
            orderByDepthFirstSearch(Side::Above);
            improve(m_large ? 12 : 24);
        }
        // Small graphs can afford a few more starts against local minima.
        const int shuffles = size < 300 ? 10 : size < 2000 ? 3 : 0;
        for (int i = 0; i < shuffles && m_bestCrossings > 0; ++i) {
            shuffleLayers();
            improve(10);
        }
        m_graph.setOrder(m_best);
        if (m_bestCrossings == 0) return;
        if (m_large)
            transpose(2);
        else
            sift(2);
        keepIfBetter();
        m_graph.setOrder(m_best);
    }

private:
    void improve(int sweeps) {
        keepIfBetter();
        for (int sweep = 0; sweep < sweeps && m_bestCrossings > 0; ++sweep) {
            // One pair of sweeps by means, the next by medians with ties turned around.
            sweepLayers(sweep % 2 == 0 ? Side::Above : Side::Below, sweep % 4 >= 2);
            if (!m_large) transpose(4);
            keepIfBetter();
        }
    }

    void keepIfBetter() {
        throwIfStopped(m_stop);
        const std::uint64_t crossings = countCrossings(m_graph);
        if (crossings >= m_bestCrossings) return;
        m_bestCrossings = crossings;
        m_best = m_graph.order();
    }

    std::span<const Index> segments(Index node, Side side) const {
        return side == Side::Above ? m_graph.segmentsAbove(node) : m_graph.segmentsBelow(node);
    }

    Index otherEnd(Index segment, Side side) const {
        const LayoutEdge& s = m_graph.segments()[segment];
        return side == Side::Above ? s.from : s.to;
    }

    // Nodes in the order a depth-first search from one border of the drawing meets them, so that
    // a tree starts without crossings.
    void orderByDepthFirstSearch(Side side) {
        const Side back = side == Side::Above ? Side::Below : Side::Above;
        std::vector<Index> order, open;
        std::vector<char> seen(m_graph.nodeCount(), 0);
        order.reserve(m_graph.nodeCount());
        for (Index start = 0; start < m_graph.nodeCount(); ++start) {
            if (!segments(start, back).empty()) continue;
            open.push_back(start);
            while (!open.empty()) {
                const Index node = open.back();
                open.pop_back();
                if (std::exchange(seen[node], 1)) continue;
                order.push_back(node);
                for (Index s : segments(node, side) | std::views::reverse)
                    if (!seen[otherEnd(s, side)]) open.push_back(otherEnd(s, side));
            }
        }
        m_graph.setOrder(order);
    }

    // Each call continues one fixed sequence of numbers, so that results are reproducible.
    void shuffleLayers() {
        std::vector<Index> order = m_graph.order();
        for (std::size_t i = order.size(); i > 1; --i)
            std::swap(order[i - 1], order[m_random() % i]);
        m_graph.setOrder(order);
    }

    void sweepLayers(Side fixed, bool median) {
        const Index layers = m_graph.layerCount();
        for (Index i = 1; i < layers; ++i) {
            throwIfStopped(m_stop);
            sortLayer(fixed == Side::Above ? i : layers - 1 - i, fixed, median);
        }
    }

    // Sorts the nodes that have neighbours on the fixed side; the others keep their places.
    void sortLayer(Index layer, Side fixed, bool median) {
        m_keyed.clear();
        m_places.clear();
        for (Index node : m_graph.layer(layer)) {
            if (segments(node, fixed).empty()) continue;
            m_places.push_back(m_graph.position(node));
            m_keyed.emplace_back(median ? medianOf(node, fixed) : meanOf(node, fixed), node);
        }
        if (median) std::ranges::reverse(m_keyed);
        std::ranges::stable_sort(m_keyed, {}, &std::pair<double, Index>::first);
        for (std::size_t i = 0; i < m_keyed.size(); ++i)
            m_graph.place(m_keyed[i].second, m_places[i]);
    }

    double meanOf(Index node, Side fixed) const {
        double sum = 0;
        for (Index s : segments(node, fixed)) sum += m_graph.position(otherEnd(s, fixed));
        return sum / static_cast<double>(segments(node, fixed).size());
    }

    double medianOf(Index node, Side fixed) {
        neighbourPositions(node, fixed, m_left);
        const std::size_t middle = m_left.size() / 2;
        return m_left.size() % 2 == 1 ? m_left[middle]
                                      : (m_left[middle - 1] + m_left[middle]) / 2.0;
    }

    void neighbourPositions(Index node, Side side, std::vector<Index>& out) const {
        out.clear();
        for (Index s : segments(node, side)) out.push_back(m_graph.position(otherEnd(s, side)));
        std::ranges::sort(out);
    }

    void transpose(int maxRounds) {
        for (int round = 0; round < maxRounds; ++round) {
            bool improved = false;
            for (Index layer = 0; layer < m_graph.layerCount(); ++layer) {
                throwIfStopped(m_stop);
                improved |= transposeLayer(layer);
            }
            if (!improved) break;
        }
    }

    bool transposeLayer(Index layer) {
        bool improved = false;
        const std::span<const Index> nodes = m_graph.layer(layer);
        for (Index i = 0; i + 1 < nodes.size(); ++i) {
            const Index left = nodes[i], right = nodes[i + 1];
            if (gainOfSwap(left, right) <= 0) continue;
            m_graph.place(right, i);
            m_graph.place(left, i + 1);
            improved = true;
        }
        return improved;
    }

    // Moves each node to its best place in its layer, the others keeping their order.
    void sift(int maxRounds) {
        for (int round = 0; round < maxRounds; ++round) {
            bool improved = false;
            for (Index layer = 0; layer < m_graph.layerCount(); ++layer) {
                throwIfStopped(m_stop);
                const std::vector<Index> nodes(m_graph.layer(layer).begin(),
                                               m_graph.layer(layer).end());
                for (Index node : nodes) improved |= siftNode(node);
            }
            if (!improved) break;
        }
    }

    bool siftNode(Index node) {
        const std::span<const Index> layer = m_graph.layer(m_graph.layerOf(node));
        const Index start = m_graph.position(node);
        Index best = start;
        std::int64_t bestGain = 0, gain = 0;
        for (Index to = start; to-- > 0;) {
            gain += gainOfSwap(layer[to], node);
            if (gain > bestGain) bestGain = gain, best = to;
        }
        gain = 0;
        for (Index to = start + 1; to < layer.size(); ++to) {
            gain += gainOfSwap(node, layer[to]);
            if (gain > bestGain) bestGain = gain, best = to;
        }
        for (Index p = start; p > best; --p) m_graph.place(layer[p - 1], p);
        for (Index p = start; p < best; ++p) m_graph.place(layer[p + 1], p);
        m_graph.place(node, best);
        return best != start;
    }

    // Crossings that go away when two neighbours change places.
    std::int64_t gainOfSwap(Index left, Index right) {
        std::int64_t gain = 0;
        for (Side side : {Side::Above, Side::Below}) {
            if (segments(left, side).empty() || segments(right, side).empty()) continue;
            neighbourPositions(left, side, m_left);
            neighbourPositions(right, side, m_right);
            gain += crossings(m_left, m_right) - crossings(m_right, m_left);
        }
        return gain;
    }

    // Pairs with a left position beyond a right one; both lists are sorted.
    static std::int64_t crossings(const std::vector<Index>& left, const std::vector<Index>& right) {
        std::int64_t count = 0;
        std::size_t smaller = 0;
        for (Index position : left) {
            while (smaller < right.size() && right[smaller] < position) ++smaller;
            count += static_cast<std::int64_t>(smaller);
        }
        return count;
    }

    LayerGraph& m_graph;
    const std::stop_token& m_stop;
    bool m_large;
    std::minstd_rand m_random; // default seed
    std::vector<Index> m_best;
    std::uint64_t m_bestCrossings = 0;
    std::vector<std::pair<double, Index>> m_keyed;
    std::vector<Index> m_places, m_left, m_right;
};

} // namespace

std::uint64_t countCrossings(const LayerGraph& graph) {
    std::uint64_t count = 0;
    InversionCounter inversions;
    std::vector<Index> targets;
    for (Index layer = 0; layer + 1 < graph.layerCount(); ++layer) {
        inversions.reset(static_cast<Index>(graph.layer(layer + 1).size()));
        for (Index node : graph.layer(layer)) {
            targets.clear();
            for (Index s : graph.segmentsBelow(node))
                targets.push_back(graph.position(graph.segments()[s].to));
            std::ranges::sort(targets);
            for (Index position : targets) count += inversions.insert(position);
        }
    }
    return count;
}

void reduceCrossings(LayerGraph& graph, const std::stop_token& stop) {
    Reducer(graph, stop).run();
}

} // namespace shardlens::layered
