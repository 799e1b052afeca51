// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ONNX file: a graph that every later stage can read (canonical form, factor rules,
// work), or an InputError. The kind must be told without a crash too.
#include "core/error.h"
#include "core/import/onnx_import.h"
#include "tests/fuzz/imported_graph.h"

using namespace shardlens;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
    recognise(bytes, size);
    try {
        fuzz::readBack(importOnnx(bytes, "fuzz"));
    } catch (const InputError&) {
        return 0;
    }
    return 0;
}
