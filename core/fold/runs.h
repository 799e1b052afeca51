// SPDX-License-Identifier: Apache-2.0
// Finds and proves the runs of one sequence. Private to core/fold.
#pragma once

#include "core/fold/sequence.h"

#include <stop_token>

namespace shardlens::fold_detail {

/// A proposed run over Sequence positions.
struct Stretch {
    std::size_t first = 0, period = 0, count = 0;
    std::size_t spare = 0; ///< positions after the last block that are periodic too
    bool aligned = false;  ///< `first` is final
    bool linked = false;
    std::size_t end() const { return first + period * count; }
    std::size_t saved() const { return period * (count - 1); }
};

/// The best proven runs that do not overlap, ascending. @throws Cancelled
std::vector<Stretch> chooseRuns(const Sequence& s, std::stop_token stop);

} // namespace shardlens::fold_detail
