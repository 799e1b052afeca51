// SPDX-License-Identifier: Apache-2.0
// The roofline model: seconds from data sheet rates and the constants of CostConstants. A matrix
// product takes the longer of its arithmetic and its traffic; vector work is traffic; collectives
// are rings on the link of their mesh axis. What it leaves out: tile and wave quantisation,
// overlap, host overhead, and that an operand which a cut does not shrink is read whole by every
// device.
#include "core/cost/cost_model.h"

#include <algorithm>
#include <utility>

namespace shardlens {

namespace {

constexpr double kPicosecond = 1e-12;
constexpr int kProductOperands = 2; // a third operand is a bias: its gradient is a sum, no product

class RooflineModel final : public CostModel {
public:
    RooflineModel(Device device, const CostConstants& constants)
        : m_device(std::move(device)), m_constants(constants) {}

    std::string name() const override { return "roofline"; }
    std::string unit() const override { return "s"; }
    double quantum() const override { return kPicosecond; }
    Divisibility divisibility() const override { return Divisibility::Even; }
    ConversionRules conversionRules(const Mesh&) const override { return {}; }
    bool parameterStates() const override { return true; }
    bool regather() const override { return true; }
    bool replicatedProducts() const override { return true; }
    ParameterBytes parameterBytes() const override { return {}; }
    double workspaceBytes() const override { return m_constants.workspaceBytes; }

    OpTime compute(const OpWork& work, DType dtype, double shards, double reduceShards,
                   int gradients) const override {
        switch (work.compute) {
        case ComputeClass::None:
            return {};
        case ComputeClass::Contraction: {
            // One more product of the same FLOPs per operand that needs a gradient. Those
            // contract other dimensions; that their K differs is not modelled.
            const double forward = contractionSeconds(work, dtype, shards, reduceShards);
            return {forward, std::min(gradients, kProductOperands) * forward};
        }
        case ComputeClass::Attention: {
            const double forward = attentionSeconds(work, dtype, shards);
            return {forward, gradients > 0 ? m_constants.attentionBackward * forward : 0};
        }
        case ComputeClass::Vector: {
            const double forward = trafficSeconds(work, shards);
            return {forward, gradients > 0 ? m_constants.vectorBackward * forward : 0};
        }
        }
        return {};
    }

    double collective(const CollectiveStep& step, const Mesh& mesh) const override {
        const MeshAxis& axis = mesh.axes.at(step.axis);
        Link link = axis.link;
        link.bandwidth *=
            axis.crossesNodes ? m_constants.scaleOutEfficiency : m_constants.scaleUpEfficiency;
        switch (step.kind) {
        case CollectiveKind::AllReduce:
            return ringAllReduceSeconds(axis.size, step.bytes, link);
        case CollectiveKind::AllGather:
            return ringAllGatherSeconds(axis.size, step.bytes, link);
        case CollectiveKind::ReduceScatter:
            return ringReduceScatterSeconds(axis.size, step.bytes, link);
        case CollectiveKind::AllToAll:
            return ringAllToAllSeconds(axis.size, step.bytes, link);
        }
        return 0;
    }

private:
    double trafficSeconds(const OpWork& work, double shards) const {
        return work.bytes / shards / (m_device.memoryBandwidth * m_constants.memoryEfficiency);
    }

    double contractionSeconds(const OpWork& work, DType dtype, double shards,
                              double reduceShards) const {
        const bool narrow = bitsOf(dtype) > 0 && bitsOf(dtype) <= 8;
        const double efficiency =
            narrow ? m_constants.gemmEfficiency8 : m_constants.gemmEfficiency16;
        const double localK = std::max(work.reduceSize / reduceShards, 1.0);
        const double arithmetic = work.flops / shards / (m_device.matrixFlops(dtype) * efficiency) *
                                  (1 + m_constants.gemmK0 / localK);
        return std::max(arithmetic, trafficSeconds(work, shards));
    }

    /// Attention kernels run in 16 bits even where the products around them run in 8.
    double attentionSeconds(const OpWork& work, DType dtype, double shards) const {
        const double peak =
            bitsOf(dtype) > 16 ? m_device.matrixFlops(dtype) : m_device.matrixFlops16;
        const double arithmetic = work.flops / shards / (peak * m_constants.attentionEfficiency);
        return std::max(arithmetic, trafficSeconds(work, shards));
    }

    Device m_device;
    CostConstants m_constants;
};

} // namespace

std::unique_ptr<CostModel> rooflineModel(const Cluster& cluster, CostConstants constants) {
    return std::make_unique<RooflineModel>(cluster.device, constants);
}

} // namespace shardlens
