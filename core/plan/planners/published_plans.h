// SPDX-License-Identifier: Apache-2.0
// The plans that Alpa published for the models of its evaluation: read from
// resources/plans/alpa-osdi22.csv (embedded), checked, and priced by Alpa's own objective with
// stage costs from FLOPs alone. They are what our planners are laid beside.
#pragma once

#include "core/plan/planners/submesh.h"

#include <string>
#include <string_view>
#include <vector>

namespace shardlens {

struct PublishedStage {
    int layers = 0; ///< of Alpa's layers (clusters of ops), in order
    Submesh physical;
    LogicalShape logical;
};

struct PublishedPlan {
    std::string family; ///< "gpt", "moe", "wrn"
    std::string name;   ///< "39B"
    double hidden = 0;  ///< base channels of a Wide-ResNet
    int size = 0;       ///< transformer layers, or depth of a Wide-ResNet
    int experts = 0;
    double width = 0; ///< width factor of a Wide-ResNet
    double vocabulary = 0, sequence = 0;
    int batch = 0, devices = 0, microBatches = 0;
    std::vector<PublishedStage> stages;

    int layers() const; ///< of Alpa's, all stages together
};

/// @throws InputError naming the row: a number that is none, a list that fits no other
std::vector<PublishedPlan> parsePublishedPlans(std::string_view csv);
/// The 21 plans of the paper.
const std::vector<PublishedPlan>& alpaPlans();

/// What is wrong with a plan, one sentence each; empty if nothing: stages hold all layers, devices
/// add up to the cluster and tile hosts of `devicesPerHost`, the logical mesh has as many devices
/// as the physical one, micro-batches divide the batch and data axes divide the micro-batch.
std::vector<std::string> problemsOf(const PublishedPlan& plan, int devicesPerHost = 8);

/// Forward FLOPs of one sample by Alpa's layers: equal numbers of transformer layers or residual
/// blocks, head and classifier in the last.
std::vector<double> workOf(const PublishedPlan& plan);

struct PublishedPrice {
    double seconds = 0; ///< a step, by Alpa's objective
    std::vector<double> stageSeconds;
    double flops = 0; ///< of a step, all devices, as Alpa counts them
    double petaflops() const { return flops / seconds / 1e15; }
};

/// @param deviceFlops FLOP/s that a device attains
PublishedPrice priceOf(const PublishedPlan& plan, double deviceFlops);

} // namespace shardlens
