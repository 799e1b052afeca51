// SPDX-License-Identifier: Apache-2.0
// Elements that are known while a graph is being read. Exported models compute their shapes with
// ops (Shape, Gather, Concat, Reshape …), and layers are only told apart from shape arithmetic by
// carrying it out. Integers live in Tensor::value; a few floats (scales) are kept beside the graph.
#pragma once

#include "core/model/graph.h"

#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

namespace shardlens {

class KnownValues {
public:
    /// One element: an integer (or bool), or a floating-point number.
    using Scalar = std::variant<std::int64_t, double>;
    using Elements = std::vector<Scalar>; ///< row-major

    static constexpr std::size_t kMaxInts = 4096; ///< elements of a tensor that are tracked
    static constexpr std::size_t kMaxFloats = 64;
    static constexpr std::size_t kMaxTotal = std::size_t{1} << 24; ///< over the whole graph

    explicit KnownValues(Graph& graph) : m_graph(graph) {}

    const KnownInts* ints(TensorId id) const;
    const std::vector<double>* floats(TensorId id) const;
    std::optional<Elements> elements(TensorId id) const;

    /// Records elements, if their number fits the tensor and the limits.
    void set(TensorId id, const Elements& elements);
    void setInts(TensorId id, KnownInts values);
    void setFloats(TensorId id, std::vector<double> values);

    /// Carries out an op that was just added, if all its operands are known and it is one of the
    /// ops of shape arithmetic.
    void propagate(OpId id);

private:
    bool takes(TensorId id, std::size_t count, std::size_t limit);

    Graph& m_graph;
    std::unordered_map<TensorId, std::vector<double>> m_floats;
    std::size_t m_total = 0;
};

} // namespace shardlens
