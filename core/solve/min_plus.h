// SPDX-License-Identifier: Apache-2.0
// The inner loops of the solver: (min,+) row updates. Nearly all of a solve's time is spent here,
// so they are written for vector units and compiled for several of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardlens::solve {

/// out[c] = min(out[c], min over e of base[e] + rows[offset[e] + c]), for c < width, e < count.
void minPlusRow(double* out, std::size_t width, const double* base, const std::uint32_t* offset,
                std::size_t count, const double* rows);

/// The same with the sum of two tables: base[e] + rows[offset[e] + c] + more[moreOffset[e] + c].
void minPlusRow2(double* out, std::size_t width, const double* base, const std::uint32_t* offset,
                 const std::uint32_t* moreOffset, std::size_t count, const double* rows,
                 const double* more);

} // namespace shardlens::solve
