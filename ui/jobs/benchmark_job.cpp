// SPDX-License-Identifier: Apache-2.0
// See benchmark_job.h. The stop token of the lane reaches the solver, which returns what it has.
#include "ui/jobs/benchmark_job.h"

#include "core/solve/contest_file.h"
#include "ui/format.h"

#include <algorithm>
#include <thread>

namespace shardlens {

BenchmarkJob::BenchmarkJob(QObject* parent) : QObject(parent) {
}

BenchmarkJob::~BenchmarkJob() {
    m_lane.cancel();
    m_lane.waitForIdle();
}

void BenchmarkJob::open(const QString& path) {
    const std::filesystem::path file = path.toStdString();
    std::uint64_t generation = 0;
    {
        const std::lock_guard lock(m_mutex);
        generation = ++m_generation;
        m_mail = {};
        m_mail.name = text(file.filename().string());
        m_mail.running = true;
        m_state = m_mail;
    }
    m_lane.submit(
        [this, generation, file](const std::stop_token& stop) { run(generation, file, stop); });
    emit changed();
}

void BenchmarkJob::stop() {
    m_lane.cancel();
}

void BenchmarkJob::run(std::uint64_t generation, const std::filesystem::path& file,
                       const std::stop_token& stop) {
    try {
        const solve::IntervalProblem problem = solve::readContestFile(file);
        solve::IntervalOptions options;
        options.stop = stop;
        options.threads = std::max(1u, std::thread::hardware_concurrency());
        options.reduced = [&](const solve::IntervalStatistics& statistics) {
            post(generation, [&](BenchmarkState& s) {
                s.statistics = statistics;
                s.reduced = true;
            });
        };
        options.progress = [&](const solve::Progress& progress) {
            post(generation, [&](BenchmarkState& s) {
                s.progress.push_back(progress);
                s.cost = progress.incumbent;
                s.bound = progress.bound;
            });
        };
        const solve::IntervalSolution solution = solve::solve(problem, options);
        post(generation, [&](BenchmarkState& s) {
            s.statistics = solution.statistics;
            s.status = solution.status;
            s.cost = solution.cost;
            s.bound = solution.bound;
            s.peak = solution.peak;
            s.limit = problem.limit;
            s.explanation = solution.explanation;
            if (!solution.choices.empty()) {
                s.progress.push_back(
                    {solution.cost, solution.bound, solution.statistics.seconds, "end"});
            }
            s.running = false;
        });
    } catch (const std::exception& error) {
        post(generation, [&](BenchmarkState& s) {
            s.error = text(error.what());
            s.running = false;
        });
    }
}

void BenchmarkJob::post(std::uint64_t generation,
                        const std::function<void(BenchmarkState&)>& change) {
    const std::lock_guard lock(m_mutex);
    if (generation != m_generation) return;
    change(m_mail);
    if (m_awake) return;
    m_awake = true;
    QMetaObject::invokeMethod(this, &BenchmarkJob::fetch, Qt::QueuedConnection);
}

void BenchmarkJob::fetch() {
    const bool ran = m_state.running;
    {
        const std::lock_guard lock(m_mutex);
        m_awake = false;
        m_state = m_mail;
    }
    emit changed();
    if (ran && !m_state.running) emit finished();
}

} // namespace shardlens
