// SPDX-License-Identifier: Apache-2.0
// Times of the solver: bench_solver [RESNET50.onnx|- [MODEL [CBC_SECONDS]]]. First the sample
// models (bench_samples.h), or those with MODEL in their names; CBC is stopped after CBC_SECONDS
// or, without them, once it has taken 1,000 times as long. Then, unless a model is named, synthetic
// ones shaped like Llama: an embedding, a run of equal blocks of 40 nodes with two residual
// streams, a head. Prints the median of several solves for 8, 126 and 1024 copies at 25 choices a
// node (meshes of two axes) and 125 (three axes), for a pinned copy in the middle, for a limit that
// binds, and for min-marginals.
#include "core/solve/solver.h"
#include "tests/bench/bench_samples.h"
#include "tests/bench/timing.h"

#include <fmt/format.h>

#include <QCoreApplication>

#include <array>
#include <cstdlib>
#include <random>

using namespace shardlens::solve;
using shardlens::bench::medianMilliseconds;

namespace {

constexpr int kBodyNodes = 40;

class Maker {
public:
    Maker(std::uint32_t choices, bool usage) : m_choices(choices), m_usage(usage) {}

    MatrixPtr matrix() {
        auto m = std::make_shared<Matrix>(Matrix{m_choices, m_choices, {}});
        for (std::size_t i = 0; i < std::size_t{m_choices} * m_choices; ++i) {
            m->values.push_back(m_random() % 4 == 0 ? 0.0 : double(m_random() % 1'000'000));
        }
        return m;
    }
    Node node(int run) {
        Node n{{}, {}, run};
        for (std::uint32_t c = 0; c < m_choices; ++c) {
            n.cost.push_back(double(m_random() % 10'000'000));
            if (m_usage) n.usage.push_back(double(m_random() % 1'000'000));
        }
        return n;
    }

private:
    std::uint32_t m_choices;
    bool m_usage;
    std::mt19937_64 m_random{42};
};

/// Body nodes in a line; the residual stream skips over 6 nodes for attention and over 6 for the
/// feed-forward part; queries, keys and values fork and join, as do gate and up projections.
const std::vector<std::pair<int, int>> kSkips = {{0, 8},   {2, 5},   {2, 6},   {8, 16},
                                                 {10, 13}, {10, 14}, {16, 24}, {18, 22},
                                                 {24, 32}, {26, 29}, {32, 39}, {34, 37}};

/// @param pinned  index of a copy with a fixed choice, which splits the run; or none
Problem llama(std::size_t layers, std::uint32_t choices, bool usage = false,
              std::size_t pinned = ~std::size_t{0}) {
    Maker maker(choices, usage);
    std::vector<Node> body;
    std::vector<std::tuple<int, int, MatrixPtr>> inner;
    for (int i = 0; i < kBodyNodes; ++i) {
        body.push_back(maker.node(0));
        if (i > 0) inner.emplace_back(i - 1, i, maker.matrix());
    }
    for (const auto& [u, v] : kSkips) inner.emplace_back(u, v, maker.matrix());
    const MatrixPtr link = maker.matrix();
    Problem p;
    const Node embedding = maker.node(-1), head = maker.node(-1);
    p.nodes = {embedding, head};
    NodeId before = 0;
    const auto addRun = [&](std::size_t count, bool pin) {
        const auto first = static_cast<NodeId>(p.nodes.size());
        const int run = static_cast<int>(p.runs.size());
        p.runs.push_back({{}, count});
        for (const Node& n : body) {
            p.runs.back().body.push_back(static_cast<NodeId>(p.nodes.size()));
            p.nodes.push_back(n);
            p.nodes.back().run = run;
        }
        if (pin) {
            std::fill(p.nodes[first + 20].cost.begin() + 1, p.nodes[first + 20].cost.end(),
                      kInfinite);
        }
        for (const auto& [u, v, m] : inner) {
            p.edges.push_back({first + NodeId(u), first + NodeId(v), m, At::Each, At::Each, false});
        }
        const NodeId last = first + kBodyNodes - 1;
        if (count > 1) p.edges.push_back({last, first, link, At::Each, At::Each, true});
        p.edges.push_back(
            {before, first, link, before == 0 ? At::Each : At::Last, At::First, false});
        before = last;
    };
    if (pinned < layers) {
        if (pinned > 0) addRun(pinned, false);
        addRun(1, true);
        if (pinned + 1 < layers) addRun(layers - pinned - 1, false);
    } else {
        addRun(layers, false);
    }
    p.edges.push_back({before, 1, link, At::Last, At::Each, false});
    return p;
}

void report(const std::string& name, const Problem& problem, int times,
            const Options& options = {}) {
    Solution solution;
    const double ms = medianMilliseconds(times, [&] { solution = solve(problem, options); });
    const Statistics& s = solution.statistics;
    fmt::print(
        "{:<34} {:>9.2f} ms  gap {:.2g}  {} variables, width {}, largest table {}, {} prices\n",
        name, ms, solution.gap(), s.variables, s.width, s.largestTable, s.pricesTried);
    std::fflush(stdout);
}

void benchChoices(std::uint32_t choices, int times) {
    for (const std::size_t layers : std::array<std::size_t, 3>{8, 126, 1024}) {
        report(fmt::format("{} choices, {} layers", choices, layers), llama(layers, choices),
               times);
    }
    report(fmt::format("{} choices, 126 layers, 1 pinned", choices), llama(126, choices, false, 57),
           times);
}

void benchLimit(std::size_t layers, std::uint32_t choices, double tightness, int times) {
    Problem problem = llama(layers, choices, true);
    const double most = solve(problem).usage;
    problem.limit = most * tightness;
    report(fmt::format("{} choices, {} layers, limit {}", choices, layers, tightness), problem,
           times);
}

} // namespace

int main(int argc, char** argv) {
    QCoreApplication application(argc, argv);
    const std::string resnet = argc > 1 && argv[1] != std::string("-") ? argv[1] : "";
    shardlens::bench::benchSamples(resnet, argc > 2 ? argv[2] : "",
                                   argc > 3 ? std::atoi(argv[3]) : 0);
    if (argc > 2 && argv[2][0] != 0) return 0;
    benchChoices(25, 9);
    benchChoices(125, 3);
    for (const double tightness : {0.95, 0.7, 0.4}) benchLimit(126, 25, tightness, 3);
    const Problem problem = llama(126, 25);
    fmt::print("{:<34} {:>9.2f} ms\n", "25 choices, one min-marginal",
               medianMilliseconds(5, [&] { minMarginal(problem, 20, 57); }));
    fmt::print("{:<34} {:>9.2f} ms\n", "25 choices, all min-marginals",
               medianMilliseconds(5, [&] { minMarginals(problem, {57}); }));
}
