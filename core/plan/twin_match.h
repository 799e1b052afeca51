// SPDX-License-Identifier: Apache-2.0
// Reads the plan that a partitioned program follows, by comparing the program of one device with
// the same model whole: how the shape of each tensor differs says along which dimension it is cut,
// and one choice of its op explains the shapes of all its operands and results. The result is a
// plan like any other: it can be priced, drawn, and laid beside the optimum.
// Comparing a parallel program with its sequential twin is the approach of Entangle (NYU), which
// proves such pairs equal.
#pragma once

#include "core/plan/plan.h"

#include <string>
#include <vector>

namespace shardlens {

/// How often a kind of collective occurs in the forward pass.
struct TwinCollectives {
    CollectiveKind kind = CollectiveKind::AllReduce;
    std::size_t local = 0; ///< in the local program
    std::size_t plan = 0;  ///< in the plan, as evaluate() lists it
};

struct TwinPlan {
    Plan
        plan; ///< on the whole graph and a mesh of one axis "tp"; madeBy says what it was read from
    std::int64_t devices = 1;
    /// "tensor parallel 2, sequence parallel, vocabulary parallel"; empty if nothing is cut.
    std::string recognised;
    std::vector<TwinCollectives> collectives; ///< of the kinds that occur, in the order of the enum
    std::vector<std::string>
        unexplained; ///< collectives that only one of both has, one sentence each
    std::vector<std::string> mismatches; ///< what could not be matched or is no legal choice
    /// A rank's part of a sum that something uses as if it were whole: the program is wrong there.
    std::vector<std::string> unreduced;
    std::vector<std::string> localOnly; ///< ops that only the parts need
    std::size_t matched = 0;            ///< ops of the whole graph with a counterpart
};

/// @param whole,local as they were read; one tensor-parallel axis lies between them
/// @throws InputError when nothing corresponds, or sizes differ by no common factor
TwinPlan readTwinPlan(const Graph& whole, const Graph& local, Mode mode = Mode::Train);

std::string toText(const TwinPlan& twin);
std::string toJson(const TwinPlan& twin);

} // namespace shardlens
