// SPDX-License-Identifier: Apache-2.0
// See screenshot.h.
#include "ui/screenshot.h"

#include "core/error.h"
#include "ui/main_window.h"

#include <QApplication>
#include <QDeadlineTimer>
#include <QImageWriter>
#include <QTemporaryDir>

#include <algorithm>

namespace shardlens {

namespace {

constexpr int kTimeLimitMilliseconds = 120'000;
constexpr int kBenchmarkMilliseconds = 10'000;

void wait(MainWindow& window, const std::string& file) {
    if (!window.waitForIdle(kTimeLimitMilliseconds))
        throw Error("the window was not ready in time", file, "try a smaller model");
    if (!window.document().isOpen())
        throw Error(window.lastError().isEmpty() ? "the file could not be opened"
                                                 : window.lastError().toStdString(),
                    window.lastError().isEmpty() ? file : std::string());
}

/// Solved, or as far as it is after a while.
void waitForBenchmark(MainWindow& window) {
    const QDeadlineTimer deadline(kBenchmarkMilliseconds);
    while (window.benchmark().running() && !deadline.hasExpired()) {
        QApplication::processEvents(QEventLoop::AllEvents, 20);
    }
    if (!window.benchmark().state().error.isEmpty())
        throw Error(window.benchmark().state().error.toStdString());
}

/// The run that holds most ops, -1 if nothing repeats.
int largestRun(const Folding& folding) {
    const auto size = [](const FoldRun& run) { return run.count > 1 ? run.period * run.count : 0; };
    const auto most = std::ranges::max_element(folding.runs, {}, size);
    return most == folding.runs.end() || size(*most) == 0
               ? -1
               : static_cast<int>(most - folding.runs.begin());
}

/// The op with the most compute and communication; inside a run, of its second repeat.
OpId telling(const Document& document, int run) {
    const Folding& folding = *document.folding();
    const auto& plan = document.plan();
    OpId best = kNoOp;
    double most = -1;
    for (OpId op = 0; op < document.graph()->ops().size(); ++op) {
        const bool inside = run >= 0 && folding.classes[folding.classOf[op]].run == run &&
                            folding.instanceOf[op] == 1;
        if (!(run < 0 || inside)) continue;
        if (document.graph()->op(op).inputs.empty()) continue;
        const double cost =
            plan ? plan->figures[op].communication * 1e3 + plan->figures[op].compute.forward : 0;
        if (cost > most) {
            most = cost;
            best = op;
        }
    }
    return best;
}

/// Divides the model, if it is not, and chooses a stage in the middle.
void showStages(MainWindow& window) {
    Document& document = window.document();
    if (!document.request().pipeline) window.commands().action("plan.pipeline")->trigger();
    window.showTimeline();
    if (!window.waitForIdle(kTimeLimitMilliseconds) || !document.pipeline())
        throw Error(document.pipelineError().toStdString(), "pipeline stages");
    document.selectStage(document.pipeline()->stages() / 2);
}

} // namespace

void renderScreenshot(const QString& file, const QString& out, const ScreenshotOptions& wish) {
    const QTemporaryDir scratch;
    applyTheme(wish.dark ? ThemeMode::Dark : ThemeMode::Light);
    MainWindowOptions options;
    options.keepSettings = false;
    options.document.temporaryFolder = scratch.path().toStdString();
    MainWindow window({}, options);
    window.setAttribute(Qt::WA_DontShowOnScreen);
    window.resize(wish.size);
    window.show();
    window.openFile(file);
    const bool benchmark = window.benchmark().running();
    if (benchmark)
        waitForBenchmark(window);
    else
        wait(window, file.toStdString());
    if (wish.stages && !benchmark) {
        showStages(window);
        wait(window, file.toStdString());
        window.graphView().fitAll();
    }
    if (benchmark || wish.stages) {
        // its panel is in front
    } else if (wish.folded) {
        window.graphView().fitAll();
        wait(window, file.toStdString());
    } else if (window.document().viewState(QStringLiteral("graph")).isEmpty() ||
               window.document().isTemporary()) {
        const int run = largestRun(*window.document().folding());
        if (run >= 0) window.graph().openRun(run);
        wait(window, file.toStdString());
        window.graphView().fitAll();
        const OpId op = telling(window.document(), run);
        if (op != kNoOp) window.graph().showOp(op);
        wait(window, file.toStdString());
        if (op != kNoOp && window.graphView().zoom() < 0.62) {
            window.graphView().setView(window.graphView().sceneCentre(), 0.78);
            window.graphView().centreOn(window.graphView().itemOfOp(op));
        }
        wait(window, file.toStdString());
    }
    QImageWriter writer(out, "png");
    if (!writer.write(window.grab().toImage()))
        throw Error(writer.errorString().toStdString(), out.toStdString(),
                    "choose a place that can be written");
}

} // namespace shardlens
