// SPDX-License-Identifier: Apache-2.0
// The text of resources/plans as it was when the program was configured.
#pragma once

#include <string_view>

namespace shardlens {
extern const std::string_view kAlpaPlansCsv; ///< alpa-osdi22.csv
} // namespace shardlens
