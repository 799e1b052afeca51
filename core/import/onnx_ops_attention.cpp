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
    TensorId mask = kNoTensor; ///< broadcasts to [b,H,s,t]
    bool headsFirst = false;   ///< the result is wanted as [b,H,s,e], else as [b,s,H*e]
    std::int64_t past = 0;     ///< keys before those of query 0
    std::int64_t window = 0;
};

bool broadcastsTo(const Shape& mask, const Shape& full) {
    return mask.size() <= full.size() &&
           std::equal(mask.rbegin(), mask.rend(), full.rbegin(),
                      [](std::int64_t m, std::int64_t f) { return m == 1 || m == f; });
}

/// A mask operand fits the scores, or there is none.
bool fits(const Translation& t, std::size_t i, const Shape& scores) {
    return !t.has(i) || (t.rank(i) >= 1 && broadcastsTo(t.shape(i), scores));
}

void finishAttention(Translation& t, const Fused& fused) {
    std::vector<TensorId> operands{fused.q, fused.k, fused.v};
    if (fused.mask != kNoTensor) operands.push_back(fused.mask);
    Attributes attributes{{"causal", std::int64_t{fused.causal}}};
    if (const double scale = t.number("scale", 0); scale != 0) attributes.set("scale", scale);
    if (const double cap = t.number("softcap", 0); cap != 0) attributes.set("softcap", cap);
    if (fused.causal && fused.past != 0) attributes.set("past", fused.past);
    if (fused.window > 0) attributes.set("window", fused.window);
    const TensorId y = t.step(OpKind::Attention, std::move(attributes), std::move(operands));
    const Shape shape = t.specOf(y).shape;
    if (fused.headsFirst)
        t.result(OpKind::Transpose, {{"perm", kSwapHeads}}, {y});
    else
        t.result(OpKind::Reshape, {{"shape", Shape{shape[0], shape[1], shape[2] * shape[3]}}}, {y});
}

std::int64_t keysOf(const Translation& t, TensorId keys) {
    return t.specOf(keys).shape[1];
}

/// ONNX opset 23: Q, K, V, mask, past key, past value. Opset 24: lengths of what is not padding.
void attention(Translation& t, std::string_view) {
    const std::int64_t heads = t.integer("q_num_heads", 0);
    const std::int64_t kvHeads = t.integer("kv_num_heads", heads);
    Fused fused{headsInside(t, t.input(0), heads), headsInside(t, t.input(1), kvHeads),
                headsInside(t, t.input(2), kvHeads)};
    fused.causal = t.integer("is_causal", 0) != 0;
    fused.headsFirst = t.rank(0) == 4;
    const std::int64_t fresh = keysOf(t, fused.k);
    fused.k = withPast(t, fused.k, 4, 1);
    fused.v = withPast(t, fused.v, 5, 2);
    fused.past = keysOf(t, fused.k) - fresh;
    const Shape q = t.specOf(fused.q).shape, scores{q[0], q[2], q[1], keysOf(t, fused.k)};
    if (!fits(t, 3, scores) || t.has(6)) {
        Shape shape = t.shape(0);
        shape.back() =
            fused.headsFirst ? t.shape(2).back() : heads * t.specOf(fused.v).shape.back();
        return t.opaque({TensorSpec{t.dtype(0), shape}});
    }
    fused.mask = t.inputOrNone(3);
    finishAttention(t, fused);
}

/// Rotates by tables that are computed in place.
TensorId rotated(Translation& t, TensorId x, std::int64_t past = 0) {
    Attributes attributes;
    if (t.integer("interleaved", t.integer("rotary_interleaved", 0)) != 0)
        attributes.set("interleaved", std::int64_t{1});
    if (const std::int64_t width = t.integer("rotary_embedding_dim", 0); width > 0)
        attributes.set("width", width);
    if (past != 0) attributes.set("past", past);
    return t.step(OpKind::Rotary, std::move(attributes), {x});
}

std::vector<TensorId> split(Translation& t, TensorId x, std::int64_t axis, Ints sizes) {
    const OpId parts = t.builder().add(
        {{}, OpKind::Split, t.type(), {{"axis", axis}, {"sizes", std::move(sizes)}}, {x}, {}}, {});
    return t.builder().graph().op(parts).outputs;
}

/// com.microsoft: query, key, value, past key, past value, lengths, total, cos, sin. The lengths
/// are taken as full.
void groupQueryAttention(Translation& t, std::string_view) {
    const std::int64_t heads = t.integer("num_heads", 0),
                       kvHeads = t.integer("kv_num_heads", heads);
    t.require(t.rank(0) == 3 && heads > 0 && kvHeads > 0 && heads <= 1 << 20 && kvHeads <= heads,
              "the query needs three dimensions and a number of heads");
    std::vector<TensorId> qkv{t.input(0), t.inputOrNone(1), t.inputOrNone(2)};
    if (!t.has(1)) { // packed in one tensor
        const std::int64_t width = t.shape(0)[2] / (heads + 2 * kvHeads);
        qkv = split(t, t.input(0), 2, {heads * width, kvHeads * width, kvHeads * width});
    }
    t.require(qkv[2] != kNoTensor, "the value is missing");
    Fused fused{headsInside(t, qkv[0], heads), headsInside(t, qkv[1], kvHeads),
                headsInside(t, qkv[2], kvHeads)};
    fused.causal = true;
    fused.past = t.has(3) && t.rank(3) == 4 ? t.shape(3)[2] : 0;
    fused.window = std::max<std::int64_t>(t.integer("local_window_size", -1), 0);
    if (t.integer("do_rotary", 0) != 0) {
        fused.q = rotated(t, fused.q, fused.past);
        fused.k = rotated(t, fused.k, fused.past);
    }
    fused.k = withPast(t, fused.k, 3, 1);
    fused.v = withPast(t, fused.v, 4, 2);
    finishAttention(t, fused);
}

/// Which keys are no padding, as a mask of the scores: lengths [b], or 1 for keys to keep [b,t] or
/// [b,s,t]. kNoTensor if the operand is none of these.
TensorId paddingMask(Translation& t, std::size_t i, const Shape& scores) {
    const Shape shape = t.shape(i);
    const std::int64_t b = scores[0], queries = scores[2], keys = scores[3];
    const Attributes cast{{"function", std::string("cast")}, {"to", std::string("bool")}};
    if (shape == Shape{b, keys})
        return t.reshaped(t.step(OpKind::Elementwise, cast, {t.input(i)}), {b, 1, 1, keys});
    if (shape == Shape{b, queries, keys})
        return t.reshaped(t.step(OpKind::Elementwise, cast, {t.input(i)}), {b, 1, queries, keys});
    if (shape != Shape{b}) return kNoTensor;
    const TensorId positions = t.step(OpKind::Generate,
                                      {{"function", std::string("range")},
                                       {"shape", Shape{keys}},
                                       {"to", std::string(nameOf(t.dtype(i)))}},
                                      {});
    return t.step(OpKind::Elementwise, {{"function", std::string("less")}},
                  {positions, t.reshaped(t.input(i), {b, 1, 1, 1})});
}

/// The mask of a padding mask and a bias of the scores, both optional. False if it is not known
/// how they act.
bool setMask(Translation& t, Fused& fused, std::size_t padding, std::size_t bias) {
    const Shape q = t.specOf(fused.q).shape, scores{q[0], q[2], q[1], keysOf(t, fused.k)};
    if (!fits(t, bias, scores)) return false;
    fused.mask = t.inputOrNone(bias);
    if (!t.has(padding)) return true;
    const TensorId kept = paddingMask(t, padding, scores);
    if (kept == kNoTensor) return false;
    if (fused.mask == kNoTensor) {
        fused.mask = kept;
        return true;
    }
    const double hidden = t.number("mask_filter_value", -10000.0);
    fused.mask = t.step(OpKind::Elementwise, {{"function", std::string("where")}},
                        {kept, fused.mask, t.number(hidden, t.specOf(fused.mask).dtype)});
    return true;
}

/// Query, key and value of a MultiHeadAttention, however they are packed. Empty if unknown.
std::vector<TensorId> unpacked(Translation& t, std::int64_t heads) {
    const auto parts = [&](std::size_t i, std::int64_t count) {
        const Shape in = t.shape(i);
        t.require(in[2] == heads && in[3] == count, "packed operands do not fit the heads");
        std::vector<TensorId> each;
        for (const TensorId part :
             split(t, t.input(i), 3, Ints(static_cast<std::size_t>(count), 1)))
            each.push_back(t.reshaped(part, {in[0], in[1], in[2], in[4]}));
        return each;
    };
    if (t.rank(0) == 5 && !t.has(1) && !t.has(2)) return parts(0, 3);
    if (t.rank(0) != 3 || !t.has(1)) return {};
    std::vector<TensorId> operands{t.input(0), t.input(1), t.inputOrNone(2)};
    if (t.rank(1) == 5 && !t.has(2)) {
        const auto keysAndValues = parts(1, 2);
        return {headsInside(t, operands[0], heads), keysAndValues[0], keysAndValues[1]};
    }
    if (!t.has(2) || t.rank(1) < 3 || t.rank(1) > 4) return {};
    if (t.has(3)) { // one bias for all three
        if (t.rank(1) != 3 || t.rank(2) != 3) return {};
        const auto biases = split(t, t.input(3), 0, {t.shape(0)[2], t.shape(1)[2], t.shape(2)[2]});
        for (std::size_t i = 0; i < operands.size(); ++i)
            operands[i] = t.step(OpKind::Elementwise, {{"function", std::string("add")}},
                                 {operands[i], biases[i]});
    }
    for (TensorId& operand : operands) operand = headsInside(t, operand, heads);
    return operands;
}

/// com.microsoft: query, key, value, bias, padding mask, attention bias, past key, past value.
void multiHeadAttention(Translation& t, std::string_view) {
    const std::int64_t heads = t.integer("num_heads", 0);
    const auto qkv = unpacked(t, heads);
    const bool bias = t.has(3) && (t.rank(0) != 3 || !t.has(1) || t.rank(1) != 3);
    if (qkv.empty() || bias) return t.opaque();
    Fused fused{qkv[0], qkv[1], qkv[2]};
    fused.causal = t.integer("unidirectional", 0) != 0;
    const std::int64_t fresh = keysOf(t, fused.k);
    fused.k = withPast(t, fused.k, 6, 1);
    fused.v = withPast(t, fused.v, 7, 2);
    fused.past = keysOf(t, fused.k) - fresh;
    if (!setMask(t, fused, 4, 5)) {
        const Shape q = t.specOf(fused.q).shape;
        return t.opaque({TensorSpec{t.dtype(0), {q[0], q[1], q[2] * t.specOf(fused.v).shape[3]}}});
    }
    finishAttention(t, fused);
}

/// com.microsoft: input, weights of query, key and value side by side, bias, padding mask, past,
/// attention bias.
void packedAttention(Translation& t, std::string_view) {
    const std::int64_t heads = t.integer("num_heads", 0);
    t.require(t.rank(0) == 3 && t.rank(1) == 2, "input and weights do not fit");
    const std::int64_t width = t.shape(1)[1];
    Ints sizes = t.integers("qkv_hidden_sizes").value_or(Ints{});
    if (sizes.size() != 3) sizes = {width / 3, width / 3, width / 3};
    const TensorSpec result{t.dtype(0), {t.shape(0)[0], t.shape(0)[1], sizes[2]}};
    if (t.has(4)) return t.opaque({result});
    std::vector<TensorId> operands{t.input(0), t.input(1)};
    if (t.has(2)) operands.push_back(t.input(2));
    const TensorId projected = t.step(OpKind::MatMul, {}, std::move(operands));
    const auto qkv = split(t, projected, 2, sizes);
    Fused fused{headsInside(t, qkv[0], heads), headsInside(t, qkv[1], heads),
                headsInside(t, qkv[2], heads)};
    fused.causal = t.integer("unidirectional", 0) != 0;
    if (t.integer("do_rotary", 0) != 0) {
        fused.q = rotated(t, fused.q);
        fused.k = rotated(t, fused.k);
    }
    if (!setMask(t, fused, 3, 5)) return t.opaque({result});
    finishAttention(t, fused);
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
