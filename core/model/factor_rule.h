// SPDX-License-Identifier: Apache-2.0
// Factor rules: an einsum-like description of an op from which local shapes, layouts, partial
// sums and the backward pass all follow (the idea of Shardy's op sharding rules). MatMul is
// ([b,m,k],[b,k,n])->([b,m,n]) with k a sum reduction.
#pragma once

#include "core/model/tensor.h"

#include <string>
#include <vector>

namespace shardlens {

enum class FactorKind : std::uint8_t {
    Parallel,    ///< shard it alike in operands and results; no communication
    Reduction,   ///< in operands, not in results: the local result is a partial sum
    Internal,    ///< the op itself reduces small statistics over it (softmax axis, norm width):
                 ///< it may be sharded at the price of the rule's statistics
    Permutation, ///< data moves between neighbours (halo); not sharded yet, priced by a later rule
    Replicate,   ///< must be whole on every device
};

enum class ReduceOp : std::uint8_t { Sum, Max, Min, Prod };

struct Factor {
    std::string name; ///< the field's letter: "b", "m", "k", "heads"
    std::int64_t size = 1;
    FactorKind kind = FactorKind::Parallel;
    /// An axis on this factor all-reduces the rule's statistics: every Internal factor, and a
    /// Reduction whose parts must agree on a scale first (the keys of attention).
    bool exchanges = false;
};

/// Numbers that the op itself all-reduces over each axis on a factor that `exchanges`.
struct Statistic {
    ReduceOp reduce = ReduceOp::Sum;
    double numbers = 0;   ///< for the whole op; the axes on other factors divide it
    double bytesEach = 4; ///< fp32, unless it is the result itself that is exchanged
    double bytes() const { return numbers * bytesEach; }
    friend bool operator==(const Statistic&, const Statistic&) = default;
};

/// Which factors a dimension carries, major to minor. Size-1 dimensions may carry none.
using DimFactors = std::vector<int>;

struct FactorRule {
    std::vector<Factor> factors;
    std::vector<std::vector<DimFactors>> operands; ///< [operand][dim]
    std::vector<std::vector<DimFactors>> results;  ///< [result][dim]
    /// Operands that are added once to the result (a bias): where a Reduction they lack is cut, one
    /// part adds them, and each sees the whole gradient. Others are multiplied into every part.
    std::vector<std::size_t> addedOnce;
    std::vector<Statistic> forwardStatistics, backwardStatistics; ///< in order of exchange

    int addFactor(std::string name, std::int64_t size, FactorKind kind = FactorKind::Parallel);
    std::string toString() const; ///< "([b,m,k],[b,k,n])->([b,m,n]) r={k}"
};

/// The dimension of an operand or result along which sharding factor `f` cuts whole contiguous
/// blocks: the factor must be the first of its dimension whose size is not 1. -1 when the operand
/// does not carry the factor; -2 when it does but behind a larger one (strided, not representable).
int shardedDim(const std::vector<DimFactors>& dims, const FactorRule& rule, int f);

} // namespace shardlens
