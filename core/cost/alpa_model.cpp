// SPDX-License-Identifier: Apache-2.0
// Alpa's cost model (OSDI 2022; auto_sharding in its XLA fork): compute is free, a collective costs
// alpha + beta times the bytes a ring moves, plus a constant that orders otherwise equal plans.
// Alpa's C++ rounds the term before that constant to an integer and its Python playground truncates
// it; here it is kept, which changes its published objectives by less than 0.01 %.
#include "core/cost/cost_model.h"
#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shardlens {

namespace {

// Tie-break constants: reduce-scatter before all-reduce before all-gather.
constexpr double kAllGatherTie = 0.1;
constexpr double kAllReduceTie = 0.01;
constexpr double kReduceScatterTie = 0.001;
constexpr double kAllToAllTie = 0.001;

class AlpaModel final : public CostModel {
public:
    AlpaModel(std::vector<double> alpha, std::vector<double> beta)
        : m_alpha(std::move(alpha)), m_beta(std::move(beta)) {}

    std::string name() const override { return "alpa"; }
    std::string unit() const override { return "Alpa units"; }
    double quantum() const override { return 1.0 / 1024; }
    Divisibility divisibility() const override { return Divisibility::AtLeast; }

    /// In its search an op all-reduces its own partial result; reduce-scatter comes with a rewrite
    /// after it, and an all-to-all only where one axis holds all devices.
    ConversionRules conversionRules(const Mesh& mesh) const override {
        const auto wide =
            std::ranges::count_if(mesh.axes, [](const MeshAxis& a) { return a.size > 1; });
        return {.reduceScatter = false, .allToAll = wide <= 1, .reduceFirst = true};
    }

    bool parameterStates() const override { return false; }
    bool regather() const override { return false; }
    bool replicatedProducts() const override { return false; }
    /// fp32 with Adam, as in its tests.
    ParameterBytes parameterBytes() const override {
        return {.value = 4, .gradient = 4, .optimizer = 8};
    }
    double workspaceBytes() const override { return 0; }

    OpTime compute(const OpWork&, DType, double, double, int) const override { return {}; }

    double collective(const CollectiveStep& step, const Mesh& mesh) const override {
        const double n = mesh.axes.at(step.axis).size;
        if (n == 1) return 0;
        const double alpha = perAxis(m_alpha, "alpha", step, mesh);
        const double transfer =
            perAxis(m_beta, "beta", step, mesh) * (n - 1) / n * step.bytes; // one way round
        switch (step.kind) {
        case CollectiveKind::AllReduce:
            return alpha + 2 * transfer + kAllReduceTie;
        case CollectiveKind::AllGather:
            return alpha + transfer + kAllGatherTie;
        case CollectiveKind::ReduceScatter:
            return alpha + transfer + kReduceScatterTie;
        case CollectiveKind::AllToAll: {
            const double penalty = n / 2; // measured by Alpa on V100s with NVLink
            return alpha + transfer / n * penalty + kAllToAllTie;
        }
        }
        return 0;
    }

private:
    static double perAxis(const std::vector<double>& values, std::string_view what,
                          const CollectiveStep& step, const Mesh& mesh) {
        if (step.axis < values.size()) return values[step.axis];
        throw PlanError(fmt::format("the alpa cost model has no {} for mesh axis {}", what,
                                    mesh.axes[step.axis].name),
                        fmt::format("mesh {}", mesh.toString()),
                        fmt::format("give {} values, one for each axis", mesh.axes.size()));
    }

    std::vector<double> m_alpha, m_beta;
};

} // namespace

std::unique_ptr<CostModel> alpaModel(std::vector<double> alpha, std::vector<double> beta) {
    return std::make_unique<AlpaModel>(std::move(alpha), std::move(beta));
}

} // namespace shardlens
