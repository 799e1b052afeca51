// SPDX-License-Identifier: Apache-2.0
// The table of kernels: the families' rows, sorted by kind.
#include "core/execute/kernel.h"

#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens {

namespace {

const Kernel* find(OpKind kind) {
    static const std::vector<Kernel> table = [] {
        std::vector<Kernel> kernels;
        for (auto family :
             {contractionKernels, convolutionKernels, elementwiseKernels, normKernels,
              reductionKernels, movementKernels, mixtureKernels, indexingKernels, positionKernels,
              imageKernels, recurrentKernels, matrixKernels, expertKernels, gradientKernels}) {
            const std::vector<Kernel> more = family();
            kernels.insert(kernels.end(), more.begin(), more.end());
        }
        std::ranges::sort(kernels, {}, &Kernel::kind);
        return kernels;
    }();
    const auto kernel = std::ranges::lower_bound(table, kind, {}, &Kernel::kind);
    return kernel == table.end() || kernel->kind != kind ? nullptr : &*kernel;
}

} // namespace

bool hasKernel(OpKind kind) {
    return find(kind) != nullptr;
}

const Kernel& kernelOf(OpKind kind) {
    const Kernel* kernel = find(kind);
    if (kernel == nullptr)
        throw Error(fmt::format("there is no reference kernel for {}", nameOf(kind)));
    return *kernel;
}

} // namespace shardlens
