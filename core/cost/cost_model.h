// SPDX-License-Identifier: Apache-2.0
// The cost model: turns local work and collectives into time. Two models: `roofline` (seconds, from
// the hardware catalogue and a few named constants, reference costs.md) and `alpa` (Alpa's own
// collective formulas, compute free, planners.md section 3.4), so that its results can be compared.
#pragma once

#include "core/cost/collective.h"
#include "core/model/catalogue.h"

#include <memory>
#include <string>

namespace shardlens {

/// Efficiencies and overheads, the same for every model and cluster (costs.md section 5).
struct CostConstants {
    double gemmEfficiency16 = 0.67; ///< of the matrix peak in long steps (H100 fit)
    double gemmEfficiency8 = 0.60;
    double gemmK0 = 105; ///< contraction length at which efficiency halves
    double attentionEfficiency = 0.38;
    double attentionBackward = 2.5;   ///< FLOPs of the backward over the forward, flash kernels
    double memoryEfficiency = 0.80;   ///< of the memory bandwidth
    double vectorBackward = 1.8;      ///< traffic of the backward over the forward
    double scaleUpEfficiency = 0.76;  ///< of the scale-up link
    double scaleOutEfficiency = 0.65; ///< of the NIC
    double workspaceBytes = 1.0 * 1024 * 1024 * 1024; ///< runtime, communication buffers
};

/// Bytes kept per parameter element, mixed-precision Adam (costs.md section 4).
struct ParameterBytes {
    double value = 2;      ///< working copy
    double gradient = 4;   ///< fp32 accumulation
    double optimizer = 12; ///< fp32 master copy and two moments
};

struct OpTime {
    double forward = 0;
    double backward = 0;
};

class CostModel {
public:
    virtual ~CostModel() = default;
    virtual std::string name() const = 0;
    virtual std::string unit() const = 0; ///< "s", or "Alpa units"
    /// Costs handed to the solver are rounded to multiples of this, so that sums are exact.
    virtual double quantum() const = 0;
    virtual Divisibility divisibility() const = 0;
    virtual ConversionRules conversionRules(const Mesh& mesh) const = 0;
    virtual bool parameterStates() const = 0; ///< offer ZeRO-1/2 choices
    virtual bool regather() const = 0; ///< a stash kept sharded is gathered again in the backward

    /// False: every mesh axis must split a matrix product (Alpa, whose compute is free, never
    /// computes one twice).
    virtual bool replicatedProducts() const = 0;

    /// Local compute of one op whose work is split `shards` ways.
    /// @param reduceShards how many of them cut the contracted factor
    /// @param gradients    operands that need a gradient (0 in inference)
    virtual OpTime compute(const OpWork& work, DType dtype, double shards, double reduceShards,
                           int gradients) const = 0;
    virtual double collective(const CollectiveStep& step, const Mesh& mesh) const = 0;
    virtual ParameterBytes parameterBytes() const = 0;
    virtual double workspaceBytes() const = 0;
};

/// @param constants defaults come from costs.md
std::unique_ptr<CostModel> rooflineModel(const Cluster& cluster, CostConstants constants = {});
/// @param alpha, beta per mesh axis (Alpa's units: beta is time per byte)
std::unique_ptr<CostModel> alpaModel(std::vector<double> alpha, std::vector<double> beta);

} // namespace shardlens
