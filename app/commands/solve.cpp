// SPDX-License-Identifier: Apache-2.0
// `shardlens solve PROBLEM`: solves a problem file of the contest on intra-operator parallelism, as
// a report or as JSON; or judges a given solution, or writes the problem for other solvers. An
// interrupt ends the search and prints what has been found.
#include "app/commands/commands.h"
#include "app/files.h"
#include "core/error.h"
#include "core/solve/contest_file.h"
#include "core/solve/interval_solver.h"
#include "core/solve/problem_export.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <csignal>
#include <memory>
#include <thread>

namespace shardlens::app {

namespace {

using namespace shardlens::solve;

struct SolveOptions {
    std::string problem, start, check, solutionFile, wcspFile, lpFile;
    double seconds = 60;
    unsigned threads = std::max(1u, std::thread::hardware_concurrency());
    std::uint64_t seed = 1;
    double gap = 0;
    bool json = false, progress = false;
};

volatile std::sig_atomic_t g_interrupted = 0;

ChoiceList readChoices(const std::string& name, const IntervalProblem& problem) {
    const ChoiceList choices = readSolution(readFile(name));
    evaluate(problem, choices); // throws if it is for another problem
    return choices;
}

nlohmann::ordered_json jsonNumber(double value) {
    if (!std::isfinite(value)) return nullptr;
    if (value == std::floor(value) && std::abs(value) < 0x1p53) {
        return static_cast<std::int64_t>(value);
    }
    return value;
}

const char* nameOf(Status status) {
    switch (status) {
    case Status::Optimal:
        return "optimal";
    case Status::Feasible:
        return "feasible";
    case Status::Infeasible:
        return "infeasible";
    case Status::Cancelled:
        break;
    }
    return "no answer yet";
}

std::string toJson(const IntervalProblem& problem, const IntervalSolution& s) {
    const IntervalStatistics& t = s.statistics;
    nlohmann::ordered_json trajectory = nlohmann::ordered_json::array();
    for (const Progress& p : s.trajectory) {
        trajectory.push_back({{"seconds", p.seconds},
                              {"cost", jsonNumber(p.incumbent)},
                              {"bound", jsonNumber(p.bound)}});
    }
    nlohmann::ordered_json out = {
        {"name", problem.name},
        {"status", nameOf(s.status)},
        {"cost", jsonNumber(s.cost)},
        {"bound", jsonNumber(s.bound)},
        {"gap", jsonNumber(s.gap())},
        {"peak", jsonNumber(s.peak)},
        {"limit", jsonNumber(problem.limit)},
        {"seconds", t.seconds},
        {"firstFeasibleSeconds", jsonNumber(s.firstFeasibleSeconds)},
        {"proof", t.method},
        {"explanation", s.explanation},
        {"given", {{"nodes", t.nodes}, {"choices", t.choices}, {"pairs", t.pairs}}},
        {"reduced",
         {{"nodes", t.coreNodes},
          {"choices", t.coreChoices},
          {"pairs", t.corePairs},
          {"moments", t.moments},
          {"merged", t.merged},
          {"eliminated", t.eliminated},
          {"separable", t.separable},
          {"forbidden", t.forbidden},
          {"dominated", t.dominated}}},
        {"effort",
         {{"levels", t.levels},
          {"nodesLeft", t.lastNodes},
          {"passes", t.passes},
          {"windows", t.windows},
          {"branches", t.branches},
          {"bytes", t.bytes}}},
        {"trajectory", std::move(trajectory)},
        {"solution", s.choices}};
    return out.dump(1);
}

void print(const IntervalProblem& problem, const IntervalSolution& s) {
    const IntervalStatistics& t = s.statistics;
    if (!problem.name.empty()) fmt::print("problem  {}\n", problem.name);
    fmt::print("given    {} nodes, {} choices, {} pairs\n", t.nodes, t.choices, t.pairs);
    fmt::print("reduced  {} nodes, {} choices, {} pairs, {} moments that can bind\n", t.coreNodes,
               t.coreChoices, t.corePairs, t.moments);
    if (!s.trajectory.empty()) {
        fmt::print("\n{:>9}  {:>20}  {:>20}  {:>8}\n", "seconds", "cost", "bound", "gap");
    }
    for (const Progress& p : s.trajectory) {
        const auto shown = [](double value) {
            return std::isfinite(value) ? fmt::format("{:.10g}", value) : std::string("-");
        };
        const double gap = (p.incumbent - p.bound) / std::abs(p.incumbent);
        fmt::print("{:9.2f}  {:>20}  {:>20}  {:>8}\n", p.seconds, shown(p.incumbent),
                   shown(p.bound),
                   std::isfinite(gap) ? fmt::format("{:.3f} %", 100 * gap) : std::string("-"));
    }
    fmt::print("\nstatus   {}{}\n", nameOf(s.status),
               t.method.empty() ? std::string() : fmt::format(" ({})", t.method));
    if (!s.explanation.empty()) fmt::print("because  {}\n", s.explanation);
    if (!s.choices.empty()) {
        fmt::print("cost     {}\nbound    {}\ngap      {:.4f} %\n", s.cost, s.bound, 100 * s.gap());
        fmt::print("peak     {} of {}\n", s.peak, problem.limit);
        fmt::print("first    {:.2f} s\n", s.firstFeasibleSeconds);
    }
    fmt::print("effort   {:.2f} s, {} passes, {} windows, {} branches, about {} MB\n", t.seconds,
               t.passes, t.windows, t.branches, t.bytes >> 20);
}

/// Runs the solver so that an interrupt stops it.
IntervalSolution run(const IntervalProblem& problem, const SolveOptions& options) {
    std::stop_source stop;
    IntervalOptions solver;
    solver.stop = stop.get_token();
    solver.deadlineSeconds = options.seconds;
    solver.threads = options.threads;
    solver.seed = options.seed;
    solver.relativeGap = options.gap;
    if (!options.start.empty()) solver.start = readChoices(options.start, problem);
    if (options.progress) {
        solver.progress = [](const Progress& p) {
            fmt::print(stderr, "{:8.2f} s  cost {:<20.10g} bound {:.10g}\n", p.seconds, p.incumbent,
                       p.bound);
        };
    }
    const auto before = std::signal(SIGINT, [](int) { g_interrupted = 1; });
    std::jthread watch([&](const std::stop_token& done) {
        while (!done.stop_requested() && !g_interrupted) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        if (g_interrupted) stop.request_stop();
    });
    IntervalSolution solution = solve::solve(problem, solver);
    watch.request_stop();
    std::signal(SIGINT, before);
    return solution;
}

int check(const IntervalProblem& problem, const std::string& file) {
    const IntervalEvaluation value = evaluate(problem, readChoices(file, problem));
    const bool within = value.peak <= problem.limit;
    fmt::print("cost     {}\npeak     {} of {}, at time {}\nverdict  {}\n", value.cost, value.peak,
               problem.limit, value.peakTime,
               value.cost == kInfinite ? "makes a forbidden choice"
               : within                ? "feasible"
                                       : "exceeds the limit");
    return 0;
}

int solveFile(const SolveOptions& options) {
    const IntervalProblem problem = readContestFile(options.problem);
    if (!options.wcspFile.empty()) {
        writeFile(options.wcspFile, [&](std::ostream& out) { writeWcsp(out, problem); });
    }
    if (!options.lpFile.empty()) {
        writeFile(options.lpFile, [&](std::ostream& out) { writeLp(out, problem); });
    }
    if (!options.check.empty()) return check(problem, options.check);
    const bool onlyExport = !options.wcspFile.empty() || !options.lpFile.empty();
    if (onlyExport && options.solutionFile.empty() && !options.json) return 0;
    const IntervalSolution solution = run(problem, options);
    if (options.json) {
        fmt::print("{}\n", toJson(problem, solution));
    } else {
        print(problem, solution);
    }
    if (!options.solutionFile.empty()) {
        if (solution.choices.empty()) {
            throw Error(fmt::format("there is no solution to write: {}", nameOf(solution.status)),
                        options.solutionFile, solution.explanation);
        }
        writeFile(options.solutionFile,
                  [&](std::ostream& out) { out << solutionLine(solution.choices) << '\n'; });
    }
    return 0;
}

} // namespace

void addSolve(CLI::App& app, Action& action) {
    auto* command = app.add_subcommand(
        "solve", "Solve a problem of the contest on intra-operator parallelism, with a bound");
    const auto options = std::make_shared<SolveOptions>();
    command->add_option("PROBLEM", options->problem, "Problem file, JSON or gzip of it")
        ->required();
    command->add_option("--time-limit", options->seconds, "Seconds to search at most (60)")
        ->check(CLI::PositiveNumber);
    command->add_option("--threads", options->threads, "Threads (one for each core)")
        ->check(CLI::Range(1, 256));
    command->add_option("--seed", options->seed, "Seed of all that is random (1)");
    command->add_option("--gap", options->gap, "Relative gap at which to stop (0)")
        ->check(CLI::NonNegativeNumber);
    command->add_option("--start", options->start, "File with a solution to begin with");
    command->add_option("--check", options->check, "Only judge the solution in this file");
    command->add_option("--write", options->solutionFile, "File for the solution line");
    command->add_option("--export-wcsp", options->wcspFile,
                        "Only write the problem for toulbar2, without its limit");
    command->add_option("--export-lp", options->lpFile,
                        "Only write the problem as a linear program");
    command->add_flag("--progress", options->progress, "Tell on stderr how far the search is");
    command->add_flag("--json", options->json, "Write everything as JSON");
    command->callback([options, &action] { action = [options] { return solveFile(*options); }; });
}

} // namespace shardlens::app
