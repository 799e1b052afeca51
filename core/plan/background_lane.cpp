// SPDX-License-Identifier: Apache-2.0
// See background_lane.h. The mutex guards every member but the thread; jobs run without it.
#include "core/plan/background_lane.h"

#include <utility>

namespace shardlens {

BackgroundLane::BackgroundLane() : m_thread([this](const std::stop_token& stop) { run(stop); }) {
}

BackgroundLane::~BackgroundLane() {
    cancel();
    m_thread.request_stop();
    m_thread.join();
}

std::uint64_t BackgroundLane::submit(Work work) {
    const std::lock_guard lock(m_mutex);
    m_job.request_stop();
    m_waiting = std::move(work);
    ++m_generation;
    m_wake.notify_one();
    return m_generation;
}

void BackgroundLane::cancel() {
    const std::lock_guard lock(m_mutex);
    m_job.request_stop();
    m_waiting.reset();
    ++m_generation;
    if (!m_running) m_idle.notify_all();
}

bool BackgroundLane::busy() const {
    const std::lock_guard lock(m_mutex);
    return m_running || m_waiting.has_value();
}

std::uint64_t BackgroundLane::generation() const {
    const std::lock_guard lock(m_mutex);
    return m_generation;
}

void BackgroundLane::waitForIdle() {
    std::unique_lock lock(m_mutex);
    m_idle.wait(lock, [this] { return !m_running && !m_waiting; });
}

void BackgroundLane::run(const std::stop_token& threadStop) {
    std::unique_lock lock(m_mutex);
    while (m_wake.wait(lock, threadStop, [this] { return m_waiting.has_value(); })) {
        Work work = std::move(*m_waiting);
        m_waiting.reset();
        m_job = std::stop_source();
        const std::stop_token token = m_job.get_token();
        m_running = true;
        lock.unlock();
        work(token);
        work = nullptr; // captured snapshots are released outside the lock
        lock.lock();
        m_running = false;
        if (!m_waiting) m_idle.notify_all();
    }
}

} // namespace shardlens
