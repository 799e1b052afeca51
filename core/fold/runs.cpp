// SPDX-License-Identifier: Apache-2.0
// The gaps between equal signatures propose periods; a stretch in which the string equals itself
// shifted by a period proposes a run; every run is then proven block by block: an ordered bijection
// under which each operand comes from the same place.
#include "core/fold/runs.h"

#include "core/error.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

namespace shardlens::fold_detail {

namespace {

/// Whether a run is worth a box of its own: a pair of tiny blocks is not.
bool worthwhile(const Stretch& s) {
    return (s.count >= 3 && s.period >= 1 && s.saved() >= 4) || (s.count == 2 && s.period >= 4);
}

// --- proof --------------------------------------------------------------------------------------

/// What may differ from block to block besides what the block before hands over.
enum class Links : std::uint8_t {
    None,    ///< nothing: the blocks are interchangeable
    Allowed, ///< operands from outside the run, each block having its own but equal ones, and
             ///< results read anywhere: a backward layer reads its forward layer
};

class Proof {
public:
    Proof(const Sequence& sequence, const Stretch& stretch, Links links)
        : m_s(sequence), m_run(stretch), m_links(links) {}

    /// Number of leading blocks that are proven equal (at least 1).
    std::size_t provenBlocks() const {
        std::size_t proven = 1;
        while (proven < m_run.count && blockFollows(proven) &&
               (m_links == Links::Allowed || usesStayNear(proven - 1)))
            ++proven;
        return proven;
    }

private:
    std::size_t start(std::size_t block) const { return m_run.first + block * m_run.period; }
    OpId at(std::size_t block, std::size_t local) const { return m_s.ops[start(block) + local]; }

    bool blockFollows(std::size_t block) const {
        for (std::size_t local = 0; local < m_run.period; ++local) {
            const OpId a = at(block - 1, local), b = at(block, local);
            if (m_s.signature[a] != m_s.signature[b] || !offsetFollows(block, local)) return false;
            const auto& in = m_s.graph->op(a).inputs;
            for (std::size_t port = 0; port < in.size(); ++port)
                if (!operandFollows(block, in[port], m_s.graph->op(b).inputs[port])) return false;
        }
        return true;
    }

    /// Slices advance by the same step from every block to the next (by none, as a rule).
    bool offsetFollows(std::size_t block, std::size_t local) const {
        const Op &now = m_s.graph->op(at(block, local)),
                 &before = m_s.graph->op(at(block - 1, local));
        if (now.kind != OpKind::Slice) return true;
        if (block == 1) return true;
        const Op& first = m_s.graph->op(at(block - 2, local));
        const auto x = first.attributes.integers("starts"),
                   y = before.attributes.integers("starts"), z = now.attributes.integers("starts");
        for (std::size_t i = 0; i < z.size(); ++i)
            if (static_cast<std::uint64_t>(y[i]) - static_cast<std::uint64_t>(x[i]) !=
                static_cast<std::uint64_t>(z[i]) - static_cast<std::uint64_t>(y[i]))
                return false;
        return true;
    }

    /// `before` is read in block-1, `now` at the same place in `block`.
    bool operandFollows(std::size_t block, TensorId before, TensorId now) const {
        if (before == kNoTensor || now == kNoTensor) return before == now;
        const Tensor &t0 = m_s.graph->tensor(before), &t1 = m_s.graph->tensor(now);
        if (before == now) return outside(t1.producer); // shared by all blocks
        const std::size_t p0 = m_s.position[t0.producer], p1 = m_s.position[t1.producer];
        if (p1 == Sequence::kNowhere)
            return p0 == Sequence::kNowhere && ownSourcesMatch(block, before, now);
        if (linked(t0.producer, t1.producer)) return t0.producerPort == t1.producerPort;
        if (t0.producerPort != t1.producerPort && !(block == 1 && p0 < start(0))) return false;
        if (p1 >= start(block)) return p0 >= start(block - 1) && p1 - p0 == m_run.period; // inside
        if (p1 < start(block - 1)) return false; // from further back than the block before
        // Carried from the block before; the first block has its own entry instead.
        if (block == 1) return p0 == Sequence::kNowhere || p0 < start(0);
        return p1 - p0 == m_run.period;
    }

    bool outside(OpId producer) const {
        const std::size_t p = m_s.position[producer];
        return p == Sequence::kNowhere || p < m_run.first;
    }

    /// Each block reads its own op outside the run, and they are equal by themselves.
    bool linked(OpId before, OpId now) const {
        if (m_links == Links::None || m_s.signature[before] != m_s.signature[now]) return false;
        const std::size_t p0 = m_s.position[before], p1 = m_s.position[now];
        return p0 < m_run.first && p1 < m_run.first; // kNowhere is past every position
    }

    /// Each block has its own source here: equal by itself, and read at the same places.
    bool ownSourcesMatch(std::size_t block, TensorId before, TensorId now) const {
        const OpId a = m_s.graph->tensor(before).producer, b = m_s.graph->tensor(now).producer;
        if (m_s.signature[a] != m_s.signature[b]) return false;
        if (m_links == Links::Allowed) return true; // forward, backward and optimizer read it
        const auto usesA = m_s.graph->uses(before), usesB = m_s.graph->uses(now);
        if (usesA.size() != usesB.size()) return false;
        std::vector<std::pair<std::size_t, std::uint32_t>> placesA, placesB;
        for (const auto& use : usesA)
            placesA.emplace_back(m_s.position[use.op] - start(block - 1), use.port);
        for (const auto& use : usesB)
            placesB.emplace_back(m_s.position[use.op] - start(block), use.port);
        std::ranges::sort(placesA);
        std::ranges::sort(placesB);
        return placesA == placesB && placesA.back().first < m_run.period;
    }

    /// Results of a block that is not the last are read in it or in the next one only.
    bool usesStayNear(std::size_t block) const {
        for (std::size_t local = 0; local < m_run.period; ++local)
            for (const TensorId out : m_s.graph->op(at(block, local)).outputs)
                for (const auto& use : m_s.graph->uses(out))
                    if (m_s.position[use.op] >= start(block + 2)) return false;
        return true;
    }

    const Sequence& m_s;
    Stretch m_run;
    Links m_links;
};

/// How natural a block boundary is: few tensors cross it, and what crosses has many readers (the
/// residual stream rather than a value on its way to one op).
struct Boundary {
    std::size_t tensors = 0;
    std::size_t readers = 0;
    bool betterThan(const Boundary& other) const {
        return tensors != other.tensors ? tensors < other.tensors : readers > other.readers;
    }
};

Boundary boundaryAt(const Sequence& s, std::size_t from, std::size_t boundary) {
    Boundary result;
    for (std::size_t p = from; p < boundary; ++p)
        for (const TensorId out : s.graph->op(s.ops[p]).outputs) {
            const auto uses = s.graph->uses(out);
            const bool crosses = std::ranges::any_of(
                uses, [&](const Graph::Use& use) { return s.position[use.op] >= boundary; });
            if (!crosses) continue;
            ++result.tensors;
            result.readers += uses.size();
        }
    return result;
}

// --- search -------------------------------------------------------------------------------------

std::vector<std::size_t> candidatePeriods(const Sequence& s) {
    constexpr std::size_t kNeighbours = 4, kMost = 256;
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> places;
    for (std::size_t p = 0; p < s.ops.size(); ++p) places[s.signature[s.ops[p]]].push_back(p);
    std::map<std::size_t, std::size_t> votes;
    for (const auto& [signature, at] : places)
        for (std::size_t i = 0; i < at.size(); ++i)
            for (std::size_t k = 1; k <= kNeighbours && i + k < at.size(); ++k)
                ++votes[at[i + k] - at[i]];
    std::vector<std::pair<std::size_t, std::size_t>> ranked;
    for (const auto& [period, count] : votes) ranked.emplace_back(count, period);
    std::ranges::sort(ranked, [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    if (ranked.size() > kMost) ranked.resize(kMost);
    std::vector<std::size_t> periods;
    for (const auto& [count, period] : ranked) periods.push_back(period);
    std::ranges::sort(periods);
    return periods;
}

/// A periodic stretch moved to its most natural boundary.
Stretch aligned(const Sequence& s, const Stretch& stretch) {
    Stretch best = stretch;
    best.aligned = true;
    best.spare = 0;
    std::optional<Boundary> chosen;
    for (std::size_t offset = 0; offset <= stretch.spare; ++offset) {
        const std::size_t start = stretch.first + offset;
        const Boundary boundary = boundaryAt(s, start, start + stretch.period);
        if (chosen && !boundary.betterThan(*chosen)) continue;
        chosen = boundary;
        best.first = start;
    }
    return best;
}

std::vector<Stretch> proposals(const Sequence& s, std::stop_token stop) {
    std::vector<Stretch> found;
    for (const std::size_t period : candidatePeriods(s)) {
        if (stop.stop_requested()) throw Cancelled();
        std::size_t matched = 0;
        for (std::size_t p = 0; p + period <= s.ops.size(); ++p) {
            const bool equal = p + period < s.ops.size() &&
                               s.signature[s.ops[p]] == s.signature[s.ops[p + period]];
            if (equal) {
                ++matched;
                continue;
            }
            const std::size_t length = matched + period;
            if (matched >= period)
                found.push_back({p - matched, period, length / period, length % period});
            matched = 0;
        }
    }
    std::erase_if(found, [](const Stretch& x) { return !worthwhile(x); });
    return found;
}

bool better(const Stretch& a, const Stretch& b) {
    if (a.saved() != b.saved()) return a.saved() > b.saved();
    if (a.period != b.period) return a.period < b.period;
    return a.first < b.first;
}

/// The proof of a stretch that leaves its blocks most equal: if not all can be proven without links
/// and the graph holds its own backward pass, those with links count.
std::size_t prove(const Sequence& s, Stretch& candidate) {
    const std::size_t proven = Proof(s, candidate, Links::None).provenBlocks();
    if (proven == candidate.count || !s.graph->backwardIncluded) return proven;
    const std::size_t withLinks = Proof(s, candidate, Links::Allowed).provenBlocks();
    if (withLinks <= proven) return proven;
    candidate.linked = true;
    return withLinks;
}

} // namespace

/// Accepts the best proven proposals that do not overlap; what is left of a stretch after its
/// proven part is proposed again.
std::vector<Stretch> chooseRuns(const Sequence& s, std::stop_token stop) {
    std::vector<Stretch> open = proposals(s, stop), chosen;
    const auto worse = [](const Stretch& a, const Stretch& b) { return better(b, a); };
    std::ranges::make_heap(open, worse);
    const auto propose = [&](const Stretch& stretch) {
        open.push_back(stretch);
        std::ranges::push_heap(open, worse);
    };
    while (!open.empty()) {
        if (stop.stop_requested()) throw Cancelled();
        std::ranges::pop_heap(open, worse);
        Stretch candidate = open.back();
        open.pop_back();
        const bool overlaps = std::ranges::any_of(chosen, [&](const Stretch& x) {
            return candidate.first < x.end() && x.first < candidate.end();
        });
        if (overlaps) continue;
        if (!candidate.aligned) {
            propose(aligned(s, candidate));
            continue;
        }
        const std::size_t proven = prove(s, candidate);
        if (proven == candidate.count) {
            chosen.push_back(candidate);
            continue;
        }
        const Stretch head{candidate.first, candidate.period, proven, 0, true};
        const Stretch tail{candidate.first + candidate.period * proven, candidate.period,
                           candidate.count - proven, 0, true};
        for (const Stretch& part : {head, tail})
            if (part.count >= 2 && worthwhile(part)) propose(part);
    }
    std::ranges::sort(chosen, {}, &Stretch::first);
    return chosen;
}

} // namespace shardlens::fold_detail
