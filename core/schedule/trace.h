// SPDX-License-Identifier: Apache-2.0
// A timeline as Chrome trace JSON, which Perfetto and chrome://tracing open: a process for each
// device, a thread for each stream, one for idle times by cause, memory as a counter.
#pragma once

#include "core/schedule/timeline.h"

#include <iosfwd>

namespace shardlens::schedule {

struct TraceOptions {
    double secondsPerUnit = 1; ///< of the program's durations
    bool flows = true;         ///< arrows along dependencies between devices
    bool idle = true;
    bool memory = true;
};

/// Times are whole nanoseconds, so that what follows something never overlaps it.
void writeTrace(std::ostream& out, const Program& program, const Timeline& timeline,
                const Account& account, const TraceOptions& options = {});

} // namespace shardlens::schedule
