// SPDX-License-Identifier: Apache-2.0
// Good assignments of a core problem within the limit. A move re-optimises a window, a random
// forest of nodes, exactly by dynamic programming while the rest is held fixed; usage in it is at a
// price. Choices that do not fit into the room left are struck out, and the way down the trees
// keeps to the room. The price is first that of the bound, so that usage goes where it is worth
// most, and then falls to nothing, so that what room is left is used up; each such cycle starts
// from the best so far with the prices of each node shaken.
#pragma once

#include "core/solve/core_graph.h"

#include <random>

namespace shardlens::solve {

class WindowSearch {
public:
    /// @param graph  with finite pair costs (a large one for what is forbidden)
    WindowSearch(const CoreGraph& graph, std::uint64_t seed);

    /// The state from which cycles go on.
    void start(CoreChoices choices);
    /// Builds a state node by node, each the best under messages and prices that fits.
    void decode(const std::vector<double>& priced, const std::vector<double>& messages,
                Monitor& monitor);

    /// One cycle of falling prices from the state. The state is always within its own rules: what
    /// exceeds the room can only shrink.
    /// @param work  table entries to visit at each price
    void cycle(const std::vector<double>& prices, std::size_t work, Monitor& monitor);

    const CoreChoices& choices() const { return m_value; }
    double cost() const { return m_graph.costOf(m_value); }
    double overload() const; ///< most by which usage exceeds room at a moment; at most 0 if none
    std::size_t windows() const { return m_windows; }
    std::size_t accepted() const { return m_accepted; }

private:
    struct Member {
        Var node = 0;
        std::uint32_t parent = 0;              ///< place in the window
        const CoreGraph::Link* up = nullptr;   ///< to the parent; none: a root
        const CoreGraph::Link* down = nullptr; ///< from the parent
    };

    void setPrices(const std::vector<double>& prices, double factor, double noise);
    void runWindows(std::size_t work, Monitor& monitor);
    std::size_t tryWindow();
    void grow(std::size_t size);
    std::size_t prepare(const Member& member);
    void sendUp(const Member& member);
    bool choose(const Member& member);
    double energy(bool before) const;
    void use(Var v, std::uint16_t choice, double sign);
    bool fits(Var v, std::uint16_t choice) const;
    double leastRoom(const CoreGraph::Part& part) const;

    const CoreGraph& m_graph;
    std::mt19937_64 m_random;
    CoreChoices m_value, m_before;
    std::vector<double> m_left;   ///< room less usage, by moment
    std::vector<double> m_priced; ///< by label
    std::vector<double> m_self;   ///< by label: cost, priced usage and pairs to fixed nodes
    std::vector<double> m_table;  ///< by label: that and the best below it
    std::vector<Member> m_window;
    std::vector<std::uint32_t> m_stamp; ///< by node: the last window it was looked at in
    std::vector<std::uint32_t> m_inside;
    std::uint32_t m_now = 0;
    std::vector<double> m_message, m_base;
    std::vector<std::uint32_t> m_offsets;
    std::size_t m_windows = 0, m_accepted = 0;
};

} // namespace shardlens::solve
