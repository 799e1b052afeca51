// SPDX-License-Identifier: Apache-2.0
// Watches a running solve: the stop token, the deadline and the progress callback. Inner loops call
// tick() with the work they are about to do; it throws Cancelled, so that no loop needs a way out.
#pragma once

#include "core/solve/solver.h"

#include <algorithm>
#include <chrono>
#include <string_view>

namespace shardlens::solve {

class Monitor {
public:
    explicit Monitor(const Options& options);

    /// @param work  elementary steps since the last call, or about to be done: at most a few
    ///              million, so that a stop is seen soon; the clock is read every million
    /// @throws Cancelled when a stop was requested or the deadline has passed
    void tick(std::size_t work);
    /// The most work between two looks at the stop token, of this monitor and those it absorbed.
    std::size_t largestStep() const { return m_largestStep; }
    /// Takes over what a copy of this monitor saw on another thread.
    void absorb(const Monitor& copy) {
        m_largestStep = std::max(m_largestStep, copy.m_largestStep);
    }

    /// True when there is no time left: a stop was requested or the deadline has passed.
    bool over() const;
    double seconds() const;

    /// Tells the caller where we are; at most 20 times a second unless the stage changes.
    void report(std::string_view stage, double incumbent, double bound);

private:
    using Clock = std::chrono::steady_clock;
    const Options& m_options;
    Clock::time_point m_start = Clock::now();
    double m_lastReport = -1;
    std::string_view m_lastStage; ///< stages are literals
    std::size_t m_work = 0, m_largestStep = 0;
};

} // namespace shardlens::solve
