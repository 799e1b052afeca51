// SPDX-License-Identifier: Apache-2.0
// A row is cut into tiles of up to 16 doubles held in registers while all summands pass by. What is
// left over is covered by a last tile that overlaps the one before: a minimum may be taken twice.
#include "core/solve/min_plus.h"

#include <algorithm>
#include <cstring>

// Function multiversioning needs ifunc support and does not work under the sanitizers.
#if defined(__x86_64__) && defined(__ELF__) && !defined(__SANITIZE_ADDRESS__)
#define SHARDLENS_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SHARDLENS_VECTOR_CLONES
#endif
#define SHARDLENS_INLINE [[gnu::always_inline]] inline

namespace shardlens::solve {
namespace {

using Vec = double __attribute__((vector_size(32)));
constexpr std::size_t kLanes = 4;

SHARDLENS_INLINE void load(Vec& to, const double* from) {
    std::memcpy(&to, from, sizeof to);
}
SHARDLENS_INLINE void store(double* to, const Vec& from) {
    std::memcpy(to, &from, sizeof from);
}

/// Where the summands of one row come from; `more` is used by the two-table form only.
struct Summands {
    const double* base;
    const std::uint32_t* offset;
    const std::uint32_t* moreOffset;
    std::size_t count;
    const double* rows;
    const double* more;
};

/// Columns [column, column + 4 N) of the row.
template <int N, bool Two>
SHARDLENS_INLINE void tile(double* out, std::size_t column, const Summands& s) {
    Vec least[N];
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) load(least[i], out + column + std::size_t(i) * kLanes);
    for (std::size_t e = 0; e < s.count; ++e) {
        const double* row = s.rows + s.offset[e] + column;
        const double* more = Two ? s.more + s.moreOffset[e] + column : nullptr;
        const double base = s.base[e];
#pragma GCC unroll 4
        for (int i = 0; i < N; ++i) {
            Vec sum;
            load(sum, row + std::size_t(i) * kLanes);
            if constexpr (Two) {
                Vec other;
                load(other, more + std::size_t(i) * kLanes);
                sum += other;
            }
            sum += base;
            least[i] = sum < least[i] ? sum : least[i];
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) store(out + column + std::size_t(i) * kLanes, least[i]);
}

template <bool Two>
SHARDLENS_INLINE void narrow(double* out, std::size_t width, const Summands& s) {
    for (std::size_t c = 0; c < width; ++c) {
        double least = out[c];
        for (std::size_t e = 0; e < s.count; ++e) {
            double sum = s.rows[s.offset[e] + c];
            if constexpr (Two) sum += s.more[s.moreOffset[e] + c];
            least = std::min(least, s.base[e] + sum);
        }
        out[c] = least;
    }
}

template <bool Two>
SHARDLENS_INLINE void row(double* out, std::size_t width, const Summands& s) {
    if (width < kLanes) return narrow<Two>(out, width, s);
    std::size_t column = 0;
    for (; column + 4 * kLanes <= width; column += 4 * kLanes) tile<4, Two>(out, column, s);
    const std::size_t left = width - column;
    if (left == 0) return;
    switch (column == 0 ? left / kLanes : (left + kLanes - 1) / kLanes) {
    case 1:
        tile<1, Two>(out, column == 0 ? 0 : width - kLanes, s);
        break;
    case 2:
        tile<2, Two>(out, column == 0 ? 0 : width - 2 * kLanes, s);
        break;
    case 3:
        tile<3, Two>(out, column == 0 ? 0 : width - 3 * kLanes, s);
        break;
    default:
        tile<4, Two>(out, width - 4 * kLanes, s);
        break;
    }
    if (column == 0 && left % kLanes != 0) tile<1, Two>(out, width - kLanes, s);
}

} // namespace

SHARDLENS_VECTOR_CLONES
void minPlusRow(double* out, std::size_t width, const double* base, const std::uint32_t* offset,
                std::size_t count, const double* rows) {
    row<false>(out, width, {base, offset, nullptr, count, rows, nullptr});
}

SHARDLENS_VECTOR_CLONES
void minPlusRow2(double* out, std::size_t width, const double* base, const std::uint32_t* offset,
                 const std::uint32_t* moreOffset, std::size_t count, const double* rows,
                 const double* more) {
    row<true>(out, width, {base, offset, moreOffset, count, rows, more});
}

} // namespace shardlens::solve
