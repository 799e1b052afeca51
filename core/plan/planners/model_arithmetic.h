// SPDX-License-Identifier: Apache-2.0
// Closed forms of the three model families in Alpa's evaluation: parameters and FLOPs, by the
// formulas of its benchmark suites (alpa-projects/alpa, alpa/util.py), so that published plans can
// be priced and published throughputs recomputed without a graph.
#pragma once

#include <vector>

namespace shardlens {

struct TransformerSizes {
    double hidden = 0, layers = 0, vocabulary = 0, sequence = 0;
    double experts = 0;   ///< 0: dense; else every second layer is a mixture
    double mlpFactor = 4; ///< 8 in Alpa's mixtures
};

/// Elements, with biases and norms, the embedding tied to the head.
double parameterCount(const TransformerSizes& sizes);

/// What a training step computes of each matrix product.
enum class Passes { Forward = 24, Train = 72, TrainRecomputed = 96 };

/// f * B * S * H^2 * L * (1 + S / 6H) + 6 * B * S * H * V, with f as in Passes: FLOPs of a dense
/// transformer on `batch` sequences, as Megatron-LM and Alpa count them (hardware FLOPs, full
/// attention).
double transformerFlops(const TransformerSizes& sizes, double batch, Passes passes);

/// Forward FLOPs of one sequence by transformer layer, the head not counted. Each token of a
/// mixture passes two experts.
std::vector<double> layerFlops(const TransformerSizes& sizes);
/// Forward FLOPs of the head of one sequence.
double headFlops(const TransformerSizes& sizes);

struct WideResNetSizes {
    int depth = 50; ///< 50 or 101
    double base = 64, width = 1;
    double pixels = 224, classes = 1024;
};

/// Forward FLOPs of one image by residual block: 16 for depth 50, 33 for 101. The stem is in the
/// first, the classifier in the last. @throws PlanError for another depth
std::vector<double> blockFlops(const WideResNetSizes& sizes);

} // namespace shardlens
