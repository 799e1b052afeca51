// SPDX-License-Identifier: Apache-2.0
// Conversions between layouts as sequences of collectives, and the ring formulas that price them.
// The search is greedy in phases (see planConversion). Sets of axes are bit masks: bit a is mesh
// axis a, and a higher bit is an inner axis. It ends because a dimension whose axes are an
// outermost part of the wanted ones stays so, and any other dimension only ever loses axes until it
// is one.
#include "core/cost/collective.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace shardlens {

namespace {

using AxisMask = unsigned;

constexpr AxisMask bit(std::size_t axis) {
    return 1U << axis;
}

class Conversion {
public:
    Conversion(const SideLayout& from, const SideLayout& to, double bytes, const Mesh& mesh,
               const ConversionRules& rules)
        : m_mesh(mesh), m_rules(rules), m_now(from), m_wanted(to), m_localBytes(bytes) {
        // An axis of one device is always where it should be.
        for (std::size_t a = 0; a < axes(); ++a)
            if (size(a) == 1) m_now[a] = m_wanted[a] = kStateReplicated;
        m_localBytes /= shardCount(m_now, mesh);
    }

    std::vector<LayoutMove> run() {
        if (m_rules.reduceFirst)
            while (allReduce()) {}
        while (sliceFreely() || reduceScatter() || allToAll() || allReduce() || allGather()) {}
        assert(std::equal(m_now.begin(), m_now.begin() + static_cast<std::ptrdiff_t>(axes()),
                          m_wanted.begin()));
        return std::move(m_moves);
    }

private:
    std::size_t axes() const { return m_mesh.axes.size(); }
    int size(std::size_t axis) const { return m_mesh.axes[axis].size; }

    AxisMask axesOn(const SideLayout& side, AxisState dim) const {
        AxisMask mask = 0;
        for (std::size_t a = 0; a < axes(); ++a)
            if (side[a] == dim) mask |= bit(a);
        return mask;
    }

    /// True when the wanted dimension of an axis is cut by exactly the wanted outer axes.
    bool mayEnter(std::size_t axis) const {
        const AxisState dim = m_wanted[axis];
        return dim >= 0 && axesOn(m_now, dim) == (axesOn(m_wanted, dim) & (bit(axis) - 1));
    }

    bool isInnermost(std::size_t axis) const { return (axesOn(m_now, m_now[axis]) >> axis) == 1; }

    /// True when the axes now on a dimension are the wanted ones, some inner ones yet missing.
    bool isPrefix(AxisState dim) const {
        const AxisMask now = axesOn(m_now, dim);
        return now == (axesOn(m_wanted, dim) & ((1U << std::bit_width(now)) - 1));
    }

    void step(CollectiveKind kind, std::size_t axis, double bytes, AxisState state) {
        const auto a = static_cast<std::uint8_t>(axis);
        move(LayoutMove::Kind::Collective, axis, state, {kind, a, bytes});
    }

    void move(LayoutMove::Kind kind, std::size_t axis, AxisState to, CollectiveStep step = {}) {
        m_moves.push_back({kind, static_cast<std::uint8_t>(axis), m_now[axis], to, step});
        m_now[axis] = to;
    }

    /// Local work only: cut a replicated tensor, or let all ranks but one contribute zero.
    bool sliceFreely() {
        for (std::size_t a = 0; a < axes(); ++a) {
            if (m_now[a] != kStateReplicated) continue;
            if (m_wanted[a] == kStatePartial) {
                move(LayoutMove::Kind::MakePartial, a, kStatePartial);
                return true;
            }
            if (mayEnter(a)) {
                move(LayoutMove::Kind::Slice, a, m_wanted[a]);
                m_localBytes /= size(a);
                return true;
            }
        }
        return false;
    }

    /// Inner (fast) axes first, so that the slow ones move less.
    bool reduceScatter() {
        if (!m_rules.reduceScatter) return false;
        for (std::size_t a = axes(); a-- > 0;) {
            if (m_now[a] != kStatePartial || !mayEnter(a)) continue;
            step(CollectiveKind::ReduceScatter, a, m_localBytes, m_wanted[a]);
            m_localBytes /= size(a);
            return true;
        }
        return false;
    }

    bool allToAll() {
        if (!m_rules.allToAll) return false;
        for (std::size_t a = 0; a < axes(); ++a) {
            if (m_now[a] < 0 || m_now[a] == m_wanted[a] || !isInnermost(a) || !mayEnter(a))
                continue;
            step(CollectiveKind::AllToAll, a, m_localBytes * size(a), m_wanted[a]);
            return true;
        }
        return false;
    }

    bool allReduce() {
        for (std::size_t a = 0; a < axes(); ++a) {
            if (m_now[a] != kStatePartial || m_wanted[a] == kStatePartial) continue;
            step(CollectiveKind::AllReduce, a, m_localBytes, kStateReplicated);
            return true;
        }
        return false;
    }

    /// Outer (slow) axes first, while the shards are small.
    bool allGather() {
        for (std::size_t a = 0; a < axes(); ++a) {
            if (m_now[a] < 0 || !isInnermost(a) || isPrefix(m_now[a])) continue;
            m_localBytes *= size(a);
            step(CollectiveKind::AllGather, a, m_localBytes, kStateReplicated);
            return true;
        }
        return false;
    }

    const Mesh& m_mesh;
    ConversionRules m_rules;
    SideLayout m_now, m_wanted;
    double m_localBytes;
    std::vector<LayoutMove> m_moves;
};

double ringSeconds(int rounds, double bytesPerRound, const Link& link) {
    return rounds * (link.latency + bytesPerRound / link.bandwidth);
}

} // namespace

std::string_view nameOf(CollectiveKind kind) noexcept {
    switch (kind) {
    case CollectiveKind::AllReduce:
        return "all-reduce";
    case CollectiveKind::AllGather:
        return "all-gather";
    case CollectiveKind::ReduceScatter:
        return "reduce-scatter";
    case CollectiveKind::AllToAll:
        return "all-to-all";
    }
    return "collective";
}

std::vector<LayoutMove> planMoves(const SideLayout& from, const SideLayout& to, double bytes,
                                  const Mesh& mesh, const ConversionRules& rules) {
    if (from == to) return {};
    return Conversion(from, to, bytes, mesh, rules).run();
}

std::vector<CollectiveStep> planConversion(const SideLayout& from, const SideLayout& to,
                                           double bytes, const Mesh& mesh,
                                           const ConversionRules& rules) {
    std::vector<CollectiveStep> steps;
    for (const LayoutMove& move : planMoves(from, to, bytes, mesh, rules))
        if (move.kind == LayoutMove::Kind::Collective) steps.push_back(move.step);
    return steps;
}

double ringAllReduceSeconds(int k, double n, const Link& link) {
    return ringSeconds(2 * (k - 1), n / k, link);
}

double ringAllGatherSeconds(int k, double n, const Link& link) {
    return ringSeconds(k - 1, n / k, link);
}

double ringReduceScatterSeconds(int k, double n, const Link& link) {
    return ringSeconds(k - 1, n / k, link);
}

double ringAllToAllSeconds(int k, double n, const Link& link) {
    return ringSeconds(k - 1, n / k / k, link);
}

} // namespace shardlens
