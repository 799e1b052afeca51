// SPDX-License-Identifier: Apache-2.0
// One mutex guards everything: tasks last long beside what handing them out takes.
#include "core/solve/crew.h"

#include <exception>

namespace shardlens::solve {

Crew::Crew(unsigned threads) {
    for (unsigned i = 1; i < threads; ++i) m_threads.emplace_back([this] { work(); });
}

Crew::~Crew() {
    const std::lock_guard lock(m_mutex);
    m_over = true;
    m_begin.notify_all();
}

/// Does tasks until none is left to begin.
void Crew::take(std::unique_lock<std::mutex>& lock) {
    while (m_tasks && m_next < m_tasks->size()) {
        const std::size_t index = m_next++;
        ++m_running;
        lock.unlock();
        std::exception_ptr error;
        try {
            (*m_tasks)[index]();
        } catch (...) {
            error = std::current_exception();
        }
        lock.lock();
        m_errors[index] = error;
        --m_running;
    }
}

void Crew::work() {
    std::unique_lock lock(m_mutex);
    for (;;) {
        m_begin.wait(lock, [&] { return m_over || (m_tasks && m_next < m_tasks->size()); });
        if (m_over) return;
        take(lock);
        if (m_running == 0) m_done.notify_all();
    }
}

void Crew::run(const std::vector<std::function<void()>>& tasks) {
    std::unique_lock lock(m_mutex);
    m_tasks = &tasks;
    m_errors.assign(tasks.size(), nullptr);
    m_next = 0;
    if (tasks.size() > 1) m_begin.notify_all();
    take(lock);
    m_done.wait(lock, [&] { return m_running == 0; });
    m_tasks = nullptr;
    for (const auto& error : m_errors) {
        if (error) std::rethrow_exception(error);
    }
}

} // namespace shardlens::solve
