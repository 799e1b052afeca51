// SPDX-License-Identifier: Apache-2.0
// From a model to a proven plan, timed: Llama 3.1 405B at several depths and meshes, folded, beside
// the same problem unfolded through toulbar2 and through CBC (Alpa's integer program) in the same
// run. Prints medians; the references' times include their start and their reading of the file.
#include "core/plan/planner.h"
#include "tests/bench/timing.h"
#include "tests/core/support/models.h"
#include "tests/core/support/planning.h"
#include "tests/core/support/reference_solvers.h"

#include <fmt/format.h>

#include <QCoreApplication>

#include <algorithm>

using namespace shardlens;
using bench::median;

namespace {

constexpr int kRepeats = 9;

struct Timed {
    std::shared_ptr<const PlanContext> context;
    double build = 0, firstBuild = 0, solve = 0, bound = 0; // ms, ms, ms, s
};

Timed time(const std::string& model, const PlanRequest& request, int layers) {
    Timed timed;
    const ModelBundle bundle = test::sample(model, request, layers);
    timed.context = makeContext(bundle.graph, bundle.folding, request);
    std::vector<double> build, solve;
    for (int i = 0; i < kRepeats; ++i) {
        const Plan plan = optimise(timed.context);
        if (!plan.optimal) fmt::print("  not proven optimal\n");
        build.push_back(plan.buildMilliseconds);
        solve.push_back(plan.solveMilliseconds);
        timed.bound = plan.bound;
    }
    timed.firstBuild = build.front();
    timed.build = median(build);
    timed.solve = median(solve);
    return timed;
}

std::string besideReference(const char* name, double optimum, double seconds, const Timed& timed) {
    if (std::isnan(optimum)) return fmt::format("{}: no answer in {:.0f} s", name, seconds);
    const double ours = std::round(timed.bound * 1e12);
    return fmt::format("{} {:.3f} s, ratio {:.0f}, cost {}", name, seconds,
                       seconds * 1e3 / timed.solve,
                       std::abs(optimum / ours - 1) < 1e-9 ? "equal" : "DIFFERENT");
}

void depth(const char* mesh, int nodes) {
    PlanRequest request = test::onCluster("dgx-h100", nodes, mesh, 64, 2048);
    request.memoryLimitBytes = 1e18;
    fmt::print("\nllama3.1-405b, mesh {}\n", mesh);
    for (const int layers : {8, 32, 126, 1024}) {
        const Timed timed = time("llama3.1-405b", request, layers);
        fmt::print("  {:>4} layers: build {:.2f} ms (first {:.2f}), solve {:.2f} ms", layers,
                   timed.build, timed.firstBuild, timed.solve);
        ChoiceProblem problem = choiceProblem(*timed.context);
        problem.problem.limit = solve::kInfinite;
        test::ReferenceSolvers references(120'000);
        if (layers <= 126 && test::installed("toulbar2")) {
            const double optimum = references.toulbar2(problem.problem);
            fmt::print("; {}", besideReference("toulbar2", optimum, references.seconds(), timed));
        }
        if (layers <= 32 && test::installed("cbc")) {
            const double optimum = references.cbc(problem.problem);
            fmt::print("; {}", besideReference("CBC", optimum, references.seconds(), timed));
        }
        fmt::print("\n");
    }
}

void pins() {
    PlanRequest request = test::onCluster("dgx-h100", 8, "dp=8,tp=8", 64, 2048);
    request.memoryLimitBytes = 1e18;
    const ModelBundle bundle = test::sample("llama3.1-405b", request);
    const auto context = makeContext(bundle.graph, bundle.folding, request);
    const Plan plan = optimise(context);
    const OpId op = *context->graph->findOp("model.layers.57.mlp.up_proj");
    std::vector<double> total, prices;
    for (const Alternative& a : alternatives(plan, op)) {
        if (!a.legal) continue;
        auto start = std::chrono::steady_clock::now();
        optimise(withPins(*context, {{"model.layers.57.mlp.up_proj", a.text}}));
        total.push_back(
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                .count());
        start = std::chrono::steady_clock::now();
        alternatives(plan, op);
        prices.push_back(
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                .count());
    }
    fmt::print("\nllama3.1-405b, dp=8,tp=8: pin in layer 57 -> new proven plan {:.2f} ms; price of "
               "every choice of an op {:.2f} ms\n",
               median(total), median(prices));
}

} // namespace

int main(int argc, char** argv) {
    QCoreApplication application(argc, argv);
    depth("dp=8,tp=8", 8);
    depth("dp=16,tp=8", 16);
    depth("dp=4,cp=4,tp=8", 16);
    pins();
}
