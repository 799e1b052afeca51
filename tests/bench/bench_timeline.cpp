// SPDX-License-Identifier: Apache-2.0
// A million bars: how long until they can be looked at, and how long a frame takes while panning
// and zooming, drawn by the widget into an image as on a screen without graphics hardware. Targets:
// opening in a second, frames in 16 ms. Arguments: devices, micro-batches, width, height.
#include "ui/views/timeline_view.h"

#include <fmt/format.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QImage>

#include <algorithm>
#include <cmath>
#include <ctime>

using namespace shardlens;

namespace {

double processorSeconds() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

struct Frames {
    std::vector<double> milliseconds;

    double at(double share) {
        std::ranges::sort(milliseconds);
        const auto last = static_cast<double>(milliseconds.size() - 1);
        return milliseconds[static_cast<std::size_t>(last * share)];
    }
};

void printFrames(TimelineView& view, QImage& screen, const char* name, auto&& move) {
    constexpr int kFrames = 61;
    Frames frames;
    const double before = processorSeconds();
    for (int i = 0; i < kFrames; ++i) {
        QElapsedTimer timer;
        timer.start();
        move(i);
        view.render(&screen);
        frames.milliseconds.push_back(static_cast<double>(timer.nsecsElapsed()) / 1e6);
    }
    const double processor = 1000 * (processorSeconds() - before) / kFrames;
    fmt::print("  {:<34} median {:6.2f} ms, 95 % {:6.2f} ms, processor {:6.2f} ms a frame\n", name,
               frames.at(0.5), frames.at(0.95), processor);
}

void measure(const schedule::ScheduleSpec& spec, QSize size, TimelineColour colour) {
    QElapsedTimer timer;
    timer.start();
    double processor = processorSeconds();
    auto made = std::make_shared<const schedule::Schedule>(schedule::makeSchedule(spec));
    const double run = static_cast<double>(timer.nsecsElapsed()) / 1e9;
    const std::size_t bars = made->program.tasks.size();
    timer.restart();
    auto picture =
        std::make_shared<const TimelinePicture>(std::move(made), TimelineStyle{colour, false, 0});
    const double built = static_cast<double>(timer.nsecsElapsed()) / 1e9;
    processor = processorSeconds() - processor;
    TimelineView view;
    view.resize(size);
    timer.restart();
    view.setPicture(picture);
    view.ensurePolished();
    QImage screen(size, QImage::Format_RGB32);
    view.render(&screen);
    const double first = static_cast<double>(timer.nsecsElapsed()) / 1e9;
    fmt::print("{} p={} m={}: {} bars, {}x{}\n", spec.name, spec.devices, spec.microBatches, bars,
               size.width(), size.height());
    fmt::print("  opening: run {:.3f} s, picture {:.3f} s, first frame {:.3f} s; sum {:.3f} s, "
               "processor {:.3f} s\n",
               run, built, first, run + built + first, processor);
    const double whole = picture->makespan();
    for (double zoom = 1; zoom <= 1e5; zoom *= 10) {
        const double span = whole / zoom;
        const std::string name = fmt::format("pan at zoom {:g}", zoom);
        view.setRange(0.4 * whole, 0.4 * whole + span);
        printFrames(view, screen, name.c_str(), [&](int) { view.panBy(17); });
    }
    view.fitAll();
    printFrames(view, screen, "zoom from the step to one bar",
                [&](int) { view.zoomAt(0.437 * whole, 1.25); });
    const schedule::TaskId some = static_cast<schedule::TaskId>(bars / 3);
    view.selectTask(some);
    view.setTime(picture->start(some));
    view.fitSelection();
    printFrames(view, screen, "selection and cursor", [&](int) { view.stepTime(true); });
}

} // namespace

int main(int argc, char** argv) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    const QApplication application(argc, argv);
    const auto argument = [&](int i, int usual) { return i < argc ? std::atoi(argv[i]) : usual; };
    schedule::ScheduleSpec spec;
    spec.name = "1f1b";
    spec.devices = static_cast<std::uint32_t>(argument(1, 64));
    spec.microBatches = static_cast<std::uint32_t>(argument(2, 7813));
    const QSize size(argument(3, 1600), argument(4, 900));
    measure(spec, size, TimelineColour::Pass);
    spec.devices = 8;
    spec.microBatches = 62'500;
    measure(spec, size, TimelineColour::MicroBatch);
    spec.name = "zb-h1";
    spec.devices = 512;
    spec.microBatches = 652;
    measure(spec, size, TimelineColour::Stage);
}
