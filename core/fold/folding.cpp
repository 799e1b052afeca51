// SPDX-License-Identifier: Apache-2.0
// How runs are found. Sources (inputs, parameters, constants) are set aside; the remaining ops in a
// topological order form a string of signatures (kind, attributes, operand and result specs). The
// gaps between equal signatures propose periods; a stretch in which the string equals itself
// shifted by a period proposes a run; every run is then proven block by block: an ordered bijection
// under which each operand comes from the same place. Two orders are tried (the file's own and one
// that depends on structure alone) and the one that leaves fewer classes wins.
// The sequence view of folding goes back to the repeated-block finders of EPL and of Alpa's
// successors; unlike those it compares wiring exactly and ignores names.
#include "core/fold/folding.h"

#include "core/error.h"
#include "core/model/graph_algorithms.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

namespace shardlens {
namespace {

std::uint64_t mix(std::uint64_t hash,
                  std::uint64_t value) { // splitmix64 finaliser (Steele et al. 2014)
    hash += 0x9e3779b97f4a7c15ULL + value;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9ULL;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebULL;
    return hash ^ (hash >> 31);
}

std::uint64_t mix(std::uint64_t hash, std::string_view text) {
    return mix(hash, std::uint64_t{std::hash<std::string_view>{}(text)});
}

std::uint64_t mix(std::uint64_t hash, const std::vector<std::int64_t>& values) {
    for (const std::int64_t value : values) hash = mix(hash, static_cast<std::uint64_t>(value));
    return mix(hash, values.size());
}

std::uint64_t mix(std::uint64_t hash, const TensorSpec& spec) {
    return mix(mix(hash, static_cast<std::uint64_t>(spec.dtype)), spec.shape);
}

std::uint64_t mix(std::uint64_t hash, const AttributeValue& value) {
    hash = mix(hash, value.index());
    if (const auto* i = std::get_if<std::int64_t>(&value))
        return mix(hash, static_cast<std::uint64_t>(*i));
    if (const auto* d = std::get_if<double>(&value)) return mix(hash, std::hash<double>{}(*d));
    if (const auto* s = std::get_if<std::string>(&value)) return mix(hash, std::string_view(*s));
    if (const auto* v = std::get_if<std::vector<std::int64_t>>(&value)) return mix(hash, *v);
    for (const double d : std::get<std::vector<double>>(value))
        hash = mix(hash, std::hash<double>{}(d));
    return hash;
}

bool isSource(const Op& op) {
    return op.inputs.empty();
}

/// What an op is by itself: no names, no wiring.
std::uint64_t ownSignature(const Graph& graph, OpId id) {
    const Op& op = graph.op(id);
    std::uint64_t hash = mix(0, static_cast<std::uint64_t>(op.kind));
    if (op.kind == OpKind::Opaque) hash = mix(hash, std::string_view(op.type));
    for (const auto& [name, value] : op.attributes.values())
        hash = mix(mix(hash, std::string_view(name)), value);
    for (const TensorId out : op.outputs) {
        const Tensor& tensor = graph.tensor(out);
        hash = mix(hash, tensor.spec);
        if (tensor.value) hash = mix(hash, *tensor.value);
    }
    return hash;
}

/// ownSignature with the specs of the operands.
std::vector<std::uint64_t> signatures(const Graph& graph) {
    std::vector<std::uint64_t> result(graph.ops().size());
    for (OpId id = 0; id < result.size(); ++id) {
        std::uint64_t hash = ownSignature(graph, id);
        for (const TensorId in : graph.op(id).inputs)
            hash = in == kNoTensor ? mix(hash, 1) : mix(mix(hash, 2), graph.tensor(in).spec);
        result[id] = hash;
    }
    return result;
}

/// The computing ops in order, and where each is.
struct Sequence {
    const Graph* graph = nullptr;
    std::vector<OpId> ops;
    std::vector<std::size_t> position;    ///< by OpId; kNowhere for sources
    std::vector<std::uint64_t> signature; ///< by OpId
    static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
};

Sequence makeSequence(const Graph& graph, const std::vector<OpId>& order) {
    Sequence s{&graph,
               {},
               std::vector<std::size_t>(graph.ops().size(), Sequence::kNowhere),
               signatures(graph)};
    for (const OpId id : order)
        if (!isSource(graph.op(id))) {
            s.position[id] = s.ops.size();
            s.ops.push_back(id);
        }
    return s;
}

/// A proposed run over Sequence positions.
struct Stretch {
    std::size_t first = 0, period = 0, count = 0;
    std::size_t end() const { return first + period * count; }
    std::size_t saved() const { return period * (count - 1); }
};

/// Whether a run is worth a box of its own: a pair of tiny blocks is not.
bool worthwhile(const Stretch& s) {
    return (s.count >= 3 && s.period >= 1 && s.saved() >= 4) || (s.count == 2 && s.period >= 4);
}

// --- proof --------------------------------------------------------------------------------------

class Proof {
public:
    Proof(const Sequence& sequence, const Stretch& stretch) : m_s(sequence), m_run(stretch) {}

    /// Number of leading blocks that are proven equal (at least 1).
    std::size_t provenBlocks() const {
        std::size_t proven = 1;
        while (proven < m_run.count && blockFollows(proven) && usesStayNear(proven - 1)) ++proven;
        return proven;
    }

private:
    std::size_t start(std::size_t block) const { return m_run.first + block * m_run.period; }
    OpId at(std::size_t block, std::size_t local) const { return m_s.ops[start(block) + local]; }

    bool blockFollows(std::size_t block) const {
        for (std::size_t local = 0; local < m_run.period; ++local) {
            const OpId a = at(block - 1, local), b = at(block, local);
            if (m_s.signature[a] != m_s.signature[b]) return false;
            const auto& in = m_s.graph->op(a).inputs;
            for (std::size_t port = 0; port < in.size(); ++port)
                if (!operandFollows(block, in[port], m_s.graph->op(b).inputs[port])) return false;
        }
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

    /// Each block has its own source here: equal by itself, and read at the same places.
    bool ownSourcesMatch(std::size_t block, TensorId before, TensorId now) const {
        const OpId a = m_s.graph->tensor(before).producer, b = m_s.graph->tensor(now).producer;
        if (m_s.signature[a] != m_s.signature[b]) return false;
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

/// The alignment of a periodic stretch [first, first+length) with the most natural boundary.
Stretch aligned(const Sequence& s, std::size_t first, std::size_t length, std::size_t period) {
    const std::size_t count = length / period;
    Stretch best{first, period, count};
    std::optional<Boundary> chosen;
    for (std::size_t offset = 0; offset + count * period <= length; ++offset) {
        const std::size_t start = first + offset;
        const Boundary boundary = boundaryAt(s, start, start + period);
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
            if (matched >= period)
                found.push_back(aligned(s, p - matched, matched + period, period));
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

/// Accepts the best proven proposals that do not overlap; what is left of a stretch after its
/// proven part is proposed again.
std::vector<Stretch> chooseRuns(const Sequence& s, std::stop_token stop) {
    std::vector<Stretch> open = proposals(s, stop), chosen;
    std::ranges::make_heap(open, [](const Stretch& a, const Stretch& b) { return better(b, a); });
    const auto worse = [](const Stretch& a, const Stretch& b) { return better(b, a); };
    while (!open.empty()) {
        if (stop.stop_requested()) throw Cancelled();
        std::ranges::pop_heap(open, worse);
        const Stretch candidate = open.back();
        open.pop_back();
        const bool overlaps = std::ranges::any_of(chosen, [&](const Stretch& x) {
            return candidate.first < x.end() && x.first < candidate.end();
        });
        if (overlaps) continue;
        const std::size_t proven = Proof(s, candidate).provenBlocks();
        if (proven == candidate.count) {
            chosen.push_back(candidate);
            continue;
        }
        const Stretch head{candidate.first, candidate.period, proven};
        const Stretch tail{candidate.first + candidate.period * proven, candidate.period,
                           candidate.count - proven};
        for (const Stretch& part : {head, tail})
            if (part.count >= 2 && worthwhile(part)) {
                open.push_back(part);
                std::ranges::push_heap(open, worse);
            }
    }
    std::ranges::sort(chosen, {}, &Stretch::first);
    return chosen;
}

// --- result -------------------------------------------------------------------------------------

/// Where a source goes: before its first reader if all readers are in one place (the same block, or
/// none of them in a run), else to the front, shared. What only enters the first block of a run,
/// where the others read the block before, belongs to no block.
class Placement {
public:
    Placement(const Sequence& s, const std::vector<Stretch>& runs)
        : m_s(s), m_blockOf(s.ops.size(), -1), m_entry(s.graph->ops().size(), false) {
        std::int64_t serial = 0;
        for (const Stretch& run : runs) {
            for (std::size_t b = 0; b < run.count; ++b, ++serial)
                for (std::size_t i = 0; i < run.period; ++i)
                    m_blockOf[run.first + b * run.period + i] = serial;
            findEntries(run);
        }
    }

    bool shared(OpId source) const {
        if (m_entry[source]) return true;
        std::optional<std::int64_t> block;
        for (const TensorId out : m_s.graph->op(source).outputs)
            for (const auto& use : m_s.graph->uses(out)) {
                const std::int64_t here = m_blockOf[m_s.position[use.op]];
                if (block && *block != here) return true;
                block = here;
            }
        return !block;
    }

private:
    void findEntries(const Stretch& run) {
        for (std::size_t i = 0; i < run.period; ++i) {
            const auto& first = m_s.graph->op(m_s.ops[run.first + i]).inputs;
            const auto& second = m_s.graph->op(m_s.ops[run.first + run.period + i]).inputs;
            for (std::size_t port = 0; port < first.size(); ++port) {
                if (first[port] == kNoTensor) continue;
                const OpId a = m_s.graph->tensor(first[port]).producer;
                const OpId b = m_s.graph->tensor(second[port]).producer;
                if (m_s.position[a] == Sequence::kNowhere && m_s.position[b] != Sequence::kNowhere)
                    m_entry[a] = true;
            }
        }
    }

    const Sequence& m_s;
    std::vector<std::int64_t> m_blockOf; ///< by position; -1 outside runs
    std::vector<bool> m_entry;           ///< by OpId
};

std::uint64_t blockHash(const Graph& graph, const Folding& folding, const FoldRun& run) {
    std::uint64_t hash = mix(0, run.period);
    const std::size_t base = run.position(run.count > 1 ? 1 : 0, 0);
    for (std::size_t local = 0; local < run.period; ++local) {
        const OpId id = folding.order[base + local];
        hash = mix(hash, ownSignature(graph, id));
        for (const TensorId in : graph.op(id).inputs) {
            if (in == kNoTensor) {
                hash = mix(hash, 1);
                continue;
            }
            const Tensor& tensor = graph.tensor(in);
            const std::size_t p = folding.position[tensor.producer];
            const std::uint64_t place = p < run.first ? 3 : base + local - p + 16;
            hash = mix(mix(mix(hash, place), tensor.producerPort), tensor.spec);
        }
    }
    return hash;
}

void addClasses(const Graph& graph, Folding& folding) {
    folding.classOf.assign(graph.ops().size(), 0);
    folding.instanceOf.assign(graph.ops().size(), 0);
    std::size_t nextRun = 0;
    for (std::size_t p = 0; p < folding.order.size();) {
        const bool inRun = nextRun < folding.runs.size() && folding.runs[nextRun].first == p;
        if (!inRun) {
            folding.classOf[folding.order[p]] = static_cast<ClassId>(folding.classes.size());
            folding.classes.push_back({folding.order[p], -1, 0, 1});
            ++p;
            continue;
        }
        const FoldRun& run = folding.runs[nextRun];
        for (std::size_t local = 0; local < run.period; ++local) {
            const auto id = static_cast<ClassId>(folding.classes.size());
            folding.classes.push_back(
                {folding.order[p + local], static_cast<int>(nextRun), local, run.count});
            for (std::size_t i = 0; i < run.count; ++i) {
                const OpId member = folding.order[run.position(i, local)];
                folding.classOf[member] = id;
                folding.instanceOf[member] = static_cast<std::uint32_t>(i);
            }
        }
        p = run.end();
        ++nextRun;
    }
}

Folding build(const Sequence& s, const std::vector<Stretch>& runs) {
    const Graph& graph = *s.graph;
    const Placement placement(s, runs);
    Folding folding;
    std::vector<bool> placed(graph.ops().size(), false);
    const auto place = [&](OpId id) {
        if (placed[id]) return;
        placed[id] = true;
        folding.order.push_back(id);
    };
    for (OpId id = 0; id < graph.ops().size(); ++id)
        if (isSource(graph.op(id)) && placement.shared(id)) place(id);
    std::size_t nextRun = 0;
    std::size_t runStart = 0;
    for (std::size_t p = 0; p < s.ops.size(); ++p) {
        if (nextRun < runs.size() && runs[nextRun].first == p) runStart = folding.order.size();
        for (const TensorId in : graph.op(s.ops[p]).inputs)
            if (in != kNoTensor && isSource(graph.op(graph.tensor(in).producer)))
                place(graph.tensor(in).producer);
        place(s.ops[p]);
        if (nextRun < runs.size() && p + 1 == runs[nextRun].end()) {
            const std::size_t count = runs[nextRun].count;
            folding.runs.push_back({runStart, (folding.order.size() - runStart) / count, count, 0});
            ++nextRun;
        }
    }
    folding.position.resize(graph.ops().size());
    for (std::size_t p = 0; p < folding.order.size(); ++p) folding.position[folding.order[p]] = p;
    for (FoldRun& run : folding.runs) run.hash = blockHash(graph, folding, run);
    addClasses(graph, folding);
    return folding;
}

Folding foldInOrder(const Graph& graph, const std::vector<OpId>& order, std::stop_token stop) {
    const Sequence sequence = makeSequence(graph, order);
    return build(sequence, chooseRuns(sequence, stop));
}

} // namespace

OpId Folding::member(ClassId id, std::size_t instance) const {
    const OpClass& c = classes.at(id);
    if (c.run < 0) return c.representative;
    return order.at(runs[static_cast<std::size_t>(c.run)].position(instance, c.local));
}

Folding fold(const Graph& graph, std::stop_token stop) {
    Folding byFile = foldInOrder(graph, topologicalOrder(graph), stop);
    Folding byStructure = foldInOrder(graph, structuralOrder(graph), stop);
    return byStructure.classes.size() < byFile.classes.size() ? byStructure : byFile;
}

Folding trivialFolding(const Graph& graph) {
    return build(makeSequence(graph, topologicalOrder(graph)), {});
}

} // namespace shardlens
