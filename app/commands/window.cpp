// SPDX-License-Identifier: Apache-2.0
// `shardlens [FILE]`: the window, or, where there is no display, the plan report in its place.
#include "app/application.h"
#include "app/commands/commands.h"
#include "app/model_file.h"
#include "core/error.h"
#include "core/plan/planner.h"
#include "ui/main_window.h"
#include "ui/views/sweep_chart.h"
#include "ui/views/timeline_view.h"

#include <fmt/format.h>

namespace shardlens::app {

namespace {

/// What the window would show of a model when it is first opened, for the terminal.
int printReport(const std::string& file) {
    if (file.empty()) {
        throw Error("there is no display to open a window on", {},
                    "name a model to get its plan report, or see shardlens --help");
    }
    fmt::print(stderr,
               "shardlens: there is no display to open a window on; "
               "this is the plan report of {}\n",
               file);
    const ModelFile model = openModelFile(file, {});
    fmt::print("{}", toText(optimise(
                         makeContext(model.bundle.graph, model.bundle.folding, model.request))));
    return 0;
}

} // namespace

int openWindow(const std::string& file, Arguments arguments) {
    if (!hasDisplay()) return printReport(file);
    const auto application = makeWindowApplication(arguments.count, arguments.values);
    installGraphAccessibility();
    installTimelineAccessibility();
    installSweepAccessibility();
    MainWindowOptions options;
    options.layoutHelper = QCoreApplication::applicationFilePath().toStdString();
    MainWindow window(QString::fromStdString(file), options);
    window.show();
    return QApplication::exec();
}

} // namespace shardlens::app
