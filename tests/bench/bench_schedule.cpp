// SPDX-License-Identifier: Apache-2.0
// How fast schedules are made and run, in processor time: about a million tasks of each kind.
// Usage: bench_schedule [tasks]. The aim of the engine is 2 million tasks a second.
#include "core/schedule/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <string_view>
#include <vector>

using namespace shardlens::schedule;

namespace {

double processorSeconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Work>
double median(int repeats, Work work) {
    std::vector<double> seconds;
    for (int i = 0; i < repeats; ++i) {
        const double before = processorSeconds();
        work();
        seconds.push_back(processorSeconds() - before);
    }
    std::ranges::sort(seconds);
    return seconds[seconds.size() / 2];
}

struct Case {
    const char* name;
    std::uint32_t devices, chunks, passes; ///< tasks of a micro-batch on a device
    double transfer;
    Transfers transfers;
};

void run(const Case& c, std::size_t tasks) {
    ScheduleSpec spec;
    spec.name = c.name;
    spec.devices = c.devices;
    spec.chunks = c.chunks;
    spec.transfer = {c.transfer};
    spec.transfers = c.transfers;
    const std::size_t each = std::size_t{c.devices} * c.passes;
    spec.microBatches = static_cast<std::uint32_t>(tasks / each / c.devices + 1) * c.devices;

    constexpr int kRepeats = 5;
    Orders orders;
    Program program;
    Timeline timeline;
    Account result;
    const double make = median(1, [&] { orders = makeOrders(spec); });
    const double built = median(kRepeats, [&] { program = compile(spec, orders); });
    const double ran = median(kRepeats, [&] { timeline = simulate(program); });
    const double explained = median(kRepeats, [&] { result = account(program, timeline); });
    const auto n = static_cast<double>(program.tasks.size());
    fmt::print("{:<12} {:>4} {:>6} {:>9} {:>8.0f} {:>8.0f} {:>8.0f} {:>8.0f} {:>10.2f}\n", c.name,
               c.devices, spec.microBatches, program.tasks.size(), 1e3 * make, 1e3 * built,
               1e3 * ran, 1e3 * explained, n / ran / 1e6);
}

} // namespace

int main(int argc, char** argv) {
    std::size_t tasks = 1'000'000;
    if (argc > 1) {
        const std::string_view text = argv[1];
        std::from_chars(text.data(), text.data() + text.size(), tasks);
    }
    fmt::print("{:<12} {:>4} {:>6} {:>9} {:>8} {:>8} {:>8} {:>8} {:>10}\n", "schedule", "p", "m",
               "tasks", "make ms", "build ms", "run ms", "why ms", "M tasks/s");
    const Case cases[] = {
        {"gpipe", 64, 1, 2, 0, Transfers::Lag},     {"1f1b", 8, 1, 2, 0, Transfers::Lag},
        {"1f1b", 64, 1, 2, 0, Transfers::Lag},      {"1f1b", 1024, 1, 2, 0, Transfers::Lag},
        {"1f1b", 64, 1, 4, 0.1, Transfers::Stream}, {"interleaved", 64, 4, 8, 0, Transfers::Lag},
        {"zb-h1", 64, 1, 3, 0, Transfers::Lag},     {"zb-h2", 64, 1, 3, 0, Transfers::Lag},
        {"chimera", 64, 1, 2, 0, Transfers::Lag},   {"dualpipe", 64, 1, 2, 0, Transfers::Lag},
        {"3f1b", 64, 1, 4, 0, Transfers::Lag},      {"zb-v", 16, 1, 6, 0, Transfers::Lag},
    };
    for (const Case& c : cases) run(c, tasks);
    for (const char* name : {"zb-v", "v-half", "v-min"}) { // their generators search
        for (const std::uint32_t p : {8u, 32u, 64u}) {
            ScheduleSpec spec;
            spec.name = name;
            spec.devices = p;
            spec.microBatches = 8 * p;
            fmt::print("{:<12} {:>4} {:>6} makes its orders in {:.0f} ms\n", name, p,
                       spec.microBatches, 1e3 * median(1, [&] { makeOrders(spec); }));
        }
    }
}
