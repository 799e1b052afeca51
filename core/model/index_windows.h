// SPDX-License-Identifier: Apache-2.0
// Windows of a tensor that begin where indices say: what StableHLO's gather and scatter have in
// common. Their dimension numbers are turned into what goes with each dimension, so that the
// catalogue and the kernels need not know how they are written.
#pragma once

#include "core/model/catalogue.h"

namespace shardlens {

/// Dimensions of the data, of the indices and of the windows (a gather's result, a scatter's
/// updates) that belong together.
struct IndexWindows {
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

    struct DataDim {
        std::size_t window = kNone;    ///< dim of the windows that runs along it
        std::size_t batch = kNone;     ///< dim of the windows that is the same batch
        std::size_t component = kNone; ///< number of an index vector that says where it begins
        std::int64_t size = 1;         ///< of the window along it
    };
    std::vector<DataDim> data;
    std::vector<std::size_t> entries; ///< of each dim of the indices: the dim of the windows, or
                                      ///< kNone for the index vector
    std::size_t vectorDim = 0;        ///< rank of the indices where each is a single number
};

/// Of a GatherWindows or a ScatterWindows.
/// @param sizes  of the windows along each dim of the data; empty: those of `windows`
/// @param windows  shape of the windows, as far as its rank and window dims are known
/// @throws InputError naming the op when the numbers do not fit
IndexWindows indexWindows(const OpView& view, const Shape& data, const Shape& indices,
                          const Shape& windows, const std::vector<std::int64_t>& sizes);

/// Arrays that a ScatterWindows writes into: it has as many updates, and the indices between.
inline std::size_t scatteredArrays(const OpView& view) {
    return view.inputs.empty() ? 0 : (view.inputs.size() - 1) / 2;
}

/// Rank of the result of a GatherWindows.
std::size_t windowsRank(const OpView& view);

} // namespace shardlens
