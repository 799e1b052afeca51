// SPDX-License-Identifier: Apache-2.0
// Reductions and what works along one axis.
#include "core/import/onnx_translation.h"

#include <numeric>

namespace shardlens::onnx {

namespace {

using Ints = Translation::Ints;

/// Without axes everything is reduced, or nothing if the node says so.
void reduce(Translation& t, std::string_view function) {
    const auto listed = t.listed("axes", 1);
    const std::int64_t keep = t.integer("keepdims", 1) != 0 ? 1 : 0;
    if (!listed.known) return t.opaque();
    Ints axes = t.axes(listed.values.value_or(Ints{}), t.rank(0));
    if (axes.empty()) {
        if (t.integer("noop_with_empty_axes", 0) != 0) return t.alias(t.input(0));
        axes.resize(t.shape(0).size());
        std::iota(axes.begin(), axes.end(), std::int64_t{0});
    }
    if (axes.empty()) return t.alias(t.input(0)); // a scalar
    t.result(OpKind::Reduce,
             {{"function", std::string(function)}, {"axes", std::move(axes)}, {"keepdims", keep}},
             {t.input(0)});
}

void argReduce(Translation& t, std::string_view function) {
    Attributes attributes{{"function", std::string(function)},
                          {"axis", t.axis(t.integer("axis", 0), t.rank(0))},
                          {"keepdims", std::int64_t{t.integer("keepdims", 1) != 0}}};
    if (t.integer("select_last_index", 0) != 0) attributes.set("select_last", std::int64_t{1});
    t.result(OpKind::ArgReduce, std::move(attributes), {t.input(0)});
}

void topK(Translation& t, std::string_view) {
    const std::int64_t axis = t.axis(t.integer("axis", -1), t.rank(0));
    const auto k = t.hasAttribute("k") ? std::optional(t.integer("k", 1)) : t.scalar(1);
    if (!k) return t.opaque();
    t.require(*k >= 0 && *k <= t.shape(0)[static_cast<std::size_t>(axis)],
              "k is larger than the dimension");
    Attributes attributes{{"axis", axis}, {"k", *k}};
    if (t.integer("largest", 1) == 0) attributes.set("largest", std::int64_t{0});
    t.result(OpKind::TopK, std::move(attributes), {t.input(0)});
}

void cumulative(Translation& t, std::string_view function) {
    std::optional<std::int64_t> axis = t.scalar(1);
    if (!axis && t.rank(0) == 1) axis = 0;
    if (!axis) return t.opaque({t.spec(0)});
    Attributes attributes{{"axis", t.axis(*axis, t.rank(0))}};
    for (const std::string_view name : {"exclusive", "reverse"})
        if (t.integer(name, 0) != 0) attributes.set(std::string(name), std::int64_t{1});
    if (!function.empty()) attributes.set("function", std::string(function));
    t.result(OpKind::CumSum, std::move(attributes), {t.input(0)});
}

} // namespace

std::vector<Rule> reductionRules() {
    return {
        {"ReduceSum", reduce, "sum"},
        {"ReduceMean", reduce, "mean"},
        {"ReduceMax", reduce, "max"},
        {"ReduceMin", reduce, "min"},
        {"ReduceProd", reduce, "prod"},
        {"ReduceL1", reduce, "l1"},
        {"ReduceL2", reduce, "l2"},
        {"ReduceSumSquare", reduce, "sumsquare"},
        {"ReduceLogSum", reduce, "logsum"},
        {"ReduceLogSumExp", reduce, "logsumexp"},
        {"ArgMax", argReduce, "argmax"},
        {"ArgMin", argReduce, "argmin"},
        {"TopK", topK},
        {"CumSum", cumulative},
        {"CumProd", cumulative, "prod"},
    };
}

} // namespace shardlens::onnx
