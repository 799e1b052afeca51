// SPDX-License-Identifier: Apache-2.0
// The choice problems of the sample models and of ResNet-50: time to the proven optimum on meshes
// of two and three axes, after a pin, for all min-marginals, under a limit that binds, for 1,024
// layers against 16; and the same problem unfolded through CBC (Alpa's integer program), stopped
// after a while. Medians of several runs.
#include "tests/bench/bench_samples.h"

#include "core/plan/planner.h"
#include "tests/bench/timing.h"
#include "tests/core/support/models.h"
#include "tests/core/support/reference_solvers.h"

#include <fmt/format.h>

namespace shardlens::bench {
namespace {

constexpr int kTimes = 9;
constexpr std::size_t kPins = 9;

struct Case {
    std::string name, model;
    bool layered = true; ///< its depth can be set
};
const std::vector<Case> kCases = {{"llama3-8b", "llama3-8b"},
                                  {"llama3-70b", "llama3-70b"},
                                  {"llama3.1-405b", "llama3.1-405b"},
                                  {"gpt3-175b", "gpt3-175b"},
                                  {"mixtral-8x7b", "mixtral-8x7b"},
                                  {"deepseek-v3", "deepseek-v3"},
                                  {"t5-11b", "t5-11b"},
                                  {"bert-large", "bert-large"},
                                  {"resnet50", "", false}};

ModelBundle load(const Case& c, const std::string& resnet, const PlanRequest& request,
                 int layers = 0) {
    return c.model.empty() ? loadModel(resnet, importOptions(request))
                           : test::sample(c.model, request, layers);
}

PlanRequest request(std::string_view mesh) {
    PlanRequest out = test::onCluster("dgx-h100", 8, mesh, 64, 2048);
    out.memoryLimitBytes = 1e18;
    return out;
}

solve::Problem unlimited(const PlanContext& context) {
    solve::Problem problem = choiceProblem(context).problem;
    problem.limit = solve::kInfinite;
    return problem;
}

struct Solved {
    double milliseconds = 0;
    solve::Solution solution;
};
Solved timeSolve(const solve::Problem& problem, int times, const solve::Options& options = {}) {
    Solved out;
    out.milliseconds =
        medianMilliseconds(times, [&] { out.solution = solve::solve(problem, options); });
    return out;
}

/// Least usage there is, from the problem without pairs.
double leastUsage(solve::Problem problem) {
    problem.edges.clear();
    for (solve::Node& node : problem.nodes) {
        for (std::size_t c = 0; c < node.cost.size(); ++c) {
            if (node.cost[c] < solve::kInfinite) {
                node.cost[c] = node.usage.empty() ? 0.0 : node.usage[c];
            }
        }
    }
    return solve::solve(problem).cost;
}

/// A limit half way between what the optimum uses and the least.
std::string underLimit(solve::Problem problem, double used) {
    problem.limit = 0.5 * (used + leastUsage(problem));
    const Solved solved = timeSolve(problem, 3);
    if (solved.solution.status == solve::Status::Infeasible) return "infeasible";
    return fmt::format("{:.1f} ms, gap {:.3f} %", solved.milliseconds, 100 * solved.solution.gap());
}

/// A choice of an op in the middle of the model pinned: a new proven plan, evaluated.
double pinMilliseconds(const std::shared_ptr<const PlanContext>& context) {
    const Plan plan = optimise(context);
    const auto& order = context->folding->order;
    std::vector<Alternative> list;
    OpId op = kNoOp;
    for (std::size_t i = order.size() / 2; i < order.size() && list.size() < 4; ++i) {
        op = order[i];
        list = alternatives(plan, op);
        std::erase_if(list, [](const Alternative& a) { return !a.legal; });
    }
    std::vector<double> times;
    for (std::size_t i = 0; i < std::min(kPins, list.size()); ++i) {
        const Pin pin{context->graph->op(op).name, list[i].text};
        times.push_back(medianMilliseconds(1, [&] { optimise(withPins(*context, {pin})); }));
    }
    return median(std::move(times));
}

/// @param seconds  after which CBC is stopped; 0: once it has taken 1,000 times as long as we did
std::string besideCbc(const solve::Problem& problem, const Solved& ours, int seconds) {
    if (!test::installed("cbc")) return "not installed";
    const double limit = seconds > 0 ? 1000.0 * seconds : 1010 * ours.milliseconds;
    test::ReferenceSolvers references(static_cast<int>(std::ceil(limit)));
    const double optimum = references.cbc(problem);
    const double ratio = 1000 * references.seconds() / ours.milliseconds;
    if (std::isnan(optimum)) return fmt::format("> {:.1f} s, ratio > {:.0f}", limit / 1000, ratio);
    return fmt::format("{:.2f} s, ratio {:.0f}, cost {}", references.seconds(), ratio,
                       std::abs(optimum / ours.solution.cost - 1) < 1e-9 ? "equal" : "DIFFERENT");
}

const char* proof(const solve::Solution& solution) {
    return solution.status == solve::Status::Optimal ? "optimal" : "NOT PROVEN";
}

void run(const Case& c, const std::string& resnet, int cbcSeconds) {
    const PlanRequest two = request("dp=8,tp=8");
    const ModelBundle bundle = load(c, resnet, two);
    const auto context = makeContext(bundle.graph, bundle.folding, two);
    const solve::Problem problem = unlimited(*context);
    const Solved solved = timeSolve(problem, kTimes);
    fmt::print("\n{}: dp=8,tp=8 {:.2f} ms, {}", c.name, solved.milliseconds,
               proof(solved.solution));
    const PlanRequest three = request("dp=4,cp=4,tp=4");
    const ModelBundle again = load(c, resnet, three);
    const Solved cube =
        timeSolve(unlimited(*makeContext(again.graph, again.folding, three)), kTimes);
    fmt::print("; dp=4,cp=4,tp=4 {:.2f} ms, {}\n", cube.milliseconds, proof(cube.solution));
    std::fflush(stdout);
    const std::vector<std::size_t> copies(problem.runs.size(), 1);
    fmt::print("  pin {:.2f} ms; all min-marginals {:.2f} ms; binding limit {}\n",
               pinMilliseconds(context),
               medianMilliseconds(kTimes, [&] { solve::minMarginals(problem, copies); }),
               underLimit(problem, solved.solution.usage));
    std::fflush(stdout);
    Solved at32 = solved;
    solve::Problem deep = problem;
    if (c.layered) {
        const auto ofDepth = [&](int layers) {
            const ModelBundle b = load(c, resnet, two, layers);
            return unlimited(*makeContext(b.graph, b.folding, two));
        };
        const double shallow = timeSolve(ofDepth(16), kTimes).milliseconds;
        const double deepest = timeSolve(ofDepth(1024), kTimes).milliseconds;
        fmt::print("  16 layers {:.2f} ms, 1,024 layers {:.2f} ms, ratio {:.2f}\n", shallow,
                   deepest, deepest / shallow);
        deep = ofDepth(32);
        at32 = timeSolve(deep, kTimes);
    }
    fmt::print("  {} {:.2f} ms; unfolded through CBC {}\n", c.layered ? "32 layers" : "as it is",
               at32.milliseconds, besideCbc(deep, at32, cbcSeconds));
    std::fflush(stdout);
}

} // namespace

void benchSamples(const std::string& resnet, const std::string& only, int cbcSeconds) {
    for (const Case& c : kCases) {
        if (c.model.empty() && resnet.empty()) continue;
        if (only.empty() || c.name.find(only) != std::string::npos) run(c, resnet, cbcSeconds);
    }
}

} // namespace shardlens::bench
