// SPDX-License-Identifier: Apache-2.0
// Private to the kernels: rows of the families' tables that live in files of their own.
#pragma once

#include "core/execute/kernel.h"

namespace shardlens::kernels {

Kernel attentionKernel();
Kernel normKernel();
Kernel crossEntropyKernel();
Kernel rotaryKernel();
Kernel gridSampleKernel();

/// Index in the whole result `r` of each local element, in row-major order.
std::vector<std::uint64_t> wholeIndices(const KernelContext& context, std::size_t r);

} // namespace shardlens::kernels
