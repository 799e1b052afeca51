// SPDX-License-Identifier: Apache-2.0
// Stage problems for tests, and two ways to solve them that share nothing with the planner.
#pragma once

#include "core/plan/planners/stage_division.h"
#include "core/plan/planners/submesh.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace shardlens::test {

inline StageProblem emptyProblem(int layers, int hosts, int devicesPerHost, double microBatches) {
    std::vector<int> sizes;
    for (const Submesh& shape : submeshes(hosts, devicesPerHost, SubmeshSpace::All))
        sizes.push_back(shape.devices());
    return {layers, hosts * devicesPerHost, sizes, microBatches};
}

template <typename Visit>
void eachCell(const StageProblem& problem, Visit visit) {
    for (int first = 0; first < problem.layers(); ++first)
        for (int last = first; last < problem.layers(); ++last)
            for (int m = 0; m < int(problem.submeshDevices().size()); ++m) visit(first, last, m);
}

/// Up to three options a cell, some cells empty; memory limits where asked for.
inline StageProblem randomProblem(std::mt19937& random, int layers, int hosts, int devicesPerHost,
                                  double microBatches, bool memory) {
    StageProblem problem = emptyProblem(layers, hosts, devicesPerHost, microBatches);
    std::uniform_real_distribution<double> seconds(0.1, 2);
    eachCell(problem, [&](int first, int last, int m) {
        for (int c = int(random() % 4); c-- > 0;)
            problem.offer(first, last, m,
                          {seconds(random) * (last - first + 1),
                           memory ? int(random() % unsigned(layers + 1)) - 1 : kAnySuccessors, c});
    });
    return problem;
}

/// Tries every division.
class BruteForce {
public:
    explicit BruteForce(const StageProblem& problem) : m_problem(problem) { extend(0, 0); }
    double best() const { return m_best; }

private:
    void extend(int layer, int devices) {
        if (layer == m_problem.layers()) {
            if (devices == m_problem.devices()) finish();
            return;
        }
        for (int last = layer; last < m_problem.layers(); ++last)
            for (int m = 0; m < int(m_problem.submeshDevices().size()); ++m) {
                const int n = m_problem.submeshDevices()[std::size_t(m)];
                if (devices + n > m_problem.devices()) continue;
                for (const StageOption& option : m_problem.options(layer, last, m)) {
                    m_stages.push_back(option);
                    extend(last + 1, devices + n);
                    m_stages.pop_back();
                }
            }
    }
    void finish() {
        double sum = 0, longest = 0;
        for (std::size_t i = 0; i < m_stages.size(); ++i) {
            if (m_stages[i].mostSuccessors < int(m_stages.size() - 1 - i)) return;
            sum += m_stages[i].seconds;
            longest = std::max(longest, m_stages[i].seconds);
        }
        m_best = std::min(m_best, sum + (m_problem.microBatches() - 1) * longest);
    }

    const StageProblem& m_problem;
    std::vector<StageOption> m_stages;
    double m_best = std::numeric_limits<double>::infinity();
};

/// Another dynamic program: from the first layer on, the number of stages given, the whole front of
/// (sum, longest) kept at each point instead of enumerating the longest.
inline double frontOptimum(const StageProblem& problem) {
    using Front = std::vector<std::pair<double, double>>;
    const auto insert = [](Front& front, std::pair<double, double> entry) {
        for (const auto& other : front)
            if (other.first <= entry.first && other.second <= entry.second) return;
        std::erase_if(front, [&](const auto& other) {
            return entry.first <= other.first && entry.second <= other.second;
        });
        front.push_back(entry);
    };
    const auto layers = std::size_t(problem.layers()), devices = std::size_t(problem.devices());
    double best = std::numeric_limits<double>::infinity();
    for (int count = 1; count <= std::min(problem.layers(), problem.devices()); ++count) {
        std::vector<std::vector<Front>> at(layers + 1, std::vector<Front>(devices + 1));
        at[0][0] = {{0.0, 0.0}};
        for (int stage = 0; stage < count; ++stage) {
            std::vector<std::vector<Front>> next(layers + 1, std::vector<Front>(devices + 1));
            eachCell(problem, [&](int first, int last, int m) {
                const auto n = std::size_t(problem.submeshDevices()[std::size_t(m)]);
                for (const StageOption& option : problem.options(first, last, m)) {
                    if (option.mostSuccessors < count - 1 - stage) continue;
                    for (std::size_t d = 0; d + n <= devices; ++d)
                        for (const auto& [sum, longest] : at[std::size_t(first)][d])
                            insert(next[std::size_t(last) + 1][d + n],
                                   {sum + option.seconds, std::max(longest, option.seconds)});
                }
            });
            at = std::move(next);
        }
        for (const auto& [sum, longest] : at[layers][devices])
            best = std::min(best, sum + (problem.microBatches() - 1) * longest);
    }
    return best;
}

/// Equal layers: t = (layers / n)(1 + 0.2 log2 n).
inline StageProblem unitLayers(int layers, int hosts, int devicesPerHost, double microBatches) {
    StageProblem problem = emptyProblem(layers, hosts, devicesPerHost, microBatches);
    eachCell(problem, [&](int first, int last, int m) {
        const double n = problem.submeshDevices()[std::size_t(m)];
        problem.offer(first, last, m, {(last - first + 1) / n * (1 + 0.2 * std::log2(n))});
    });
    return problem;
}

} // namespace shardlens::test
