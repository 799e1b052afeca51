// SPDX-License-Identifier: Apache-2.0
// The limit over time. The room of a moment is the limit less what is used there in any case.
#include "core/solve/reduction_worker.h"

#include <algorithm>
#include <bit>

namespace shardlens::solve {
namespace {

/// Least of any stretch of values, from minima over stretches of powers of two.
class RangeMinimum {
public:
    explicit RangeMinimum(std::vector<double> values) : m_levels{std::move(values)} {
        for (std::size_t step = 1; 2 * step <= m_levels[0].size(); step *= 2) {
            const auto& below = m_levels.back();
            std::vector<double> level(m_levels[0].size() - 2 * step + 1);
            for (std::size_t i = 0; i < level.size(); ++i) {
                level[i] = std::min(below[i], below[i + step]);
            }
            m_levels.push_back(std::move(level));
        }
    }
    /// @param first below last
    double operator()(std::size_t first, std::size_t last) const {
        const auto level = static_cast<std::size_t>(std::bit_width(last - first) - 1);
        const auto& values = m_levels[level];
        return std::min(values[first], values[last - (std::size_t{1} << level)]);
    }

private:
    std::vector<std::vector<double>> m_levels;
};

} // namespace

/// @return whether something changed that lets the other rules go on
bool Reduction::Worker::reduceMoments() {
    bool changed = false;
    for (bool more = true; more;) {
        for (Node& node : m_nodes) tidy(node);
        takeLeastUsage();
        more = forbidByRoom();
        changed |= more;
        for (Var i = 0; i < m_nodes.size(); ++i) {
            const std::size_t before = m_nodes[i].parts.size();
            normalise(m_nodes[i].parts);
            if (m_nodes[i].parts.size() == before) continue;
            changed = true;
            queue(i);
        }
        changed |= dropMoments();
    }
    return changed && !m_queue.empty();
}

/// Makes the least usage of every node 0 everywhere.
void Reduction::Worker::takeLeastUsage() {
    std::vector<double> step(m_room.size() + 1, 0.0);
    for (Var i = 0; i < m_nodes.size(); ++i) {
        for (Part& part : m_nodes[i].parts) {
            const double least = *std::ranges::min_element(part.usage);
            if (least == 0) continue;
            for (double& usage : part.usage) usage -= least;
            step[part.first] += least;
            step[part.last] -= least;
        }
    }
    double taken = 0;
    for (std::size_t t = 0; t < m_room.size(); ++t) {
        taken += step[t];
        m_room[t] -= taken;
        if (m_room[t] < 0) throw Conflict{.node = {}, .moment = m_moments[t], .excess = -m_room[t]};
    }
}

/// Strikes out choices that need more than the room anywhere.
bool Reduction::Worker::forbidByRoom() {
    const RangeMinimum least(m_room);
    bool any = false;
    for (Var i = 0; i < m_nodes.size(); ++i) {
        if (m_nodes[i].gone || m_nodes[i].parts.empty()) continue;
        std::vector<char> out(m_nodes[i].size(), 0);
        for (const Part& part : m_nodes[i].parts) {
            if (part.first == part.last) continue;
            m_monitor.tick(out.size());
            const double room = least(part.first, part.last);
            for (std::size_t c = 0; c < out.size(); ++c) out[c] |= part.usage[c] > room;
        }
        std::vector<std::uint32_t> places;
        for (std::uint32_t c = 0; c < out.size(); ++c) {
            if (!out[c]) places.push_back(c);
        }
        if (places.size() == out.size()) continue;
        m_statistics.forbidden += out.size() - places.size();
        any = true;
        keep(i, places);
    }
    return any;
}

/// Moments at which the largest usages together exceed the room.
std::vector<char> Reduction::Worker::bindingMoments() const {
    std::vector<double> step(m_room.size() + 1, 0.0);
    for (const Node& node : m_nodes) {
        for (const Part& part : node.parts) {
            const double most = *std::ranges::max_element(part.usage);
            step[part.first] += most;
            step[part.last] -= most;
        }
    }
    std::vector<char> binding(m_room.size());
    double most = 0;
    for (std::size_t t = 0; t < m_room.size(); ++t) {
        most += step[t];
        binding[t] = most > m_room[t];
    }
    return binding;
}

/// Drops moments that cannot bind, and those implied by a neighbour: no usage falls from the one to
/// the other, and the room does not grow.
bool Reduction::Worker::dropMoments() {
    const std::vector<char> binding = bindingMoments();
    std::vector<char> rises(m_room.size() + 1, 0), falls(m_room.size() + 1, 0);
    for (const Node& node : m_nodes) {
        const Part* before = nullptr;
        for (const Part& part : node.parts) {
            const bool adjacent = before && before->last == part.first;
            if (before && !adjacent) falls[before->last] = 1;
            if (!adjacent) {
                rises[part.first] = 1;
            } else {
                for (std::size_t c = 0; c < part.usage.size(); ++c) {
                    rises[part.first] |= part.usage[c] > before->usage[c];
                    falls[part.first] |= part.usage[c] < before->usage[c];
                }
            }
            before = &part;
        }
        if (before) falls[before->last] = 1;
    }
    struct Kept {
        std::uint32_t moment;
        bool rises, falls; ///< between the one kept before and this
    };
    std::vector<Kept> stack;
    bool rose = false, fell = false; // since the last one kept
    for (std::uint32_t t = 0; t < m_room.size(); ++t) {
        rose |= rises[t];
        fell |= falls[t];
        if (!binding[t]) continue;
        while (!stack.empty() && !fell && m_room[stack.back().moment] >= m_room[t]) {
            rose |= stack.back().rises;
            fell |= stack.back().falls;
            stack.pop_back();
        }
        if (!stack.empty() && !rose && m_room[t] >= m_room[stack.back().moment]) continue;
        stack.push_back({t, rose, fell});
        rose = fell = false;
    }
    if (stack.size() == m_room.size()) return false;
    std::vector<std::uint32_t> kept;
    for (const Kept& k : stack) kept.push_back(k.moment);
    renumber(kept);
    return true;
}

/// @param kept  moments, ascending
void Reduction::Worker::renumber(const std::vector<std::uint32_t>& kept) {
    std::vector<std::uint32_t> place(m_room.size() + 1);
    for (std::size_t t = 0, k = 0; t <= m_room.size(); ++t) {
        place[t] = static_cast<std::uint32_t>(k);
        if (k < kept.size() && kept[k] == t) ++k;
    }
    for (Var i = 0; i < m_nodes.size(); ++i) {
        Node& node = m_nodes[i];
        if (node.parts.empty()) continue;
        for (Part& part : node.parts) {
            part.first = place[part.first];
            part.last = place[part.last];
        }
        const std::size_t before = node.parts.size();
        normalise(node.parts);
        if (node.parts.size() < before) queue(i);
    }
    for (std::size_t k = 0; k < kept.size(); ++k) {
        m_room[k] = m_room[kept[k]];
        m_moments[k] = m_moments[kept[k]];
    }
    m_room.resize(kept.size());
    m_moments.resize(kept.size());
}

/// Drops parts that are empty or use nothing, joins neighbours that are equal.
void Reduction::Worker::normalise(std::vector<Part>& parts) {
    std::size_t to = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        Part& part = parts[i];
        if (part.first == part.last) continue;
        if (std::ranges::all_of(part.usage, [](double u) { return u == 0; })) continue;
        if (to > 0 && parts[to - 1].last == part.first && parts[to - 1].usage == part.usage) {
            parts[to - 1].last = part.last;
            continue;
        }
        if (to != i) parts[to] = std::move(part);
        ++to;
    }
    parts.resize(to);
}

void Reduction::Worker::tidy(Node& node) const {
    if (node.pending.empty()) return;
    node.parts = sum(node.parts, sum(node.pending));
    node.pending.clear();
}

/// All usages together: halves first, so that many short parts cost little.
std::vector<Reduction::Worker::Part> Reduction::Worker::sum(std::span<Part> parts) const {
    if (parts.empty()) return {};
    m_monitor.tick(parts[0].usage.size());
    if (parts.size() == 1) {
        std::vector<Part> one;
        one.push_back(std::move(parts[0]));
        normalise(one);
        return one;
    }
    const std::size_t half = parts.size() / 2;
    return sum(sum(parts.first(half)), sum(parts.subspan(half)));
}

/// Both usages together, over the same choices.
std::vector<Reduction::Worker::Part> Reduction::Worker::sum(const std::vector<Part>& a,
                                                            const std::vector<Part>& b) {
    std::vector<std::uint32_t> times;
    for (const auto* parts : {&a, &b}) {
        for (const Part& part : *parts) {
            times.push_back(part.first);
            times.push_back(part.last);
        }
    }
    std::ranges::sort(times);
    const auto repeated = std::ranges::unique(times);
    times.erase(repeated.begin(), repeated.end());
    std::vector<Part> out;
    std::size_t i = 0, j = 0;
    for (std::size_t k = 0; k + 1 < times.size(); ++k) {
        const auto at = [&](const std::vector<Part>& parts, std::size_t& next) -> const Part* {
            while (next < parts.size() && parts[next].last <= times[k]) ++next;
            return next < parts.size() && parts[next].first <= times[k] ? &parts[next] : nullptr;
        };
        const Part *p = at(a, i), *q = at(b, j);
        if (!p && !q) continue;
        out.push_back({times[k], times[k + 1], p ? p->usage : q->usage});
        if (!p || !q) continue;
        for (std::size_t c = 0; c < q->usage.size(); ++c) out.back().usage[c] += q->usage[c];
    }
    normalise(out);
    return out;
}

} // namespace shardlens::solve
