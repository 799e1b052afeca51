// SPDX-License-Identifier: Apache-2.0
// See sections.h.
#include "core/fold/sections.h"

#include <algorithm>

namespace shardlens {

namespace {

// A shorter stretch stays loose; a longer one is cut, so that an opened section is a page as well.
constexpr std::size_t kLeastShown = 8, kMostShown = 60;

class Cutter {
public:
    Cutter(const Graph& graph, const Folding& folding)
        : m_graph(graph), m_folding(folding), m_crossing(tensorsAcross()) {}

    /// How many boxes positions begin .. end - 1 would take.
    std::size_t shown(std::size_t begin, std::size_t end) const {
        return static_cast<std::size_t>(
            std::count_if(m_folding.order.begin() + static_cast<std::ptrdiff_t>(begin),
                          m_folding.order.begin() + static_cast<std::ptrdiff_t>(end),
                          [&](OpId op) { return !isDrawnOnReader(m_graph, op); }));
    }

    void cut(std::size_t begin, std::size_t end, std::vector<FoldRun>& sections) const {
        std::size_t left = shown(begin, end);
        while (left > kMostShown) {
            const std::size_t at = bestCut(begin, end);
            sections.push_back({begin, at - begin, 1, 0, false});
            left -= shown(begin, at);
            begin = at;
        }
        if (left >= kLeastShown) sections.push_back({begin, end - begin, 1, 0, false});
    }

private:
    /// Of each position, how many tensors are made before it and read at it or later.
    std::vector<std::size_t> tensorsAcross() const {
        std::vector<std::ptrdiff_t> change(m_folding.order.size() + 2, 0);
        for (const Tensor& tensor : m_graph.tensors()) {
            const std::size_t made = m_folding.position[tensor.producer];
            std::size_t last = made;
            for (const auto& use :
                 m_graph.uses(m_graph.op(tensor.producer).outputs[tensor.producerPort]))
                last = std::max(last, m_folding.position[use.op]);
            ++change[made + 1];
            --change[last + 1];
        }
        std::vector<std::size_t> across(m_folding.order.size() + 1, 0);
        std::ptrdiff_t now = 0;
        for (std::size_t p = 0; p < across.size(); ++p) {
            now += change[p];
            across[p] = static_cast<std::size_t>(now);
        }
        return across;
    }

    /// Where the first section ends: in the second half of what it may hold, at the last place with
    /// the fewest tensors across.
    std::size_t bestCut(std::size_t begin, std::size_t end) const {
        std::size_t best = end, held = 0;
        for (std::size_t p = begin; p < end && held < kMostShown; ++p) {
            if (isDrawnOnReader(m_graph, m_folding.order[p])) continue;
            ++held;
            if (held < kMostShown / 2) continue;
            if (best == end || m_crossing[p + 1] <= m_crossing[best]) best = p + 1;
        }
        return best;
    }

    const Graph& m_graph;
    const Folding& m_folding;
    std::vector<std::size_t> m_crossing;
};

} // namespace

bool isDrawnOnReader(const Graph& graph, OpId id) {
    const Op& op = graph.op(id);
    if (op.kind != OpKind::Parameter && op.kind != OpKind::Constant) return false;
    return std::ranges::any_of(op.outputs,
                               [&](TensorId tensor) { return !graph.uses(tensor).empty(); });
}

Folding withSections(const Graph& graph, Folding folding, std::size_t most) {
    const Cutter cutter(graph, folding);
    std::vector<FoldRun> groups;
    std::size_t loose = 0, begin = 0;
    const auto stretch = [&](std::size_t end) {
        loose += cutter.shown(begin, end);
        cutter.cut(begin, end, groups);
    };
    for (const FoldRun& run : folding.runs) {
        stretch(run.first);
        groups.push_back(run);
        begin = run.end();
    }
    stretch(folding.order.size());
    if (loose <= most) return folding;
    folding.runs = std::move(groups);
    assignClasses(folding);
    return folding;
}

} // namespace shardlens
