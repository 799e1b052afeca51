// SPDX-License-Identifier: Apache-2.0
// How long whole plans take to find: gpt3-175b on 1,024 A100, GPT-39B with planner alpa, a moved
// stage boundary, and the growth with layers and devices. Prints wall and processor time.
#include "core/plan/planners/alpa_planner.h"
#include "core/plan/planners/megatron_grid.h"
#include "tests/core/support/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string_view>
#include <vector>

using namespace shardlens;

namespace {

struct Stopwatch {
    std::chrono::steady_clock::time_point wall = std::chrono::steady_clock::now();
    std::clock_t processor = std::clock();
    std::string text() const {
        return fmt::format(
            "{:.3f} s ({:.3f} s of processor)",
            std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count(),
            double(std::clock() - processor) / CLOCKS_PER_SEC);
    }
};

StagePricer pricer(const std::string& config, const Cluster& cluster, std::int64_t sequence) {
    return {{cluster}, [=](std::int64_t samples) {
                PlanRequest request = test::onCluster("dgx-a100", 1, "tp=8", samples, sequence);
                const auto path = std::filesystem::temp_directory_path() / "bench-pipeline.json";
                std::ofstream(path) << config;
                const ModelBundle bundle = loadModel(path, importOptions(request));
                std::filesystem::remove(path);
                return stagedModel(bundle.graph, bundle.folding);
            }};
}

std::string gpt(int hidden, int layers, int heads, int vocabulary) {
    return fmt::format(R"({{"model_type":"gpt2","n_embd":{},"n_layer":{},"n_head":{},)"
                       R"("n_positions":2048,"vocab_size":{},"torch_dtype":"float16"}})",
                       hidden, layers, heads, vocabulary);
}

void print(const char* what, const PipelineAnswer& a, const Stopwatch& watch) {
    fmt::print("{}: {} x {}, {} stages, {} micro-batches: step {:.3f} s, bound {:.3f} s, gap "
               "{:.2f} %, engine {:+.2f} %; {} of {} combinations solved in {}\n",
               what, a.schedule.name(), a.schedule.chunks, a.stages.size(), a.microBatches,
               a.seconds, a.bound, 100 * a.gap(), 100 * (a.simulated / a.seconds - 1), a.solved,
               a.combinations, watch.text());
}

void large() {
    StagePricer p = pricer(gpt(12288, 96, 96, 50257), clusterByName("dgx-a100", 128), 2048);
    PipelineRequest request;
    request.batch = 1536;
    Stopwatch watch;
    PipelineAnswer best = planPipeline(p, request);
    print("gpt3-175b on 1,024 A100", best, watch);
    StagePricer fresh = pricer(gpt(12288, 96, 96, 50257), clusterByName("dgx-a100", 128), 2048);
    for (const char* how : {"nothing priced yet", "prices known"}) {
        watch = {};
        const auto grid = megatronGrid(fresh, request);
        fmt::print("  equal stages, {}: {} points in {}, best {:.3f} s\n", how, grid.size(),
                   watch.text(), bestOf(grid)->seconds);
    }
    request.schedules = {std::string(best.schedule.name())};
    request.chunks = {best.schedule.chunks};
    request.microBatches = best.microBatches;
    request.cuts = {best.stages[1].first + best.schedule.chunks};
    request.stages = static_cast<int>(best.stages.size());
    watch = {};
    print("  a boundary moved", planPipeline(p, request), watch);
    request.cuts.clear();
    request.schedules = {"1f1b"};
    watch = {};
    print("  1f1b pinned", planPipeline(p, request), watch);
}

void alpa() {
    StagePricer p = pricer(gpt(8192, 48, 64, 51200), clusterByName("p3.16xlarge", 8), 1024);
    PipelineRequest request;
    request.batch = 1024;
    request.microBatches = 1024;
    Stopwatch watch;
    print("GPT-39B on 64 V100, planner alpa", planAlpa(p, request), watch);
}

/// Reads the model for every size of a replica's micro-batch, which the search asks for.
void sizeModel(StagePricer& pricer, const PipelineRequest& request) {
    Stopwatch watch;
    int sizes = 0;
    for (std::int64_t samples = 1; samples <= request.largestSamples; ++samples)
        if (request.batch % samples == 0) {
            pricer.model(samples);
            ++sizes;
        }
    fmt::print("{} sizes of the model read and folded in {}\n", sizes, watch.text());
}

void layers() {
    PipelineRequest request;
    request.batch = 512;
    for (const int layers : {12, 48, 192, 1024}) {
        StagePricer p = pricer(gpt(4096, layers, 32, 50257), clusterByName("dgx-a100", 16), 2048);
        sizeModel(p, request);
        Stopwatch watch;
        print(fmt::format("  {} layers, 128 devices", layers).c_str(), planPipeline(p, request),
              watch);
    }
}

void devices() {
    PipelineRequest request;
    for (const int nodes : {1, 16, 128, 2048}) {
        StagePricer p = pricer(gpt(4096, 32, 32, 50257), clusterByName("dgx-a100", nodes), 2048);
        request.batch = std::max(512, nodes * 8);
        Stopwatch watch;
        print(fmt::format("32 layers, {} devices", nodes * 8).c_str(), planPipeline(p, request),
              watch);
    }
}

} // namespace

/// @param argv parts to run: large, alpa, layers, devices; all by default
int main(int argc, char** argv) {
    const std::vector<std::string_view> parts(argv + 1, argv + argc);
    const auto wanted = [&](std::string_view part) {
        return parts.empty() || std::ranges::find(parts, part) != parts.end();
    };
    if (wanted("large")) large();
    if (wanted("alpa")) alpa();
    if (wanted("layers")) layers();
    if (wanted("devices")) devices();
}
