// SPDX-License-Identifier: Apache-2.0
// Runs sweeps in the background and makes what they give ready to be shown; writes them to files. A
// newer sweep supersedes an older one. While points come in, snapshots of them wait in a
// latest-value mailbox and one coalesced wake-up brings them to the owner's thread.
#pragma once

#include "core/plan/background_lane.h"
#include "ui/jobs/file_writer.h"
#include "ui/models/sweep_model.h"

#include <QObject>

#include <mutex>

namespace shardlens {

/// How far a sweep is.
struct SweepState {
    std::shared_ptr<const SweepData> data; ///< what is known so far; the sweep of before at first
    bool running = false;
    std::size_t done = 0, all = 0; ///< points; all 0: not known
    QString error;                 ///< why there is nothing at all
    bool stopped = false;          ///< before it was done
};

class SweepJob : public QObject {
    Q_OBJECT

public:
    explicit SweepJob(QObject* parent = nullptr);
    ~SweepJob() override;

    /// @param request without axes: all equal-stage plans
    void start(const SweepSource& model, const SweepRequest& request);
    void stop();
    void clear(); ///< stops, and forgets what is known
    bool running() const { return m_state.running; }
    const SweepState& state() const { return m_state; }

    /// Writes bytes that are made in the background.
    void write(const QString& file, std::function<QByteArray()> make);
    bool writing() const { return m_writer.busy(); }

signals:
    void changed();
    void written(const QString& file, const QString& error); ///< error is empty if it went well

private:
    void run(std::uint64_t generation, const SweepSource& model, const SweepRequest& request,
             const std::stop_token& stop);
    /// Changes the mailbox, if the sweep is still wanted, and wakes the owner.
    void post(std::uint64_t generation, const std::function<void(SweepState&)>& change);
    void fetch();

    SweepState m_state; ///< as shown
    FileWriter m_writer;

    std::mutex m_mutex; // guards what follows
    SweepState m_mail;
    std::uint64_t m_generation = 0;
    bool m_awake = false;

    std::unique_ptr<BackgroundLane> m_lane; // last: joined first
};

} // namespace shardlens
