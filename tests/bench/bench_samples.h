// SPDX-License-Identifier: Apache-2.0
// The choice problems of the sample models; a part of bench_solver.
#pragma once

#include <string>

namespace shardlens::bench {

/// @param resnet      file of ResNet-50; empty: leave it out
/// @param only        part of the names of the models to run
/// @param cbcSeconds  after which CBC is stopped; 0: once it has taken 1,000 times as long as we
/// did
void benchSamples(const std::string& resnet, const std::string& only, int cbcSeconds);

} // namespace shardlens::bench
