// SPDX-License-Identifier: Apache-2.0
// Matrix products, attention and convolution of PyTorch.
#include "core/import/torch_translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace shardlens::torch {

namespace {

using Ints = Translation::Ints;

void matMul(Translation& t, std::string_view) {
    t.result(OpKind::MatMul, {}, {t.tensor(0, "self"), t.tensor(1, "mat2|other|vec")});
}

TensorId scaled(Translation& t, TensorId x, double factor) {
    if (factor == 1) return x;
    return t.step(OpKind::Elementwise, {{"function", std::string("mul")}},
                  {x, t.constant(factor, t.typeOf(x))});
}

/// beta * input + alpha * (a b): addmm, baddbmm.
void addMatMul(Translation& t, std::string_view) {
    const TensorId input = t.tensor(0, "self");
    const TensorId a = t.tensor(1, "mat1|batch1"), b = t.tensor(2, "mat2|batch2");
    const double beta = t.number(3, "beta", 1), alpha = t.number(4, "alpha", 1);
    if (alpha == 1 && beta == 1) return t.result(OpKind::MatMul, {}, {a, b, input});
    if (beta == 0) { // the input is not read, not even where it is not a number
        if (alpha == 1) return t.result(OpKind::MatMul, {}, {a, b});
        const TensorId product = t.step(OpKind::MatMul, {}, {a, b});
        return t.result(OpKind::Elementwise, {{"function", std::string("mul")}},
                        {product, t.constant(alpha, t.typeOf(product))});
    }
    const TensorId product = scaled(t, t.step(OpKind::MatMul, {}, {a, b}), alpha);
    t.result(OpKind::Elementwise, {{"function", std::string("add")}},
             {product, scaled(t, input, beta)});
}

/// x wᵀ + b with w stored as [out, in].
void linear(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "input"), weight = t.tensor(1, "weight"),
                   bias = t.optionalTensor(2, "bias");
    t.require(t.rank(weight) == 2, "its weight has not two dimensions");
    std::vector<TensorId> operands{x, weight};
    if (bias != kNoTensor) operands.push_back(bias);
    t.result(OpKind::MatMul, {{"transB", std::int64_t{1}}}, std::move(operands));
}

void dot(Translation& t, std::string_view) {
    t.result(OpKind::Einsum, {{"equation", std::string("a,a->")}},
             {t.tensor(0, "self"), t.tensor(1, "tensor")});
}

/// Blanks out; letters of an absent result side are those that occur once, in order; "..." become
/// letters of their own.
std::string normalisedEquation(Translation& t, const std::string& text,
                               const std::vector<TensorId>& operands) {
    constexpr std::size_t kLongest = 256;
    t.require(text.size() <= kLongest, "its equation is too long");
    std::string equation;
    std::ranges::copy_if(text, std::back_inserter(equation), [](char c) { return c != ' '; });
    std::map<char, int> times;
    for (const char c : equation.substr(0, equation.find("->")))
        if (std::isalpha(static_cast<unsigned char>(c)) != 0) ++times[c];
    if (equation.find("->") == std::string::npos) {
        equation += "->";
        if (equation.find("...") != std::string::npos) equation += "...";
        for (const auto& [letter, count] : times)
            if (count == 1) equation += letter;
    }
    if (equation.find("...") == std::string::npos) return equation;
    std::string spare;
    for (char c = 'A'; c <= 'Z'; ++c)
        if (!times.contains(c)) spare += c;
    std::size_t operand = 0, longest = 0;
    std::string result;
    for (std::size_t i = 0; i < equation.size(); ++i) {
        if (equation[i] == ',') ++operand;
        const bool right = result.find("->") != std::string::npos;
        if (equation.compare(i, 3, "...") != 0) {
            result += equation[i];
            continue;
        }
        i += 2;
        std::size_t dims = longest;
        if (!right) {
            t.require(operand < operands.size(), "its equation has more operands than it");
            const std::size_t begin =
                equation.rfind(',', i) == std::string::npos ? 0 : equation.rfind(',', i) + 1;
            std::size_t end = equation.find_first_of(",-", i);
            if (end == std::string::npos) end = equation.size();
            const std::size_t letters = end - begin - 3;
            const std::size_t rank = t.shape(operands[operand]).size();
            t.require(rank >= letters && rank - letters <= spare.size(),
                      "its equation does not fit its operands");
            dims = rank - letters;
            longest = std::max(longest, dims);
        }
        result += spare.substr(spare.size() - dims);
    }
    return result;
}

void einsum(Translation& t, std::string_view) {
    const std::vector<TensorId> operands =
        t.argument(1, "tensors").kind == Value::Kind::List ? t.tensors(1, "tensors") : [&] {
            std::vector<TensorId> separate;
            for (std::size_t i = 1; i < t.count(); ++i) separate.push_back(t.tensor(i, "tensors"));
            return separate;
        }();
    t.result(OpKind::Einsum, {{"equation", normalisedEquation(t, t.text(0, "equation"), operands)}},
             operands);
}

// --- attention: PyTorch has heads before the sequence, the catalogue after it -------------------

TensorId headsSwapped(Translation& t, TensorId x) {
    return t.step(OpKind::Transpose, {{"perm", Ints{0, 2, 1, 3}}}, {x});
}

/// Which argument says that the mask is causal, and whether a mask comes fourth: the variants
/// differ.
struct AttentionForm {
    std::size_t causal;
    int mask; ///< -1 if it takes none
};

AttentionForm formOf(std::string_view base) {
    if (base == "scaled_dot_product_attention") return {5, 3};
    if (base == "_scaled_dot_product_flash_attention") return {4, -1};
    if (base == "_scaled_dot_product_flash_attention_for_cpu") return {4, 5};
    if (base == "_scaled_dot_product_fused_attention_overrideable") return {5, 3};
    return {6, 3}; // efficient, cudnn: bias, compute_log_sumexp, dropout_p, is_causal
}

void attention(Translation& t, std::string_view) {
    const AttentionForm form = formOf(t.base());
    const TensorId q = t.tensor(0, "query"), k = t.tensor(1, "key"), v = t.tensor(2, "value");
    t.require(t.rank(q) == 4 && t.rank(k) == 4 && t.rank(v) == 4,
              "its operands have not four dimensions");
    for (std::size_t port = 1; port < 10; ++port)
        t.require(!t.wants(port), "its statistics are read again");
    std::vector<TensorId> operands{headsSwapped(t, q), headsSwapped(t, k), headsSwapped(t, v)};
    if (form.mask >= 0) {
        const auto at = static_cast<std::size_t>(form.mask);
        TensorId mask = t.optionalTensor(at, "attn_mask");
        if (mask == kNoTensor) mask = t.optionalTensor(at, "attn_bias");
        if (mask != kNoTensor) operands.push_back(mask);
    }
    Attributes attributes;
    if (t.boolean(form.causal, "is_causal", false)) attributes.set("causal", std::int64_t{1});
    if (t.argument(99, "scale").isNumber()) attributes.set("scale", t.number(99, "scale", 1));
    const TensorId out = t.step(OpKind::Attention, std::move(attributes), std::move(operands));
    t.result(OpKind::Transpose, {{"perm", Ints{0, 2, 1, 3}}}, {out});
}

// --- convolution --------------------------------------------------------------------------------

/// A setting a spatial dimension: one number stands for all.
Ints spread(const Translation& t, Ints values, std::size_t dims, std::int64_t fallback) {
    if (values.empty()) values.push_back(fallback);
    if (values.size() == 1) values.resize(dims, values[0]);
    t.require(values.size() == dims, "a setting has not one number a spatial dimension");
    return values;
}

Ints twice(Ints values) {
    const Ints copy = values;
    values.insert(values.end(), copy.begin(), copy.end());
    return values;
}

struct Geometry {
    std::size_t stride, padding, dilation, groups;
    int transposed, outputPadding;
};

void convolve(Translation& t, const Geometry& at, bool transposed) {
    const TensorId x = t.tensor(0, "input"), weight = t.tensor(1, "weight"),
                   bias = t.optionalTensor(2, "bias");
    t.require(t.rank(x) == t.rank(weight) && t.rank(x) >= 3, "its input has no batch dimension");
    const auto dims = static_cast<std::size_t>(t.rank(x) - 2);
    t.require(t.argument(at.padding, "padding").kind != Value::Kind::Text,
              "its padding is given by a word");
    const Ints strides = spread(t, t.ints(at.stride, "stride"), dims, 1);
    const Ints pads = spread(t, t.ints(at.padding, "padding"), dims, 0);
    const Ints dilations = spread(t, t.ints(at.dilation, "dilation"), dims, 1);
    Attributes attributes{{"strides", strides},
                          {"pads", twice(pads)},
                          {"dilations", dilations},
                          {"group", t.integer(at.groups, "groups", 1)}};
    if (transposed)
        attributes.set("output_padding",
                       spread(t,
                              t.ints(static_cast<std::size_t>(at.outputPadding), "output_padding"),
                              dims, 0));
    std::vector<TensorId> operands{x, weight};
    if (bias != kNoTensor) operands.push_back(bias);
    t.result(transposed ? OpKind::ConvTranspose : OpKind::Conv, std::move(attributes),
             std::move(operands));
}

void convolution(Translation& t, std::string_view) {
    convolve(t, {3, 4, 5, 8, 6, 7}, t.boolean(6, "transposed", false));
}

void convolutionByRank(Translation& t, std::string_view) {
    convolve(t, {3, 4, 5, 6, -1, -1}, false);
}

} // namespace

std::vector<Rule> contractionRules() {
    return {
        {"mm", matMul},
        {"bmm", matMul},
        {"matmul", matMul},
        {"mv", matMul},
        {"__matmul__", matMul},
        {"dot", dot},
        {"addmm", addMatMul},
        {"baddbmm", addMatMul},
        {"linear", linear},
        {"einsum", einsum},
        {"scaled_dot_product_attention", attention},
        {"_scaled_dot_product_flash_attention", attention},
        {"_scaled_dot_product_flash_attention_for_cpu", attention},
        {"_scaled_dot_product_efficient_attention", attention},
        {"_scaled_dot_product_cudnn_attention", attention},
        {"_scaled_dot_product_fused_attention_overrideable", attention},
        {"convolution", convolution},
        {"_convolution", convolution},
        {"conv1d", convolutionByRank},
        {"conv2d", convolutionByRank},
        {"conv3d", convolutionByRank},
    };
}

} // namespace shardlens::torch
