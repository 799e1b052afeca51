// SPDX-License-Identifier: Apache-2.0
// Private to the kernels: rows of the families' tables that live in files of their own.
#pragma once

#include "core/execute/kernel.h"

namespace shardlens::kernels {

Kernel attentionKernel();
Kernel normKernel();
Kernel crossEntropyKernel();
Kernel rotaryKernel();

/// A number in [0, 1) for an element of an op, from nothing but the op's seed and the element's
/// index in the whole tensor: equal however the tensor is cut.
double uniformAt(std::int64_t seed, std::uint64_t index);

/// Index in the whole result `r` of each local element, in row-major order.
std::vector<std::uint64_t> wholeIndices(const KernelContext& context, std::size_t r);

} // namespace shardlens::kernels
