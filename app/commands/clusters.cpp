// SPDX-License-Identifier: Apache-2.0
// `shardlens clusters`: the kinds of cluster that the hardware catalogue knows.
#include "app/commands/commands.h"
#include "core/cluster/cluster.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens::app {

void addClusters(CLI::App& app, Action& action) {
    auto* command = app.add_subcommand("clusters", "List the clusters that --cluster takes");
    command->callback([&action] {
        action = [] {
            const auto clusters = knownClusters();
            std::size_t width = 0;
            for (const auto& cluster : clusters) width = std::max(width, cluster.name.size());
            for (const auto& cluster : clusters) {
                fmt::print("{:<{}}  {}\n", cluster.name, width, cluster.description);
            }
            return 0;
        };
    });
}

} // namespace shardlens::app
