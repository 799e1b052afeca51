// SPDX-License-Identifier: Apache-2.0
// Any bytes as a PyTorch execution trace: a graph that every later stage can read, or an
// InputError.
#include "core/import/execution_trace.h"
#include "tests/fuzz/imported_graph.h"

using namespace shardlens;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return fuzz::importAndReadBack(data, size, [](std::string_view text, const auto& options) {
        return importExecutionTrace(text, "fuzz", options);
    });
}
