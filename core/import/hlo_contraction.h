// SPDX-License-Identifier: Apache-2.0
// Products in HLO's terms: contracting and batch dimensions, dimension labels. Shared by the
// opcodes `dot` and `convolution` and by the custom calls that libraries replace them with.
#pragma once

#include "core/import/hlo_translation.h"

namespace shardlens::hlo {

struct DotDims {
    std::vector<std::int64_t> lhsContracting, rhsContracting, lhsBatch, rhsBatch;
};

/// "abc,acd->abd": batch dimensions first, then what is left of each side. std::nullopt if the
/// dimensions do not exist or are named twice.
std::optional<std::string> dotEquation(std::size_t lhsRank, std::size_t rhsRank,
                                       const DotDims& dims);

/// The instruction's first two operands multiplied. std::nullopt if they do not fit.
std::optional<TensorId> emitDot(Translation& t, const Site& site, const DotDims& dims,
                                const TensorSpec& result);

/// From `dim_labels` and `window`; with no spatial dimension it is a matrix product.
std::optional<TensorId> emitConvolution(Translation& t, const Site& site, const TensorSpec& result);

/// 2 x results x kernel points a result takes; what an opaque convolution computes.
double convolutionFlops(Translation& t, const Site& site, const TensorSpec& result);

/// Reduces of several arrays that do not meet, an op each. std::nullopt: it is none.
std::optional<Value> reduceSeveral(Translation& t, const Site& site);

} // namespace shardlens::hlo
