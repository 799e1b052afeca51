// SPDX-License-Identifier: Apache-2.0
// How long the passes of a pipeline schedule take, stages being unequal and wires slow, without
// running it. Orders are fixed lists, so a schedule is a graph of tasks, and its makespan the
// longest path through it. Each of these figures is the length of one of its paths: never above
// what the event engine (core/schedule) finds, and equal to it where that path is the longest.
//
// With w the forwards of a device before its first backward, its work is interrupted twice at
// least: from its last warm-up forward to the first gradient that comes back from the last stage,
// and from its last forward to that micro-batch's gradient, as in a mirror. What the stages behind
// it take beyond w of its own passes, it waits, and this is what a pipeline costs. So stages behind
// the slowest count twice, and what they are quicker than it is saved twice: a slow stage at the
// end is dearer than one at the beginning.
//
// In between the slowest loop sets the pace: of one device or, in 1F1B, where the next forward
// waits for the backward before it, of neighbours with the wires between them. (Cycles of timed
// event graphs: Baccelli, Cohen, Olsder and Quadrat 1992, "Synchronization and Linearity".)
//
// Where transfers block they are part of the passes that send, and wires take no time.
//
// GPipe is exact. So are 1F1B without wires, ZB-H1 without wires where the stages differ little,
// and interleaved schedules where the last stage is the slowest, which is where the head is; else
// the longest path may change between devices more often than is looked for here.
#pragma once

#include "core/plan/planners/schedule_model.h"

namespace shardlens {

/// Seconds from the first forward to the last gradient. @param prices in pipeline order, not empty
double criticalPath(const ScheduleModel& schedule, const std::vector<StagePrice>& prices,
                    double microBatches);

} // namespace shardlens
