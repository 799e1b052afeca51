// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .pt2 archive: a graph that every later stage can read, or an InputError.
#include "core/import/torch_export.h"
#include "tests/fuzz/imported_graph.h"

using namespace shardlens;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return fuzz::importAndReadBack(data, size, [](std::string_view text, const auto& options) {
        return importTorchArchive(std::as_bytes(std::span(text)), "fuzz", options);
    });
}
