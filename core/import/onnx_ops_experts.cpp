// SPDX-License-Identifier: Apache-2.0
// The fused mixture of experts of com.microsoft: the router's choice, then the experts' products,
// then their second bias, which the gates weigh like the results themselves.
#include "core/import/onnx_translation.h"

#include <algorithm>

namespace shardlens::onnx {

namespace {

bool isOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, name) != names.end();
}

/// Weights [E,in,out]; the newer form of the op has them as [E,out,in].
TensorId expertWeights(Translation& t, std::size_t i, std::int64_t in) {
    t.require(t.rank(i) == 3, "the experts' weights must have three dimensions");
    const Shape shape = t.shape(i);
    return shape[2] == in ? t.transposed(t.input(i), {0, 2, 1}) : t.input(i);
}

/// Operands: tokens, router logits, weights and bias of the first, second and third product.
void experts(Translation& t, std::string_view) {
    const std::string function(t.text("activation_type", "relu"));
    const bool understood = isOneOf(function, {"relu", "gelu", "silu", "identity"}) && !t.has(7) &&
                            t.integer("use_sparse_mixer", 0) == 0 && t.rank(0) >= 2 &&
                            t.rank(1) == 2;
    if (!understood) return t.opaque({t.spec(0)});
    const Shape in = t.shape(0);
    const std::int64_t h = in.back(), rows = t.shape(1)[0];
    const bool flat = in.size() == 2;
    const TensorId x = flat ? t.input(0) : t.reshaped(t.input(0), {rows, h});
    const std::int64_t k = t.integer("k", 1);
    Attributes choice{{"top_k", k}};
    if (t.integer("normalize_routing_weights", 0) != 0) choice.set("normalize", std::int64_t{1});
    const TensorId gates = t.step(OpKind::Gates, std::move(choice), {t.input(1)});
    const TensorId w1 = expertWeights(t, 2, h);
    const std::int64_t width = t.specOf(w1).shape[2];
    std::vector<TensorId> operands{x,
                                   gates,
                                   w1,
                                   expertWeights(t, 4, width),
                                   t.inputOrNone(3),
                                   t.has(6) ? expertWeights(t, 6, h) : kNoTensor};
    while (operands.back() == kNoTensor) operands.pop_back();
    const Attributes attributes{{"function", function}, {"top_k", k}};
    if (flat && !t.has(5)) {
        t.result(OpKind::Experts, attributes, std::move(operands));
        return;
    }
    TensorId y = t.step(OpKind::Experts, attributes, std::move(operands));
    if (t.has(5)) {
        const TensorId bias = t.step(OpKind::MatMul, {}, {gates, t.input(5)});
        const Attributes add{{"function", std::string("add")}};
        if (flat) {
            t.result(OpKind::Elementwise, add, {y, bias});
            return;
        }
        y = t.step(OpKind::Elementwise, add, {y, bias});
    }
    t.result(OpKind::Reshape, {{"shape", in}}, {y});
}

} // namespace

std::vector<Rule> expertRules() {
    return {{"MoE", experts}};
}

} // namespace shardlens::onnx
