// SPDX-License-Identifier: Apache-2.0
// Rows of the catalogue for mixture-of-experts routing. Tokens are routed inside groups, one group
// per sequence (GShard's G dimension), so that the expert tensor is [E,b,c,h]: cutting b keeps
// routing local, cutting E is expert parallelism, and b -> E on one axis is the all-to-all. Fused
// experts (Gates, Experts) have no capacity: no token is dropped.
#include "core/model/catalogue_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shardlens::catalogue {
namespace {

struct MoeDims {
    std::int64_t b, s, h, experts, capacity;
};

MoeDims dispatchDims(const OpView& view) {
    const Shape &x = shapeOf(view, 0), &scores = shapeOf(view, 1);
    require(x.size() == 3 && scores.size() == 3 && x[0] == scores[0] && x[1] == scores[1], view,
            "dispatch needs tokens [b,s,h] and scores [b,s,E]");
    const auto topK = static_cast<double>(view.op.attributes.integer("top_k", 1));
    const double factor = view.op.attributes.number("capacity_factor", 1.0);
    const double rows = topK * factor * static_cast<double>(x[1]) / static_cast<double>(scores[2]);
    return {x[0], x[1], x[2], scores[2],
            std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(rows)))};
}

std::vector<TensorSpec> dispatchShape(const OpView& view) {
    const MoeDims d = dispatchDims(view);
    return {{view.inputs[0].dtype, {d.experts, d.b, d.capacity, d.h}}};
}

/// Sequence and capacity share the factor that cuts a sequence into smaller routing groups.
struct SequenceFactors {
    DimFactors sequence, capacity;
};

SequenceFactors addSequence(FactorRule& rule, std::int64_t s, std::int64_t c) {
    const std::int64_t groups = std::gcd(s, c);
    SequenceFactors dims;
    const int shared = rule.addFactor("s", groups);
    dims.sequence = {shared};
    dims.capacity = {shared};
    if (s > groups)
        dims.sequence.push_back(rule.addFactor("tokens", s / groups, FactorKind::Replicate));
    if (c > groups)
        dims.capacity.push_back(rule.addFactor("slots", c / groups, FactorKind::Replicate));
    return dims;
}

FactorRule dispatchRule(const OpView& view) {
    const MoeDims d = dispatchDims(view);
    FactorRule rule = emptyRule(view);
    const int b = rule.addFactor("b", d.b);
    const SequenceFactors s = addSequence(rule, d.s, d.capacity);
    const int h = rule.addFactor("h", d.h);
    const int e = rule.addFactor("experts", d.experts);
    const int scores = rule.addFactor("scores", d.experts, FactorKind::Replicate);
    rule.operands[0] = {{b}, s.sequence, {h}};
    rule.operands[1] = {{b}, s.sequence, {scores}};
    rule.results[0] = {{e}, {b}, s.capacity, {h}};
    return rule;
}

std::vector<TensorSpec> combineShape(const OpView& view) {
    const Shape &x = shapeOf(view, 0), &scores = shapeOf(view, 1);
    require(x.size() == 4 && scores.size() == 3 && x[0] == scores[2] && x[1] == scores[0], view,
            "combine needs expert rows [E,b,c,h] and scores [b,s,E]");
    return {{view.inputs[0].dtype, {scores[0], scores[1], x[3]}}};
}

FactorRule combineRule(const OpView& view) {
    const Shape &x = view.inputs[0].shape, &scores = view.inputs[1].shape;
    FactorRule rule = emptyRule(view);
    const int b = rule.addFactor("b", scores[0]);
    const SequenceFactors s = addSequence(rule, scores[1], x[2]);
    const int h = rule.addFactor("h", x[3]);
    const int e = rule.addFactor("experts", x[0], FactorKind::Reduction);
    rule.operands[0] = {{e}, {b}, s.capacity, {h}};
    rule.operands[1] = {{b}, s.sequence, {e}};
    rule.results[0] = {{b}, s.sequence, {h}};
    return rule;
}

// --- experts without capacity: every token reaches the experts it chose ------------------------

std::vector<TensorSpec> gatesShape(const OpView& view) {
    const Shape& logits = shapeOf(view, 0);
    const std::int64_t k = view.op.attributes.integer("top_k", 1);
    require(!logits.empty() && k >= 1 && k <= logits.back(), view,
            "there are fewer experts than a token chooses");
    return {view.inputs[0]};
}

FactorRule gatesRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape& shape = view.inputs[0].shape;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        const bool experts = d + 1 == shape.size();
        const int f = rule.addFactor(experts ? "experts" : fmt::format("t{}", d), shape[d],
                                     experts ? FactorKind::Replicate : FactorKind::Parallel);
        rule.operands[0][d] = rule.results[0][d] = {f};
    }
    return rule;
}

struct ExpertDims {
    Shape tokens;
    std::int64_t h, experts, f;
};

ExpertDims expertDims(const OpView& view) {
    const Shape &x = shapeOf(view, 0), &gates = shapeOf(view, 1), &w1 = shapeOf(view, 2);
    require(!x.empty() && x.size() == gates.size() && w1.size() == 3, view,
            "experts need tokens, gates and weights");
    const ExpertDims d{{x.begin(), x.end() - 1}, x.back(), w1[0], w1[2]};
    require(std::equal(x.begin(), x.end() - 1, gates.begin()) && gates.back() == d.experts &&
                w1[1] == d.h && shapeOf(view, 3) == Shape{d.experts, d.f, d.h},
            view, "tokens, gates and weights of the experts do not fit");
    require(!view.hasInput(4) || view.inputs[4].shape == Shape{d.experts, d.f}, view,
            "the experts' bias does not fit");
    require(!view.hasInput(5) || view.inputs[5].shape == w1, view,
            "the experts' third weights do not fit");
    require(!view.hasInput(6) ||
                (view.hasInput(5) && view.inputs[6].shape == Shape{d.experts, d.f}),
            view, "the experts' third bias does not fit");
    return d;
}

std::vector<TensorSpec> expertsShape(const OpView& view) {
    expertDims(view);
    return {view.inputs[0]};
}

FactorRule expertsRule(const OpView& view) {
    const ExpertDims d = expertDims(view);
    FactorRule rule = emptyRule(view);
    for (std::size_t i = 0; i < d.tokens.size(); ++i)
        rule.operands[0][i] = rule.operands[1][i] =
            rule.results[0][i] = {rule.addFactor(fmt::format("t{}", i), d.tokens[i])};
    const int e = rule.addFactor("experts", d.experts, FactorKind::Reduction);
    const int f = rule.addFactor("f", d.f, FactorKind::Reduction);
    // The first product contracts h before the activation; only the second result could be cut.
    const int h = rule.addFactor("h", d.h, FactorKind::Replicate);
    rule.operands[0].back() = rule.results[0].back() = {h};
    rule.operands[1].back() = {e};
    rule.operands[2] = {{e}, {h}, {f}};
    rule.operands[3] = {{e}, {f}, {h}};
    if (view.hasInput(4)) rule.operands[4] = {{e}, {f}};
    if (view.hasInput(5)) rule.operands[5] = {{e}, {h}, {f}};
    if (view.hasInput(6)) rule.operands[6] = {{e}, {f}};
    return rule;
}

double expertsFlops(const OpView& view, const FactorRule&) {
    const ExpertDims d = expertDims(view);
    const double products = view.hasInput(5) ? 3 : 2;
    return 2 * products * elementsOf(d.tokens) * static_cast<double>(d.h) *
           static_cast<double>(d.f) *
           static_cast<double>(view.op.attributes.integer("top_k", d.experts));
}

SavedTensors saveScores(const OpView& view) {
    SavedTensors saved = saveNothing(view);
    saved.operands[1] = true;
    return saved;
}

double dispatchBytes(const OpView& view, const FactorRule&) {
    return 2 * bytesOf(view.outputs[0]);
}
double combineBytes(const OpView& view, const FactorRule&) {
    return bytesOf(view.inputs[0]) + bytesOf(view.outputs[0]);
}

} // namespace

std::vector<Row> mixtureRows() {
    return {
        {OpKind::MoeDispatch, dispatchShape, dispatchRule, ComputeClass::Vector, nullptr,
         dispatchBytes, saveScores},
        {OpKind::MoeCombine, combineShape, combineRule, ComputeClass::Vector, nullptr, combineBytes,
         saveOperands},
        {OpKind::Gates, gatesShape, gatesRule, ComputeClass::Vector, nullptr, nullptr,
         saveOperands},
        {OpKind::Experts, expertsShape, expertsRule, ComputeClass::Contraction, expertsFlops,
         nullptr, saveOperands},
    };
}

} // namespace shardlens::catalogue
