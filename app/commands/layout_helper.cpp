// SPDX-License-Identifier: Apache-2.0
// `shardlens --layout-helper`: the process in which Graphviz runs, so that it can be killed. The
// window starts it; users never do.
#include "app/commands/commands.h"
#include "core/layout/layout_process.h"

#include <iostream>

namespace shardlens::app {

void addLayoutHelper(CLI::App& app, Action& action) {
    app.add_flag_callback(
           "--layout-helper",
           [&action] { action = [] { return runLayoutHelper(std::cin, std::cout); }; })
        ->group(""); // hidden
}

} // namespace shardlens::app
