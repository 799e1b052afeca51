// SPDX-License-Identifier: Apache-2.0
// Gradient ops: graphs that hold their own backward pass (ONNX Runtime training) have an op for the
// gradient of another op. Its rule is derived from that op's: operands and results change roles,
// and what a gradient lacks of the factors is summed over.
//
// Attributes of a Gradient: those of the forward op, and
//   of      the forward op's kind, by name
//   roles   what each operand is: kForwardOperand + k, kForwardResult + r, kResultGradient + r, or
//           kRowStatistic + k (the k-th of what the forward kernel keeps: one number a row of
//           operand 0)
//   wanted  of which forward operand each result is the gradient
#pragma once

#include "core/model/catalogue.h"

namespace shardlens::gradient {

inline constexpr std::int64_t kForwardOperand = 0;
inline constexpr std::int64_t kForwardResult = 100;
inline constexpr std::int64_t kResultGradient = 200;
inline constexpr std::int64_t kRowStatistic = 300;

/// The op whose gradient it is, as far as the Gradient tells.
struct Forward {
    Op op;
    std::vector<TensorSpec> inputs; ///< dtype Unknown where neither operands nor results tell
    std::vector<TensorSpec> outputs;
    OpView view() const { return {op, inputs, outputs}; }
};

/// @throws InputError if roles and operands do not fit
Forward forwardOf(const OpView& view);

/// Attributes of the gradient of an op of that kind.
Attributes attributesFor(OpKind kind, Attributes forward, std::vector<std::int64_t> roles,
                         std::vector<std::int64_t> wanted);

} // namespace shardlens::gradient
