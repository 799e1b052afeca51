// SPDX-License-Identifier: Apache-2.0
// Any two printed FX graphs, one after the other, as a whole model and one device's program of it:
// a plan whose parts fit together, or an error of the core's family.
#include "core/error.h"
#include "core/import/fx_text.h"
#include "core/plan/twin_match.h"

#include <cstdlib>

using namespace shardlens;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    constexpr std::string_view kBetween = "# local\n";
    const std::size_t between = text.find(kBetween);
    if (between == std::string_view::npos) return 0;
    constexpr std::size_t kMostOps = 200; // keeps one input below a second
    try {
        const Graph whole = importFx(text.substr(0, between), "whole", {});
        const Graph local = importFx(text.substr(between + kBetween.size()), "local", {});
        if (whole.ops().size() + local.ops().size() > kMostOps) return 0;
        const TwinPlan twin = readTwinPlan(whole, local);
        if (twin.plan.decisions.op.size() != twin.plan.context->graph->ops().size()) std::abort();
        toText(twin);
        toJson(twin);
    } catch (const Error&) {
        return 0;
    }
    return 0;
}
