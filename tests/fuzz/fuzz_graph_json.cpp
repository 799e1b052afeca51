// SPDX-License-Identifier: Apache-2.0
// Any bytes as a graph snapshot out of a damaged session: a graph or an InputError; and what was
// read once is written and read again to the same bytes.
#include "core/error.h"
#include "core/model/canonical.h"
#include "core/model/graph_algorithms.h"
#include "core/model/graph_json.h"

#include <cstdlib>

using namespace shardlens;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const Graph graph = graphFromJson({reinterpret_cast<const char*>(data), size});
        const std::string json = graphToJson(graph);
        if (graphToJson(graphFromJson(json)) != json) std::abort();
        structuralOrder(graph);
        canonicalise(graph);
    } catch (const InputError&) {
        return 0;
    }
    return 0;
}
