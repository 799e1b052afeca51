// SPDX-License-Identifier: Apache-2.0
// See virtual_stages.h.
#include "core/plan/planners/virtual_stages.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens {

namespace {

bool isLayer(const StageUnit& unit) {
    return unit.run >= 0;
}

/// "4-5", or "4"; empty if not all are layers with numbers.
std::string layersText(const StageUnits& units, int first, int last) {
    if (last < first) return {};
    const std::optional<int> from = layerNumber(units, first), to = layerNumber(units, last);
    if (!from || !to) return {};
    return first == last ? fmt::format("{}", *from) : fmt::format("{}-{}", *from, *to);
}

} // namespace

std::vector<VirtualStage> virtualStages(const StageUnits& units,
                                        std::span<const PlannedStage> stages, int chunks) {
    std::vector<VirtualStage> list;
    const int p = static_cast<int>(stages.size());
    if (chunks == 1) {
        for (int s = 0; s < p; ++s) {
            const PlannedStage& stage = stages[static_cast<std::size_t>(s)];
            list.push_back({s, 0, stage.first, stage.last});
        }
        return list;
    }
    std::vector<int> layers; // units
    for (int u = 0; u < static_cast<int>(units.units.size()); ++u)
        if (isLayer(units.units[static_cast<std::size_t>(u)])) layers.push_back(u);
    int next = 0; // unit
    std::size_t taken = 0;
    for (int s = 0; s < p * chunks; ++s) {
        const PlannedStage& stage = stages[static_cast<std::size_t>(s % p)];
        const auto held = std::ranges::count_if(
            layers, [&](int u) { return u >= stage.first && u <= stage.last; });
        const int chunk = s / p;
        taken += static_cast<std::size_t>(held * (chunk + 1) / chunks - held * chunk / chunks);
        int end = taken > 0 ? layers[taken - 1] + 1 : 0;
        if (s + 1 == p * chunks) end = static_cast<int>(units.units.size());
        list.push_back({s % p, chunk, next, end - 1});
        next = end;
    }
    return list;
}

std::string stretchName(const StageUnits& units, int first, int last) {
    if (last < first) return "nothing";
    if (first == last) return unitName(units, first);
    if (const std::string layers = layersText(units, first, last); !layers.empty())
        return "layers " + layers;
    return fmt::format("{} to {}", unitName(units, first), unitName(units, last));
}

std::string chunksName(const StageUnits& units, std::span<const VirtualStage> all, int stage) {
    std::string text;
    bool listed = false; // numbers of layers may follow
    for (const VirtualStage& piece : all) {
        if (piece.stage != stage) continue;
        if (!text.empty()) text += ", ";
        const std::string layers = layersText(units, piece.first, piece.last);
        text += listed && !layers.empty() ? layers : stretchName(units, piece.first, piece.last);
        listed = !layers.empty();
    }
    return text;
}

} // namespace shardlens
