// SPDX-License-Identifier: Apache-2.0
// Times of the layered layout on graphs of 1,000 to 100,000 boxes: rows of transformer blocks,
// random graphs with edges to near boxes, training graphs with edges as long as the graph. Prints
// the time and the size of the drawing, and how long a layout runs on after a stop is requested.
#include "core/error.h"
#include "core/layout/layered_layout.h"
#include "tests/core/layout/layout_graphs.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <thread>

using namespace shardlens;

namespace {

using Clock = std::chrono::steady_clock;

double millisecondsSince(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double medianMilliseconds(const std::function<void()>& run) {
    std::vector<double> times;
    for (int i = 0; i < 5; ++i) {
        const auto start = Clock::now();
        run();
        times.push_back(millisecondsSince(start));
    }
    std::ranges::sort(times);
    return times[times.size() / 2];
}

// Longest time from the request to the end, over requests at many moments of the layout.
double worstStop(const LayoutInput& input, double duration) {
    constexpr int moments = 20;
    double worst = 0;
    for (int i = 1; i < moments; ++i) {
        std::stop_source stop;
        Clock::time_point requested;
        std::jthread other([&] {
            std::this_thread::sleep_for(
                std::chrono::duration<double, std::milli>(duration * i / moments));
            requested = Clock::now();
            stop.request_stop();
        });
        try {
            layeredLayout(input, stop.get_token());
            other.join();
        } catch (const Cancelled&) {
            const auto end = Clock::now();
            other.join();
            worst =
                std::max(worst, std::chrono::duration<double, std::milli>(end - requested).count());
        }
    }
    return worst;
}

void measure(const char* name, const LayoutInput& input) {
    LayoutResult result;
    const double time = medianMilliseconds([&] { result = layeredLayout(input); });
    fmt::print(
        "{:<12} {:>7} boxes {:>7} edges {:>8.1f} ms  stops in {:>5.1f} ms  {:.0f} x {:.0f}\n", name,
        input.boxes.size(), input.edges.size(), time, worstStop(input, time), result.width,
        result.height);
}

} // namespace

int main() {
    for (const std::uint32_t boxes : {1000u, 10000u, 100000u}) {
        constexpr int boxesOfBlock = 17;
        const int blocks = static_cast<int>(boxes) / boxesOfBlock;
        measure("transformer", test::transformer(blocks).input);
        measure("training", test::training(test::transformer(blocks / 2).input));
        measure("random near", test::randomLocal(boxes, boxes * 3 / 2, 40, 1));
    }
    return 0;
}
