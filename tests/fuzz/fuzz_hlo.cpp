// SPDX-License-Identifier: Apache-2.0
// Any bytes as HLO text: a graph that every later stage can read, or an InputError.
#include "core/error.h"
#include "core/fold/folding.h"
#include "core/import/hlo_import.h"
#include "tests/fuzz/imported_graph.h"

using namespace shardlens;

namespace {

constexpr std::size_t kSmallGraph = 5000; // keeps one input below a second

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        const Graph graph = importHlo(text, "fuzz.hlo", {});
        if (graph.ops().size() > kSmallGraph) return 0;
        fuzz::readBack(graph);
        const Graph canonical = canonicalise(graph);
        if (fold(canonical).order.size() != canonical.ops().size()) std::abort();
    } catch (const InputError&) {
        return 0;
    }
    return 0;
}
