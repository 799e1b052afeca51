// SPDX-License-Identifier: Apache-2.0
// The subcommands of the program. Each add…() declares a subcommand's options and leaves what to
// do in `action`, which main() runs once the whole line has been parsed; it returns the exit code
// and throws the core's errors. Only the window and the screenshot need a QApplication, and make
// their own.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>

namespace shardlens::app {

/// The arguments of main(), for QApplication.
struct Arguments {
    int& count;
    char** values;
};

using Action = std::function<int()>;

void addInfo(CLI::App& app, Action& action);
void addPlan(CLI::App& app, Action& action);
void addVerify(CLI::App& app, Action& action);
void addSchedule(CLI::App& app, Arguments arguments, Action& action);
void addSolve(CLI::App& app, Action& action);
void addSweep(CLI::App& app, Action& action);
void addClusters(CLI::App& app, Action& action);
/// A hidden flag: the program as the helper of core/layout, one layout a line from stdin to stdout.
void addLayoutHelper(CLI::App& app, Action& action);
void addScreenshot(CLI::App& app, Arguments arguments, Action& action);

/// Opens the window on `file` (may be empty). Without a display prints the plan report instead.
int openWindow(const std::string& file, Arguments arguments);

} // namespace shardlens::app
