// SPDX-License-Identifier: Apache-2.0
// Medians of wall time, for the benchmark programs.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

namespace shardlens::bench {

/// NaN of nothing.
inline double median(std::vector<double> values) {
    if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
    std::ranges::sort(values);
    return values[values.size() / 2];
}

double medianMilliseconds(int times, const auto& f) {
    std::vector<double> out;
    for (int i = 0; i < times; ++i) {
        const auto start = std::chrono::steady_clock::now();
        f();
        out.push_back(
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                .count());
    }
    return median(std::move(out));
}

} // namespace shardlens::bench
