// SPDX-License-Identifier: Apache-2.0
// Rows of the catalogue for mixture-of-experts routing. Tokens are routed inside groups, one group
// per sequence (GShard's G dimension), so that the expert tensor is [E,b,c,h]: cutting b keeps
// routing local, cutting E is expert parallelism, and b -> E on one axis is the all-to-all.
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
    };
}

} // namespace shardlens::catalogue
