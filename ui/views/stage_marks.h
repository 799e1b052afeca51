// SPDX-License-Identifier: Apache-2.0
// Where the stages of a whole job are in a scene: which stage an item belongs to, and where along
// the flow a stage may begin. A folded run of n equal blocks is one box, so that its block i is the
// part from i/n to (i+1)/n of its height; an opened run likewise, as it shows one of its blocks. An
// interleaved plan has each stage in several places, its chunks (core/plan's virtual_stages.h).
#pragma once

#include "core/plan/pipeline_service.h"
#include "ui/views/graph_scene.h"

#include <QLineF>

namespace shardlens {

/// A part of an item that one chunk of a stage computes.
struct StageBand {
    int stage = -1, chunk = 0;
    QRectF rect; ///< scene coordinates, inside the item
};

struct StageMarks {
    std::shared_ptr<const PipelinePlan> plan;
    std::vector<std::vector<StageBand>> bands; ///< by item; empty for what no stage computes
    /// By unit: the line across the flow where a stage that begins with it begins, scene
    /// coordinates, from left to right. Null for unit 0 and for units that are not shown.
    std::vector<QLineF> places;

    /// First units of all chunks of all stages but the first: boundaries that can be moved.
    std::vector<int> boundaries() const;
    /// First units of the later chunks of the first stage, which follow from the others.
    std::vector<int> chunkStarts() const;
    /// The unit whose place is nearest to a point, that of the same column first; -1 without any.
    int nearestPlace(QPointF point) const;
    /// Whether an item is computed by a stage, or in part.
    bool holds(std::size_t item, int stage) const;
};

/// @param plan may be null, or of another graph: then there are no marks
StageMarks stageMarks(const GraphScene& scene, std::shared_ptr<const PipelinePlan> plan);

} // namespace shardlens
