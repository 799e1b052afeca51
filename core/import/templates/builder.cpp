// SPDX-License-Identifier: Apache-2.0
// Modules and ops of the templates, written into the graph through the op catalogue.
#include "core/import/templates/builder.h"

#include "core/error.h"
#include "core/model/catalogue.h"

#include <numeric>

namespace shardlens::hf {

using Ints = std::vector<std::int64_t>;

void Builder::checkStop() const {
    if (m_stop.stop_requested()) throw Cancelled();
}

TensorId Builder::source(const std::string& name, OpKind kind, const char* type, TensorSpec spec) {
    Op source;
    source.name = name;
    source.kind = kind;
    source.type = type;
    return m_graph.op(m_graph.addOp(std::move(source), {std::move(spec)})).outputs.front();
}

std::vector<TensorId> Builder::op(const std::string& name, OpKind kind, const char* type,
                                  std::vector<TensorId> inputs, Attributes attributes) {
    Op op;
    op.name = name;
    op.kind = kind;
    op.type = type;
    op.attributes = std::move(attributes);
    op.inputs = std::move(inputs);
    return m_graph.op(addInferred(m_graph, std::move(op))).outputs;
}

TensorId Builder::integers(const std::string& name, Shape shape) {
    return source(name, OpKind::Input, "Input", {DType::I64, std::move(shape)});
}

TensorId Builder::pixels(const std::string& name, Shape shape) {
    return source(name, OpKind::Input, "Input", {m_activation, std::move(shape)});
}

TensorId Builder::constant(const std::string& name, Shape shape) {
    return source(name, OpKind::Constant, "Constant", {DType::I64, std::move(shape)});
}

TensorId Builder::parameter(const std::string& name, Shape shape) {
    return source(name, OpKind::Parameter, "Parameter", {m_activation, std::move(shape)});
}

TensorId Builder::weight(const std::string& name, Shape shape) {
    return source(name, OpKind::Parameter, "Parameter", {m_weight, std::move(shape)});
}

TensorId Builder::product(const std::string& module, TensorId x, TensorId weight, bool bias,
                          bool transposed) {
    std::vector<TensorId> inputs{x, weight};
    if (bias) inputs.push_back(parameter(module + ".bias", {shapeOf(weight)[transposed ? 0 : 1]}));
    Attributes attributes;
    if (transposed) attributes.set("transB", std::int64_t{1});
    return op(module, OpKind::MatMul, transposed ? "Linear" : "Conv1D", std::move(inputs),
              std::move(attributes))
        .front();
}

TensorId Builder::linear(const std::string& module, TensorId x, std::int64_t out, bool bias) {
    return product(module, x, weight(module + ".weight", {out, shapeOf(x).back()}), bias, true);
}

TensorId Builder::wideLinear(const std::string& module, TensorId x, std::int64_t out, bool bias) {
    return product(module, x, parameter(module + ".weight", {out, shapeOf(x).back()}), bias, true);
}

TensorId Builder::conv1d(const std::string& module, TensorId x, std::int64_t out) {
    return product(module, x, weight(module + ".weight", {shapeOf(x).back(), out}), true, false);
}

TensorId Builder::project(const std::string& name, TensorId x, TensorId weight, TensorId bias) {
    std::vector<TensorId> inputs{x, weight};
    if (bias != kNoTensor) inputs.push_back(bias);
    return op(name, OpKind::MatMul, "Linear", std::move(inputs), {{"transB", std::int64_t{1}}})
        .front();
}

TensorId Builder::layerNorm(const std::string& module, TensorId x) {
    const std::int64_t axis = static_cast<std::int64_t>(shapeOf(x).size()) - 1;
    const TensorId scale = parameter(module + ".weight", {shapeOf(x).back()});
    const TensorId shift = parameter(module + ".bias", {shapeOf(x).back()});
    return op(module, OpKind::Norm, "LayerNorm", {x, scale, shift},
              {{"mode", "layer"}, {"axes", Ints{axis}}})
        .front();
}

TensorId Builder::rmsNorm(const std::string& module, TensorId x) {
    const std::int64_t axis = static_cast<std::int64_t>(shapeOf(x).size()) - 1;
    const TensorId scale = parameter(module + ".weight", {shapeOf(x).back()});
    return op(module, OpKind::Norm, "RMSNorm", {x, scale}, {{"mode", "rms"}, {"axes", Ints{axis}}})
        .front();
}

TensorId Builder::batchNorm(const std::string& module, TensorId x, bool training) {
    const Shape channels{shapeOf(x)[1]};
    std::vector<TensorId> inputs{x, parameter(module + ".weight", channels),
                                 parameter(module + ".bias", channels)};
    if (!training)
        for (const char* statistic : {".running_mean", ".running_var"})
            inputs.push_back(parameter(module + statistic, channels));
    Attributes attributes{{"mode", std::string("batch")}};
    if (training) attributes.set("training", std::int64_t{1});
    return op(module, OpKind::Norm, "BatchNorm2d", std::move(inputs), std::move(attributes))
        .front();
}

TensorId Builder::embedding(const std::string& module, TensorId ids, TensorId table) {
    return op(module, OpKind::Gather, "Embedding", {table, ids}, {{"axis", std::int64_t{0}}})
        .front();
}

TensorId Builder::unary(const std::string& name, std::string function, TensorId x) {
    return op(name, OpKind::Elementwise, "Activation", {x}, {{"function", std::move(function)}})
        .front();
}

TensorId Builder::add(const std::string& name, TensorId a, TensorId b) {
    return op(name, OpKind::Elementwise, "Add", {a, b}, {{"function", "add"}}).front();
}

TensorId Builder::multiply(const std::string& name, TensorId a, TensorId b) {
    return op(name, OpKind::Elementwise, "Mul", {a, b}, {{"function", "mul"}}).front();
}

TensorId Builder::dropout(const std::string& name, TensorId x, double ratio) {
    if (ratio <= 0) return x;
    return op(name, OpKind::Dropout, "Dropout", {x}, {{"ratio", ratio}}).front();
}

TensorId Builder::softmax(const std::string& name, TensorId x) {
    const std::int64_t axis = static_cast<std::int64_t>(shapeOf(x).size()) - 1;
    return op(name, OpKind::Softmax, "Softmax", {x},
              {{"function", "softmax"}, {"axes", Ints{axis}}})
        .front();
}

TensorId Builder::rotary(const std::string& name, TensorId x) {
    return op(name, OpKind::Rotary, "RotaryEmbedding", {x}).front();
}

TensorId Builder::attention(const std::string& name, TensorId q, TensorId k, TensorId v,
                            bool causal, TensorId bias) {
    std::vector<TensorId> inputs{q, k, v};
    if (bias != kNoTensor) inputs.push_back(bias);
    const TensorId context = op(name, OpKind::Attention, "Attention", std::move(inputs),
                                {{"causal", std::int64_t{causal}}})
                                 .front();
    const Shape shape = shapeOf(context);
    return reshape(name + ".merge_heads", context, {shape[0], shape[1], shape[2] * shape[3]});
}

TensorId Builder::reshape(const std::string& name, TensorId x, Shape shape) {
    return op(name, OpKind::Reshape, "View", {x}, {{"shape", std::move(shape)}}).front();
}

TensorId Builder::splitHeads(const std::string& name, TensorId x, std::int64_t width) {
    const Shape shape = shapeOf(x);
    return reshape(name, x, {shape[0], shape[1], shape[2] / width, width});
}

TensorId Builder::transpose(const std::string& name, TensorId x, Ints perm) {
    return op(name, OpKind::Transpose, "Permute", {x}, {{"perm", std::move(perm)}}).front();
}

TensorId Builder::expand(const std::string& name, TensorId x, Shape shape) {
    return op(name, OpKind::Expand, "Expand", {x}, {{"shape", std::move(shape)}}).front();
}

TensorId Builder::concat(const std::string& name, std::vector<TensorId> parts, std::int64_t axis) {
    return op(name, OpKind::Concat, "Cat", std::move(parts), {{"axis", axis}}).front();
}

std::vector<TensorId> Builder::split(const std::string& name, TensorId x, std::int64_t axis,
                                     Ints sizes) {
    return op(name, OpKind::Split, "Split", {x}, {{"axis", axis}, {"sizes", std::move(sizes)}});
}

TensorId Builder::row(const std::string& name, TensorId x, std::int64_t index) {
    const Shape shape = shapeOf(x);
    const TensorId slice = op(name, OpKind::Slice, "Slice", {x},
                              {{"starts", Ints{index}},
                               {"ends", Ints{index + 1}},
                               {"axes", Ints{1}},
                               {"steps", Ints{1}}})
                               .front();
    return reshape(name + ".squeeze", slice, {shape[0], shape[2]});
}

TensorId Builder::einsum(const std::string& name, std::string equation, TensorId a, TensorId b) {
    return op(name, OpKind::Einsum, "Einsum", {a, b}, {{"equation", std::move(equation)}}).front();
}

TensorId Builder::convolution(const std::string& name, TensorId x, TensorId weight, TensorId bias,
                              std::int64_t stride, std::int64_t padding) {
    std::vector<TensorId> inputs{x, weight};
    if (bias != kNoTensor) inputs.push_back(bias);
    return op(name, OpKind::Conv, "Conv2d", std::move(inputs),
              {{"strides", Ints{stride, stride}}, {"pads", Ints(4, padding)}})
        .front();
}

TensorId Builder::maxPool(const std::string& name, TensorId x, std::int64_t kernel,
                          std::int64_t stride, std::int64_t padding) {
    return op(name, OpKind::Pool, "MaxPool2d", {x},
              {{"mode", std::string("max")},
               {"kernel", Ints{kernel, kernel}},
               {"strides", Ints{stride, stride}},
               {"pads", Ints(4, padding)}})
        .front();
}

TensorId Builder::globalAverage(const std::string& name, TensorId x) {
    return op(name, OpKind::GlobalPool, "AdaptiveAvgPool2d", {x},
              {{"mode", std::string("average")}})
        .front();
}

TensorId Builder::dispatch(const std::string& name, TensorId tokens, TensorId scores,
                           std::int64_t topK, double capacityFactor) {
    return op(name, OpKind::MoeDispatch, "Dispatch", {tokens, scores},
              {{"top_k", topK}, {"capacity_factor", capacityFactor}})
        .front();
}

TensorId Builder::combine(const std::string& name, TensorId experts, TensorId scores) {
    return op(name, OpKind::MoeCombine, "Combine", {experts, scores}).front();
}

TensorId Builder::crossEntropy(const std::string& name, TensorId logits, TensorId labels) {
    return op(name, OpKind::CrossEntropy, "CrossEntropyLoss", {logits, labels}).front();
}

} // namespace shardlens::hf
