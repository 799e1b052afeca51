// SPDX-License-Identifier: Apache-2.0
// What a model holds, before any planning: counts, work, repeats, and what was not understood.
#pragma once

#include "core/plan/model_bundle.h"

#include <map>
#include <string>
#include <vector>

namespace shardlens {

struct ModelSummary {
    /// Equal ops: at one place of a repeated block, or a single op outside every run.
    struct Class {
        std::string name; ///< of the first member
        std::string kind;
        std::size_t multiplicity = 1;
        int run = -1; ///< index into `runs`, -1 outside
        TensorSpec result;
        double forwardFlops = 0; ///< of one member
    };
    struct Run {
        std::size_t count = 0;  ///< blocks
        std::size_t period = 0; ///< ops of one block
        std::string first;      ///< name of the first op of the first block
    };
    struct OpaqueOp {
        std::string name, type;
    };

    std::string name, format;
    std::map<std::string, std::int64_t> bindings; ///< symbolic dimensions and the values used
    std::map<std::string, std::string> facts;     ///< counts the importer took from the source
    std::size_t sourceOps = 0;                    ///< before shape arithmetic was removed
    std::size_t ops = 0;
    std::map<std::string, std::size_t> kinds; ///< ops by kind
    double parameters = 0;                    ///< elements, each parameter once
    double parameterBytes = 0;
    double forwardFlops = 0;  ///< of the whole batch; multiply and add are 2
    bool trainStep = false;   ///< the graph has its backward pass: forwardFlops is the whole step
    bool onOneDevice = false; ///< the graph is one device's program
    std::string partition;    ///< what the file says of devices; empty if nothing
    std::vector<Class> classes;
    std::vector<Run> runs;
    std::vector<OpaqueOp> opaque;
    std::vector<std::string> warnings;
};

ModelSummary summarise(const ModelBundle& bundle);

std::string toJson(const ModelSummary& summary);
std::string toText(const ModelSummary& summary); ///< for the terminal

} // namespace shardlens
