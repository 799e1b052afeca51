// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ONNX file: a graph that every later stage can read (canonical form, factor rules,
// work), or an InputError. The kind must be told without a crash too.
#include "core/error.h"
#include "core/import/onnx_import.h"
#include "core/model/canonical.h"
#include "core/model/catalogue.h"

#include <cstdlib>

using namespace shardlens;

namespace {

bool isWhole(const Graph& graph) {
    for (const Tensor& tensor : graph.tensors()) {
        if (tensor.value &&
            static_cast<double>(tensor.value->size()) != elementsOf(tensor.spec.shape))
            return false;
        for (const std::int64_t size : tensor.spec.shape)
            if (size < 0) return false;
    }
    return true;
}

void readBack(const Graph& graph) {
    const Graph canonical = canonicalise(graph);
    for (OpId id = 0; id < canonical.ops().size(); ++id) {
        const OpView view = viewOf(canonical, id);
        forwardWork(view, factorRule(view));
        savedForBackward(view);
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
    recognise(bytes, size);
    try {
        const Graph graph = importOnnx(bytes, "fuzz");
        if (!isWhole(graph)) std::abort();
        readBack(graph);
    } catch (const InputError&) {
        return 0;
    }
    return 0;
}
