// SPDX-License-Identifier: Apache-2.0
// Small networks for tests: the MLPs and transformer stacks of Alpa's own test-suite
// (alpa-projects/alpa: test_solver_mlp.py, test_mlp.py, test_bert.py), built from catalogue ops.
#pragma once

#include "core/model/catalogue.h"

#include <fmt/format.h>

namespace shardlens::test {

class Builder {
public:
    Graph graph;

    TensorId source(OpKind kind, const std::string& name, Shape shape, DType dtype = DType::F32) {
        return graph.op(graph.addOp({name, kind, {}, {}, {}, {}}, {{dtype, std::move(shape)}}))
            .outputs[0];
    }
    TensorId input(const std::string& name, Shape shape, DType dtype = DType::F32) {
        return source(OpKind::Input, name, std::move(shape), dtype);
    }
    TensorId parameter(const std::string& name, Shape shape, DType dtype = DType::F32) {
        return source(OpKind::Parameter, name, std::move(shape), dtype);
    }
    TensorId add(OpKind kind, const std::string& name, std::vector<TensorId> inputs,
                 Attributes attributes = {}) {
        return graph
            .op(addInferred(graph, {name, kind, {}, std::move(attributes), std::move(inputs), {}}))
            .outputs[0];
    }
    TensorId elementwise(const std::string& function, const std::string& name,
                         std::vector<TensorId> inputs) {
        return add(OpKind::Elementwise, name, std::move(inputs), {{"function", function}});
    }
    TensorId linear(const std::string& name, TensorId x, std::int64_t out, bool bias = true) {
        const Tensor& tensor = graph.tensor(x);
        const std::int64_t in = tensor.spec.shape.back();
        const DType dtype = tensor.spec.dtype;
        std::vector<TensorId> operands{x, parameter(name + ".weight", {in, out}, dtype)};
        if (bias) operands.push_back(parameter(name + ".bias", {out}, dtype));
        return add(OpKind::MatMul, name, operands);
    }
    TensorId layerNorm(const std::string& name, TensorId x) {
        const Tensor& tensor = graph.tensor(x);
        const std::int64_t h = tensor.spec.shape.back();
        const DType dtype = tensor.spec.dtype;
        const auto axis = static_cast<std::int64_t>(tensor.spec.shape.size()) - 1;
        return add(
            OpKind::Norm, name,
            {x, parameter(name + ".weight", {h}, dtype), parameter(name + ".bias", {h}, dtype)},
            {{"mode", std::string("layer")}, {"axes", std::vector<std::int64_t>{axis}}});
    }
    TensorId reshape(const std::string& name, TensorId x, Shape shape) {
        return add(OpKind::Reshape, name, {x}, {{"shape", std::move(shape)}});
    }
    void meanSquaredError(TensorId y) {
        const Tensor& tensor = graph.tensor(y);
        const Shape shape = tensor.spec.shape;
        const TensorId target = input("target", shape, tensor.spec.dtype);
        const TensorId difference = elementwise("sub", "loss.difference", {y, target});
        const TensorId square = elementwise("mul", "loss.square", {difference, difference});
        std::vector<std::int64_t> axes(shape.size());
        for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
        graph.markOutput(add(
            OpKind::Reduce, "loss", {square},
            {{"function", std::string("mean")}, {"axes", axes}, {"keepdims", std::int64_t{0}}}));
    }
};

/// y = X W1 .. Wn with a mean squared error; batch B, width H; optionally bias and ReLU between.
inline Graph mlp(int layers, std::int64_t B, std::int64_t H, bool biasAndRelu = false) {
    Builder b;
    TensorId x = b.input("x", {B, H});
    for (int i = 0; i < layers; ++i) {
        x = b.linear(fmt::format("layer{}", i), x, H, biasAndRelu);
        if (biasAndRelu && i + 1 < layers) x = b.elementwise("relu", fmt::format("relu{}", i), {x});
    }
    b.meanSquaredError(x);
    return b.graph;
}

/// One post-norm BERT layer.
inline TensorId bertLayer(Builder& b, const std::string& name, TensorId x, std::int64_t heads,
                          std::int64_t ffn) {
    const Shape shape = b.graph.tensor(x).spec.shape;
    const std::int64_t h = shape[2];
    const Shape split{shape[0], shape[1], heads, h / heads};
    std::vector<TensorId> qkv;
    for (const char* part : {"q", "k", "v"}) {
        const TensorId projected = b.linear(name + "." + part, x, h);
        qkv.push_back(b.reshape(name + "." + part + ".heads", projected, split));
    }
    const TensorId attention = b.add(OpKind::Attention, name + ".attention", qkv);
    const TensorId merged = b.reshape(name + ".merge", attention, shape);
    const TensorId out = b.linear(name + ".out", merged, h);
    const TensorId middle =
        b.layerNorm(name + ".norm1", b.elementwise("add", name + ".add1", {out, x}));
    const TensorId up =
        b.elementwise("gelu", name + ".gelu", {b.linear(name + ".up", middle, ffn)});
    const TensorId down = b.linear(name + ".down", up, h);
    return b.layerNorm(name + ".norm2", b.elementwise("add", name + ".add2", {down, middle}));
}

/// A stack of post-norm BERT layers on hidden states, as in Alpa's test_bert.py.
inline Graph bertStack(int layers, std::int64_t batch, std::int64_t seq, std::int64_t hidden,
                       std::int64_t heads) {
    Builder b;
    TensorId x = b.input("hidden_states", {batch, seq, hidden});
    for (int i = 0; i < layers; ++i)
        x = bertLayer(b, fmt::format("layer{}", i), x, heads, 4 * hidden);
    b.meanSquaredError(x);
    return b.graph;
}

} // namespace shardlens::test
