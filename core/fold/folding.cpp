// SPDX-License-Identifier: Apache-2.0
// How runs are found. Sources (inputs, parameters, constants) are set aside; the remaining ops in a
// topological order form a string of signatures (sequence.h), in which runs are found and proven
// (runs.h). Several orders are tried (the file's own, one that depends on structure alone, and for
// graphs with a backward pass one by readiness; each again with what all blocks read moved out of
// the first block) and the one that leaves the fewest classes wins.
// The sequence view of folding goes back to the repeated-block finders of EPL and of Alpa's
// successors; unlike those it compares wiring exactly and ignores names.
#include "core/fold/folding.h"

#include "core/fold/orders.h"
#include "core/fold/runs.h"
#include "core/model/graph_algorithms.h"

#include <algorithm>
#include <optional>

namespace shardlens {

using namespace fold_detail;

namespace {

/// Where a source goes: before its first reader if all readers are in one place (the same block, or
/// none of them in a run), else to the front, shared. What only enters the first block of a run,
/// where the others read the block before, belongs to no block. In a linked run a source that is
/// also read elsewhere (a weight, by the backward layer and the optimizer) stays with the block
/// that reads it first, if every block has one like it.
class Placement {
public:
    Placement(const Sequence& s, const std::vector<Stretch>& runs)
        : m_s(s), m_blockOf(s.ops.size(), -1), m_entry(s.graph->ops().size(), false),
          m_own(s.graph->ops().size(), false) {
        std::int64_t serial = 0;
        for (const Stretch& run : runs) {
            for (std::size_t b = 0; b < run.count; ++b, ++serial)
                for (std::size_t i = 0; i < run.period; ++i)
                    m_blockOf[run.first + b * run.period + i] = serial;
            findEntries(run);
            if (run.linked) findOwn(run);
        }
    }

    bool shared(OpId source) const {
        if (m_entry[source]) return true;
        if (m_own[source]) return false;
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

    void findOwn(const Stretch& run) {
        for (std::size_t i = 0; i < run.period; ++i) {
            const std::size_t ports = m_s.graph->op(m_s.ops[run.first + i]).inputs.size();
            for (std::size_t port = 0; port < ports; ++port) {
                std::vector<OpId> sources;
                for (std::size_t b = 0; b < run.count; ++b)
                    if (const auto source = readFirstAt(run.first + b * run.period + i, port))
                        sources.push_back(*source);
                if (sources.size() != run.count) continue;
                for (const OpId source : sources) m_own[source] = true;
            }
        }
    }

    /// The source read by an operand, if nothing before it reads the source. (Then the sources of
    /// the same place in other blocks are other ones.)
    std::optional<OpId> readFirstAt(std::size_t position, std::size_t port) const {
        const TensorId tensor = m_s.graph->op(m_s.ops[position]).inputs[port];
        if (tensor == kNoTensor) return std::nullopt;
        const OpId source = m_s.graph->tensor(tensor).producer;
        if (m_s.position[source] != Sequence::kNowhere) return std::nullopt;
        for (const TensorId out : m_s.graph->op(source).outputs)
            for (const auto& use : m_s.graph->uses(out)) {
                const std::size_t p = m_s.position[use.op];
                if (p < position || (p == position && use.port < port)) return std::nullopt;
            }
        return source;
    }

    const Sequence& m_s;
    std::vector<std::int64_t> m_blockOf; ///< by position; -1 outside runs
    std::vector<bool> m_entry;           ///< by OpId
    std::vector<bool> m_own;             ///< by OpId
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
            folding.runs.push_back({runStart, (folding.order.size() - runStart) / count, count, 0,
                                    runs[nextRun].linked});
            ++nextRun;
        }
    }
    folding.position.resize(graph.ops().size());
    for (std::size_t p = 0; p < folding.order.size(); ++p) folding.position[folding.order[p]] = p;
    for (FoldRun& run : folding.runs) run.hash = blockHash(graph, folding, run);
    assignClasses(folding);
    return folding;
}

Folding foldInOrder(const Graph& graph, const std::vector<OpId>& order, std::stop_token stop) {
    const Sequence sequence = makeSequence(graph, order);
    Folding folding = build(sequence, chooseRuns(sequence, stop));
    const std::vector<bool> shared = sharedByBlocks(graph, folding);
    if (std::ranges::find(shared, true) == shared.end()) return folding;
    const Sequence better = makeSequence(graph, hoisted(graph, order, shared));
    if (better.ops == sequence.ops) return folding;
    Folding second = build(better, chooseRuns(better, stop));
    return second.classes.size() < folding.classes.size() ? second : folding;
}

} // namespace

void assignClasses(Folding& folding) {
    folding.classes.clear();
    folding.classOf.assign(folding.order.size(), 0);
    folding.instanceOf.assign(folding.order.size(), 0);
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

OpId Folding::member(ClassId id, std::size_t instance) const {
    const OpClass& c = classes.at(id);
    if (c.run < 0) return c.representative;
    return order.at(runs[static_cast<std::size_t>(c.run)].position(instance, c.local));
}

Folding fold(const Graph& graph, std::stop_token stop) {
    Folding byFile = foldInOrder(graph, topologicalOrder(graph), stop);
    Folding byStructure = foldInOrder(graph, structuralOrder(graph), stop);
    Folding best = byStructure.classes.size() < byFile.classes.size() ? byStructure : byFile;
    if (!graph.backwardIncluded) return best;
    Folding byReadiness = foldInOrder(graph, eagerOrder(graph), stop);
    return byReadiness.classes.size() < best.classes.size() ? byReadiness : best;
}

Folding trivialFolding(const Graph& graph) {
    return build(makeSequence(graph, topologicalOrder(graph)), {});
}

} // namespace shardlens
