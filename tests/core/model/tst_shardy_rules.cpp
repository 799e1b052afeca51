// SPDX-License-Identifier: Apache-2.0
// The factor mappings that openxla/shardy publishes for its op sharding rules, against ours: facts
// of shardy/dialect/sdy/transforms/propagation/test/op_sharding_rule_registry.mlir (commit
// 009a911ff272), every one of them. Both are brought to one notation: letters by first appearance
// with their sizes; "1" is a dimension, or the part of one, that may not be cut (a factor of size
// 1, one that needs replication); r is a reduction, i one whose statistics the op exchanges itself,
// p a permutation. Operands that say what a reduction starts from are left out.
//
// Where ours differs the row says what it is instead, and why. Two custom calls have no op of ours:
// they are opaque, and their rows say so.
#include "tests/core/model/one_op.h"
#include "tests/test_program.h"

#include <fmt/ranges.h>

#include <QTest>

#include <algorithm>

namespace tst_shardy_rules {

using namespace shardlens;
using test::integer;
using test::oneOp;
using test::real;

namespace {

using Ints = std::vector<std::int64_t>;
using Text = std::string;

/// The common notation of a rule.
class Normal {
public:
    explicit Normal(const FactorRule& rule) : m_rule(rule), m_letters(rule.factors.size(), 0) {}

    QString text() {
        std::string text = side(m_rule.operands) + "->";
        text += side(m_rule.results);
        std::vector<std::string> sizes;
        for (const std::size_t f : m_order)
            sizes.push_back(fmt::format("{}={}", m_letters[f], m_rule.factors[f].size));
        if (!sizes.empty()) text += fmt::format(" {}", fmt::join(sizes, ","));
        text += kind(FactorKind::Reduction, 'r') + kind(FactorKind::Internal, 'i') +
                kind(FactorKind::Permutation, 'p');
        return QString::fromStdString(text);
    }

private:
    std::string dim(const DimFactors& dim) {
        std::string text;
        for (const int factor : dim) {
            const auto f = static_cast<std::size_t>(factor);
            if (m_rule.factors[f].size == 1) continue;
            if (m_rule.factors[f].kind == FactorKind::Replicate) {
                text += '1';
                continue;
            }
            if (m_letters[f] == 0) {
                m_letters[f] = static_cast<char>('a' + m_order.size());
                m_order.push_back(f);
            }
            text += m_letters[f];
        }
        return text.empty() ? "1" : text;
    }

    std::string side(const std::vector<std::vector<DimFactors>>& tensors) {
        std::vector<std::string> texts;
        for (const auto& dims : tensors) {
            std::vector<std::string> each;
            for (const DimFactors& factors : dims) each.push_back(dim(factors));
            texts.push_back(fmt::format("[{}]", fmt::join(each, ",")));
        }
        return fmt::format("({})", fmt::join(texts, ","));
    }

    std::string kind(FactorKind wanted, char name) const {
        std::string letters;
        for (const std::size_t f : m_order)
            if (m_rule.factors[f].kind == wanted) letters += m_letters[f];
        if (letters.empty()) return {};
        std::ranges::sort(letters);
        return fmt::format(" {}={{{}}}", name, fmt::join(letters, ","));
    }

    const FactorRule& m_rule;
    std::vector<char> m_letters;
    std::vector<std::size_t> m_order;
};

FactorRule elementwise(const Text& function, const std::vector<TensorSpec>& operands) {
    return oneOp(OpKind::Elementwise, operands, {{"function", function}}).rule();
}
FactorRule expand(const Shape& from, const Ints& to) {
    return oneOp(OpKind::Expand, {real(from)}, {{"shape", to}}).rule();
}
FactorRule reshape(const Shape& from, const Ints& to) {
    return oneOp(OpKind::Reshape, {real(from)}, {{"shape", to}}).rule();
}
FactorRule concat(const std::vector<std::int64_t>& sizes) {
    std::vector<TensorSpec> operands;
    for (const std::int64_t size : sizes) operands.push_back(real({4, size, 256}));
    return oneOp(OpKind::Concat, operands, {{"axis", std::int64_t{1}}}).rule();
}
FactorRule conv(const Shape& image, const Shape& kernel, std::int64_t group = 1) {
    return oneOp(OpKind::Conv, {real(image), real(kernel)},
                 {{"strides", Ints{2, 2}}, {"pads", Ints{0, 0, 1, 1}}, {"group", group}})
        .rule();
}
FactorRule topK(const Shape& shape, std::int64_t axis, std::int64_t k) {
    return oneOp(OpKind::TopK, {real(shape)}, {{"axis", axis}, {"k", k}}).rule();
}
FactorRule product(const Shape& a, const Shape& b) {
    return oneOp(OpKind::MatMul, {real(a), real(b)}).rule();
}
FactorRule einsum(const Text& equation, const Shape& a, const Shape& b) {
    return oneOp(OpKind::Einsum, {real(a), real(b)}, {{"equation", equation}}).rule();
}
FactorRule sum(const Shape& shape, std::int64_t axis) {
    return oneOp(OpKind::Reduce, {real(shape)},
                 {{"function", Text("sum")}, {"axes", Ints{axis}}, {"keepdims", std::int64_t{0}}})
        .rule();
}
FactorRule slice(const Shape& shape, const Ints& axes, const Ints& starts, const Ints& ends,
                 const Ints& steps) {
    return oneOp(OpKind::Slice, {real(shape)},
                 {{"axes", axes}, {"starts", starts}, {"ends", ends}, {"steps", steps}})
        .rule();
}

FactorRule algebra(const Text& function, const std::vector<TensorSpec>& operands,
                   Attributes attributes = {}) {
    attributes.set("function", function);
    return oneOp(OpKind::LinearAlgebra, operands, std::move(attributes)).rule();
}
FactorRule solve(const Shape& b, std::int64_t left, std::int64_t transpose) {
    return algebra("solve", {real({8, 3, 3}), real(b)}, {{"left", left}, {"transpose", transpose}});
}
FactorRule fourier(const Text& function, const TensorSpec& x) {
    return oneOp(OpKind::Fourier, {x}, {{"function", function}, {"length", Ints{32, 64}}}).rule();
}
FactorRule bitcast(const TensorSpec& x, const Text& to) {
    return oneOp(OpKind::Bitcast, {x}, {{"to", to}}).rule();
}
FactorRule opaque(const Shape& from, const Shape& to) {
    const Op op{"op", OpKind::Opaque, {}, {}, {}, {}};
    return factorRule({op, {real(from)}, {real(to)}});
}
/// The two largest of a line, and what stands at the same places of another operand.
FactorRule firstTwo() {
    return oneOp(
               OpKind::Sort, {real({16, 4}), real({16, 4})},
               {{"axis", std::int64_t{1}}, {"descending", std::int64_t{1}}, {"k", std::int64_t{2}}})
        .rule();
}

/// Dimension numbers of gathers and scatters.
Attributes numbers(const Ints& offset, const Ints& collapsed, const Ints& map,
                   std::int64_t vectorDim, const Ints& batching = {}, const Ints& ofIndices = {}) {
    return {{"offset_dims", offset},     {"collapsed_dims", collapsed},
            {"index_map", map},          {"index_vector_dim", vectorDim},
            {"batching_dims", batching}, {"index_batching_dims", ofIndices},
            {"reduction", Text("add")}};
}
FactorRule gather(const Shape& data, const Shape& indices, const Ints& sizes,
                  Attributes attributes) {
    attributes.set("slice_sizes", sizes);
    return oneOp(OpKind::GatherWindows, {real(data), integer(indices)}, std::move(attributes))
        .rule();
}
FactorRule scatter(const Shape& data, const Shape& indices, const Shape& updates,
                   Attributes attributes) {
    return oneOp(OpKind::ScatterWindows, {real(data), integer(indices), real(updates)},
                 std::move(attributes))
        .rule();
}

struct Fact {
    const char* name; ///< of the published test function
    FactorRule rule;
    QString published;
    QString ours{}; ///< where it differs
    const char* why = "";
};

// Reasons of the differences.
const char* const kPieces = "a part of the result holds other pieces of the operands: all would "
                            "move, which is a conversion and priced as one";
const char* const kHalo = "windows are not cut: halo exchange is not priced yet, so that each side "
                          "has a factor of its own";
const char* const kSorted = "all of the axis is compared";
const char* const kOneSide = "a factor of the one side is gathered before or sliced after: "
                             "conversions, priced as such";
const char* const kBehind = "what lines up at the right end lies behind another factor in its "
                            "dimension, where a cut is not contiguous";
const char* const kMasked =
    "a part of the data gives the elements it has and zeros for others: the "
    "parts add up";
const char* const kAdded = "parts of the windows add up like whole ones";
const char* const kFactors = "a factorisation works on whole matrices: a cut dimension would be "
                             "gathered before";
const char* const kSides = "right-hand sides are solved each for itself";
const char* const kAllOfIt = "each element of a transform depends on all of the transformed dims";
const char* const kUnknownCall = "what it computes is said nowhere: opaque, and replicated";
const char* const kReversed = "the parts change places";

// clang-format off: a table
std::vector<Fact> publishedFacts() {
    const TensorSpec cube = real({4, 8});
    return {
        {"pointwise_op", elementwise("add", {real({2, 1, 4}), real({2, 1, 4})}),
         "([a,1,b],[a,1,b])->([a,1,b]) a=2,b=4"},
        {"pointwise_op_size_zero_dim", elementwise("add", {real({2, 0, 4}), real({2, 0, 4})}),
         "([a,b,c],[a,b,c])->([a,b,c]) a=2,b=0,c=4"},
        {"scalar_op", elementwise("add", {real({}), real({})}), "([],[])->([])"},
        {"bitcast_convert_upcast", bitcast({DType::U32, {4, 2, 2}}, "u64"),
         "([a,b,1])->([a,b]) a=4,b=2"},
        {"bitcast_convert_equal", elementwise("cast", {real({4, 2, 2})}),
         "([a,b,c])->([a,b,c]) a=4,b=2,c=2"},
        {"bitcast_convert_downcast", bitcast({DType::U64, {4, 2}}, "u32"),
         "([a,b])->([a,b,1]) a=4,b=2"},
        // Broadcasts: the dimensions that the operand lacks are there, of size 1.
        {"broadcast_in_dim", expand({2, 1, 13, 1}, {2, 64, 13, 1}),
         "([a,1,b,1])->([a,c,b,1]) a=2,b=13,c=64"},
        {"broadcast_in_dim_size_zero_dim", expand({2, 1, 13, 0}, {2, 64, 13, 0}),
         "([a,1,b,c])->([a,d,b,c]) a=2,b=13,c=0,d=64"},
        {"broadcast_in_dim_no_broadcast_dims", expand({}, {2, 1, 13}), "([])->([a,1,b]) a=2,b=13"},
        {"broadcast_in_dim_input_dim_expanded", expand({2, 1, 13}, {2, 64, 13}),
         "([a,1,b])->([a,c,b]) a=2,b=13,c=64"},
        {"broadcast_in_dim_all_dim_types_in_one (transposed before)",
         expand({2, 5, 3, 1, 7, 1}, {2, 5, 3, 11, 7, 13}),
         "([a,b,c,1,d,1])->([a,b,c,e,d,f]) a=2,b=5,c=3,d=7,e=11,f=13"},
        {"cholesky", algebra("cholesky", {real({2, 4, 8, 8})}),
         "([a,b,1,1])->([a,b,1,1]) a=2,b=4"},
        {"clamp", elementwise("clip", {cube, cube, cube}), "([a,b],[a,b],[a,b])->([a,b]) a=4,b=8"},
        {"clamp_scalar_min_max", elementwise("clip", {real({}), cube, real({})}),
         "([],[a,b],[])->([a,b]) a=4,b=8"},
        {"concat_operands_dim_size_one", concat({1, 1, 1}),
         "([a,b,c],[a,b,c],[a,b,c])->([a,b,c]) a=4,b=3,c=256 p={b}",
         "([a,1,b],[a,1,b],[a,1,b])->([a,1,b]) a=4,b=256", kPieces},
        {"concat_gcd_is_one", concat({3, 5}),
         "([a,b,c],[a,b,c])->([a,b,c]) a=4,b=8,c=256 p={b}",
         "([a,1,b],[a,1,b])->([a,1,b]) a=4,b=256", kPieces},
        {"concat_operands_with_same_shape", concat({16, 16}),
         "([a,b,c],[a,b,c])->([a,b,c]) a=4,b=32,c=256 p={b}",
         "([a,1,b],[a,1,b])->([a,1,b]) a=4,b=256", kPieces},
        {"concat_gcd_is_equal_to_operand_dim", concat({32, 16}),
         "([a,b,c],[a,b,c])->([a,b,c]) a=4,b=48,c=256 p={b}",
         "([a,1,b],[a,1,b])->([a,1,b]) a=4,b=256", kPieces},
        {"concat_gcd_is_greater_than_all_operand_dims", concat({32, 48}),
         "([a,b,c],[a,b,c])->([a,b,c]) a=4,b=80,c=256 p={b}",
         "([a,1,b],[a,1,b])->([a,1,b]) a=4,b=256", kPieces},
        // Convolutions, channels first.
        {"conv_simple", conv({2, 192, 224, 224}, {64, 192, 3, 3}),
         "([a,b,cd,ef],[g,b,d,f])->([a,g,c,e]) a=2,b=192,c=112,d=2,e=112,f=2,g=64 r={b,d,f} "
         "p={c,e}",
         "([a,b,c,d],[e,b,1,1])->([a,e,f,g]) a=2,b=192,c=224,d=224,e=64,f=112,g=112 r={b} "
         "p={c,d,f,g}", kHalo},
        {"conv_window_size_greater_than_num_windows",
         conv({2, 192, 224, 224}, {64, 192, 112, 112}),
         "([a,b,cd,ef],[g,b,c,e])->([a,g,d,f]) a=2,b=192,c=112,d=2,e=112,f=2,g=64 r={b,c,e} "
         "p={d,f}",
         "([a,b,c,d],[e,b,1,1])->([a,e,f,g]) a=2,b=192,c=224,d=224,e=64,f=57,g=57 r={b} "
         "p={c,d,f,g}", kHalo},
        {"conv_batch_group_count (the groups moved before the channels)",
         conv({2, 768, 224, 224}, {256, 192, 3, 3}, 4),
         "([ab,c,de,fg],[ah,c,e,g])->([b,ah,d,f]) a=4,b=2,c=192,d=112,e=2,f=112,g=2,h=64 "
         "r={c,e,g} p={d,f}",
         "([a,bc,d,e],[bf,c,1,1])->([a,bf,g,h]) a=2,b=4,c=192,d=224,e=224,f=64,g=112,h=112 r={c} "
         "p={d,e,g,h}", kHalo},
        {"conv_feature_group_count", conv({8, 192, 224, 224}, {256, 12, 3, 3}, 16),
         "([a,bc,de,fg],[bh,c,e,g])->([a,bh,d,f]) a=8,b=16,c=12,d=112,e=2,f=112,g=2,h=16 "
         "r={c,e,g} p={d,f}",
         "([a,bc,d,e],[bf,c,1,1])->([a,bf,g,h]) a=8,b=16,c=12,d=224,e=224,f=16,g=112,h=112 r={c} "
         "p={d,e,g,h}", kHalo},
        {"custom_call_compact_wy_helper", opaque({128, 128}, {128, 128}),
         "([a,b])->([a,b]) a=128,b=128", "([1,1])->([1,1])", kUnknownCall},
        {"custom_call_x64_combine", elementwise("bitwiseor", {integer({8, 2}), integer({8, 2})}),
         "([a,b],[a,b])->([a,b]) a=8,b=2"},
        {"custom_call_move_to_device", elementwise("identity", {real({8, 4})}),
         "([a,b])->([a,b]) a=8,b=4"},
        {"custom_call_move_to_host", elementwise("identity", {real({8, 4})}),
         "([a,b])->([a,b]) a=8,b=4"},
        {"custom_call_layout_constraint", elementwise("identity", {real({8, 4})}),
         "([a,b])->([a,b]) a=8,b=4"},
        {"custom_call_eigh", algebra("eigh", {real({8, 4, 4})}),
         "([a,b,c])->([a,b,c],[a,c]) a=8,b=4,c=4", "([a,1,1])->([a,1,1],[a,1]) a=8", kFactors},
        {"custom_call_qr", algebra("qr", {real({8, 5, 3})}),
         "([a,b,c])->([a,b,c],[a,1]) a=8,b=5,c=3", "([a,1,1])->([a,1,1],[a,1]) a=8", kFactors},
        {"custom_call_qr_decomposition_block", algebra("qr", {real({8, 5, 3})}),
         "([a,b,c])->([a,b,c],[a,1]) a=8,b=5,c=3", "([a,1,1])->([a,1,1],[a,1]) a=8", kFactors},
        {"custom_call_householder_product",
         algebra("householder", {real({8, 12, 16}), real({8, 5})}),
         "([a,b,c],[a,1])->([a,b,c]) a=8,b=12,c=16", "([a,1,1],[a,1])->([a,1,1]) a=8", kFactors},
        {"custom_call_erf", elementwise("erf", {real({8, 4})}), "([a,b])->([a,b]) a=8,b=4"},
        {"custom_call_topk_of_1d", topK({16}, 0, 16), "([a])->([a],[a]) a=16",
         "([1])->([1],[1])", kSorted},
        {"custom_call_topk_of_2d", topK({16, 8}, 1, 1), "([a,1])->([a,1],[a,1]) a=16"},
        {"custom_call_top2_of_2d", topK({16, 8}, 1, 2), "([a,1])->([a,1],[a,1]) a=16"},
        {"custom_call_approx_topk", firstTwo(), "([a,1],[a,1])->([a,1],[a,1]) a=16"},
        {"custom_call_partial_reduce", firstTwo(), "([a,1],[a,1])->([a,1],[a,1]) a=16"},
        {"custom_call_partial_reduce_string_backend_config", firstTwo(),
         "([a,1],[a,1])->([a,1],[a,1]) a=16"},
        {"unregisterd_custom_call_with_existing_rule", opaque({4, 2}, {2, 4}),
         "([a,b])->([b,a]) a=4,b=2", "([1,1])->([1,1])", kUnknownCall},
        {"dot_vector_vector", product({32}, {32}), "([a],[a])->([]) a=32 r={a}"},
        {"dot_vector_matrix", product({32}, {32, 16}), "([a],[a,b])->([b]) a=32,b=16 r={a}"},
        {"dot_matrix_vector", product({8, 32}, {32}), "([a,b],[b])->([a]) a=8,b=32 r={b}"},
        {"dot_matrix_matrix", product({8, 32}, {32, 16}),
         "([a,b],[b,c])->([a,c]) a=8,b=32,c=16 r={b}"},
        {"dot_general_no_batching_dims", einsum("ik,kj->ij", {8, 32}, {32, 16}),
         "([a,b],[b,c])->([a,c]) a=8,b=32,c=16 r={b}"},
        {"dot_general_batching_dims", product({4, 8, 32}, {4, 32, 16}),
         "([a,b,c],[a,c,d])->([a,b,d]) a=4,b=8,c=32,d=16 r={c}"},
        {"dot_general_many_mixed_dims",
         einsum("ijklon,mnoji->ijklm", {2, 4, 8, 4, 64, 32}, {16, 32, 64, 4, 2}),
         "([a,b,c,d,e,f],[g,f,e,b,a])->([a,b,c,d,g]) a=2,b=4,c=8,d=4,e=64,f=32,g=16 r={e,f}"},
        {"dynamic_slice",
         oneOp(OpKind::DynamicSlice, {real({32, 4, 8}), integer({}), integer({}), integer({})},
               {{"sizes", Ints{32, 1, 2}}}).rule(),
         "([a,1,1],[],[],[])->([a,1,1]) a=32",
         "([a,b,c],[],[],[])->([a,1,d]) a=32,b=4,c=8,d=2 r={b,c}", kMasked},
        {"dynamic_update_slice",
         oneOp(OpKind::DynamicUpdate,
               {real({32, 4, 8}), real({32, 1, 2}), integer({}), integer({}), integer({})}).rule(),
         "([a,b,c],[a,1,1],[],[],[])->([a,b,c]) a=32,b=4,c=8"},
        {"fft", fourier("fft", {DType::C64, {8, 32, 64}}), "([a,b,c])->([a,b,c]) a=8,b=32,c=64",
         "([a,1,1])->([a,1,1]) a=8", kAllOfIt},
        {"fft_inverse", fourier("ifft", {DType::C64, {8, 32, 64}}),
         "([a,b,c])->([a,b,c]) a=8,b=32,c=64", "([a,1,1])->([a,1,1]) a=8", kAllOfIt},
        {"fft_real_truncated_result", fourier("rfft", real({8, 32, 64})),
         "([a,b,1])->([a,b,1]) a=8,b=32", "([a,1,1])->([a,1,1]) a=8", kAllOfIt},
        {"fft_inverse_real_expanded_result", fourier("irfft", {DType::C64, {8, 32, 33}}),
         "([a,b,1])->([a,b,1]) a=8,b=32", "([a,1,1])->([a,1,1]) a=8", kAllOfIt},
        {"gather", gather({3, 4, 2}, {2, 3, 2}, {1, 2, 2}, numbers({2, 3}, {0}, {1, 0}, 2)),
         "([a,b,c],[d,e,1])->([d,e,f,c]) a=3,b=4,c=2,d=2,e=3,f=2",
         "([a,b,c],[d,e,1])->([d,e,f,c]) a=3,b=4,c=2,d=2,e=3,f=2 r={a,b}", kMasked},
        {"gather_batching_dims",
         gather({5, 3, 7, 4}, {7, 5, 3, 2}, {1, 1, 1, 2},
                numbers({3}, {1}, {1, 3}, 3, {0, 2}, {1, 0})),
         "([a,b,c,d],[c,a,e,1])->([c,a,e,f]) a=5,b=3,c=7,d=4,e=3,f=2",
         "([a,b,c,d],[c,a,e,1])->([c,a,e,f]) a=5,b=3,c=7,d=4,e=3,f=2 r={b,d}", kMasked},
        {"gather_index_vector_dim_before_batching_dim",
         gather({5, 3, 7, 4}, {7, 2, 5, 3}, {1, 1, 1, 2},
                numbers({3}, {1}, {1, 3}, 1, {0, 2}, {2, 0})),
         "([a,b,c,d],[c,1,a,e])->([c,a,e,f]) a=5,b=3,c=7,d=4,e=3,f=2",
         "([a,b,c,d],[c,1,a,e])->([c,a,e,f]) a=5,b=3,c=7,d=4,e=3,f=2 r={b,d}", kMasked},
        {"pad", oneOp(OpKind::Pad, {real({28, 28, 16})}, {{"pads", Ints{1, -1, 0, 1, -1, 0}}}).rule(),
         "([a,b,c])->([a,b,c]) a=28,b=28,c=16 p={a,b}",
         "([a,b,c])->([d,e,c]) a=28,b=28,c=16,d=30,e=26 p={a,b,d,e}", kHalo},
        {"slice", slice({32, 4, 8}, {1, 2}, {1, 4}, {2, 8}, {1, 2}),
         "([a,b,c])->([a,b,c]) a=32,b=4,c=8 p={b,c}",
         "([a,b,c])->([a,1,d]) a=32,b=4,c=8,d=2 p={b,c,d}", kHalo},
        {"sort",
         oneOp(OpKind::Sort, {integer({4, 32, 8}), real({4, 32, 8})},
               {{"axis", std::int64_t{0}}, {"descending", std::int64_t{1}}}).rule(),
         "([1,a,b],[1,a,b])->([1,a,b],[1,a,b]) a=32,b=8"},
        {"sort (one operand and its order)", topK({4, 32, 8}, 0, 4),
         "([1,a,b])->([1,a,b],[1,a,b]) a=32,b=8"},
        {"sort_all_other_dims_size_one",
         oneOp(OpKind::Sort, {integer({1, 4, 1})}, {{"axis", std::int64_t{1}}}).rule(),
         "([1,1,1])->([1,1,1])"},
        {"reduce_single_result", sum({2, 64, 13}, 1), "([a,b,c])->([a,c]) a=2,b=64,c=13 r={b}"},
        {"reduce_multiple_results",
         oneOp(OpKind::Reduce, {real({2, 64, 13})},
               {{"function", Text("sum")}, {"axes", Ints{0, 2}}, {"keepdims", std::int64_t{0}}}).rule(),
         "([a,b,c],[a,b,c])->([b],[b]) a=2,b=64,c=13 r={a,c}",
         "([a,b,c])->([b]) a=2,b=64,c=13 r={a,c}",
         "operands that do not meet are reduced by an op each"},
        {"reduce_size_one_dim", sum({2, 64, 1, 13}, 1),
         "([a,b,1,c])->([a,1,c]) a=2,b=64,c=13 r={b}"},
        {"reduce_window",
         oneOp(OpKind::ReduceWindow, {real({48, 48, 3}), integer({48, 48, 3})},
               {{"function", Text("max")}, {"kernel", Ints{3, 1, 3}}, {"strides", Ints{3, 1, 3}},
                {"pads", Ints{0, 2, 0, 0, -2, 0}}}).rule(),
         "([a,b,1],[a,b,1])->([a,b,1],[a,b,1]) a=16,b=48 p={a}",
         "([a1,b,1],[a1,b,1])->([a,c,1],[a,c,1]) a=16,b=48,c=48 p={b,c}",
         "windows one behind the other are cut between them; padding moves elements"},
        {"reshape_scalar", reshape({1, 1}, {}), "([1,1])->([])"},
        {"reshape_size_zero_dim", reshape({4, 0}, {0, 8}), "([1,1])->([1,1])"}, // has no rule
        {"reshape_merge_dim", reshape({2, 4}, {8}), "([a,b])->([ab]) a=2,b=4"},
        {"reshape_split_dim", reshape({8}, {2, 4}), "([ab])->([a,b]) a=2,b=4"},
        {"reshape_split_dim_three_way", reshape({4, 12}, {4, 2, 3, 2}),
         "([a,bcd])->([a,b,c,d]) a=4,b=2,c=3,d=2"},
        {"reshape_split_and_merge_dims", reshape({8, 4, 5}, {2, 16, 5}),
         "([ab,c,d])->([a,bc,d]) a=2,b=4,c=4,d=5"},
        {"reshape_swap_dims_no_common_divisor", reshape({3, 2}, {2, 3}),
         "([a,b])->([c,d]) a=3,b=2,c=2,d=3", "([1,1])->([1,1])", kOneSide},
        {"reshape_swap_dims_with_common_divisor", reshape({6, 4}, {4, 6}),
         "([ab,cd])->([ae,fd]) a=2,b=3,c=2,d=2,e=2,f=3", "([a1,1])->([a1,1]) a=2", kOneSide},
        {"reshape_swap_with_dim_before_and_in_between", reshape({5, 2, 5, 3}, {5, 3, 5, 2}),
         "([a,b,c,d])->([a,e,f,g]) a=5,b=2,c=5,d=3,e=3,f=5,g=2", "([a,1,1,1])->([a,1,1,1]) a=5",
         kOneSide},
        {"reshape_swap_and_merge", reshape({2, 3, 8}, {3, 4, 4}),
         "([a,b,cd])->([e,fc,d]) a=2,b=3,c=2,d=4,e=3,f=2", "([1,1,1])->([1,1,1])",
         kBehind},
        {"reshape_split_and_swap", reshape({3, 4, 4}, {2, 3, 8}),
         "([a,bc,d])->([e,f,cd]) a=3,b=2,c=2,d=4,e=2,f=3", "([1,1,1])->([1,1,1])",
         kBehind},
        {"reshape_split_swap_and_merge", reshape({4, 7, 5, 8}, {14, 10, 8}),
         "([ab,c,d,e])->([af,gd,e]) a=2,b=2,c=7,d=5,e=8,f=7,g=2", "([a1,1,1,b])->([a1,1,b]) a=2,b=8",
         kOneSide},
        {"reshape_size_one_dims", reshape({1, 8, 4}, {8, 1, 4, 1}),
         "([1,a,b])->([a,1,b,1]) a=8,b=4"},
        {"reshape_merge_dim_then_size_one", reshape({8, 4}, {32, 1}), "([a,b])->([ab,1]) a=8,b=4"},
        {"reshape_split_dim_then_size_one", reshape({32, 1}, {8, 4}), "([ab,1])->([a,b]) a=8,b=4"},
        {"reshape_split_dim_with_intermediate_one", reshape({32}, {8, 1, 4}),
         "([ab])->([a,1,b]) a=8,b=4"},
        {"reverse", slice({4, 32, 8, 2}, {1, 3}, {-1, -1}, {-100, -100}, {-1, -1}),
         "([a,b,c,d])->([a,b,c,d]) a=4,b=32,c=8,d=2",
         "([a,b,c,d])->([a,e,c,f]) a=4,b=32,c=8,d=2,e=32,f=2 p={b,d,e,f}", kReversed},
        {"scatter_single_input",
         scatter({3, 4, 2}, {2, 3, 2}, {2, 3, 2, 2}, numbers({2, 3}, {0}, {1, 0}, 2)),
         "([a,b,c],[d,e,1],[d,e,f,c])->([a,b,c]) a=3,b=4,c=2,d=2,e=3,f=2 r={d,e}",
         "([a,b,c],[d,e,1],[d,e,f,c])->([a,b,c]) a=3,b=4,c=2,d=2,e=3,f=2 r={d,e,f}", kAdded},
        {"scatter_inserted_window_dim_is_last_one",
         scatter({4, 2, 3}, {2, 3, 2}, {2, 3, 2, 2}, numbers({2, 3}, {2}, {1, 0}, 2)),
         "([a,b,c],[d,e,1],[d,e,f,b])->([a,b,c]) a=4,b=2,c=3,d=2,e=3,f=2 r={d,e}",
         "([a,b,c],[d,e,1],[d,e,f,b])->([a,b,c]) a=4,b=2,c=3,d=2,e=3,f=2 r={d,e,f}", kAdded},
        {"scatter_batching_dims",
         scatter({5, 3, 7, 4}, {7, 5, 3, 2}, {7, 5, 3, 2},
                 numbers({3}, {1}, {1, 3}, 3, {0, 2}, {1, 0})),
         "([a,b,c,d],[c,a,e,1],[c,a,e,f])->([a,b,c,d]) a=5,b=3,c=7,d=4,e=3,f=2 r={e}",
         "([a,b,c,d],[c,a,e,1],[c,a,e,f])->([a,b,c,d]) a=5,b=3,c=7,d=4,e=3,f=2 r={e,f}", kAdded},
        {"scatter_multiple_input",
         oneOp(OpKind::ScatterWindows,
               {integer({3, 4, 2}), real({3, 4, 2}), integer({2, 3, 2}), integer({2, 3, 2, 2}),
                real({2, 3, 2, 2})},
               numbers({2, 3}, {0}, {1, 0}, 2)).rule(),
         "([a,b,c],[a,b,c],[d,e,1],[d,e,f,c],[d,e,f,c])->([a,b,c],[a,b,c]) "
         "a=3,b=4,c=2,d=2,e=3,f=2 r={d,e}",
         "([a,b,c],[a,b,c],[d,e,1],[d,e,f,c],[d,e,f,c])->([a,b,c],[a,b,c]) "
         "a=3,b=4,c=2,d=2,e=3,f=2 r={d,e,f}", kAdded},
        {"select", elementwise("where", {{DType::Bool, {4, 8}}, cube, cube}),
         "([a,b],[a,b],[a,b])->([a,b]) a=4,b=8"},
        {"select_scalar_pred", elementwise("where", {{DType::Bool, {}}, cube, cube}),
         "([],[a,b],[a,b])->([a,b]) a=4,b=8"},
        {"select_and_scatter",
         oneOp(OpKind::SelectAndScatter, {real({10, 24, 24, 64}), real({10, 12, 12, 64})},
               {{"function", Text("max")}, {"kernel", Ints{1, 2, 2, 1}},
                {"strides", Ints{1, 2, 2, 1}}}).rule(),
         "([a,b,c,d],[a,b,c,d])->([a,b,c,d]) a=10,b=12,c=12,d=64 p={b,c}",
         "([a,b1,c1,d],[a,b,c,d])->([a,b1,c1,d]) a=10,b=12,c=12,d=64",
         "windows one behind the other are cut between them"},
        {"transpose",
         oneOp(OpKind::Transpose, {real({256, 32, 64, 100})}, {{"perm", Ints{3, 1, 0, 2}}}).rule(),
         "([a,b,c,d])->([d,b,a,c]) a=256,b=32,c=64,d=100"},
        {"triangular_solve_left_side_no_transpose", solve({8, 3, 5}, 1, 0),
         "([a,1,1],[a,1,1])->([a,1,1]) a=8", "([a,1,1],[a,1,b])->([a,1,b]) a=8,b=5", kSides},
        {"triangular_solve_right_side_no_transpose", solve({8, 5, 3}, 0, 0),
         "([a,1,1],[a,1,1])->([a,1,1]) a=8", "([a,1,1],[a,b,1])->([a,b,1]) a=8,b=5", kSides},
        {"triangular_solve_left_side_transpose", solve({8, 3, 5}, 1, 1),
         "([a,1,1],[a,1,1])->([a,1,1]) a=8", "([a,1,1],[a,1,b])->([a,1,b]) a=8,b=5", kSides},
        {"triangular_solve_right_side_transpose", solve({8, 5, 3}, 0, 1),
         "([a,1,1],[a,1,1])->([a,1,1]) a=8", "([a,1,1],[a,b,1])->([a,b,1]) a=8,b=5", kSides},
    };
}
// clang-format on

} // namespace

class TestShardyRules : public QObject {
    Q_OBJECT

private slots:
    void facts_data();
    void facts();
};

void TestShardyRules::facts_data() {
    QTest::addColumn<QString>("rule");
    QTest::addColumn<QString>("expected");
    QTest::addColumn<bool>("explained");
    for (const Fact& fact : publishedFacts()) {
        const bool same = fact.ours.isEmpty();
        QVERIFY(fact.ours != fact.published);
        QTest::newRow(fact.name) << Normal(fact.rule).text() << (same ? fact.published : fact.ours)
                                 << (same || !QString(fact.why).isEmpty());
    }
}

void TestShardyRules::facts() {
    QFETCH(QString, rule);
    QFETCH(QString, expected);
    QFETCH(bool, explained);
    QCOMPARE(rule, expected);
    QVERIFY(explained); // a difference has its reason
}

SHARDLENS_TEST(TestShardyRules)

} // namespace tst_shardy_rules

#include "tst_shardy_rules.moc"
