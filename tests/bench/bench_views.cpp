// SPDX-License-Identifier: Apache-2.0
// How long frames of the window's views take, drawn into an image as on a screen without graphics
// hardware: the graph of llama3.1-405b in stages, a sweep of ten thousand points, a mesh of 1,024
// devices. Nothing on the GUI thread may take over 8 ms. Arguments: width, height, and sweep, mesh
// or graph for that alone.
#include "ui/main_window.h"
#include "ui/views/graph_view.h"
#include "ui/views/mesh_view.h"
#include "ui/views/sweep_chart.h"

#include <fmt/format.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QImage>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QTemporaryDir>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <random>

using namespace shardlens;

namespace {

constexpr int kFrames = 61, kPoints = 10'000, kWait = 120'000;

double milliseconds(const QElapsedTimer& timer) {
    return static_cast<double>(timer.nsecsElapsed()) / 1e6;
}

double processorMilliseconds() {
    return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// Frames of a view, each after something has changed.
void printFrames(QWidget& view, const char* name, auto&& change) {
    QImage screen(view.size(), QImage::Format_RGB32);
    std::vector<double> times, processor;
    for (int i = 0; i < kFrames; ++i) {
        const double before = processorMilliseconds();
        QElapsedTimer timer;
        timer.start();
        change(i);
        view.render(&screen);
        times.push_back(milliseconds(timer));
        processor.push_back(processorMilliseconds() - before);
    }
    std::ranges::sort(times);
    std::ranges::sort(processor);
    fmt::print("  {:<38} median {:6.2f} ms, 95 % {:6.2f} ms; processor {:6.2f}, {:6.2f} ms\n", name,
               times[kFrames / 2], times[kFrames * 95 / 100], processor[kFrames / 2],
               processor[kFrames * 95 / 100]);
}

void measureGraph(QSize size) {
    const QTemporaryDir scratch;
    MainWindowOptions options;
    options.keepSettings = false;
    options.document.temporaryFolder = scratch.path().toStdString();
    MainWindow window(QStringLiteral(SHARDLENS_SOURCE "/samples/llama3.1-405b.json"), options);
    window.setAttribute(Qt::WA_DontShowOnScreen);
    window.resize(1600, 1000);
    window.show();
    window.waitForIdle(kWait);
    GraphView& view = window.graphView();
    const auto frames = [&](const char* shown) {
        view.resize(size);
        view.fitAll();
        fmt::print("graph of llama3.1-405b, {}: {} boxes, {}x{}\n", shown, view.itemCount(),
                   size.width(), size.height());
        const QPointF middle = view.sceneCentre();
        const double fitted = view.zoom();
        for (const double zoom : {fitted, 0.3, 0.5, 1.0, 2.0})
            printFrames(view, fmt::format("pan at zoom {:.2f}", zoom).c_str(), [&](int i) {
                view.setView(middle + QPointF(3.0 * (i % 2), 17.0 * (i % 20 - 10) / zoom), zoom);
            });
        view.setView(middle, 0.05);
        printFrames(view, "zoom from a point to a box",
                    [&](int) { view.setView(middle, view.zoom() * 1.07); });
        view.fitAll();
    };
    frames("folded");
    window.graph().openRun(0);
    window.waitForIdle(kWait);
    frames("a block opened");
    window.commands().action("plan.pipeline")->trigger();
    window.waitForIdle(kWait);
    if (window.document().pipeline()) window.document().selectStage(0);
    frames("a block opened, in stages");
}

/// Plans as a grid has them: memory against time in bands, a tenth beyond the limit.
std::shared_ptr<const SweepData> manyPoints() {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> share(0, 1);
    SweepTable table;
    table.settings = {"tp", "pp", "micro_batches"};
    table.memoryLimit = 80e9;
    for (int i = 0; i < kPoints; ++i) {
        SweepRow row;
        row.values = {std::int64_t{1} << (i % 4), std::int64_t{1} << (i / 4 % 5),
                      std::int64_t{1 + i / 20}};
        row.seconds = 2 * std::exp(3 * share(random));
        row.memory = 20e9 * std::exp(1.8 * share(random)) + 40e9 / row.seconds;
        row.bubble = share(random) / 3;
        row.fits = row.memory <= table.memoryLimit;
        table.rows.push_back(row);
    }
    std::vector<std::size_t> order(table.rows.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::size_t i) { return table.rows[i].seconds; });
    double least = 1e300;
    for (const std::size_t i : order) {
        table.rows[i].front = table.rows[i].memory < least;
        least = std::min(least, table.rows[i].memory);
    }
    return std::make_shared<const SweepData>(std::move(table), std::vector<SweepAxis>{},
                                             std::vector<GridPoint>{});
}

void measureSweep(QSize size) {
    QElapsedTimer timer;
    timer.start();
    const auto data = manyPoints();
    const double made = milliseconds(timer);
    std::vector<int> all;
    for (int row = 0; row < data->rows(); ++row) all.push_back(row);
    QImage screen(size, QImage::Format_RGB32);
    SweepChart().render(&screen); // fonts are made ready
    SweepChart chart;
    chart.resize(size);
    timer.restart();
    chart.setSweep(data, all);
    chart.ensurePolished();
    chart.render(&screen);
    fmt::print("sweep of {} points, {}x{}\n  made in the background in {:.2f} ms, opened in {:.2f} "
               "ms\n",
               data->rows(), size.width(), size.height(), made, milliseconds(timer));
    printFrames(chart, "more points, or others by a filter",
                [&](int i) { chart.setShown({all.begin(), all.end() - i}); });
    printFrames(chart, "the panel is resized",
                [&](int i) { chart.resize(size - QSize(i % 7, i % 5)); });
    chart.resize(size);
    chart.setShown(all);
    printFrames(chart, "the mouse moves", [&](int i) {
        const QPointF at(size.width() * (0.2 + 0.01 * i), size.height() * 0.5);
        QMouseEvent move(QEvent::MouseMove, at, chart.mapToGlobal(at), Qt::NoButton, Qt::NoButton,
                         {});
        QApplication::sendEvent(&chart, &move);
    });
    printFrames(chart, "keys walk", [&](int i) {
        QKeyEvent key(QEvent::KeyPress, i == 0 ? Qt::Key_Home : Qt::Key_Right, Qt::NoModifier);
        QApplication::sendEvent(&chart, &key);
    });
}

void measureMesh(QSize size) {
    constexpr int kNodes = 128, kPerNode = 8, kStages = 8;
    Mesh mesh;
    mesh.axes = {{"dp", kNodes, {}, false}, {"tp", kPerNode, {}, false}};
    MeshView view;
    view.resize(size);
    view.setMesh(mesh, kPerNode);
    std::vector<int> stages;
    for (int d = 0; d < kNodes * kPerNode; ++d) stages.push_back(d * kStages / kNodes / kPerNode);
    QStringList held;
    for (int s = 0; s < kStages; ++s) held << QString::number(s);
    view.setStages(stages, held);
    fmt::print("mesh of {} nodes of {} devices, {}x{}\n", kNodes, kPerNode, size.width(),
               size.height());
    printFrames(view, "tiles", [&](int i) { view.setSelectedStage(i % kStages); });
    printFrames(view, "zoom from all to one device",
                [&](int) { view.zoomAt(QPointF(size.width() * 0.4, size.height() * 0.6), 1.06); });
}

} // namespace

int main(int argc, char** argv) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    QApplication application(argc, argv);
    applyTheme(ThemeMode::Light);
    const auto argument = [&](int i, int usual) { return i < argc ? std::atoi(argv[i]) : usual; };
    const QSize size(argument(1, 1600), argument(2, 900));
    const std::string_view only = argc > 3 ? argv[3] : "";
    if (only.empty() || only == "sweep") measureSweep(size);
    if (only.empty() || only == "mesh") measureMesh(size);
    if (only.empty() || only == "graph") measureGraph(size);
}
