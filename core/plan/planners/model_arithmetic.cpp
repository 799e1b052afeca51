// SPDX-License-Identifier: Apache-2.0
// See model_arithmetic.h.
#include "core/plan/planners/model_arithmetic.h"

#include "core/error.h"

#include <fmt/format.h>

#include <array>

namespace shardlens {

namespace {

constexpr double kExpertsAToken = 2; // top-2 gating

/// Matrix and bias of a dense layer.
double dense(double in, double out) {
    return in * out + out;
}

double mlpParameters(const TransformerSizes& sizes) {
    const double h = sizes.hidden, f = sizes.mlpFactor * h;
    return dense(h, f) + dense(f, h);
}

/// FLOPs of a convolution with a square kernel on pixels x pixels results.
double convolution(double pixels, double kernel, double in, double out) {
    return 2 * pixels * pixels * kernel * kernel * in * out;
}

bool isMixture(const TransformerSizes& sizes, std::size_t layer) {
    return sizes.experts > 0 && layer % 2 == 1;
}

} // namespace

double parameterCount(const TransformerSizes& sizes) {
    const double h = sizes.hidden;
    const double attention = dense(h, 3 * h) + dense(h, h), norms = 4 * h;
    double sum = sizes.vocabulary * (h + 1);
    for (std::size_t layer = 0; layer < static_cast<std::size_t>(sizes.layers); ++layer)
        sum += attention + norms +
               mlpParameters(sizes) * (isMixture(sizes, layer) ? sizes.experts : 1);
    return sum;
}

double transformerFlops(const TransformerSizes& sizes, double batch, Passes passes) {
    const double tokens = batch * sizes.sequence, h = sizes.hidden;
    return static_cast<double>(passes) * tokens * h * h * sizes.layers *
               (1 + sizes.sequence / (6 * h)) +
           6 * tokens * h * sizes.vocabulary;
}

std::vector<double> layerFlops(const TransformerSizes& sizes) {
    const double h = sizes.hidden, s = sizes.sequence;
    const double attention = 8 * s * h * h + 4 * s * s * h, mlp = 4 * s * h * h * sizes.mlpFactor;
    std::vector<double> flops;
    for (std::size_t layer = 0; layer < static_cast<std::size_t>(sizes.layers); ++layer)
        flops.push_back(attention + mlp * (isMixture(sizes, layer) ? kExpertsAToken : 1));
    return flops;
}

double headFlops(const TransformerSizes& sizes) {
    return 2 * sizes.sequence * sizes.hidden * sizes.vocabulary;
}

std::vector<double> blockFlops(const WideResNetSizes& sizes) {
    if (sizes.depth != 50 && sizes.depth != 101)
        throw PlanError(fmt::format("a Wide-ResNet of depth {} is not known", sizes.depth), {},
                        "50 and 101 are");
    const std::array<int, 4> blocks =
        sizes.depth == 50 ? std::array{3, 4, 6, 3} : std::array{3, 4, 23, 3};
    std::vector<double> flops;
    double pixels = sizes.pixels / 4, in = sizes.base;
    for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
        const double channels = sizes.base * static_cast<double>(1 << stage);
        const double middle = channels * sizes.width, out = channels * 4;
        for (int block = 0; block < blocks[stage]; ++block) {
            double sum = convolution(pixels, 1, in, middle);
            if (block == 0 && stage > 0) pixels /= 2; // the 3 x 3 kernel strides
            sum += convolution(pixels, 3, middle, middle) + convolution(pixels, 1, middle, out);
            if (block == 0) sum += convolution(pixels, 1, in, out); // the shortcut
            flops.push_back(sum);
            in = out;
        }
    }
    flops.front() += convolution(sizes.pixels / 2, 7, 3, sizes.base);
    flops.back() += 2 * in * sizes.classes;
    return flops;
}

} // namespace shardlens
