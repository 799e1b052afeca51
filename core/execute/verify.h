// SPDX-License-Identifier: Apache-2.0
// The truth oracle: runs a plan's graph whole and sharded, and says how far they are apart and
// whether the collectives that ran are those that the plan was priced with.
#pragma once

#include "core/execute/sharded_run.h"

#include <random>
#include <string>

namespace shardlens {

struct Verification {
    /// Largest difference over all values, gradients and updated parameters, each relative to the
    /// largest element of its tensor.
    double difference = 0;
    std::string worst;       ///< what differs most: "gradient of layers.0.mlp.up.weight"
    std::size_t tensors = 0; ///< compared
    std::vector<RanCollective> collectives; ///< that rank 0 took part in
    std::vector<std::string> mismatches;    ///< predicted and not run, or run and not predicted

    static constexpr double kTolerance = 1e-9;
    bool agrees() const { return difference <= kTolerance && mismatches.empty(); }
};

/// @throws Error where the plan cuts something unevenly or an op cannot be executed
Verification verify(const Plan& plan, std::uint64_t seed = 1);
/// The same with given values of the sources.
Verification verify(const Plan& plan, const Feeds& feeds);

/// Legal choices taken at random for every op and hand-over. A pinned choice can be set afterwards.
Decisions randomDecisions(const Pricing& pricing, std::mt19937_64& random);

} // namespace shardlens
