// SPDX-License-Identifier: Apache-2.0
// See stage_marks.h.
#include "ui/views/stage_marks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace shardlens {

namespace {

constexpr double kOverhang = 14; ///< of a line beyond what it cuts

class Marker {
public:
    Marker(const GraphScene& scene, StageMarks& marks)
        : m_scene(scene), m_marks(marks), m_units(marks.plan->units.units) {
        for (std::size_t i = 0; i < scene.items.size(); ++i) {
            const SceneItem& item = scene.items[i];
            if (item.kind == ItemKind::Block || item.kind == ItemKind::Frame)
                m_itemOfRun[item.run] = static_cast<int>(i);
        }
    }

    void run() {
        m_marks.bands.resize(m_scene.items.size());
        findSlots();
        std::vector<QRectF> extents;
        for (std::size_t u = 0; u < m_units.size(); ++u) extents.push_back(extentOf(u));
        m_marks.places.resize(m_units.size());
        for (std::size_t u = 1; u < m_units.size(); ++u) {
            QLineF& place = m_marks.places[u];
            place = between(extents[u - 1], extents[u]);
            // A frame shows one block of its run: a line across would cut the wrong thing.
            if (isInsideFrame(u)) place.setP2(place.p1() + QPointF(2 * kOverhang, 0));
        }
        for (const VirtualStage& piece : m_marks.plan->virtualStages) addBands(piece);
    }

private:
    /// Place of a unit among those that one box stands for; -1 for units shown op by op.
    struct Slot {
        int box = -1, index = 0;
    };

    bool isSource(OpId op) const { return m_scene.graph->op(op).inputs.empty(); }

    /// A folded box stands for all units inside; so does the frame of an opened run, as it shows
    /// only one of its blocks.
    int boxOf(const StageUnit& unit) const {
        const auto op = std::ranges::find_if_not(unit.ops, [&](OpId id) { return isSource(id); });
        if (op == unit.ops.end()) return -1;
        const int run = m_scene.folding->classes[m_scene.folding->classOf[*op]].run;
        const auto found = m_itemOfRun.find(run);
        if (run < 0 || found == m_itemOfRun.end()) return -1;
        const bool folded =
            m_scene.items[static_cast<std::size_t>(found->second)].kind == ItemKind::Block;
        const bool repeats = m_scene.folding->runs[static_cast<std::size_t>(run)].count > 1;
        return folded || repeats ? found->second : -1;
    }

    void findSlots() {
        for (const StageUnit& unit : m_units) {
            const int box = boxOf(unit);
            m_slots.push_back({box, box < 0 ? 0 : m_slotCount[box]++});
        }
    }

    bool isInsideFrame(std::size_t u) const {
        const int box = m_slots[u].box;
        return box >= 0 && box == m_slots[u - 1].box &&
               m_scene.items[static_cast<std::size_t>(box)].kind == ItemKind::Frame;
    }

    QRectF slotRect(const Slot& slot) const {
        const SceneItem& item = m_scene.items[static_cast<std::size_t>(slot.box)];
        const QRectF all = stageAreaOf(item);
        const double each = all.height() / m_slotCount.at(slot.box);
        return {all.left(), all.top() + each * slot.index, all.width(), each};
    }

    QRectF extentOf(std::size_t u) const {
        if (m_slots[u].box >= 0) return slotRect(m_slots[u]);
        QRectF extent;
        for (const OpId op : m_units[u].ops) {
            if (isSource(op)) continue; // may be far away
            const int item = m_scene.itemOf(op);
            if (item >= 0) extent |= m_scene.items[static_cast<std::size_t>(item)].rect;
        }
        return extent;
    }

    static QLineF between(const QRectF& before, const QRectF& after) {
        if (before.isNull() || after.isNull()) return {};
        const double y =
            before.bottom() <= after.top() ? (before.bottom() + after.top()) / 2 : after.top();
        return {std::min(before.left(), after.left()) - kOverhang, y,
                std::max(before.right(), after.right()) + kOverhang, y};
    }

    void addBands(const VirtualStage& piece) {
        for (int unit = piece.first; unit <= piece.last; ++unit) {
            const auto u = static_cast<std::size_t>(unit);
            const Slot& slot = m_slots[u];
            if (slot.box >= 0) extend(slot.box, piece, slotRect(slot));
            for (const OpId op : m_units[u].ops) {
                const int item = m_scene.itemOfOp[op]; // none for repeats that are not shown
                if (item >= 0 && item != slot.box && !isSource(op))
                    extend(item, piece, m_scene.items[static_cast<std::size_t>(item)].rect);
            }
        }
    }

    void extend(int item, const VirtualStage& piece, const QRectF& rect) {
        auto& bands = m_marks.bands[static_cast<std::size_t>(item)];
        if (!bands.empty() && bands.back().stage == piece.stage &&
            bands.back().chunk == piece.chunk)
            bands.back().rect |= rect;
        else
            bands.push_back({piece.stage, piece.chunk, rect});
    }

    const GraphScene& m_scene;
    StageMarks& m_marks;
    const std::vector<StageUnit>& m_units;
    std::map<int, int> m_itemOfRun;
    std::vector<Slot> m_slots; ///< by unit
    std::map<int, int> m_slotCount;
};

template <typename Wanted>
std::vector<int> firstUnits(const PipelinePlan* plan, Wanted wanted) {
    std::vector<int> list;
    if (!plan) return list;
    for (const VirtualStage& piece : plan->virtualStages)
        if (piece.last >= piece.first && piece.first > 0 && wanted(piece))
            list.push_back(piece.first);
    return list;
}

} // namespace

std::vector<int> StageMarks::boundaries() const {
    return firstUnits(plan.get(), [](const VirtualStage& piece) { return piece.stage > 0; });
}

std::vector<int> StageMarks::chunkStarts() const {
    return firstUnits(
        plan.get(), [](const VirtualStage& piece) { return piece.stage == 0 && piece.chunk > 0; });
}

int StageMarks::nearestPlace(QPointF point) const {
    int best = -1;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t u = 1; u < places.size(); ++u) {
        const QLineF& place = places[u];
        if (place.isNull()) continue;
        const double aside = std::max({place.x1() - point.x(), point.x() - place.x2(), 0.0});
        const double distance = std::abs(place.y1() - point.y()) + aside / 4;
        if (distance < least) {
            least = distance;
            best = static_cast<int>(u);
        }
    }
    return best;
}

bool StageMarks::holds(std::size_t item, int stage) const {
    return item < bands.size() &&
           std::ranges::any_of(
               bands[item], [stage](const StageBand& band) { return band.stage == stage; });
}

StageMarks stageMarks(const GraphScene& scene, std::shared_ptr<const PipelinePlan> plan) {
    StageMarks marks;
    if (!plan || plan->graph != scene.graph) return marks;
    marks.plan = std::move(plan);
    Marker(scene, marks).run();
    return marks;
}

} // namespace shardlens
