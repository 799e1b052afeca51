// SPDX-License-Identifier: Apache-2.0
// The fused mixtures of experts of com.microsoft, MoE and QMoE: the router's choice, then the
// experts' products, then their second bias, which the gates weigh like the results themselves.
// QMoE is MoE with weights of 4 or 8 bits, which are made numbers first. Where the two parts of a
// gated activation lie in one weight, it is taken apart.
#include "core/import/element_functions.h"
#include "core/import/onnx_blocked.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace shardlens::onnx {

namespace {

using Ints = Translation::Ints;

bool isOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, name) != names.end();
}

/// Weights [E,in,out] and bias [E,out] of one of the experts' products.
struct Product {
    TensorId weights = kNoTensor, bias = kNoTensor;
};
using Products = std::array<Product, 3>;

/// Weights as [E,in,out]; the newer form of the op has them as [E,out,in].
TensorId oriented(Translation& t, TensorId weights, std::int64_t in) {
    const Shape shape = t.specOf(weights).shape;
    t.require(shape.size() == 3, "the experts' weights must have three dimensions");
    return shape[2] == in ? t.transposed(weights, {0, 2, 1}) : weights;
}

/// The gate and the linear part of what holds both in its last dimension.
std::pair<TensorId, TensorId> parts(Translation& t, TensorId both, bool interleaved) {
    if (both == kNoTensor) return {kNoTensor, kNoTensor};
    Shape shape = t.specOf(both).shape;
    const std::int64_t half = shape.back() / 2;
    shape.back() = half;
    Shape paired = shape;
    paired.push_back(2);
    if (interleaved) both = t.reshaped(both, paired);
    const auto axis = static_cast<std::int64_t>(interleaved ? shape.size() : shape.size() - 1);
    const std::int64_t length = interleaved ? 1 : half;
    const auto part = [&](std::int64_t i) {
        return t.reshaped(t.step(OpKind::Slice,
                                 {{"axes", Ints{axis}},
                                  {"starts", Ints{i * length}},
                                  {"ends", Ints{(i + 1) * length}},
                                  {"steps", Ints{1}}},
                                 {both}),
                          shape);
    };
    return {part(0), part(1)};
}

/// Operands: tokens, router logits, weights and bias of the first, second and third product.
std::optional<Products> plainProducts(Translation& t) {
    Products products;
    for (std::size_t i = 0; i < 3; ++i)
        products[i] = {t.inputOrNone(2 + 2 * i), t.inputOrNone(3 + 2 * i)};
    return products;
}

/// Operands: likewise, with scales between weights and bias. Nothing for what is not whole numbers
/// around the middle of their range (zero points, 4-bit floats), or weights that are computed.
std::optional<Products> quantisedProducts(Translation& t) {
    const std::int64_t bits = t.integer("expert_weight_bits", 4);
    if (t.text("quant_type", "int") != "int" || (bits != 4 && bits != 8)) return std::nullopt;
    for (std::size_t i = 11; i < 21; ++i)
        if (t.has(i)) return std::nullopt;
    Products products;
    for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t at = 2 + 3 * i;
        if (!t.has(at)) continue;
        if (!t.has(at + 1) || t.dtype(at) != (bits == 4 ? DType::U4 : DType::U8))
            return std::nullopt;
        const Shape weights = t.shape(at), scales = t.shape(at + 1);
        const bool fit = weights.size() == 3 && (scales.size() == 2 || scales.size() == 3) &&
                         std::equal(weights.begin(), weights.begin() + 2, scales.begin()) &&
                         (scales.size() == 2 || (scales[2] > 0 && weights[2] % scales[2] == 0));
        t.require(fit, "the experts' scales do not fit their weights");
        products[i] = {dequantised(t, t.input(at), t.input(at + 1), bits, t.dtype(0)),
                       t.inputOrNone(at + 2)};
    }
    return products;
}

Attributes activationOf(const Translation& t, const std::string& function) {
    Attributes attributes{{"function", function}, {"top_k", t.integer("k", 1)}};
    if (function != "swiglu") return attributes;
    attributes.set("alpha", t.number("activation_alpha", 1));
    attributes.set("beta", t.number("activation_beta", 0));
    attributes.set("limit", t.number("swiglu_limit", 0));
    return attributes;
}

void experts(Translation& t, std::string_view type) {
    const std::string function(t.text("activation_type", "relu"));
    const std::int64_t fusion = t.integer("swiglu_fusion", 0);
    const bool understood = isOneOf(function, {"relu", "gelu", "silu", "identity", "swiglu"}) &&
                            t.integer("use_sparse_mixer", 0) == 0 && t.rank(0) >= 2 &&
                            t.rank(1) == 2;
    auto products = !understood           ? std::nullopt
                    : type == "quantised" ? quantisedProducts(t)
                                          : plainProducts(t);
    if (!products) return t.opaque({t.spec(0)});
    auto& [first, second, third] = *products;
    t.require(first.weights != kNoTensor && second.weights != kNoTensor,
              "the experts' weights are missing");
    const Shape in = t.shape(0);
    const std::int64_t h = in.back(), rows = t.shape(1)[0];
    first.weights = oriented(t, first.weights, h);
    if (function == "swiglu" && fusion != 0) {
        t.require(t.specOf(first.weights).shape[2] % 2 == 0 && third.weights == kNoTensor,
                  "the experts' gate and linear part do not fit");
        std::tie(first.weights, third.weights) = parts(t, first.weights, fusion == 1);
        std::tie(first.bias, third.bias) = parts(t, first.bias, fusion == 1);
    } else if (third.weights != kNoTensor) {
        third.weights = oriented(t, third.weights, h);
    }
    second.weights = oriented(t, second.weights, t.specOf(first.weights).shape[2]);

    const bool flat = in.size() == 2;
    const TensorId x = flat ? t.input(0) : t.reshaped(t.input(0), {rows, h});
    Attributes choice{{"top_k", t.integer("k", 1)}};
    if (t.integer("normalize_routing_weights", 0) != 0) choice.set("normalize", std::int64_t{1});
    const TensorId gates = t.step(OpKind::Gates, std::move(choice), {t.input(1)});
    std::vector<TensorId> operands{x,          gates,         first.weights, second.weights,
                                   first.bias, third.weights, third.bias};
    while (operands.back() == kNoTensor) operands.pop_back();
    const auto last = [&](OpKind kind, Attributes attributes, std::vector<TensorId> inputs) {
        if (flat)
            t.result(kind, std::move(attributes), std::move(inputs));
        else
            t.result(OpKind::Reshape, {{"shape", in}},
                     {t.step(kind, std::move(attributes), std::move(inputs))});
    };
    const Attributes activation = activationOf(t, function);
    if (second.bias == kNoTensor) return last(OpKind::Experts, activation, std::move(operands));
    const TensorId y = t.step(OpKind::Experts, activation, std::move(operands));
    last(OpKind::Elementwise, functionOf("add"),
         {y, t.step(OpKind::MatMul, {}, {gates, second.bias})});
}

} // namespace

std::vector<Rule> expertRules() {
    return {{"MoE", experts}, {"QMoE", experts, "quantised"}};
}

} // namespace shardlens::onnx
