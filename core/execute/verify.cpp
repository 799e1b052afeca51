// SPDX-License-Identifier: Apache-2.0
// Compares the whole run with the sharded one, and what ran with what was predicted.
#include "core/execute/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace shardlens {

namespace {

double largestOf(const Array& array) {
    double largest = 0;
    for (const double x : array.reals)
        if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
    return largest;
}

/// Relative to the largest element, or to `floor` if that is more; infinite where one is a number
/// and the other is not.
double relativeDifference(const Array& whole, const Array& sharded, double floor) {
    if (whole.shape != sharded.shape || whole.integral != sharded.integral ||
        whole.ints != sharded.ints)
        return INFINITY;
    const double scale = std::max(largestOf(whole), floor);
    double worst = 0;
    for (std::size_t i = 0; i < whole.reals.size(); ++i) {
        const double a = whole.reals[i], b = sharded.reals[i];
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        const double difference = std::abs(a - b);
        if (!std::isfinite(difference)) return INFINITY;
        worst = std::max(worst, scale > 0 ? difference / scale : difference);
    }
    return worst;
}

class Comparison {
public:
    explicit Comparison(const Plan& plan, Verification& result)
        : m_plan(plan), m_graph(plan.context->pricing->graph()), m_result(result) {}

    void compare(const StepValues& whole, const StepValues& sharded) {
        // Where terms cancel to nothing what remains is the rounding of the terms: gradients are
        // compared down to that of the largest.
        constexpr double kNoise = 1e-5;
        double largest = 0;
        for (const Array& gradient : whole.gradients)
            largest = std::max(largest, largestOf(gradient));
        for (TensorId id = 0; id < m_graph.tensors().size(); ++id) {
            const std::string& name = m_graph.tensor(id).name;
            compare(whole.values[id], sharded.values[id], "value", name, 0);
            compare(whole.gradients[id], sharded.gradients[id], "gradient", name, kNoise * largest);
        }
        for (const auto& [op, value] : whole.updated) {
            const auto found = sharded.updated.find(op);
            compare(value, found == sharded.updated.end() ? Array{} : found->second,
                    "updated value", m_graph.op(op).name, 0);
        }
    }

    void compareCollectives(const std::vector<RanCollective>& ran) {
        std::vector<Line> predictedLines, ranLines;
        for (const PlannedCollective& c : m_plan.collectives)
            predictedLines.push_back({c.phase, c.tensor, c.from, c.to, c.step});
        for (const RanCollective& c : ran)
            ranLines.push_back({c.phase, c.tensor, c.from, c.to, c.step});
        std::ranges::sort(predictedLines, before);
        std::ranges::sort(ranLines, before);
        auto p = predictedLines.begin();
        auto r = ranLines.begin();
        while (p != predictedLines.end() || r != ranLines.end()) {
            if (p != predictedLines.end() && r != ranLines.end() && same(*p, *r)) {
                ++p;
                ++r;
            } else if (r == ranLines.end() || (p != predictedLines.end() && before(*p, *r))) {
                m_result.mismatches.push_back("predicted but did not run: " + describe(*p++));
            } else {
                m_result.mismatches.push_back("ran but was not predicted: " + describe(*r++));
            }
        }
    }

private:
    struct Line {
        Phase phase;
        TensorId tensor;
        OpId from, to;
        CollectiveStep step;
    };

    /// Where both runs have the gradient. A gradient that is zero because no reader returns one is
    /// made by sharded runs only.
    void compare(const Array& whole, const Array& sharded, const char* what,
                 const std::string& name, double floor) {
        if (whole.empty() && (sharded.empty() || largestOf(sharded) == 0)) return;
        ++m_result.tensors;
        const double difference = relativeDifference(whole, sharded, floor);
        if (difference <= m_result.difference) return;
        m_result.difference = difference;
        m_result.worst = fmt::format("{} of {}", what, name);
    }

    static auto key(const Line& line) {
        return std::tuple(line.phase, line.tensor, line.from, line.to, line.step.kind,
                          line.step.axis);
    }
    static bool before(const Line& a, const Line& b) {
        const auto ka = key(a), kb = key(b);
        return ka != kb ? ka < kb : a.step.bytes < b.step.bytes && !sameBytes(a, b);
    }
    static bool sameBytes(const Line& a, const Line& b) {
        constexpr double kRounding = 1e-9;
        return std::abs(a.step.bytes - b.step.bytes) <=
               kRounding * std::max(a.step.bytes, b.step.bytes);
    }
    static bool same(const Line& a, const Line& b) { return key(a) == key(b) && sameBytes(a, b); }

    std::string describe(const Line& line) const {
        const std::string what =
            line.tensor == kNoTensor ? "statistics" : m_graph.tensor(line.tensor).name;
        const std::string to = line.to == kNoOp ? "its hand-over" : m_graph.op(line.to).name;
        return fmt::format("{} over {} of {} bytes: {} of {} for {}, {}", nameOf(line.step.kind),
                           m_plan.context->mesh.axes[line.step.axis].name, line.step.bytes, what,
                           m_graph.op(line.from).name, to, nameOf(line.phase));
    }

    const Plan& m_plan;
    const Graph& m_graph;
    Verification& m_result;
};

} // namespace

Verification verify(const Plan& plan, const Feeds& feeds) {
    const Pricing& pricing = *plan.context->pricing;
    const StepValues whole = runWhole(pricing.graph(), feeds, pricing.training());
    ShardedRun sharded = runSharded(plan, feeds);
    Verification result;
    Comparison comparison(plan, result);
    comparison.compare(whole, sharded.step);
    comparison.compareCollectives(sharded.collectives);
    if (sharded.replicaDifference > result.difference) {
        result.difference = sharded.replicaDifference;
        result.worst = "copies that should be equal";
    }
    result.collectives = std::move(sharded.collectives);
    return result;
}

Verification verify(const Plan& plan, std::uint64_t seed) {
    return verify(plan, makeFeeds(plan.context->pricing->graph(), seed));
}

Decisions randomDecisions(const Pricing& pricing, std::mt19937_64& random) {
    const Graph& graph = pricing.graph();
    const auto pick = [&](const auto& from) { return from[random() % from.size()]; };
    Decisions decisions;
    for (OpId id = 0; id < graph.ops().size(); ++id)
        decisions.op.push_back(pick(pricing.op(id).choices));
    decisions.handover.resize(graph.tensors().size());
    for (TensorId id = 0; id < graph.tensors().size(); ++id) {
        decisions.hasHandover.push_back(pricing.hasHandover(id));
        if (pricing.hasHandover(id)) decisions.handover[id] = pick(pricing.handover(id).layouts);
    }
    return decisions;
}

} // namespace shardlens
