// SPDX-License-Identifier: Apache-2.0
// Any bytes as a config.json: a graph or an InputError. A graph must survive what every later stage
// does with it: its rules, its canonical form, its snapshot.
#include "core/error.h"
#include "core/import/hf_config.h"
#include "core/model/canonical.h"
#include "core/model/catalogue.h"
#include "core/model/graph_json.h"

#include <cstdlib>

using namespace shardlens;

namespace {

constexpr std::size_t kSmallGraph = 3000; // keeps one input below a second

void exercise(const Graph& graph) {
    for (OpId id = 0; id < graph.ops().size(); ++id) {
        const OpView view = viewOf(graph, id);
        forwardWork(view, factorRule(view));
        savedForBackward(view);
    }
    if (canonicalise(graph).parameterCount() != graph.parameterCount()) std::abort();
    const std::string json = graphToJson(graph);
    if (graphToJson(graphFromJson(json)) != json) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    looksLikeHfConfig(text);
    ImportOptions options;
    options.batch = 2;
    options.sequence = 8;
    options.training = size % 2 == 0;
    try {
        const Graph graph = importHfConfig(text, "fuzz.json", options);
        if (graph.ops().size() <= kSmallGraph) exercise(graph);
    } catch (const InputError&) {
        return 0;
    }
    return 0;
}
