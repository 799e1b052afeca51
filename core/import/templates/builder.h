// SPDX-License-Identifier: Apache-2.0
// The words templates are written in: a module of the source (linear, norm, embedding, …) is a
// call. Ops are named like modules, parameters like the tensors of the weights file, and each
// Parameter op stands right before its first reader, so that the ops of a block are contiguous.
#pragma once

#include "core/model/graph.h"

#include <stop_token>
#include <string>

namespace shardlens::hf {

class Builder {
public:
    /// @param weight element type of linear layers' weights; all else is of type `activation`
    Builder(Graph& graph, DType activation, DType weight, std::stop_token stop)
        : m_graph(graph), m_activation(activation), m_weight(weight), m_stop(std::move(stop)) {}

    const Shape& shapeOf(TensorId id) const { return m_graph.tensor(id).spec.shape; }
    DType activation() const { return m_activation; }
    /// To be called once a layer. @throws Cancelled
    void checkStop() const;

    // Sources.
    TensorId integers(const std::string& name, Shape shape); ///< an i64 Input
    TensorId pixels(const std::string& name, Shape shape);   ///< a floating Input
    TensorId constant(const std::string& name, Shape shape); ///< an i64 Constant
    TensorId parameter(const std::string& name, Shape shape);

    // Modules. `module` is the path in the source; its tensors get ".weight" and ".bias".
    /// x[..,in] -> [..,out], weight [out,in].
    TensorId linear(const std::string& module, TensorId x, std::int64_t out, bool bias);
    /// The same with a weight kept in the activation type ([out,in]; router, head).
    TensorId wideLinear(const std::string& module, TensorId x, std::int64_t out, bool bias);
    /// The same with the weight stored [in,out] (GPT-2's Conv1D).
    TensorId conv1d(const std::string& module, TensorId x, std::int64_t out);
    /// x[..,h] times a weight [V,h] that exists: -> [..,V], with an optional bias.
    TensorId project(const std::string& name, TensorId x, TensorId weight,
                     TensorId bias = kNoTensor);
    TensorId layerNorm(const std::string& module, TensorId x);
    TensorId rmsNorm(const std::string& module, TensorId x);
    /// Over all but dim 1, by the statistics of the whole batch, or else by the running ones.
    TensorId batchNorm(const std::string& module, TensorId x, bool training);
    TensorId embedding(const std::string& module, TensorId ids, TensorId table);

    // Ops.
    TensorId unary(const std::string& name, std::string function, TensorId x);
    TensorId add(const std::string& name, TensorId a, TensorId b);
    TensorId multiply(const std::string& name, TensorId a, TensorId b);
    TensorId dropout(const std::string& name, TensorId x, double ratio); ///< x itself for ratio 0
    TensorId softmax(const std::string& name, TensorId x);               ///< over the last dim
    TensorId rotary(const std::string& name, TensorId x);
    /// q[b,s,H,d] k[b,t,K,d] v[b,t,K,e] -> [b,s,H*e]; `bias` is added to the scores.
    TensorId attention(const std::string& name, TensorId q, TensorId k, TensorId v, bool causal,
                       TensorId bias = kNoTensor);
    TensorId reshape(const std::string& name, TensorId x, Shape shape);
    /// x[b,s,n*width] -> [b,s,n,width]
    TensorId splitHeads(const std::string& name, TensorId x, std::int64_t width);
    TensorId transpose(const std::string& name, TensorId x, std::vector<std::int64_t> perm);
    TensorId expand(const std::string& name, TensorId x, Shape shape);
    TensorId concat(const std::string& name, std::vector<TensorId> parts, std::int64_t axis);
    std::vector<TensorId> split(const std::string& name, TensorId x, std::int64_t axis,
                                std::vector<std::int64_t> sizes);
    /// One row along dim 1 of x[b,s,h]: -> [b,h]
    TensorId row(const std::string& name, TensorId x, std::int64_t index);
    TensorId einsum(const std::string& name, std::string equation, TensorId a, TensorId b);
    /// x[b,C,h,w], weight [O,C,k,k], bias [O] or kNoTensor
    TensorId convolution(const std::string& name, TensorId x, TensorId weight, TensorId bias,
                         std::int64_t stride, std::int64_t padding = 0);
    TensorId maxPool(const std::string& name, TensorId x, std::int64_t kernel, std::int64_t stride,
                     std::int64_t padding);
    TensorId globalAverage(const std::string& name, TensorId x); ///< x[b,C,h,w] -> [b,C,1,1]
    TensorId dispatch(const std::string& name, TensorId tokens, TensorId scores, std::int64_t topK,
                      double capacityFactor);
    TensorId combine(const std::string& name, TensorId experts, TensorId scores);
    TensorId crossEntropy(const std::string& name, TensorId logits, TensorId labels);

    /// A weight of the type of linear layers' weights.
    TensorId weight(const std::string& name, Shape shape);

private:
    TensorId source(const std::string& name, OpKind kind, const char* type, TensorSpec spec);
    std::vector<TensorId> op(const std::string& name, OpKind kind, const char* type,
                             std::vector<TensorId> inputs, Attributes attributes = {});
    TensorId product(const std::string& module, TensorId x, TensorId weight, bool bias,
                     bool transposed);

    Graph& m_graph;
    DType m_activation, m_weight;
    std::stop_token m_stop;
};

} // namespace shardlens::hf
