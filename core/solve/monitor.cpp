// SPDX-License-Identifier: Apache-2.0
// The clock is read rarely: about every million elementary steps, well under a millisecond.
#include "core/solve/monitor.h"

#include "core/error.h"

namespace shardlens::solve {

Monitor::Monitor(const Options& options) : m_options(options) {
}

double Monitor::seconds() const {
    return std::chrono::duration<double>(Clock::now() - m_start).count();
}

bool Monitor::over() const {
    return m_options.stop.stop_requested() || seconds() > m_options.deadlineSeconds;
}

void Monitor::tick(std::size_t work) {
    if (m_options.stop.stop_requested()) throw Cancelled();
    m_largestStep = std::max(m_largestStep, work);
    m_work += work;
    if (m_work < (std::size_t{1} << 20)) return;
    m_work = 0;
    if (seconds() > m_options.deadlineSeconds) throw Cancelled();
}

void Monitor::report(std::string_view stage, double incumbent, double bound) {
    if (!m_options.progress) return;
    const double now = seconds();
    if (stage == m_lastStage && now - m_lastReport < 0.05) return;
    m_lastStage = stage;
    m_lastReport = now;
    m_options.progress({incumbent, bound, now, std::string(stage)});
}

} // namespace shardlens::solve
