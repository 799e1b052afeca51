// SPDX-License-Identifier: Apache-2.0
// What a graph out of any reader must survive: its own consistency, and what every later stage does
// with it (canonical form, factor rules, work).
#pragma once

#include "core/error.h"
#include "core/import/importer.h"
#include "core/model/canonical.h"
#include "core/model/catalogue.h"

#include <cstdlib>

namespace shardlens::fuzz {

/// Known elements fit their shapes, no size is negative.
inline bool isWhole(const Graph& graph) {
    for (const Tensor& tensor : graph.tensors()) {
        const double elements = elementsOf(tensor.spec.shape);
        if (tensor.value && static_cast<double>(tensor.value->size()) != elements) return false;
        if (tensor.reals && static_cast<double>(tensor.reals->size()) != elements) return false;
        for (const std::int64_t size : tensor.spec.shape)
            if (size < 0) return false;
    }
    if (!graph.partition) return true;
    for (const auto& [tensor, sharding] : graph.partition->shardings) {
        if (sharding.dims.size() != graph.tensor(tensor).spec.shape.size()) return false;
        for (const auto& axes : sharding.dims)
            for (const std::uint8_t axis : axes)
                if (axis >= graph.partition->mesh.size()) return false;
    }
    return true;
}

/// Aborts where a graph is not consistent.
inline void readBack(const Graph& graph) {
    if (!isWhole(graph)) std::abort();
    const Graph canonical = canonicalise(graph);
    for (OpId id = 0; id < canonical.ops().size(); ++id) {
        const OpView view = viewOf(canonical, id);
        forwardWork(view, factorRule(view));
        savedForBackward(view);
    }
}

/// Any bytes as a file of one kind: a graph that every later stage can read, or an InputError.
/// @param read makes a Graph of a text and ImportOptions
template <typename Read>
int importAndReadBack(const std::uint8_t* data, std::size_t size, Read read) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    ImportOptions options;
    options.batch = 2;
    options.sequence = 4;
    try {
        readBack(read(text, options));
    } catch (const InputError&) {
        return 0;
    }
    return 0;
}

} // namespace shardlens::fuzz
