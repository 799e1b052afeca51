// SPDX-License-Identifier: Apache-2.0
// Fused attention and rotary embedding: ONNX's own (opset 23) and those of com.microsoft, brought
// to the one layout the catalogue knows, [batch, sequence, heads, width].
#include "core/import/onnx_translation.h"

#include <algorithm>

namespace shardlens::onnx {

namespace {

using Ints = Translation::Ints;

const Ints kSwapHeads{0, 2, 1, 3};

/// [b,s,H*d] or [b,H,s,d] as [b,s,H,d].
TensorId headsInside(Translation& t, TensorId x, std::int64_t heads) {
    const Shape shape = t.specOf(x).shape;
    if (shape.size() == 4) return t.transposed(x, kSwapHeads);
    t.require(shape.size() == 3 && heads > 0 && shape[2] % heads == 0,
              "the width is not a multiple of the number of heads");
    return t.reshaped(x, {shape[0], shape[1], heads, shape[2] / heads});
}

/// A cache before the new keys or values; `port` is the output that shows the new cache.
TensorId withPast(Translation& t, TensorId x, std::size_t past, std::size_t port) {
    const bool cached = t.has(past) && t.rank(past) == 4 && t.shape(past)[2] > 0;
    if (!cached && !t.wants(port)) return x;
    TensorId headsFirst = t.transposed(x, kSwapHeads);
    if (cached) {
        const Attributes axis{{"axis", std::int64_t{2}}};
        headsFirst = t.wants(port) ? t.result(OpKind::Concat, axis, {t.input(past), headsFirst},
                                              DType::Unknown, port)
                                   : t.step(OpKind::Concat, axis, {t.input(past), headsFirst});
    } else {
        t.alias(headsFirst, port);
    }
    return t.transposed(headsFirst, kSwapHeads);
}

struct Fused {
    TensorId q, k, v; ///< [b,s,H,d], [b,t,K,d], [b,t,K,e]
    bool causal = false;
    std::size_t mask = 99;   ///< operand index
    bool headsFirst = false; ///< the result is wanted as [b,H,s,e], else as [b,s,H*e]
};

/// A mask is taken along if it broadcasts to [b,H,s,t].
bool isMask(const Translation& t, std::size_t i, const Shape& q, std::int64_t keys) {
    if (!t.has(i) || t.rank(i) < 1 || t.rank(i) > 4) return false;
    const Shape full{q[0], q[2], q[1], keys}, mask = t.shape(i);
    return std::equal(mask.rbegin(), mask.rend(), full.rbegin(),
                      [](std::int64_t m, std::int64_t f) { return m == 1 || m == f; });
}

void finishAttention(Translation& t, const Fused& fused) {
    std::vector<TensorId> operands{fused.q, fused.k, fused.v};
    const Shape q = t.specOf(fused.q).shape, k = t.specOf(fused.k).shape;
    if (isMask(t, fused.mask, q, k[1])) operands.push_back(t.input(fused.mask));
    const TensorId y =
        t.step(OpKind::Attention, {{"causal", std::int64_t{fused.causal}}}, std::move(operands));
    const Shape shape = t.specOf(y).shape;
    if (fused.headsFirst)
        t.result(OpKind::Transpose, {{"perm", kSwapHeads}}, {y});
    else
        t.result(OpKind::Reshape, {{"shape", Shape{shape[0], shape[1], shape[2] * shape[3]}}}, {y});
}

/// ONNX opset 23: Q, K, V, mask, past key, past value.
void attention(Translation& t, std::string_view) {
    const std::int64_t heads = t.integer("q_num_heads", 0);
    const std::int64_t kvHeads = t.integer("kv_num_heads", heads);
    Fused fused{headsInside(t, t.input(0), heads),
                headsInside(t, t.input(1), kvHeads),
                headsInside(t, t.input(2), kvHeads),
                t.integer("is_causal", 0) != 0,
                3,
                t.rank(0) == 4};
    fused.k = withPast(t, fused.k, 4, 1);
    fused.v = withPast(t, fused.v, 5, 2);
    finishAttention(t, fused);
}

TensorId rotated(Translation& t, TensorId x) {
    return t.step(OpKind::Rotary, {}, {x});
}

/// com.microsoft: query, key, value, past key, past value, lengths, total, cos, sin.
void groupQueryAttention(Translation& t, std::string_view) {
    const std::int64_t heads = t.integer("num_heads", 0),
                       kvHeads = t.integer("kv_num_heads", heads);
    t.require(t.rank(0) == 3 && heads > 0 && kvHeads > 0 && heads <= 1 << 20 && kvHeads <= heads,
              "the query needs three dimensions and a number of heads");
    std::vector<TensorId> qkv{t.input(0), t.inputOrNone(1), t.inputOrNone(2)};
    if (!t.has(1)) { // packed in one tensor
        const std::int64_t width = t.shape(0)[2] / (heads + 2 * kvHeads);
        const OpId parts =
            t.builder().add({{},
                             OpKind::Split,
                             t.type(),
                             {{"axis", std::int64_t{2}},
                              {"sizes", Ints{heads * width, kvHeads * width, kvHeads * width}}},
                             {t.input(0)},
                             {}},
                            {});
        qkv = t.builder().graph().op(parts).outputs;
    }
    t.require(qkv[2] != kNoTensor, "the value is missing");
    Fused fused{headsInside(t, qkv[0], heads), headsInside(t, qkv[1], kvHeads),
                headsInside(t, qkv[2], kvHeads), true};
    if (t.integer("do_rotary", 0) != 0) {
        fused.q = rotated(t, fused.q);
        fused.k = rotated(t, fused.k);
    }
    fused.k = withPast(t, fused.k, 3, 1);
    fused.v = withPast(t, fused.v, 4, 2);
    finishAttention(t, fused);
}

/// com.microsoft: query, key, value, bias, padding mask, attention bias, past key, past value.
void multiHeadAttention(Translation& t, std::string_view) {
    const bool plain = t.rank(0) == 3 && t.has(1) && t.rank(1) >= 3 && t.rank(1) <= 4 && t.has(2);
    if (!plain || t.has(3)) {
        if (!plain) return t.opaque();
        Shape shape = t.shape(0);
        if (t.rank(2) == 3) shape[2] = t.shape(2)[2];
        return t.opaque({TensorSpec{t.dtype(0), shape}});
    }
    const std::int64_t heads = t.integer("num_heads", 0);
    Fused fused{headsInside(t, t.input(0), heads), headsInside(t, t.input(1), heads),
                headsInside(t, t.input(2), heads), t.integer("unidirectional", 0) != 0, 5};
    fused.k = withPast(t, fused.k, 6, 1);
    fused.v = withPast(t, fused.v, 7, 2);
    finishAttention(t, fused);
}

/// com.microsoft: input, weights of query, key and value side by side, bias.
void packedAttention(Translation& t, std::string_view) {
    const std::int64_t heads = t.integer("num_heads", 0);
    t.require(t.rank(0) == 3 && t.rank(1) == 2, "input and weights do not fit");
    const std::int64_t width = t.shape(1)[1];
    Ints sizes = t.integers("qkv_hidden_sizes").value_or(Ints{});
    if (sizes.size() != 3) sizes = {width / 3, width / 3, width / 3};
    std::vector<TensorId> operands{t.input(0), t.input(1)};
    if (t.has(2)) operands.push_back(t.input(2));
    const TensorId projected = t.step(OpKind::MatMul, {}, std::move(operands));
    const OpId parts = t.builder().add({{},
                                        OpKind::Split,
                                        t.type(),
                                        {{"axis", std::int64_t{2}}, {"sizes", sizes}},
                                        {projected},
                                        {}},
                                       {});
    const std::vector<TensorId> qkv = t.builder().graph().op(parts).outputs;
    finishAttention(t, {headsInside(t, qkv[0], heads), headsInside(t, qkv[1], heads),
                        headsInside(t, qkv[2], heads), t.integer("unidirectional", 0) != 0, 5});
}

/// The tables and positions are dropped: the catalogue computes them in place.
void rotary(Translation& t, std::string_view) {
    const std::int64_t heads = t.integer("num_heads", 0);
    const Shape shape = t.shape(0);
    const bool flat = shape.size() == 3;
    if (shape.size() < 3 || shape.size() > 4 || (flat && (heads <= 0 || shape[2] % heads != 0)))
        return t.opaque({t.spec(0)});
    const TensorId turned = rotated(t, headsInside(t, t.input(0), heads));
    if (flat)
        t.result(OpKind::Reshape, {{"shape", shape}}, {turned});
    else
        t.result(OpKind::Transpose, {{"perm", kSwapHeads}}, {turned});
}

} // namespace

std::vector<Rule> attentionRules() {
    return {
        {"Attention", attention},
        {"com.microsoft::Attention", packedAttention},
        {"MultiHeadAttention", multiHeadAttention},
        {"GroupQueryAttention", groupQueryAttention},
        {"RotaryEmbedding", rotary},
    };
}

} // namespace shardlens::onnx
