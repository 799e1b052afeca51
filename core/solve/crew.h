// SPDX-License-Identifier: Apache-2.0
// Threads that wait for tasks and do them side by side. They live as long as the crew, so that
// rounds of work need not start threads anew, which a busy system is slow to spread over its
// processors.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace shardlens::solve {

class Crew {
public:
    /// @param threads  that work at once, the caller's own included; at least 1
    explicit Crew(unsigned threads);
    ~Crew();
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    /// Does all tasks, in their order where threads are fewer, and waits for them.
    /// @throws the first exception, by order of tasks, when all are done
    void run(const std::vector<std::function<void()>>& tasks);

private:
    void work();
    void take(std::unique_lock<std::mutex>& lock);

    std::mutex m_mutex;
    std::condition_variable m_begin, m_done;
    const std::vector<std::function<void()>>* m_tasks = nullptr;
    std::vector<std::exception_ptr> m_errors;
    std::size_t m_next = 0, m_running = 0;
    bool m_over = false;
    std::vector<std::jthread> m_threads;
};

} // namespace shardlens::solve
