// SPDX-License-Identifier: Apache-2.0
// Private to the kernels: rows of the families' tables that live in files of their own.
#pragma once

#include "core/execute/kernel.h"

#include <optional>

namespace shardlens::kernels {

Kernel attentionKernel();
Kernel normKernel();
Kernel crossEntropyKernel();
Kernel rotaryKernel();
Kernel gridSampleKernel();
Kernel roiAlignKernel();
Kernel poolKernel();
Kernel globalPoolKernel();
Kernel reduceWindowKernel();
Kernel selectAndScatterKernel();
Kernel linearAlgebraKernel();
Kernel fourierKernel();

/// How a window slides over an image; pads are begin.., end...
struct Window {
    std::vector<std::int64_t> strides, pads, dilations;
};
Window windowOf(const KernelContext& context, const Shape& kernel);
/// The element of the image (its spatial dims, row-major) under one tap of the window at a place;
/// nothing where that is padding.
std::optional<std::size_t> placeOf(const Window& window, const Shape& image, const Shape& at,
                                   const Shape& tap);

/// For each element of windows the element of the data that lies under it; kElsewhere where that is
/// in another rank's part.
using Places = std::vector<std::ptrdiff_t>;
inline constexpr std::ptrdiff_t kElsewhere = -1;
Places slicePlaces(const KernelContext& context, Operands operands);     ///< DynamicSlice
Places updatePlaces(const KernelContext& context, Operands operands);    ///< DynamicUpdate
Places gatheredPlaces(const KernelContext& context, Operands operands);  ///< GatherWindows
Places scatteredPlaces(const KernelContext& context, Operands operands); ///< ScatterWindows

/// Index in the whole result `r` of each local element, in row-major order.
std::vector<std::uint64_t> wholeIndices(const KernelContext& context, std::size_t r);

} // namespace shardlens::kernels
