// SPDX-License-Identifier: Apache-2.0
// The table of tst_onnx_ops: one ONNX node a row, and what its first result must be according to
// the operator specification.
#pragma once

#include "tests/core/import/onnx_writer.h"

#include <limits>
#include <utility>

namespace shardlens::test {

/// One node, its operands, and the spec its output "y" must have.
struct Case {
    std::string type;
    std::vector<Message> inputs;       ///< graph inputs
    std::vector<Message> initializers; ///< known operands
    Names operands;
    std::vector<Message> attributes{};
    QString expected{};
    OpKind kind = OpKind::Opaque;
    std::int64_t version = 17;
    std::string domain{};
    Names outputs{"y"};
};

inline Message x(const Names& dims, int dtype = kF32) {
    return value("x", dtype, dims);
}

// clang-format off: a table
inline std::vector<std::pair<QString, Case>> cases() {
    using enum OpKind;
    const Names image{"2", "3", "10", "12"};
    const std::vector<Message> imageInput{x(image)};
    const std::vector<Message> matrix{x({"4", "6"})};
    const std::vector<Message> scan{x({"5", "2", "3"})};
    const Message kernel = tensor("w", kF32, {8, 3, 3, 3});
    return {
        // Axes as attributes and as operands.
        {"squeeze attribute", {"Squeeze", {x({"1", "4", "1"})}, {}, {"x"}, {intsAttribute("axes",
             {0})}, "f32[4,1]", Reshape, 11}},
        {"squeeze operand", {"Squeeze", {x({"1", "4", "1"})}, {vectorOf("a", {-1})}, {"x", "a"},
             {}, "f32[1,4]", Reshape, 13}},
        {"squeeze all", {"Squeeze", {x({"1", "4", "1"})}, {}, {"x"}, {}, "f32[4]", Reshape, 13}},
        {"unsqueeze attribute", {"Unsqueeze", matrix, {}, {"x"}, {intsAttribute("axes", {0, 3})},
             "f32[1,4,6,1]", Reshape, 11}},
        {"unsqueeze operand", {"Unsqueeze", matrix, {vectorOf("a", {-1})}, {"x", "a"}, {},
             "f32[4,6,1]", Reshape, 13}},
        {"reduce attribute", {"ReduceMean", matrix, {}, {"x"}, {intsAttribute("axes", {-1})},
             "f32[4,1]", Reduce, 13}},
        {"reduce operand", {"ReduceMean", matrix, {vectorOf("a", {0})}, {"x", "a"},
             {intAttribute("keepdims", 0)}, "f32[6]", Reduce, 18}},
        {"reduce all", {"ReduceSum", matrix, {}, {"x"}, {intAttribute("keepdims", 0)}, "f32[]",
             Reduce, 13}},
        {"reduce nothing", {"ReduceSum", matrix, {}, {"x"}, {intAttribute("noop_with_empty_axes",
             1)}, "f32[4,6]", Elementwise, 13}},
        {"pad attribute", {"Pad", matrix, {}, {"x"}, {intsAttribute("pads", {0, 1, 2, 3})},
             "f32[6,10]", Pad, 2}},
        {"pad operand", {"Pad", matrix, {vectorOf("p", {1, -2})}, {"x", "p", "", "axes"}, {},
             "f32[4,5]", Pad, 18}},
        {"top k attribute", {"TopK", matrix, {}, {"x"}, {intAttribute("k", 3)}, "f32[4,3]", TopK,
             1}},
        {"top k operand", {"TopK", matrix, {vectorOf("k", {2})}, {"x", "k"}, {intAttribute("axis",
             0)}, "f32[2,6]", TopK, 11}},
        {"clip bounds", {"Clip", matrix, {floats("lo", {}, {0}), floats("hi", {}, {6})}, {"x",
             "lo", "hi"}, {}, "f32[4,6]", Elementwise, 12}},
        {"clip without lower", {"Clip", matrix, {floats("hi", {}, {6})}, {"x", "", "hi"}, {},
             "f32[4,6]", Elementwise, 12}},
        // Reshape and its relatives.
        {"reshape copies and infers", {"Reshape", {x({"2", "3", "4"})}, {vectorOf("s", {0, -1})},
             {"x", "s"}, {}, "f32[2,12]", Reshape}},
        {"reshape allowzero", {"Reshape", {x({"0", "3"})}, {vectorOf("s", {3, 0})}, {"x", "s"},
             {intAttribute("allowzero", 1)}, "f32[3,0]", Reshape}},
        {"reshape attribute", {"Reshape", matrix, {}, {"x"}, {intsAttribute("shape", {3, -1})},
             "f32[3,8]", Reshape, 1}},
        {"flatten default", {"Flatten", {x({"2", "3", "4"})}, {}, {"x"}, {}, "f32[2,12]",
             Reshape}},
        {"flatten at 0", {"Flatten", {x({"2", "3", "4"})}, {}, {"x"}, {intAttribute("axis", 0)},
             "f32[1,24]", Reshape}},
        {"flatten from the end", {"Flatten", {x({"2", "3", "4"})}, {}, {"x"},
             {intAttribute("axis", -1)}, "f32[6,4]", Reshape}},
        {"transpose default", {"Transpose", {x({"2", "3", "4"})}, {}, {"x"}, {}, "f32[4,3,2]",
             Transpose}},
        {"expand both ways", {"Expand", {x({"3", "1"})}, {vectorOf("s", {2, 1, 6})}, {"x", "s"},
             {}, "f32[2,3,6]", Expand}},
        {"expand to fewer dims", {"Expand", {x({"2", "3", "4"})}, {vectorOf("s", {1})}, {"x",
             "s"}, {}, "f32[2,3,4]", Expand}},
        {"tile", {"Tile", matrix, {vectorOf("r", {2, 3})}, {"x", "r"}, {}, "f32[8,18]", Tile}},
        {"depth to space", {"DepthToSpace", {x({"1", "8", "2", "3"})}, {}, {"x"},
             {intAttribute("blocksize", 2)}, "f32[1,2,4,6]", Reshape}},
        {"space to depth", {"SpaceToDepth", {x({"1", "2", "4", "6"})}, {}, {"x"},
             {intAttribute("blocksize", 2)}, "f32[1,8,2,3]", Reshape}},
        {"concat default axis", {"Concat", {x({"2", "3"}), value("z", kF32, {"2", "5"})}, {},
             {"x", "z"}, {}, "f32[2,8]", Concat, 1}},
        {"concat of one", {"Concat", matrix, {}, {"x"}, {intAttribute("axis", 0)}, "f32[4,6]",
             Elementwise}},
        // Split: second output has the rest.
        {"split equal", {"Split", {x({"9", "2"})}, {}, {"x"}, {}, "f32[3,2]", Split, 11, "", {"y",
             "b", "c"}}},
        {"split uneven", {"Split", {x({"10", "2"})}, {}, {"x"}, {intAttribute("num_outputs", 3)},
             "f32[4,2]", Split, 18, "", {"y", "b", "c"}}},
        {"split operand", {"Split", {x({"10", "2"})}, {vectorOf("s", {7, 3})}, {"x", "s"}, {},
             "f32[7,2]", Split, 13, "", {"y", "b"}}},
        // Slices.
        {"slice attribute", {"Slice", matrix, {}, {"x"}, {intsAttribute("starts", {1}),
             intsAttribute("ends", {9999}), intsAttribute("axes", {1})}, "f32[4,5]", Slice, 9}},
        {"slice backwards", {"Slice", matrix, {vectorOf("s", {-1}), vectorOf("e", {-9999}),
             vectorOf("a", {1}), vectorOf("t", {-2})}, {"x", "s", "e", "a", "t"}, {}, "f32[4,3]",
             Slice}},
        {"slice of nothing", {"Slice", matrix, {vectorOf("s", {0, 0}), vectorOf("e", {4,
             std::numeric_limits<std::int64_t>::max()})}, {"x", "s", "e"}, {}, "f32[4,6]",
             Elementwise}},
        // Products.
        {"matmul broadcast", {"MatMul", {x({"5", "1", "4", "6"}), value("z", kF32, {"7", "6",
             "8"})}, {}, {"x", "z"}, {}, "f32[5,7,4,8]", MatMul}},
        {"matmul vector", {"MatMul", {x({"6"}), value("z", kF32, {"5", "6", "8"})}, {}, {"x",
             "z"}, {}, "f32[5,8]", MatMul}},
        {"fused matmul", {"FusedMatMul", {x({"2", "4", "6"}), value("z", kF32, {"2", "8", "6"})},
             {}, {"x", "z"}, {intAttribute("transB", 1)}, "f32[2,4,8]", MatMul, 17, "com.microsoft"}},
        {"matmul integer", {"MatMulInteger", {x({"4", "6"}, kU8)}, {tensor("w", kI8, {6, 8})},
             {"x", "w"}, {}, "i32[4,8]", MatMul}},
        // Windows.
        {"conv", {"Conv", imageInput, {kernel}, {"x", "w"}, {}, "f32[2,8,8,10]", Conv}},
        {"conv strides and pads", {"Conv", imageInput, {kernel}, {"x", "w"},
             {intsAttribute("strides", {2, 2}), intsAttribute("pads", {1, 1, 1, 1})}, "f32[2,8,5,6]",
             Conv}},
        {"conv same upper", {"Conv", imageInput, {kernel}, {"x", "w"}, {textAttribute("auto_pad",
             "SAME_UPPER"), intsAttribute("strides", {3, 3})}, "f32[2,8,4,4]", Conv}},
        {"conv valid", {"Conv", imageInput, {kernel}, {"x", "w"}, {textAttribute("auto_pad",
             "VALID"), intsAttribute("dilations", {2, 2})}, "f32[2,8,6,8]", Conv}},
        {"conv depthwise", {"Conv", imageInput, {tensor("w", kF32, {3, 1, 3, 3})}, {"x", "w"},
             {intAttribute("group", 3)}, "f32[2,3,8,10]", Conv}},
        {"conv of a line", {"Conv", {x({"2", "3", "10"})}, {tensor("w", kF32, {8, 3, 5})}, {"x",
             "w"}, {}, "f32[2,8,6]", Conv}},
        {"conv transpose", {"ConvTranspose", imageInput, {tensor("w", kF32, {3, 4, 2, 2})}, {"x",
             "w"}, {intsAttribute("strides", {2, 2})}, "f32[2,4,20,24]", ConvTranspose}},
        {"conv transpose output padding", {"ConvTranspose", imageInput, {tensor("w", kF32, {3, 4,
             3, 3})}, {"x", "w"}, {intsAttribute("strides", {2, 2}), intsAttribute("pads", {1, 1, 1,
             1}), intsAttribute("output_padding", {1, 1})}, "f32[2,4,20,24]", ConvTranspose}},
        {"conv transpose output shape", {"ConvTranspose", imageInput, {tensor("w", kF32, {3, 4, 3,
             3})}, {"x", "w"}, {intsAttribute("strides", {2, 2}), intsAttribute("output_shape", {19,
             23})}, "f32[2,4,19,23]", ConvTranspose}},
        {"max pool", {"MaxPool", imageInput, {}, {"x"}, {intsAttribute("kernel_shape", {3, 3}),
             intsAttribute("strides", {2, 2})}, "f32[2,3,4,5]", Pool}},
        {"max pool ceil", {"MaxPool", imageInput, {}, {"x"}, {intsAttribute("kernel_shape", {3,
             3}), intsAttribute("strides", {2, 2}), intAttribute("ceil_mode", 1)}, "f32[2,3,5,6]",
             Pool}},
        {"average pool same lower", {"AveragePool", imageInput, {}, {"x"},
             {intsAttribute("kernel_shape", {2, 2}), textAttribute("auto_pad", "SAME_LOWER")},
             "f32[2,3,10,12]", Pool}},
        {"global pool", {"GlobalAveragePool", imageInput, {}, {"x"}, {}, "f32[2,3,1,1]",
             GlobalPool}},
        // Types.
        {"equal is bool", {"Equal", {x({"4"}), value("z", kF32, {"3", "1"})}, {}, {"x", "z"}, {},
             "bool[3,4]", Elementwise}},
        {"where takes the branch's type", {"Where", {x({"4"}, kBool), value("z", kF16, {"3",
             "1"})}, {tensor("w", kF16, {})}, {"x", "z", "w"}, {}, "f16[3,4]", Elementwise}},
        {"cast", {"Cast", matrix, {}, {"x"}, {intAttribute("to", 16)}, "bf16[4,6]", Elementwise}},
        {"cast like", {"CastLike", matrix, {tensor("w", kF16, {1})}, {"x", "w"}, {}, "f16[4,6]",
             Elementwise}},
        {"quantize", {"QuantizeLinear", matrix, {tensor("s", kF32, {4}), ints("z", {4}, {0, 0, 0,
             0}, kI8)}, {"x", "s", "z"}, {intAttribute("axis", 0)}, "i8[4,6]", Elementwise}},
        {"quantize without zero point", {"QuantizeLinear", matrix, {tensor("s", kF32, {})}, {"x",
             "s"}, {}, "u8[4,6]", Elementwise}},
        {"dequantize blocked", {"DequantizeLinear", {x({"4", "6"}, kI8)}, {tensor("s", kF16, {4,
             2})}, {"x", "s"}, {intAttribute("block_size", 3)}, "f16[4,6]", Elementwise, 21}},
        {"arg max", {"ArgMax", matrix, {}, {"x"}, {intAttribute("axis", 1),
             intAttribute("keepdims", 0)}, "i64[4]", ArgReduce}},
        // Gather and what is left opaque with a shape.
        {"gather", {"Gather", {x({"9", "5"}), value("i", kI64, {"2", "3"})}, {}, {"x", "i"},
             {intAttribute("axis", -1)}, "f32[9,2,3]", Gather}},
        {"gather elements", {"GatherElements", {x({"9", "5"}), value("i", kI64, {"2", "3"})}, {},
             {"x", "i"}, {}, "f32[2,3]", GatherElements}},
        {"gather nd", {"GatherND", {x({"2", "3", "4"}), value("i", kI64, {"2", "7", "1"})}, {},
             {"x", "i"}, {intAttribute("batch_dims", 1)}, "f32[2,7,4]", GatherND}},
        {"one hot", {"OneHot", {x({"2", "3"}, kI64)}, {ints("d", {}, {10}), tensor("v", kF16,
             {2})}, {"x", "d", "v"}, {intAttribute("axis", 1)}, "f16[2,10,3]", OneHot}},
        {"scatter nd", {"ScatterND", {x({"4", "5"}), value("i", kI64, {"2", "1"}), value("u",
             kF32, {"2", "5"})}, {}, {"x", "i", "u"}, {}, "f32[4,5]", Scatter}},
        {"lstm", {"LSTM", scan, {tensor("w", kF32, {2, 32, 3}), tensor("r", kF32, {2, 32, 8})},
             {"x", "w", "r"}, {intAttribute("hidden_size", 8), textAttribute("direction",
             "bidirectional")}, "f32[5,2,2,8]", Recurrent}},
        {"resize by scales", {"Resize", imageInput, {floats("s", {4}, {1, 1, 2, 1.5F})}, {"x", "",
             "s"}, {}, "f32[2,3,20,18]", Resize}},
        {"resize to sizes", {"Resize", imageInput, {vectorOf("s", {7, 9})}, {"x", "", "", "s"},
             {intsAttribute("axes", {2, 3})}, "f32[2,3,7,9]", Resize, 18}},
        {"upsample", {"Upsample", imageInput, {floats("s", {4}, {1, 1, 2, 2})}, {"x", "s"}, {},
             "f32[2,3,20,24]", Resize, 9}},
        {"trilu", {"Trilu", matrix, {}, {"x"}, {}, "f32[4,6]", Trilu}},
        {"eye like", {"EyeLike", matrix, {}, {"x"}, {intAttribute("dtype", kI64)}, "i64[4,6]",
             Generate}},
        {"non zero at most", {"NonZero", matrix, {}, {"x"}, {}, "i64[2,24]", Opaque}},
        // Norms.
        {"layer norm", {"LayerNormalization", {x({"2", "3", "8"})}, {tensor("s", kF32, {8})},
             {"x", "s"}, {}, "f32[2,3,8]", Norm}},
        {"skip norm", {"SkipLayerNormalization", {x({"2", "3", "8"}), value("z", kF32, {"2", "3",
             "8"})}, {tensor("s", kF32, {8})}, {"x", "z", "s"}, {}, "f32[2,3,8]", Norm, 17,
             "com.microsoft"}},
        {"group norm by channel", {"GroupNormalization", imageInput, {tensor("s", kF32, {3}),
             tensor("b", kF32, {3})}, {"x", "s", "b"}, {intAttribute("num_groups", 3)},
             "f32[2,3,10,12]", Norm, 21}},
        {"cumulative sum", {"CumSum", matrix, {ints("a", {}, {1})}, {"x", "a"}, {}, "f32[4,6]",
             CumSum}},
        {"loss", {"SoftmaxCrossEntropyLoss", {x({"4", "6"}), value("l", kI64, {"4"})}, {}, {"x",
             "l"}, {}, "f32[]", CrossEntropy}},
        {"loss each", {"SoftmaxCrossEntropyLoss", {x({"4", "6"}), value("l", kI64, {"4"})}, {},
             {"x", "l"}, {textAttribute("reduction", "none")}, "f32[4]", CrossEntropy}},
        // Attention.
        {"attention 4d", {"Attention", {x({"2", "8", "5", "16"}), value("k", kF32, {"2", "4", "7",
             "16"}), value("v", kF32, {"2", "4", "7", "20"})}, {}, {"x", "k", "v"}, {},
             "f32[2,8,5,20]", Transpose, 23}},
        {"attention 3d", {"Attention", {x({"2", "5", "128"}), value("k", kF32, {"2", "7", "64"}),
             value("v", kF32, {"2", "7", "64"})}, {}, {"x", "k", "v"}, {intAttribute("q_num_heads", 8),
             intAttribute("kv_num_heads", 4)}, "f32[2,5,128]", Reshape, 23}},
        {"packed attention", {"Attention", {x({"2", "5", "32"})}, {tensor("w", kF32, {32, 96}),
             tensor("b", kF32, {96})}, {"x", "w", "b"}, {intAttribute("num_heads", 4)}, "f32[2,5,32]",
             Reshape, 17, "com.microsoft"}},
        // Gradients of ONNX Runtime's training graphs.
        {"softmax gradient", {"SoftmaxGrad_13", {x({"4", "6"}), value("y0", kF32, {"4", "6"})}, {},
             {"x", "y0"}, {}, "f32[4,6]", Gradient, 17, "com.microsoft"}},
        {"gelu gradient", {"BiasFastGeluGrad_dX", {x({"4", "6"}), value("z", kF32, {"4", "6"})},
             {tensor("b", kF32, {6})}, {"x", "z", "b"}, {}, "f32[4,6]", Gradient, 17,
             "com.microsoft"}},
        {"tanh gradient", {"TanhGrad", {x({"4", "6"}), value("z", kF32, {"4", "6"})}, {}, {"x",
             "z"}, {}, "f32[4,6]", Elementwise, 17, "com.microsoft"}},
        {"table gradient", {"GatherGrad", {x({"4", "6"}), value("i", kI64, {"4"})}, {vectorOf("s",
             {50, 6})}, {"s", "i", "x"}, {}, "f32[50,6]", Gradient, 17, "com.microsoft"}},
        {"norm gradient", {"LayerNormalizationGrad", {x({"4", "6"}), value("z", kF32, {"4", "6"}),
             value("m", kF32, {"4", "1"}), value("r", kF32, {"4", "1"})}, {tensor("s", kF32, {6})},
             {"x", "z", "s", "m", "r"}, {}, "f32[4,6]", Gradient, 17, "com.microsoft", {"y", "ds",
             "db"}}},
        {"slice gradient", {"SliceGrad", {x({"4", "3"})}, {vectorOf("s", {4, 6}), vectorOf("b",
             {1}), vectorOf("e", {4}), vectorOf("a", {1})}, {"x", "s", "b", "e", "a"}, {},
             "f32[4,6]", Gradient, 17, "com.microsoft"}},
        {"loss gradient", {"SoftmaxCrossEntropyLossInternalGrad", {value("g", kF32, {}), x({"4",
             "6"}), value("l", kI64, {"4"})}, {ints("n", {}, {-100})}, {"g", "x", "l", "", "n"}, {},
             "f32[4,6]", Elementwise, 17, "com.microsoft"}},
        {"cumulative product", {"CumProd", matrix, {ints("a", {}, {1})}, {"x", "a"}, {}, "f32[4,6]",
             CumSum}},
        {"experts", {"MoE", {x({"10", "8"}), value("r", kF32, {"10", "4"})}, {tensor("w1", kF32,
             {4, 16, 8}), tensor("w2", kF32, {4, 8, 16}), tensor("b2", kF32, {4, 8})}, {"x", "r",
             "w1", "", "w2", "b2"}, {intAttribute("k", 2)}, "f32[10,8]", Elementwise, 17,
             "com.microsoft"}},
        {"grid sample", {"GridSample", imageInput, {tensor("g", kF32, {2, 5, 4, 2})}, {"x", "g"},
             {}, "f32[2,3,5,4]", GridSample}},
        {"reverse sequence", {"ReverseSequence", matrix, {vectorOf("l", {4, 3, 2, 1, 1, 1})}, {"x",
             "l"}, {}, "f32[4,6]", ReverseSequence}},
        {"tensor scatter", {"TensorScatter", {x({"2", "8", "5", "4"}), value("u", kF32, {"2", "8",
             "1", "4"}), value("i", kI64, {"2"})}, {}, {"x", "u", "i"}, {}, "f32[2,8,5,4]", Scatter,
             24}},
        {"gru batch first", {"GRU", {x({"2", "5", "3"})}, {tensor("w", kF32, {1, 12, 3}),
             tensor("r", kF32, {1, 12, 4})}, {"x", "w", "r"}, {intAttribute("hidden_size", 4),
             intAttribute("layout", 1)}, "f32[2,5,1,4]", Transpose}},
        {"random", {"RandomNormal", {}, {}, {}, {intsAttribute("shape", {3, 4})}, "f32[3,4]",
             Generate}},
        {"attention with a bias for all", {"MultiHeadAttention", {x({"2", "5", "32"})}, {tensor("b",
             kF32, {96}), tensor("m", kI32, {2, 5})}, {"x", "x", "x", "b", "m"},
             {intAttribute("num_heads", 4)}, "f32[2,5,32]", Reshape, 17, "com.microsoft"}},
        {"attention of packed operands", {"MultiHeadAttention", {x({"2", "5", "4", "3", "8"})}, {},
             {"x"}, {intAttribute("num_heads", 4)}, "f32[2,5,32]", Reshape, 17, "com.microsoft"}},
        {"attention with lengths", {"Attention", {x({"2", "5", "32"}), value("l", kI32, {"2"})},
             {tensor("w", kF32, {32, 96}), tensor("b", kF32, {96})}, {"x", "w", "b", "l"},
             {intAttribute("num_heads", 4)}, "f32[2,5,32]", Reshape, 17, "com.microsoft"}},
        {"attention with a mask that does not fit", {"Attention", {x({"2", "8", "5", "16"}),
             value("m", kF32, {"5", "3"})}, {}, {"x", "x", "x", "m"}, {}, "f32[2,8,5,16]", Opaque,
             23}},
        {"rotary", {"RotaryEmbedding", {x({"2", "5", "32"}), value("c", kF32, {"5", "4"})}, {},
             {"x", "c", "c"}, {intAttribute("num_heads", 4)}, "f32[2,5,32]", Reshape, 23}},
    };
}
// clang-format on

} // namespace shardlens::test
