// SPDX-License-Identifier: Apache-2.0
// The public instances of the contest on intra-operator parallelism beside the figures published
// for them: bench_iopddl FOLDER [SECONDS [THREADS [LETTERS]]], or random instances of other shapes
// with "random" for a folder; "cancel" in place of seconds stops at random times instead and prints
// how long the solver took to return. Prints cost, bound and gap, when the first answer came,
// processor time and memory. Figures: best of the contest's final table, XLA's score and the
// winning team's paper; the winner's open solver with two threads in 60 s; a reference search with
// one thread in 60 s.
#include "core/solve/contest_file.h"
#include "core/solve/interval_solver.h"
#include "tests/bench/large_intervals.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

using namespace shardlens::solve;

namespace {

struct Published {
    char letter;
    double best, winner, reference, bound;
};
constexpr Published kPublished[] = {
    {'A', 6'548'641'531, 6'573'803'925, 6'548'681'115, 6'513'812'172},
    {'B', 532'843, 532'843, 532'844, 532'843},
    {'G', 217'039, 217'039, 217'039, 216'933},
    {'M', 49'928'157'500, 50'128'257'076, 49'930'225'269, 49'429'153'686},
    {'N', 199'470'115'000, 294'604'819'670, 208'652'686'492, 172'940'125'422},
    {'P', 651'833'115'436, 662'207'124'505, 662'207'628'056, 621'337'004'542},
    {'S', 1'521'949'310, 2'489'991'601, 1'515'964'743, 1'511'240'136},
    {'U', 2'443'995'950, 7'900'992'494, 2'372'074'014, 2'018'900'000},
};

double processorSeconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return double(usage.ru_utime.tv_sec) + 1e-6 * double(usage.ru_utime.tv_usec);
}

void run(const Published& published, const std::string& folder, const IntervalOptions& options) {
    const double before = processorSeconds();
    const IntervalProblem problem =
        readContestFile(fmt::format("{}/asplos-2025-iopddl-{}.json.gz", folder, published.letter));
    const double read = processorSeconds() - before;
    const IntervalSolution s = solve(problem, options);
    const auto percent = [&](double figure) { return 100 * (s.cost / figure - 1); };
    fmt::print("{} {:>16.0f} {:>16.0f} {:8.4f} {:+9.4f} {:+9.3f} {:+9.4f} {:7.2f} {:7.2f} {:7.1f} "
               "{:5.2f} {:6} {}\n",
               published.letter, s.cost, s.bound, 100 * s.gap(), percent(published.best),
               percent(published.winner), percent(published.reference), s.firstFeasibleSeconds,
               s.statistics.seconds, processorSeconds() - before, read, s.statistics.bytes >> 20,
               s.status == Status::Optimal ? s.statistics.method : std::string());
    std::fflush(stdout);
}

/// Milliseconds from a request to stop until the solver is back, at times spread over 20 s.
void runCancelled(const Published& published, const std::string& folder, unsigned threads) {
    using Clock = std::chrono::steady_clock;
    const IntervalProblem problem =
        readContestFile(fmt::format("{}/asplos-2025-iopddl-{}.json.gz", folder, published.letter));
    std::vector<double> delays;
    for (const double after : {0.02, 0.05, 0.1, 0.15, 0.21, 0.3, 0.37, 0.45, 0.63, 1.1, 2.7, 6.3}) {
        std::stop_source stop;
        IntervalOptions options;
        options.stop = stop.get_token();
        options.threads = threads;
        Clock::time_point requested;
        std::jthread stopper([&] {
            std::this_thread::sleep_for(std::chrono::duration<double>(after));
            requested = Clock::now();
            stop.request_stop();
        });
        solve(problem, options);
        const Clock::time_point back = Clock::now();
        stopper.join();
        const std::chrono::duration<double, std::milli> delay = back - requested;
        if (delay.count() > 0) delays.push_back(delay.count()); // else it was done before
    }
    std::ranges::sort(delays);
    fmt::print("{} {:3} stops, ms until back: median {:6.1f}, most {:6.1f}\n", published.letter,
               delays.size(), delays.empty() ? 0 : delays[delays.size() / 2],
               delays.empty() ? 0 : delays.back());
    std::fflush(stdout);
}

/// @param only  part of the names of those to run
void runRandom(const IntervalOptions& options, const std::string& only) {
    fmt::print("{:<22} {:>14} {:>14} {:>8} {:>7} {:>7} {:>7} {:>6}\n", "", "cost", "bound", "gap %",
               "first s", "wall s", "cpu s", "MB");
    for (const bench::LargeShape& shape : bench::largeShapes()) {
        if (!only.empty() && shape.name.find(only) == std::string::npos) continue;
        const IntervalProblem problem = bench::LargeMaker(1).make(shape);
        const double before = processorSeconds();
        const IntervalSolution s = solve(problem, options);
        fmt::print("{:<22} {:>14.0f} {:>14.0f} {:8.4f} {:7.2f} {:7.2f} {:7.1f} {:6} {} {}\n",
                   shape.name, s.cost, s.bound, 100 * s.gap(), s.firstFeasibleSeconds,
                   s.statistics.seconds, processorSeconds() - before, s.statistics.bytes >> 20,
                   s.statistics.method, s.explanation);
        std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        fmt::print(stderr, "bench_iopddl FOLDER [SECONDS [THREADS [LETTERS]]]\n");
        return 2;
    }
    IntervalOptions options;
    options.deadlineSeconds = argc > 2 ? std::atof(argv[2]) : 60;
    options.threads = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 2;
    if (argv[1] == std::string("random")) {
        runRandom(options, argc > 4 ? argv[4] : "");
        return 0;
    }
    const std::string letters = argc > 4 ? argv[4] : "ABGMNPSU";
    if (argc > 2 && argv[2] == std::string("cancel")) {
        for (const Published& published : kPublished) {
            if (letters.find(published.letter) != std::string::npos) {
                runCancelled(published, argv[1], options.threads);
            }
        }
        return 0;
    }
    fmt::print("{:1} {:>16} {:>16} {:>8} {:>9} {:>9} {:>9} {:>7} {:>7} {:>7} {:>5} {:>6}\n", "",
               "cost", "bound", "gap %", "best %", "winner %", "refer. %", "first s", "wall s",
               "cpu s", "read", "MB");
    for (const Published& published : kPublished) {
        if (letters.find(published.letter) != std::string::npos) {
            run(published, argv[1], options);
        }
    }
    return 0;
}
