// SPDX-License-Identifier: Apache-2.0
// See stage_units.h.
#include "core/plan/stage_units.h"

#include "core/error.h"
#include "core/model/catalogue.h"
#include "core/model/graph_algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace shardlens {

namespace {

constexpr std::size_t kNoUnit = std::numeric_limits<std::size_t>::max();

bool isSource(const Op& op) {
    return op.inputs.empty();
}

class Cutter {
public:
    Cutter(const Graph& graph, const Folding& folding)
        : m_graph(graph), m_folding(folding), m_gradient(needsGradient(graph)),
          m_unitOf(graph.ops().size(), kNoUnit) {
        if (graph.backwardIncluded)
            throw PlanError("it holds its own backward pass",
                            "pipeline stages of '" + graph.name + "'",
                            "give the model without its backward pass");
    }

    StageUnits run() {
        assignOps();
        assignSources();
        findReads();
        findKinds();
        return std::move(m_result);
    }

private:
    int runOf(OpId id) const { return m_folding.classes[m_folding.classOf[id]].run; }

    bool isHeavy(OpId id) const {
        const OpView view = viewOf(m_graph, id);
        const ComputeClass compute = forwardWork(view, factorRule(view)).compute;
        return compute == ComputeClass::Contraction || compute == ComputeClass::Attention;
    }

    // --- ops ------------------------------------------------------------------------------------

    void assignOps() {
        std::vector<OpId> stretch;
        for (std::size_t at = 0; at < m_folding.order.size();) {
            const OpId id = m_folding.order[at];
            const int run = runOf(id);
            // A section (one block) is for the eye only.
            if (run < 0 || m_folding.runs[static_cast<std::size_t>(run)].linked ||
                m_folding.runs[static_cast<std::size_t>(run)].count == 1) {
                if (!isSource(m_graph.op(id))) stretch.push_back(id);
                ++at;
                continue;
            }
            cutStretch(stretch);
            const FoldRun& r = m_folding.runs[static_cast<std::size_t>(run)];
            for (std::size_t i = 0; i < r.count; ++i) addUnit(blockOps(r, i), run);
            at = r.end();
        }
        cutStretch(stretch);
        if (m_result.units.empty())
            throw PlanError("it computes nothing", "pipeline stages of '" + m_graph.name + "'");
    }

    std::vector<OpId> blockOps(const FoldRun& run, std::size_t instance) const {
        std::vector<OpId> ops;
        for (std::size_t local = 0; local < run.period; ++local) {
            const OpId id = m_folding.order[run.position(instance, local)];
            if (!isSource(m_graph.op(id))) ops.push_back(id);
        }
        return ops;
    }

    void addUnit(std::vector<OpId> ops, int run) {
        if (ops.empty()) return;
        for (const OpId id : ops) m_unitOf[id] = m_result.units.size();
        StageUnit unit;
        unit.name = m_graph.op(ops.front()).name;
        unit.ops = std::move(ops);
        unit.run = run;
        m_result.units.push_back(std::move(unit));
    }

    /// Cuts where one activation crosses, each piece with a matrix product in it.
    void cutStretch(std::vector<OpId>& stretch) {
        std::vector<OpId> piece;
        bool heavy = false;
        std::size_t lastHeavy = stretch.size();
        while (lastHeavy > 0 && !isHeavy(stretch[lastHeavy - 1])) --lastHeavy;
        for (std::size_t i = 0; i < stretch.size(); ++i) {
            piece.push_back(stretch[i]);
            heavy = heavy || isHeavy(stretch[i]);
            if (heavy && i + 1 < lastHeavy && crossing(stretch[i]) == 1) {
                addUnit(std::move(piece), -1);
                piece.clear();
                heavy = false;
            }
        }
        addUnit(std::move(piece), -1);
        stretch.clear();
    }

    /// Activations with a gradient that are made up to an op and read after it.
    int crossing(OpId last) {
        if (m_crossing.empty()) countCrossings();
        return m_crossing[m_folding.position[last] + 1];
    }

    void countCrossings() {
        m_crossing.assign(m_folding.order.size() + 2, 0);
        for (TensorId t = 0; t < m_graph.tensors().size(); ++t) {
            const OpId producer = m_graph.tensor(t).producer;
            if (!m_gradient[t] || isSource(m_graph.op(producer))) continue;
            std::size_t last = m_folding.position[producer];
            for (const Graph::Use& use : m_graph.uses(t))
                last = std::max(last, m_folding.position[use.op]);
            ++m_crossing[m_folding.position[producer] + 1];
            --m_crossing[last + 1];
        }
        for (std::size_t i = 1; i < m_crossing.size(); ++i) m_crossing[i] += m_crossing[i - 1];
    }

    // --- what they read -------------------------------------------------------------------------

    void assignSources() {
        for (OpId id = 0; id < m_graph.ops().size(); ++id) {
            if (!isSource(m_graph.op(id))) continue;
            std::set<std::size_t> readers;
            for (const TensorId t : m_graph.op(id).outputs)
                for (const Graph::Use& use : m_graph.uses(t))
                    if (m_unitOf[use.op] != kNoUnit) readers.insert(m_unitOf[use.op]);
            for (const std::size_t unit : readers) m_sources[unit].push_back(id);
            if (m_graph.op(id).kind == OpKind::Parameter && readers.size() > 1)
                m_result.tied.push_back({id, {readers.begin(), readers.end()}});
        }
        for (auto& [unit, sources] : m_sources) {
            std::vector<OpId>& ops = m_result.units[unit].ops;
            ops.insert(ops.begin(), sources.begin(), sources.end());
        }
    }

    void findReads() {
        const std::size_t count = m_result.units.size();
        m_result.crossingBytes.assign(count + 1, 0);
        m_result.gradientBytes.assign(count + 1, 0);
        for (TensorId t = 0; t < m_graph.tensors().size(); ++t) {
            const OpId producer = m_graph.tensor(t).producer;
            if (isSource(m_graph.op(producer))) continue;
            const std::size_t from = m_unitOf[producer];
            std::set<std::size_t> readers;
            for (const Graph::Use& use : m_graph.uses(t)) readers.insert(m_unitOf[use.op]);
            readers.erase(from);
            for (const std::size_t reader : readers) {
                StageUnit& unit = m_result.units[reader];
                const bool second = std::ranges::any_of(unit.enters, [&](TensorId other) {
                    return m_graph.tensor(other).producer == producer;
                });
                (reader == from + 1 && !second ? unit.enters : unit.passes).push_back(t);
            }
            if (readers.empty()) continue;
            const double bytes = bytesOf(m_graph.tensor(t).spec);
            addRange(m_result.crossingBytes, from + 1, *readers.rbegin(), bytes);
            if (m_gradient[t]) addRange(m_result.gradientBytes, from + 1, *readers.rbegin(), bytes);
        }
        for (auto* bytes : {&m_result.crossingBytes, &m_result.gradientBytes}) {
            for (std::size_t i = 1; i <= count; ++i) (*bytes)[i] += (*bytes)[i - 1];
            bytes->resize(count);
        }
    }

    static void addRange(std::vector<double>& bytes, std::size_t first, std::size_t last,
                         double n) {
        bytes[first] += n;
        if (last + 1 < bytes.size()) bytes[last + 1] -= n;
    }

    // --- equal units ----------------------------------------------------------------------------

    /// Inner blocks of a run are equal; the first and the last read, or are read by, other units.
    void findKinds() {
        std::map<std::pair<int, int>, std::size_t> known;
        for (std::size_t u = 0; u < m_result.units.size(); ++u) {
            StageUnit& unit = m_result.units[u];
            const auto runAt = [&](std::size_t other) { return m_result.units[other].run; };
            const bool inner = unit.run >= 0 && u > 0 && runAt(u - 1) == unit.run &&
                               u + 1 < m_result.units.size() && runAt(u + 1) == unit.run;
            const auto key = inner ? std::pair(unit.run, -1) : std::pair(-1, static_cast<int>(u));
            unit.kind = known.emplace(key, known.size()).first->second;
        }
        m_result.kinds = known.size();
    }

    const Graph& m_graph;
    const Folding& m_folding;
    std::vector<bool> m_gradient;
    std::vector<std::size_t> m_unitOf; ///< by op; sources none
    std::vector<int> m_crossing;       ///< by position: before it
    std::map<std::size_t, std::vector<OpId>> m_sources;
    StageUnits m_result;
};

} // namespace

StageUnits cutIntoUnits(const Graph& graph, const Folding& folding) {
    return Cutter(graph, folding).run();
}

std::optional<int> layerNumber(const StageUnits& units, int unit) {
    const auto& all = units.units;
    const int run = all.at(static_cast<std::size_t>(unit)).run;
    const bool single = std::ranges::all_of(
        all, [run](const StageUnit& other) { return other.run < 0 || other.run == run; });
    if (run < 0 || !single) return std::nullopt;
    return unit - static_cast<int>(std::ranges::find(all, run, &StageUnit::run) - all.begin());
}

std::string unitName(const StageUnits& units, int unit) {
    if (const std::optional<int> layer = layerNumber(units, unit))
        return fmt::format("layer {}", *layer);
    return units.units.at(static_cast<std::size_t>(unit)).name;
}

} // namespace shardlens
