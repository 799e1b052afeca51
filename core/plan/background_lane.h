// SPDX-License-Identifier: Apache-2.0
// One background thread that always works on the newest request: a latest-value mailbox of depth
// one. Submitting while a job runs asks that job to stop (std::stop_token) and replaces whatever
// was waiting, so that a fast typist never queues work nobody wants any more. The destructor
// cancels and joins. No Qt, so that it can be run under ThreadSanitizer as it is.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace shardlens {

class BackgroundLane {
public:
    /// A job; runs on the lane's thread, must not throw, and should poll the token.
    using Work = std::function<void(std::stop_token)>;

    BackgroundLane();
    ~BackgroundLane();
    BackgroundLane(const BackgroundLane&) = delete;
    BackgroundLane& operator=(const BackgroundLane&) = delete;

    /// Supersedes the running and the waiting job. @return the generation number of this job
    std::uint64_t submit(Work work);
    /// Asks the running job to stop and forgets the waiting one.
    void cancel();
    /// Whether a job runs or waits.
    bool busy() const;
    /// The number of the newest submission; results of older ones are stale.
    std::uint64_t generation() const;
    /// Blocks until nothing runs or waits; for tests and command-line use.
    void waitForIdle();

private:
    void run(const std::stop_token& threadStop);

    mutable std::mutex m_mutex;
    std::condition_variable_any m_wake;
    std::condition_variable_any m_idle;
    std::optional<Work> m_waiting;
    std::stop_source m_job;
    bool m_running = false;
    std::uint64_t m_generation = 0;
    std::jthread m_thread; // last member: joined before the others are destroyed
};

} // namespace shardlens
