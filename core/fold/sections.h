// SPDX-License-Identifier: Apache-2.0
// The page a folded graph is shown on. What lies between the runs of a large graph (optimizer,
// gradient norms, the ends of an unrolled loop) can be a thousand ops; they are put into sections,
// contiguous stretches of the folded order that are shown as one box each and opened like a run.
// Since every group of the page is a stretch of one topological order, the page has no cycle.
#pragma once

#include "core/fold/folding.h"

namespace shardlens {

/// Ops outside every run that a page may show one by one, sources that are drawn on their readers
/// (parameters, constants) not counted.
inline constexpr std::size_t kMostLooseOps = 150;

/// The folding with its loose ops in sections if there are more than `most` of them, else as it is.
/// A section is a FoldRun of one block: nothing about costs changes. A long stretch is cut where
/// the fewest tensors cross.
Folding withSections(const Graph& graph, Folding folding, std::size_t most = kMostLooseOps);

/// Whether an op is drawn on its reader and needs no box: a parameter or constant that is read.
bool isDrawnOnReader(const Graph& graph, OpId op);

} // namespace shardlens
