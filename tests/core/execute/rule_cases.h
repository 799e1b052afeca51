// SPDX-License-Identifier: Apache-2.0
// One small graph for every kind of op and several shapes and attributes of each: what the property
// tests run under every choice. Floating-point operands are parameters, so that every gradient is
// compared too.
#pragma once

#include "core/model/gradient.h"

#include <string>
#include <vector>

namespace shardlens::test {

struct OperandCase {
    Shape shape;
    DType dtype = DType::F32; ///< F32: a parameter; others: an input
    bool positive = false;    ///< an argument of a root or logarithm
    bool definite = false;    ///< matrices with a large diagonal: they have roots and inverses
};

struct RuleCase {
    std::string name;
    OpKind kind;
    Attributes attributes;
    std::vector<OperandCase> operands; ///< dtype Unknown: absent
    std::vector<Shape> results = {};   ///< where the operands do not tell
};

using I = std::int64_t;
using L = std::vector<std::int64_t>;
using T = std::string;

inline OperandCase ints(Shape shape) {
    return {std::move(shape), DType::I64};
}
inline OperandCase mask(Shape shape) {
    return {std::move(shape), DType::Bool};
}
inline OperandCase positive(Shape shape) {
    return {std::move(shape), DType::F32, true};
}
inline OperandCase definite(Shape shape) {
    return {std::move(shape), DType::F32, false, true};
}
inline OperandCase absent() {
    return {{}, DType::Unknown};
}

inline std::vector<RuleCase> contractionCases() {
    using enum OpKind;
    return {
        {"matmul", MatMul, {}, {{{12, 8}}, {{8, 24}}}},
        {"matmul bias", MatMul, {}, {{{12, 8}}, {{8, 24}}, {{24}}}},
        {"matmul batched", MatMul, {}, {{{4, 6, 8}}, {{4, 8, 12}}}},
        {"matmul broadcast", MatMul, {}, {{{2, 6, 4, 12}}, {{6, 12, 8}}, {{4, 8}}}},
        {"matmul transposed", MatMul, {{"transA", I{1}}, {"transB", I{1}}}, {{{8, 12}}, {{6, 8}}}},
        {"matmul vector", MatMul, {}, {{{12}}, {{4, 12, 6}}}},
        {"matmul uneven", MatMul, {}, {{{5, 7}}, {{7, 9}}, {{9}}}},
        {"einsum attention",
         Einsum,
         {{"equation", T("bshd,bthd->bhst")}},
         {{{2, 6, 4, 3}}, {{2, 12, 4, 3}}}},
        {"einsum experts",
         Einsum,
         {{"equation", T("ebch,ehf->ebcf")}},
         {{{4, 2, 3, 8}}, {{4, 8, 12}}}},
        {"einsum lone sum", Einsum, {{"equation", T("ij,k->i")}}, {{{4, 6}}, {{12}}}},
        {"einsum three",
         Einsum,
         {{"equation", T("ij,jk,kl->il")}},
         {{{4, 6}}, {{6, 8}}, {{8, 12}}}},
        {"einsum diagonal", Einsum, {{"equation", T("iij->j")}}, {{{4, 4, 12}}}},
        {"attention", Attention, {}, {{{2, 6, 4, 3}}, {{2, 12, 4, 3}}, {{2, 12, 4, 5}}}},
        {"attention causal",
         Attention,
         {{"causal", I{1}}},
         {{{2, 12, 4, 3}}, {{2, 12, 4, 3}}, {{2, 12, 4, 3}}}},
        {"attention grouped",
         Attention,
         {{"causal", I{1}}},
         {{{2, 12, 12, 2}}, {{2, 12, 6, 2}}, {{2, 12, 6, 2}}}},
        {"attention short",
         Attention,
         {{"causal", I{1}}},
         {{{2, 2, 4, 2}}, {{2, 2, 2, 2}}, {{2, 2, 2, 2}}}},
        {"attention masked",
         Attention,
         {},
         {{{2, 6, 4, 3}}, {{2, 12, 4, 3}}, {{2, 12, 4, 3}}, {{2, 4, 6, 12}}}},
    };
}

inline std::vector<RuleCase> convolutionCases() {
    using enum OpKind;
    const L strides{2, 2}, pads{1, 1, 1, 1};
    return {
        {"conv", Conv, {{"pads", pads}}, {{{4, 6, 5, 5}}, {{12, 6, 3, 3}}, {{12}}}},
        {"conv point", Conv, {}, {{{2, 8, 4, 6}}, {{4, 8, 1, 1}}}},
        {"conv strided",
         Conv,
         {{"strides", strides}, {"pads", pads}, {"dilations", L{2, 2}}},
         {{{2, 4, 9, 9}}, {{8, 4, 3, 3}}}},
        {"conv grouped", Conv, {{"group", I{4}}}, {{{2, 8, 5, 5}}, {{12, 2, 3, 3}}, {{12}}}},
        {"conv depthwise",
         Conv,
         {{"group", I{12}}, {"pads", pads}},
         {{{2, 12, 4, 4}}, {{12, 1, 3, 3}}}},
        {"conv 1d", Conv, {}, {{{4, 6, 8}}, {{4, 6, 3}}}},
        {"conv transpose",
         ConvTranspose,
         {{"strides", strides}},
         {{{2, 6, 4, 4}}, {{6, 4, 3, 3}}, {{4}}}},
        {"conv transpose grouped",
         ConvTranspose,
         {{"group", I{2}}},
         {{{4, 4, 3, 3}}, {{4, 6, 2, 2}}}},
        {"pool max",
         Pool,
         {{"mode", T("max")}, {"kernel", L{3, 3}}, {"strides", strides}, {"pads", pads}},
         {{{4, 6, 7, 7}}}},
        {"pool average",
         Pool,
         {{"mode", T("average")}, {"kernel", L{2, 2}}, {"strides", strides}},
         {{{2, 4, 6, 6}}}},
        {"global average", GlobalPool, {{"mode", T("average")}}, {{{2, 4, 6, 4}}}},
        {"global max", GlobalPool, {{"mode", T("max")}}, {{{2, 4, 6, 4}}}},
    };
}

inline RuleCase elementwise(std::string function, std::vector<OperandCase> operands,
                            Attributes attributes = {}) {
    attributes.set("function", function);
    return {"elementwise " + function, OpKind::Elementwise, std::move(attributes),
            std::move(operands)};
}

inline std::vector<RuleCase> vectorCases() {
    using enum OpKind;
    std::vector<RuleCase> cases{
        elementwise("add", {{{4, 6, 8}}, {{6, 8}}}),
        elementwise("mul", {{{4, 1, 8}}, {{1, 6, 8}}}),
        elementwise("sub", {{{4, 6}}, {{1}}}),
        elementwise("div", {{{4, 6}}, positive({6})}),
        elementwise("where", {mask({4, 6}), {{4, 6}}, {{6}}}),
        elementwise("cast", {{{4, 6}}}, {{"to", T("bf16")}}),
        {"dropout", Dropout, {{"ratio", 0.5}}, {{{4, 12}}}},
        {"softmax", Softmax, {{"axes", L{2}}, {"function", T("softmax")}}, {{{2, 4, 12}}}},
        {"softmax two axes",
         Softmax,
         {{"axes", L{1, 2}}, {"function", T("softmax")}},
         {{{2, 4, 6}}}},
        {"log-softmax", Softmax, {{"axes", L{1}}, {"function", T("logsoftmax")}}, {{{4, 12}}}},
        {"hardmax", Softmax, {{"axes", L{1}}, {"function", T("hardmax")}}, {{{4, 12}}}},
        {"layer norm",
         Norm,
         {{"mode", T("layer")}, {"axes", L{2}}},
         {{{2, 6, 12}}, {{12}}, {{12}}}},
        {"layer norm two axes",
         Norm,
         {{"mode", T("layer")}, {"axes", L{1, 2}}},
         {{{4, 6, 4}}, {{6, 4}}, {{6, 4}}}},
        {"rms norm", Norm, {{"mode", T("rms")}, {"axes", L{2}}}, {{{2, 6, 12}}, {{12}}}},
        {"batch norm",
         Norm,
         {{"mode", T("batch")}},
         {{{4, 6, 2, 2}}, {{6}}, {{6}}, {{6}}, positive({6})}},
        {"batch norm training",
         Norm,
         {{"mode", T("batch")}, {"training", I{1}}},
         {{{4, 6, 2, 2}}, {{6}}, {{6}}}},
        {"group norm",
         Norm,
         {{"mode", T("group")}, {"groups", I{2}}},
         {{{4, 6, 3, 2}}, {{6}}, {{6}}}},
        {"instance norm", Norm, {{"mode", T("instance")}}, {{{4, 6, 3, 2}}, {{6}}, {{6}}}},
        {"rotary", Rotary, {}, {{{2, 6, 4, 8}}}},
        {"arg max", ArgReduce, {{"function", T("argmax")}, {"axis", I{1}}}, {{{4, 12}}}},
        {"top-k", TopK, {{"axis", I{1}}, {"k", I{3}}}, {{{4, 12}}}},
        {"cumulative sum", CumSum, {{"axis", I{1}}}, {{{4, 12}}}},
        {"cross-entropy", CrossEntropy, {}, {{{4, 6, 12}}, ints({4, 6})}},
        {"cross-entropy flat", CrossEntropy, {}, {{{6, 8}}, ints({6})}},
    };
    for (const char* function : {"relu", "gelu", "silu", "tanh", "sigmoid", "exp", "neg"})
        cases.push_back(elementwise(function, {{{4, 6}}}));
    for (const char* function : {"sqrt", "log"})
        cases.push_back(elementwise(function, {positive({4, 6})}));
    for (const char* function :
         {"sum", "mean", "max", "min", "prod", "l1", "l2", "sumsquare", "logsumexp"})
        cases.push_back({std::string("reduce ") + function,
                         Reduce,
                         {{"function", T(function)}, {"axes", L{0, 2}}, {"keepdims", I{0}}},
                         {{{4, 6, 2}}}});
    cases.push_back({"reduce logsum",
                     Reduce,
                     {{"function", T("logsum")}, {"axes", L{1}}, {"keepdims", I{1}}},
                     {positive({4, 12})}});
    return cases;
}

inline std::vector<RuleCase> movementCases() {
    using enum OpKind;
    return {
        {"embedding", Gather, {{"axis", I{0}}}, {{{24, 8}}, ints({4, 6})}},
        {"gather inner", Gather, {{"axis", I{1}}}, {{{4, 12, 6}}, ints({8})}},
        {"transpose", Transpose, {{"perm", L{2, 0, 1}}}, {{{4, 6, 8}}}},
        {"reshape split", Reshape, {{"shape", L{4, 6, 3, 4}}}, {{{4, 6, 12}}}},
        {"reshape merge", Reshape, {{"shape", L{24, 12}}}, {{{4, 6, 12}}}},
        {"reshape odd", Reshape, {{"shape", L{4, 6}}}, {{{6, 4}}}},
        {"reshape squeeze", Reshape, {{"shape", L{4, 6}}}, {{{4, 1, 6}}}},
        {"expand", Expand, {{"shape", L{4, 6, 8}}}, {{{6, 1}}}},
        {"tile", Tile, {{"repeats", L{2, 1}}}, {{{4, 6}}}},
        {"concat", Concat, {{"axis", I{1}}}, {{{4, 6}}, {{4, 2}}}},
        {"split", Split, {{"axis", I{1}}, {"sizes", L{4, 8}}}, {{{4, 12}}}},
        {"slice",
         Slice,
         {{"starts", L{1}}, {"ends", L{5}}, {"axes", L{1}}, {"steps", L{2}}},
         {{{4, 6, 2}}}},
        {"slice backwards",
         Slice,
         {{"starts", L{-1}}, {"ends", L{-100}}, {"axes", L{1}}, {"steps", L{-1}}},
         {{{4, 6}}}},
        {"pad", Pad, {{"pads", L{0, 1, 0, 2}}}, {{{4, 6}}}},
    };
}

inline std::vector<RuleCase> mixtureCases() {
    using enum OpKind;
    return {
        {"dispatch", MoeDispatch, {{"top_k", I{2}}}, {{{4, 12, 6}}, positive({4, 12, 4})}},
        {"dispatch tight",
         MoeDispatch,
         {{"top_k", I{1}}, {"capacity_factor", 0.5}},
         {{{2, 8, 4}}, positive({2, 8, 4})}},
        {"combine", MoeCombine, {{"top_k", I{2}}}, {{{4, 2, 6, 8}}, positive({2, 12, 4})}},
    };
}

inline std::vector<RuleCase> indexingCases() {
    using enum OpKind;
    const auto scatter = [](const std::string& name, std::string mode, std::string reduction,
                            std::vector<OperandCase> operands) {
        return RuleCase{
            "scatter " + name,
            Scatter,
            {{"mode", T(std::move(mode))}, {"reduction", T(std::move(reduction))}, {"axis", I{1}}},
            std::move(operands)};
    };
    return {
        {"gather elements", GatherElements, {{"axis", I{1}}}, {{{4, 12}}, ints({4, 6})}},
        {"gather elements outer", GatherElements, {{"axis", I{0}}}, {{{12, 6}}, ints({4, 6})}},
        {"gather vectors", GatherND, {}, {{{4, 6, 12}}, ints({8, 2})}},
        {"gather vectors batched",
         GatherND,
         {{"batch_dims", I{1}}},
         {{{4, 6, 12}}, ints({4, 2, 1})}},
        scatter("elements", "elements", "none", {{{4, 12}}, ints({4, 1}), {{4, 1}}}),
        scatter("elements add", "elements", "add", {{{4, 6}}, ints({4, 12}), {{4, 12}}}),
        scatter("vectors", "nd", "none", {{{6, 4, 12}}, ints({1, 2}), {{1, 12}}}),
        scatter("vectors add", "nd", "add", {{{6, 4, 12}}, ints({8, 1}), {{8, 4, 12}}}),
        scatter("cache", "cache", "none", {{{4, 12, 6}}, absent(), {{4, 3, 6}}}),
        {"one-hot", OneHot, {{"axis", I{1}}, {"depth", I{12}}}, {ints({4}), {{2}}}},
        {"triangle", Trilu, {{"upper", I{1}}, {"diagonal", I{1}}}, {{{4, 6, 12}}}},
        {"reversed sequence",
         ReverseSequence,
         {{"batch_axis", I{0}}, {"time_axis", I{1}}},
         {{{4, 6, 12}}, ints({4})}},
        {"range",
         Generate,
         {{"function", T("range")},
          {"shape", L{12}},
          {"to", T("f32")},
          {"start", 1.0},
          {"step", 0.5}},
         {}},
        {"diagonal",
         Generate,
         {{"function", T("eye")}, {"shape", L{4, 12}}, {"to", T("f32")}, {"diagonal", I{1}}},
         {}},
        {"noise",
         Generate,
         {{"function", T("normal")},
          {"shape", L{4, 12}},
          {"to", T("f32")},
          {"mean", 0.0},
          {"scale", 1.0},
          {"seed", 3.0}},
         {}},
    };
}

inline std::vector<RuleCase> imageCases() {
    using enum OpKind;
    return {
        {"local norm", LocalNorm, {{"size", I{3}}}, {{{4, 6, 2, 2}}}},
        {"resize nearest",
         Resize,
         {{"sizes", L{4, 6, 4, 4}},
          {"scales", std::vector<double>{1, 1, 2, 2}},
          {"mode", T("nearest")}},
         {{{4, 6, 2, 2}}}},
        {"resize linear",
         Resize,
         {{"sizes", L{4, 6, 4, 6}},
          {"scales", std::vector<double>{1, 1, 2, 3}},
          {"mode", T("linear")}},
         {{{4, 6, 2, 2}}}},
        {"grid sample",
         GridSample,
         {{"mode", T("linear")}, {"padding", T("zeros")}},
         {{{4, 6, 3, 3}}, {{4, 2, 6, 2}}}},
        {"regions",
         RoiAlign,
         {{"height", I{2}}, {"width", I{3}}, {"scale", 2.0}, {"half_pixel", I{1}}},
         {{{3, 6, 4, 5}}, {{12, 4}}, ints({12})}},
        {"regions largest",
         RoiAlign,
         {{"height", I{2}}, {"width", I{2}}, {"mode", T("max")}, {"sampling_ratio", I{2}}},
         {{{3, 6, 4, 5}}, {{12, 4}}, ints({12})}},
    };
}

/// At positions that are data: two of three numbers of an index vector say where a window begins.
inline std::vector<RuleCase> indexWindowCases() {
    using enum OpKind;
    const Attributes rows{{"offset_dims", L{2, 3}},
                          {"collapsed_dims", L{0}},
                          {"index_map", L{1, 0}},
                          {"index_vector_dim", I{2}},
                          {"slice_sizes", L{1, 2, 4}}};
    const Attributes batched{{"offset_dims", L{3}},         {"collapsed_dims", L{1}},
                             {"batching_dims", L{0, 2}},    {"index_batching_dims", L{1, 0}},
                             {"index_map", L{1, 3}},        {"index_vector_dim", I{3}},
                             {"slice_sizes", L{1, 1, 1, 2}}};
    const auto reducing = [](Attributes attributes, const char* reduction) {
        attributes.set("reduction", T(reduction));
        return attributes;
    };
    return {
        {"dynamic slice",
         DynamicSlice,
         {{"sizes", L{4, 2, 6}}},
         {{{4, 12, 6}}, ints({}), ints({}), ints({})}},
        {"dynamic slice inner",
         DynamicSlice,
         {{"sizes", L{4, 6}}},
         {{{6, 12}}, ints({}), ints({})}},
        {"dynamic update", DynamicUpdate, {}, {{{4, 12}}, {{4, 6}}, ints({}), ints({})}},
        {"gather windows", GatherWindows, rows, {{{12, 6, 4}}, ints({4, 6, 2})}},
        {"gather windows batched", GatherWindows, batched, {{{4, 6, 2, 4}}, ints({2, 4, 6, 2})}},
        {"scatter windows",
         ScatterWindows,
         reducing(rows, "none"),
         {{{12, 6, 4}}, ints({1, 1, 2}), {{1, 1, 2, 4}}}},
        {"scatter windows add",
         ScatterWindows,
         reducing(rows, "add"),
         {{{12, 6, 4}}, ints({4, 6, 2}), {{4, 6, 2, 4}}}},
        {"scatter windows max",
         ScatterWindows,
         reducing(rows, "max"),
         {{{12, 6, 4}}, ints({4, 6, 2}), {{4, 6, 2, 4}}}},
        {"scatter windows batched",
         ScatterWindows,
         reducing(batched, "add"),
         {{{4, 6, 2, 4}}, ints({2, 4, 6, 2}), {{2, 4, 6, 2}}}},
        {"scatter windows of two arrays",
         ScatterWindows,
         reducing(rows, "add"),
         {{{12, 6, 4}}, {{12, 6, 4}}, ints({2, 3, 2}), {{2, 3, 2, 4}}, {{2, 3, 2, 4}}}},
    };
}

inline std::vector<RuleCase> slidingCases() {
    using enum OpKind;
    std::vector<RuleCase> cases{
        {"windows apart",
         ReduceWindow,
         {{"function", T("max")}, {"kernel", L{1, 3, 2}}, {"strides", L{1, 3, 2}}},
         {{{4, 12, 8}}, {{4, 12, 8}}}},
        {"windows padded",
         ReduceWindow,
         {{"function", T("sum")},
          {"kernel", L{1, 3}},
          {"strides", L{1, 2}},
          {"pads", L{0, 1, 0, 1}},
          {"dilations", L{1, 2}}},
         {{{4, 12}}}},
        {"select and scatter",
         SelectAndScatter,
         {{"function", T("max")}, {"kernel", L{1, 2, 2}}, {"strides", L{1, 2, 2}}},
         {{{4, 8, 6}}, {{4, 4, 3}}}},
        {"select and scatter overlapping",
         SelectAndScatter,
         {{"function", T("min")},
          {"kernel", L{1, 3}},
          {"strides", L{1, 2}},
          {"pads", L{0, 1, 0, 1}}},
         {{{4, 6}}, {{4, 3}}}},
    };
    for (const char* function : {"min", "prod"})
        cases.push_back({std::string("windows ") + function,
                         ReduceWindow,
                         {{"function", T(function)}, {"kernel", L{1, 3}}, {"strides", L{1, 3}}},
                         {{{6, 12}}}});
    return cases;
}

inline std::vector<RuleCase> matrixCases() {
    using enum OpKind;
    const auto solve = [](const std::string& name, I left, I lower, I unit, I transpose,
                          Shape sides) {
        return RuleCase{"solve " + name,
                        LinearAlgebra,
                        {{"function", T("solve")},
                         {"left", left},
                         {"lower", lower},
                         {"unit", unit},
                         {"transpose", transpose}},
                        {definite({4, 3, 3}), {std::move(sides)}}};
    };
    const auto transform = [](const std::string& function, L length, OperandCase x) {
        return RuleCase{function,
                        Fourier,
                        {{"function", function}, {"length", std::move(length)}},
                        {std::move(x)}};
    };
    return {
        {"sort", Sort, {{"axis", I{1}}}, {{{4, 12}}}},
        {"sort with others",
         Sort,
         {{"axis", I{0}}, {"descending", I{1}}},
         {{{6, 4, 2}}, ints({6, 4, 2}), {{6, 4, 2}}}},
        {"sort the first", Sort, {{"axis", I{1}}, {"k", I{2}}}, {{{6, 8}}, {{6, 8}}}},
        {"cholesky", LinearAlgebra, {{"function", T("cholesky")}}, {definite({2, 6, 3, 3})}},
        {"cholesky upper",
         LinearAlgebra,
         {{"function", T("cholesky")}, {"lower", I{0}}},
         {definite({4, 3, 3})}},
        solve("left", 1, 1, 0, 0, {4, 3, 6}),
        solve("left transposed", 1, 0, 1, 1, {4, 3, 6}),
        solve("right", 0, 1, 0, 0, {4, 6, 3}),
        solve("right transposed", 0, 0, 0, 1, {4, 6, 3}),
        {"eigenvalues", LinearAlgebra, {{"function", T("eigh")}}, {definite({4, 3, 3})}},
        {"qr", LinearAlgebra, {{"function", T("qr")}}, {{{4, 5, 3}}}},
        {"householder", LinearAlgebra, {{"function", T("householder")}}, {{{4, 5, 4}}, {{4, 3}}}},
        transform("fft", {4, 6}, {{4, 4, 6}, DType::C64}),
        transform("ifft", {6}, {{4, 2, 6}, DType::C64}),
        transform("rfft", {4, 6}, {{4, 4, 6}}),
        transform("irfft", {4, 6}, {{4, 4, 4}, DType::C64}),
        {"bits narrower", Bitcast, {{"to", T("u32")}}, {{{4, 6}, DType::U64}}},
        {"bits wider", Bitcast, {{"to", T("u64")}}, {{{4, 6, 2}, DType::U32}}},
        {"bits of numbers", Bitcast, {{"to", T("u32")}}, {{{4, 12}}}},
        {"random bits", RandomBits, {{"shape", L{4, 12}}, {"to", T("u32")}}, {{{2}, DType::U64}}},
    };
}

inline std::vector<RuleCase> recurrentCases() {
    using enum OpKind;
    return {
        {"lstm",
         Recurrent,
         {{"cell", T("lstm")}, {"direction", T("forward")}},
         {{{3, 4, 6}}, {{1, 8, 6}}, {{1, 8, 2}}, {{1, 16}}}},
        {"gru",
         Recurrent,
         {{"cell", T("gru")}, {"direction", T("bidirectional")}},
         {{{3, 4, 6}}, {{2, 6, 6}}, {{2, 6, 2}}}},
        {"rnn",
         Recurrent,
         {{"cell", T("rnn")}, {"direction", T("reverse")}},
         {{{3, 4, 6}}, {{1, 2, 6}}, {{1, 2, 2}}}},
    };
}

inline std::vector<RuleCase> expertCases() {
    using enum OpKind;
    return {
        {"gates", Gates, {{"top_k", I{2}}, {"normalize", I{1}}}, {{{4, 6, 8}}}},
        {"experts",
         Experts,
         {{"function", T("silu")}, {"top_k", I{2}}},
         {{{6, 8}}, {{6, 4}}, {{4, 8, 12}}, {{4, 12, 8}}}},
        {"experts gated",
         Experts,
         {{"function", T("silu")}, {"top_k", I{2}}},
         {{{6, 8}}, {{6, 4}}, {{4, 8, 12}}, {{4, 12, 8}}, {{4, 12}}, {{4, 8, 12}}}},
        {"experts cut off",
         Experts,
         {{"function", T("swiglu")}, {"alpha", 1.5}, {"beta", 1.0}, {"limit", 0.5}},
         {{{6, 8}}, {{6, 4}}, {{4, 8, 12}}, {{4, 12, 8}}, {{4, 12}}, {{4, 8, 12}}, {{4, 12}}}},
    };
}

inline std::vector<RuleCase> gradientCases() {
    using namespace gradient;
    const auto of = [](const std::string& name, OpKind kind, Attributes forward, L roles, L wanted,
                       std::vector<OperandCase> operands, std::vector<Shape> results = {}) {
        return RuleCase{
            "gradient of " + name, OpKind::Gradient,
            attributesFor(kind, std::move(forward), std::move(roles), std::move(wanted)),
            std::move(operands), std::move(results)};
    };
    return {
        of("matmul", OpKind::MatMul, {}, {kForwardOperand, kForwardOperand + 1, kResultGradient},
           {0, 1}, {{{4, 6}}, {{6, 12}}, {{4, 12}}}),
        of("softmax", OpKind::Softmax, {{"axes", L{1}}, {"function", T("softmax")}},
           {kForwardResult, kResultGradient}, {0}, {{{4, 12}}, {{4, 12}}}, {{4, 12}}),
        of("embedding", OpKind::Gather, {{"axis", I{0}}},
           {kForwardOperand, kForwardOperand + 1, kResultGradient}, {0},
           {{{12, 8}}, ints({4, 6}), {{4, 6, 8}}}),
        of("gelu", OpKind::Elementwise, {{"function", T("gelu")}},
           {kForwardOperand, kResultGradient}, {0}, {{{4, 6}}, {{4, 6}}}),
    };
}

inline std::vector<RuleCase> ruleCases() {
    std::vector<RuleCase> all;
    for (const auto& family :
         {contractionCases(), convolutionCases(), vectorCases(), movementCases(), mixtureCases(),
          indexingCases(), indexWindowCases(), slidingCases(), matrixCases(), imageCases(),
          recurrentCases(), expertCases(), gradientCases()})
        all.insert(all.end(), family.begin(), family.end());
    return all;
}

/// The op with its operands as sources, and its results as outputs.
inline Graph graphOf(const RuleCase& rule) {
    Graph graph;
    graph.name = rule.name;
    Op op;
    op.name = "op";
    op.kind = rule.kind;
    op.attributes = rule.attributes;
    for (std::size_t i = 0; i < rule.operands.size(); ++i) {
        const OperandCase& operand = rule.operands[i];
        if (operand.dtype == DType::Unknown) {
            op.inputs.push_back(kNoTensor);
            continue;
        }
        Op source;
        source.name = "operand" + std::to_string(i);
        source.kind = isFloat(operand.dtype) ? OpKind::Parameter : OpKind::Input;
        const OpId id = graph.addOp(source, {{operand.dtype, operand.shape}});
        op.inputs.push_back(graph.op(id).outputs.front());
    }
    std::vector<TensorSpec> results;
    for (const Shape& shape : rule.results) results.push_back({DType::F32, shape});
    const OpId id = results.empty() ? addInferred(graph, op) : graph.addOp(op, results);
    for (const TensorId result : graph.op(id).outputs) graph.markOutput(result);
    return graph;
}

} // namespace shardlens::test
