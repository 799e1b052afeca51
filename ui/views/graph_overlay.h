// SPDX-License-Identifier: Apache-2.0
// What a plan adds to a scene: how every shown tensor is sharded, which collectives run on which
// edge, what each op costs, where the repeats of a block differ. Built on a worker for the repeats
// that are looked at; the painter only reads it. Labels are placed here too, so that they neither
// cover a box nor each other.
#pragma once

#include "core/plan/plan.h"
#include "ui/views/graph_scene.h"
#include "ui/views/stage_marks.h"

#include <array>

namespace shardlens {

/// One dimension of a tensor: its size on the whole and on a device, and the axes that shard it.
struct DimMark {
    std::int64_t global = 1, local = 1;
    std::vector<std::uint8_t> axes;
};

struct TensorMark {
    std::vector<DimMark> dims;
    std::vector<std::uint8_t> partial; ///< axes over which the value is a partial sum
    bool known = false;                ///< false until a plan says so
};

/// A collective as drawn: equal ones on one place are added up.
struct Lozenge {
    CollectiveKind kind = CollectiveKind::AllReduce;
    std::uint8_t axis = 0;
    Phase phase = Phase::Forward;
    double cost = 0; ///< cost model units
    double bytes = 0;
    std::size_t times = 1;
    QRectF rect; ///< scene coordinates, null while not placed
};

struct ChipMark {
    TensorMark tensor;
    std::vector<Lozenge> collectives;
};

/// A stretch of repeats with the same choices, both ends included.
struct RepeatRange {
    std::size_t first = 0, last = 0;
    friend bool operator==(const RepeatRange&, const RepeatRange&) = default;
};

struct Heat {
    double time = 0; ///< compute, forward and backward
    double communication = 0;
    double memory = 0; ///< bytes a device
};

struct ItemMark {
    TensorMark result;
    QString choice;
    Heat heat;
    bool pinned = false;
    std::vector<Lozenge> own;        ///< collectives of the op's own statistics
    std::vector<ChipMark> chips;     ///< by chip
    std::vector<RepeatRange> ranges; ///< Block, Frame: repeats that chose alike
};

struct EdgeMark {
    TensorMark consumed;
    QRectF label; ///< the shape; null where there is no room
    std::vector<Lozenge> collectives;
};

struct GraphOverlay {
    std::shared_ptr<const GraphScene> scene;
    std::shared_ptr<const Plan> plan; ///< may be null: shapes only
    /// Of the stage that is looked into; its plan is shown then, for the ops it decides.
    std::shared_ptr<const StagePlan> inside;
    int stage = -1;
    std::vector<std::size_t> repeats; ///< by run: the repeat that is looked at
    std::vector<ItemMark> items;      ///< by scene item
    std::vector<EdgeMark> edges;      ///< by scene edge
    Heat most;                        ///< the largest of the shown items
    std::vector<QString> axisNames;
    std::string unit = "s"; ///< of costs
    StageMarks stages;      ///< of the whole job, where one is planned
};

TensorMark markOf(const Shape& shape, const SideLayout& side, const Mesh& mesh);
TensorMark unshardedMark(const Shape& shape);

/// "12 tensors": what a bundle of edges says in place of a shape.
QString bundleText(const SceneEdge& edge);

/// Consecutive repeats of a run whose ops and hand-overs chose alike.
std::vector<RepeatRange> rangesOf(const Plan& plan, std::size_t run);

/// Text of a lozenge: "AR tp 1.2 ms", backward ones with a ◂ in front.
QString lozengeText(const Lozenge& lozenge, const GraphOverlay& overlay);

/// @param repeats by run; missing or too large entries mean the last repeat
/// @param stage of the job, whose own plan is shown in place of `plan`; -1 for none. @throws
/// Cancelled
std::shared_ptr<const GraphOverlay>
buildOverlay(std::shared_ptr<const GraphScene> scene, std::shared_ptr<const Plan> plan,
             std::vector<std::size_t> repeats, const std::stop_token& stop,
             std::shared_ptr<const PipelinePlan> job = {}, int stage = -1);

/// Finds room for shapes and collectives along the edges.
void placeLabels(GraphOverlay& overlay);

/// A point of a piecewise cubic curve (1 + 3n points), 0 <= t <= 1.
QPointF pointOnCurve(const std::vector<QPointF>& curve, double t);

} // namespace shardlens
