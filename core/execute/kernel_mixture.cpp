// SPDX-License-Identifier: Apache-2.0
#include "core/execute/kernel.h"
namespace shardlens {
std::vector<Kernel> mixtureKernels() {
    return {};
}
std::vector<Kernel> convolutionKernels() {
    return {};
}
} // namespace shardlens
