// SPDX-License-Identifier: Apache-2.0
// Reference kernels: what every op of the catalogue computes, forward and backward, in plain loops
// over host arrays. One table with a row per op kind. A kernel runs either the whole op or the part
// of it that one rank has under a choice; the two differ only in what the KernelContext says, so
// that running both and comparing tests the factor rule and nothing else.
//
// Rules for kernels:
// - Result shapes come from context.resultShape(r), never from attributes that hold sizes of the
//   whole op (Reshape's shape, Split's sizes, Expand's shape).
// - Counts that a formula divides by (mean) are those of the whole op: context.whole().
// - Anything that depends on where an element lies (causal masks, rotary positions, random numbers,
//   table rows) uses operandBegin()/resultBegin().
// - What lies behind a cut Internal factor, or a Reduction with statistics, is exchanged by
//   allReduce(), in the order and with the sizes that the rule's statistics state.
// - Where a Reduction factor is cut, the results are partial; an operand that is added once (a
//   bias) is added only where leads() is true. The backward kernel gets the whole gradient of the
//   result and does not look at leads().
// - A forward kernel may give more arrays than the op has results: what it keeps for the backward
//   kernel (statistics, a log-sum-exp), which gets them again behind the results.
// - Backward kernels return one gradient per operand, in the operand's local shape; partial over
//   the axes that cut a factor the operand lacks. Arrays that are empty() stand for "none".
#pragma once

#include "core/execute/array.h"
#include "core/model/catalogue.h"

#include <functional>
#include <span>

namespace shardlens {

/// What a kernel knows besides its operands. The base class is the whole op on one device.
class KernelContext {
public:
    KernelContext(const OpView& whole, const FactorRule& rule) : m_whole(whole), m_rule(rule) {}
    virtual ~KernelContext() = default;
    KernelContext(const KernelContext&) = delete;
    KernelContext& operator=(const KernelContext&) = delete;

    const OpView& whole() const { return m_whole; } ///< attributes, and specs of the whole op
    const Op& op() const { return m_whole.op; }
    const FactorRule& rule() const { return m_rule; }

    virtual Shape operandShape(std::size_t operand) const { return m_whole.inputs[operand].shape; }
    virtual Shape resultShape(std::size_t result) const { return m_whole.outputs[result].shape; }
    /// Index, in the whole tensor, of the first local element along a dimension.
    virtual std::int64_t operandBegin(std::size_t, std::size_t) const { return 0; }
    virtual std::int64_t resultBegin(std::size_t, std::size_t) const { return 0; }
    /// True on the ranks that come first along every axis which cuts a Reduction factor.
    virtual bool leads() const { return true; }
    /// Combines a statistic over the axes that cut factors with `exchanges`; the whole op: nothing.
    virtual void allReduce(Array&, ReduceOp) const {}

private:
    const OpView& m_whole;
    const FactorRule& m_rule;
};

using Arrays = std::vector<Array>;
using Operands = std::span<const Array* const>; ///< nullptr stands for an absent optional operand

using ForwardKernel = Arrays (*)(const KernelContext&, Operands operands);
/// @param results    what the forward kernel gave on this rank: partial where a Reduction is cut
/// @param gradients  of the results, empty() where none flows
/// @return gradients of the operands, empty() where none flows
using BackwardKernel = Arrays (*)(const KernelContext&, Operands operands,
                                  std::span<const Array> results, std::span<const Array> gradients);

struct Kernel {
    OpKind kind = OpKind::Opaque;
    ForwardKernel forward = nullptr;
    BackwardKernel backward = nullptr; ///< nullptr: not differentiable
};

/// @throws Error if the kind has no kernel (sources have none: they are fed)
const Kernel& kernelOf(OpKind kind);
bool hasKernel(OpKind kind);

// --- families, one .cpp each ------------------------------------------------------------------
std::vector<Kernel> contractionKernels();
std::vector<Kernel> convolutionKernels();
std::vector<Kernel> elementwiseKernels();
std::vector<Kernel> normKernels(); ///< softmax, norms, cross-entropy
std::vector<Kernel> reductionKernels();
std::vector<Kernel> movementKernels();
std::vector<Kernel> mixtureKernels();
std::vector<Kernel> indexingKernels(); ///< gathers and scatters by element and index vector
std::vector<Kernel> positionKernels(); ///< generated tensors, one-hot, triangles
std::vector<Kernel> imageKernels();    ///< resizing, grid sampling, local response norm
std::vector<Kernel> recurrentKernels();
std::vector<Kernel> matrixKernels(); ///< linear algebra, transforms, sorts, bits
std::vector<Kernel> expertKernels();
std::vector<Kernel> gradientKernels(); ///< backward kernels as ops of their own

} // namespace shardlens
