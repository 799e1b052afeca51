// SPDX-License-Identifier: Apache-2.0
// What one step of a graph computes, and what whole and sharded runs have in common: where
// gradients begin, and the optimizer.
#pragma once

#include "core/execute/feeds.h"
#include "core/execute/kernel.h"

namespace shardlens {

/// Everything a step makes, by tensor; an Array that is empty() was not made.
struct StepValues {
    std::vector<Array> values;     ///< of every tensor
    std::vector<Array> gradients;  ///< training: of every tensor that has one
    std::map<OpId, Array> updated; ///< training: parameters after one optimizer step
};

/// Runs the graph on one device: forward, and in training backward and one optimizer step.
/// @throws Error naming an op that has no kernel
StepValues runWhole(const Graph& graph, const Feeds& feeds, bool training);

/// The gradient that enters at output number `output` of the graph: 1 at a scalar, else made up
/// from the element's place. empty() where the output cannot have one.
Array seedGradient(const Graph& graph, std::size_t output);

/// The kernel of an op. What is opaque has a stand-in, a fixed linear map of its operands.
const Kernel& executableKernel(const Graph& graph, OpId id);

/// Takes what a forward kernel keeps for its backward kernel from behind the op's `count` results.
Arrays keptBehind(Arrays& results, std::size_t count);

/// One step of Adam from zero moments (Kingma and Ba, 2015), elementwise: p -= rate * m / (sqrt(v)
/// + epsilon) with bias-corrected m = g, v = g * g. @pre equal sizes
void adamStep(Array& parameter, const Array& gradient);

} // namespace shardlens
