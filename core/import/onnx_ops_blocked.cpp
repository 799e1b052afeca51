// SPDX-License-Identifier: Apache-2.0
// Quantisation with a scale for each block of a dimension: that dimension is split in blocks, the
// scales broadcast inside them, and it is merged again, so that a cut along it takes whole blocks.
#include "core/import/onnx_blocked.h"

#include <fmt/format.h>

namespace shardlens::onnx {

namespace {

using Ints = Translation::Ints;

Attributes quantisation(std::string_view function, DType dtype) {
    return {{"function", std::string(function)}, {"to", std::string(nameOf(dtype))}};
}

/// com.microsoft: B holds N rows of K weights in blocks, a few bits each (see Role::Packed4Bit).
/// Zero points that are packed into bytes have no tensor of their own: the middle of the range,
/// which is also what absent ones mean, stands for them.
void matMulNBits(Translation& t, std::string_view) {
    const std::int64_t n = t.integer("N", 0), k = t.integer("K", 0), bits = t.integer("bits", 4);
    const Shape blocks = t.shape(1);
    Shape result = t.shape(0);
    t.require(!result.empty() && n >= 0, "operand 0 and N do not fit");
    result.back() = n;
    const bool understood = n > 0 && k > 0 && bits >= 2 && bits <= 8 && blocks.size() == 3 &&
                            blocks[0] == n && blocks[1] * blocks[2] >= k && !t.has(4) &&
                            elementsOf(t.shape(2)) == static_cast<double>(n * blocks[1]);
    if (!understood) return t.opaque({TensorSpec{t.dtype(0), result}});
    const Shape each{n, blocks[1], 1};
    const bool unpacked = t.has(3) && isFloat(t.dtype(3)) &&
                          elementsOf(t.shape(3)) == static_cast<double>(n * blocks[1]);
    const TensorId zero = unpacked ? t.reshaped(t.input(3), each)
                                   : t.number(static_cast<double>(1 << (bits - 1)), t.dtype(1));
    TensorId weights = t.step(OpKind::Elementwise, quantisation("dequantize", t.dtype(0)),
                              {t.input(1), t.reshaped(t.input(2), each), zero});
    const std::int64_t columns = blocks[1] * blocks[2];
    weights = t.reshaped(weights, {n, columns});
    if (columns != k)
        weights =
            t.step(OpKind::Slice,
                   {{"axes", Ints{1}}, {"starts", Ints{0}}, {"ends", Ints{k}}, {"steps", Ints{1}}},
                   {weights});
    std::vector<TensorId> operands{t.input(0), weights};
    if (t.has(5)) operands.push_back(t.input(5));
    t.result(OpKind::MatMul, {{"transB", std::int64_t{1}}}, std::move(operands));
}

} // namespace

bool blockwise(Translation& t, std::string_view function, DType dtype) {
    if (t.integer("block_size", 0) <= 0 || !t.has(1)) return false;
    const Shape in = t.shape(0), scales = t.shape(1);
    const auto axis = static_cast<std::size_t>(t.axis(t.integer("axis", 1), t.rank(0)));
    t.require(scales.size() == in.size() && scales[axis] > 0, "the scales do not fit the operand");
    if (in[axis] % scales[axis] != 0) { // the last block is shorter
        t.opaque({TensorSpec{dtype, in}});
        return true;
    }
    const auto split = [&](Shape shape, std::int64_t inside) {
        shape[axis] = scales[axis];
        shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, inside);
        return shape;
    };
    std::vector<TensorId> operands{t.reshaped(t.input(0), split(in, in[axis] / scales[axis])),
                                   t.reshaped(t.input(1), split(scales, 1))};
    if (t.has(2)) operands.push_back(t.reshaped(t.input(2), split(scales, 1)));
    const TensorId blocks =
        t.step(OpKind::Elementwise, quantisation(function, dtype), std::move(operands));
    t.result(OpKind::Reshape, {{"shape", in}}, {blocks});
    return true;
}

TensorId dequantised(Translation& t, TensorId weights, TensorId scales, std::int64_t bits,
                     DType dtype) {
    const TensorSpec given = t.specOf(weights);
    Shape blocks = t.specOf(scales).shape;
    if (blocks.size() < given.shape.size()) blocks.push_back(1);
    const std::int64_t size = given.shape.back() / blocks.back();
    Shape each = blocks, inside = blocks;
    each.push_back(1);
    inside.push_back(size);
    const TensorId middle = t.number(static_cast<double>(1 << (bits - 1)), given.dtype);
    const TensorId numbers =
        t.step(OpKind::Elementwise, quantisation("dequantize", dtype),
               {t.reshaped(weights, inside), t.reshaped(scales, each), middle});
    return t.reshaped(numbers, given.shape);
}

std::vector<Rule> blockedRules() {
    return {{"MatMulNBits", matMulNBits}};
}

} // namespace shardlens::onnx
