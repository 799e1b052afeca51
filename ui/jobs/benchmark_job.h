// SPDX-License-Identifier: Apache-2.0
// Reads and solves a benchmark problem in the background. What is known of it waits in a
// latest-value mailbox; one coalesced wake-up brings it to the thread that owns the job.
#pragma once

#include "core/plan/background_lane.h"
#include "core/solve/interval_solver.h"

#include <QObject>
#include <QString>

#include <filesystem>
#include <mutex>

namespace shardlens {

/// What is known of a benchmark problem so far.
struct BenchmarkState {
    QString name;
    bool running = false;
    QString error; ///< why there is nothing
    std::vector<solve::Progress> progress;
    solve::IntervalStatistics statistics; ///< complete when it no longer runs
    bool reduced = false;                 ///< the reductions are in the statistics
    solve::Status status = solve::Status::Cancelled;
    double cost = solve::kInfinite, bound = -solve::kInfinite;
    double peak = 0, limit = solve::kInfinite;
    std::string explanation; ///< of what is infeasible
};

class BenchmarkJob : public QObject {
    Q_OBJECT

public:
    explicit BenchmarkJob(QObject* parent = nullptr);
    ~BenchmarkJob() override;

    /// Stops what runs, reads the file and solves it until it is proven or stop() is called.
    void open(const QString& path);
    void stop();
    bool running() const { return m_state.running; }
    const BenchmarkState& state() const { return m_state; }

signals:
    void changed();
    void finished();

private:
    void run(std::uint64_t generation, const std::filesystem::path& file,
             const std::stop_token& stop);
    /// Changes the mailbox, if the job is still wanted, and wakes the owner.
    void post(std::uint64_t generation, const std::function<void(BenchmarkState&)>& change);
    void fetch();

    BenchmarkState m_state; ///< as shown

    std::mutex m_mutex; // guards what follows
    BenchmarkState m_mail;
    std::uint64_t m_generation = 0;
    bool m_awake = false;

    BackgroundLane m_lane; // last: its thread ends first
};

} // namespace shardlens
