// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters by element and by index vector, one-hot, triangles, reversed sequences.
#include "core/import/onnx_tensor.h"
#include "core/import/onnx_translation.h"

namespace shardlens::onnx {

namespace {

void gatherElements(Translation& t, std::string_view) {
    t.result(OpKind::GatherElements, {{"axis", t.axis(t.integer("axis", 0), t.rank(0))}},
             {t.input(0), t.input(1)});
}

void gatherNd(Translation& t, std::string_view) {
    Attributes attributes;
    if (const std::int64_t batch = t.integer("batch_dims", 0); batch != 0)
        attributes.set("batch_dims", batch);
    t.result(OpKind::GatherND, std::move(attributes), {t.input(0), t.input(1)});
}

Attributes scatterOf(const Translation& t, std::string_view mode) {
    Attributes attributes{{"mode", std::string(mode)}};
    if (const std::string reduction(t.text("reduction", "none")); reduction != "none")
        attributes.set("reduction", reduction);
    return attributes;
}

void scatterElements(Translation& t, std::string_view mode) {
    Attributes attributes = scatterOf(t, mode);
    attributes.set("axis", t.axis(t.integer("axis", 0), t.rank(0)));
    t.result(OpKind::Scatter, std::move(attributes), {t.input(0), t.input(1), t.input(2)});
}

void scatterNd(Translation& t, std::string_view mode) {
    t.result(OpKind::Scatter, scatterOf(t, mode), {t.input(0), t.input(1), t.input(2)});
}

/// Opset 24: cache, updates, where each batch entry is written (absent: at 0).
void tensorScatter(Translation& t, std::string_view mode) {
    const std::int64_t axis = t.axis(t.integer("axis", -2), t.rank(0));
    t.require(axis != 0, "a cache is not written along its batch dimension");
    Attributes attributes{{"mode", std::string(mode)}, {"axis", axis}};
    if (t.text("mode", "linear") == "circular") attributes.set("circular", std::int64_t{1});
    t.result(OpKind::Scatter, std::move(attributes), {t.input(0), t.inputOrNone(2), t.input(1)});
}

/// The depth is a number of any type.
std::optional<std::int64_t> depthOf(const Translation& t) {
    if (const auto depth = t.scalar(1)) return depth;
    const auto* depth = t.floats(1);
    if (depth == nullptr || depth->size() != 1) return std::nullopt;
    const bool fits = depth->front() >= 0 && depth->front() <= static_cast<double>(kMaxDim);
    return fits ? std::optional(static_cast<std::int64_t>(depth->front())) : std::nullopt;
}

void oneHot(Translation& t, std::string_view) {
    const auto depth = depthOf(t);
    if (!depth) return t.opaque();
    t.require(*depth >= 0 && *depth <= kMaxDim, "the depth is out of range");
    t.result(OpKind::OneHot,
             {{"axis", t.axis(t.integer("axis", -1), t.rank(0) + 1)}, {"depth", *depth}},
             {t.input(0), t.input(2)});
}

void triangle(Translation& t, std::string_view) {
    const auto diagonal = t.has(1) ? t.scalar(1) : std::optional<std::int64_t>(0);
    if (!diagonal) return t.opaque({t.spec(0)});
    t.result(OpKind::Trilu,
             {{"upper", std::int64_t{t.integer("upper", 1) != 0}}, {"diagonal", *diagonal}},
             {t.input(0)});
}

void reverseSequence(Translation& t, std::string_view) {
    t.result(OpKind::ReverseSequence,
             {{"batch_axis", t.axis(t.integer("batch_axis", 1), t.rank(0))},
              {"time_axis", t.axis(t.integer("time_axis", 0), t.rank(0))}},
             {t.input(0), t.input(1)});
}

} // namespace

std::vector<Rule> indexingRules() {
    return {
        {"GatherElements", gatherElements},
        {"GatherND", gatherNd},
        {"ScatterElements", scatterElements, "elements"},
        {"Scatter", scatterElements, "elements"},
        {"ScatterND", scatterNd, "nd"},
        {"TensorScatter", tensorScatter, "cache"},
        {"OneHot", oneHot},
        {"Trilu", triangle},
        {"ReverseSequence", reverseSequence},
    };
}

} // namespace shardlens::onnx
