// SPDX-License-Identifier: Apache-2.0
// Rows of the catalogue that run on matrix units: MatMul, Einsum, fused attention.
#include "core/model/catalogue_rows.h"

#include <algorithm>
#include <map>
#include <utility>

namespace shardlens::catalogue {
namespace {

// --- MatMul: A[..,m,k] B[..,k,n] (+ bias) -> [..,m,n] -------------------------------------------

struct MatMulDims {
    Shape batch; ///< broadcast batch dims
    std::int64_t m = 1, k = 1, n = 1;
    bool vectorA = false, vectorB = false; ///< rank-1 operands drop m or n
};

MatMulDims matMulDims(const OpView& view) {
    Shape a = shapeOf(view, 0), b = shapeOf(view, 1);
    require(!a.empty() && !b.empty(), view, "a matrix product needs operands of rank 1 or more");
    MatMulDims dims;
    if ((dims.vectorA = a.size() == 1)) a.insert(a.begin(), 1);
    if ((dims.vectorB = b.size() == 1)) b.push_back(1);
    if (view.op.attributes.integer("transA", 0)) std::swap(a[a.size() - 2], a[a.size() - 1]);
    if (view.op.attributes.integer("transB", 0)) std::swap(b[b.size() - 2], b[b.size() - 1]);
    dims.m = a[a.size() - 2];
    dims.k = a.back();
    dims.n = b.back();
    if (dims.k != b[b.size() - 2])
        fail(view, fmt::format("inner dimensions differ: {} x {}", toString(view.inputs[0].shape),
                               toString(view.inputs[1].shape)));
    dims.batch =
        broadcastShapes(view, Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
    return dims;
}

std::vector<TensorSpec> matMulShape(const OpView& view) {
    const MatMulDims dims = matMulDims(view);
    Shape shape = dims.batch;
    if (!dims.vectorA) shape.push_back(dims.m);
    if (!dims.vectorB) shape.push_back(dims.n);
    if (view.hasInput(2)) broadcastShapes(view, shape, view.inputs[2].shape);
    return {{view.inputs[0].dtype, shape}};
}

/// Puts factors into a dim list aligned to the right; a dim of size 1 carries none.
void alignRight(std::vector<DimFactors>& dims, const Shape& shape,
                const std::vector<int>& factors) {
    for (std::size_t i = 0; i < shape.size() && i < factors.size(); ++i) {
        const std::size_t d = shape.size() - 1 - i;
        const int factor = factors[factors.size() - 1 - i];
        if (shape[d] > 1 && factor >= 0) dims[d] = {factor};
    }
}

FactorRule matMulRule(const OpView& view) {
    const MatMulDims dims = matMulDims(view);
    FactorRule rule = emptyRule(view);
    std::vector<int> batch;
    for (std::size_t i = 0; i < dims.batch.size(); ++i)
        batch.push_back(
            rule.addFactor(dims.batch.size() == 1 ? "b" : fmt::format("b{}", i), dims.batch[i]));
    const int m = rule.addFactor("m", dims.m);
    const int k = rule.addFactor("k", dims.k, FactorKind::Reduction);
    const int n = rule.addFactor("n", dims.n);

    auto operand = [&](std::size_t port, bool vector, bool transposed, int row, int column) {
        std::vector<int> factors = batch;
        if (vector) {
            factors = {k};
        } else if (transposed) {
            factors.insert(factors.end(), {column, row});
        } else {
            factors.insert(factors.end(), {row, column});
        }
        alignRight(rule.operands[port], view.inputs[port].shape, factors);
    };
    operand(0, dims.vectorA, view.op.attributes.integer("transA", 0) != 0, m, k);
    operand(1, dims.vectorB, view.op.attributes.integer("transB", 0) != 0, k, n);
    std::vector<int> result = batch;
    if (!dims.vectorA) result.push_back(m);
    if (!dims.vectorB) result.push_back(n);
    alignRight(rule.results[0], view.outputs[0].shape, result);
    if (view.hasInput(2)) {
        alignRight(rule.operands[2], view.inputs[2].shape, result);
        rule.addedOnce = {2};
    }
    return rule;
}

double twicePointsOf(const FactorRule& rule) {
    double points = 2;
    for (const Factor& factor : rule.factors) points *= static_cast<double>(factor.size);
    return points;
}

double matMulFlops(const OpView&, const FactorRule& rule) {
    return twicePointsOf(rule);
}

// --- Einsum -------------------------------------------------------------------------------------

struct Equation {
    std::vector<std::string> operands;
    std::string result;
};

Equation parseEquation(const OpView& view) {
    const std::string text = view.op.attributes.text("equation");
    Equation equation;
    std::string current;
    bool afterArrow = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == ' ') continue;
        if (c == ',' && !afterArrow) {
            equation.operands.push_back(std::exchange(current, {}));
        } else if (c == '-' && i + 1 < text.size() && text[i + 1] == '>' && !afterArrow) {
            equation.operands.push_back(std::exchange(current, {}));
            afterArrow = true;
            ++i;
        } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
            current.push_back(c);
        } else {
            fail(view, fmt::format("einsum equation '{}' has an unexpected '{}'", text, c));
        }
    }
    require(afterArrow, view, "an einsum equation needs an arrow");
    equation.result = current;
    require(equation.operands.size() == view.inputs.size(), view,
            "the einsum equation and the operands differ in number");
    return equation;
}

std::map<char, std::int64_t> letterSizes(const OpView& view, const Equation& equation) {
    std::map<char, std::int64_t> sizes;
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
        const Shape& shape = shapeOf(view, i);
        if (shape.size() != equation.operands[i].size())
            fail(view, fmt::format("operand {} of shape {} does not match '{}'", i, toString(shape),
                                   equation.operands[i]));
        for (std::size_t d = 0; d < shape.size(); ++d) {
            const auto [at, added] = sizes.emplace(equation.operands[i][d], shape[d]);
            if (!added && at->second != shape[d])
                fail(view, fmt::format("letter '{}' has sizes {} and {}", at->first, at->second,
                                       shape[d]));
        }
    }
    return sizes;
}

std::vector<TensorSpec> einsumShape(const OpView& view) {
    const Equation equation = parseEquation(view);
    const auto sizes = letterSizes(view, equation);
    Shape shape;
    for (const char c : equation.result) {
        const auto at = sizes.find(c);
        if (at == sizes.end()) fail(view, fmt::format("result letter '{}' is in no operand", c));
        shape.push_back(at->second);
    }
    return {{view.inputs[0].dtype, shape}};
}

FactorRule einsumRule(const OpView& view) {
    const Equation equation = parseEquation(view);
    FactorRule rule = emptyRule(view);
    std::map<char, int> factorOf;
    for (const auto& [letter, size] : letterSizes(view, equation)) {
        const bool kept = equation.result.find(letter) != std::string::npos;
        // A letter that some operand reads twice (a diagonal) stays whole.
        const bool whole =
            std::ranges::any_of(equation.operands, [&, l = letter](const std::string& o) {
                return std::ranges::count(o, l) > 1;
            });
        const FactorKind kind = whole  ? FactorKind::Replicate
                                : kept ? FactorKind::Parallel
                                       : FactorKind::Reduction;
        factorOf[letter] = rule.addFactor(std::string(1, letter), size, kind);
    }
    for (std::size_t i = 0; i < equation.operands.size(); ++i)
        for (std::size_t d = 0; d < equation.operands[i].size(); ++d)
            rule.operands[i][d] = {factorOf[equation.operands[i][d]]};
    for (std::size_t d = 0; d < equation.result.size(); ++d)
        rule.results[0][d] = {factorOf[equation.result[d]]};
    return rule;
}

// --- fused attention: q[b,s,H,d] k[b,t,K,d] v[b,t,K,e] (+ mask) -> [b,s,H,e] --------------------

struct AttentionDims {
    std::int64_t b, s, t, heads, kvHeads, d, e;
};

AttentionDims attentionDims(const OpView& view) {
    const Shape &q = shapeOf(view, 0), &k = shapeOf(view, 1), &v = shapeOf(view, 2);
    require(q.size() == 4 && k.size() == 4 && v.size() == 4, view,
            "attention needs operands of rank 4");
    const AttentionDims dims{q[0], q[1], k[1], q[2], k[2], q[3], v[3]};
    require(k[0] == dims.b && v[0] == dims.b && v[1] == dims.t && v[2] == dims.kvHeads &&
                k[3] == dims.d,
            view, "query, key and value shapes do not fit together");
    require(dims.kvHeads > 0 && dims.heads % dims.kvHeads == 0, view,
            "the query heads are not a multiple of the key-value heads");
    return dims;
}

std::vector<TensorSpec> attentionShape(const OpView& view) {
    const AttentionDims dims = attentionDims(view);
    return {{view.inputs[0].dtype, {dims.b, dims.s, dims.heads, dims.e}}};
}

FactorRule attentionRule(const OpView& view) {
    const AttentionDims dims = attentionDims(view);
    FactorRule rule = emptyRule(view);
    const int b = rule.addFactor("b", dims.b);
    const int s = rule.addFactor("s", dims.s);
    // Cutting the keys: the ranks agree on the softmax's maximum and sum, and their weighted values
    // add up (what ring attention does step by step, Liu et al. 2023).
    const int t = rule.addFactor("t", dims.t, FactorKind::Reduction);
    rule.factors[static_cast<std::size_t>(t)].exchanges = true;
    const double rows =
        static_cast<double>(dims.b) * static_cast<double>(dims.s) * static_cast<double>(dims.heads);
    rule.forwardStatistics = {{ReduceOp::Max, rows}, {ReduceOp::Sum, rows}};
    rule.backwardStatistics = {{ReduceOp::Sum, rows}};
    const int kv = rule.addFactor("heads", dims.kvHeads);
    const int group = rule.addFactor("g", dims.heads / dims.kvHeads);
    const int d = rule.addFactor("d", dims.d, FactorKind::Replicate);
    const int e = rule.addFactor("e", dims.e, FactorKind::Replicate);
    const DimFactors headDim = dims.kvHeads == dims.heads ? DimFactors{kv} : DimFactors{kv, group};
    rule.operands[0] = {{b}, {s}, headDim, {d}};
    rule.operands[1] = {{b}, {t}, {kv}, {d}};
    rule.operands[2] = {{b}, {t}, {kv}, {e}};
    rule.results[0] = {{b}, {s}, headDim, {e}};
    if (view.hasInput(3)) {
        const Shape& mask = view.inputs[3].shape;
        const std::vector<DimFactors> full{{b}, headDim, {s}, {t}};
        for (std::size_t i = 0; i < mask.size() && i < 4; ++i)
            if (mask[mask.size() - 1 - i] > 1) rule.operands[3][mask.size() - 1 - i] = full[3 - i];
    }
    return rule;
}

double attentionFlops(const OpView& view, const FactorRule&) {
    const AttentionDims dims = attentionDims(view);
    const auto f = [](std::int64_t x) { return static_cast<double>(x); };
    const double causal = view.op.attributes.integer("causal", 0) ? 0.5 : 1.0;
    return 2 * f(dims.b) * f(dims.s) * f(dims.t) * f(dims.heads) * (f(dims.d) + f(dims.e)) * causal;
}

SavedTensors attentionSaved(const OpView& view) {
    const AttentionDims dims = attentionDims(view);
    SavedTensors saved = saveOperands(view);
    saved.results[0] = true;
    saved.extraBytes = 4.0 * static_cast<double>(dims.b) * static_cast<double>(dims.s) *
                       static_cast<double>(dims.heads); // log-sum-exp in fp32
    return saved;
}

} // namespace

std::vector<Row> contractionRows() {
    const SavedFunction saveFactors = [](const OpView& view) {
        SavedTensors saved = saveNothing(view);
        for (std::size_t i = 0; i < std::min<std::size_t>(2, view.inputs.size()); ++i)
            saved.operands[i] = true;
        return saved;
    };
    return {
        {OpKind::MatMul, matMulShape, matMulRule, ComputeClass::Contraction, matMulFlops, nullptr,
         saveFactors},
        {OpKind::Einsum, einsumShape, einsumRule, ComputeClass::Contraction, matMulFlops, nullptr,
         saveOperands},
        {OpKind::Attention, attentionShape, attentionRule, ComputeClass::Attention, attentionFlops,
         nullptr, attentionSaved},
    };
}

} // namespace shardlens::catalogue
