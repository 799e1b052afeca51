// SPDX-License-Identifier: Apache-2.0
// Any bytes as a printed FX graph: a graph that every later stage can read, or an InputError.
#include "core/error.h"
#include "core/import/fx_text.h"
#include "tests/fuzz/imported_graph.h"

using namespace shardlens;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    ImportOptions options;
    options.batch = 2;
    options.sequence = 4;
    try {
        fuzz::readBack(importFx(text, "fuzz", options));
    } catch (const InputError&) {
        return 0;
    }
    return 0;
}
