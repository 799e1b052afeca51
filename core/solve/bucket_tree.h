// SPDX-License-Identifier: Apache-2.0
// Min-sum bucket elimination (Dechter 1999, "Bucket elimination: a unifying framework"). The tree
// of buckets is built once from scopes and an order; values may then be set and eliminated again
// and again. No argmin is stored: decoding evaluates a bucket again at the values already chosen,
// which costs far less than writing argmins in the inner loops. A second, downward sweep gives the
// min-marginals of all variables (Shafer and Shenoy 1990), leaving messages out instead of
// subtracting them, so that infinities do no harm.
#pragma once

#include "core/solve/elimination_order.h"
#include "core/solve/join.h"

#include <optional>

namespace shardlens::solve {

class BucketTree {
public:
    /// @param order variables to eliminate; the others are kept
    BucketTree(std::vector<std::uint32_t> dims, std::vector<Scope> factors,
               const std::vector<Var>& order, Monitor& monitor);

    Dims dims() const { return m_dims; }
    const Scope& factorScope(std::size_t factor) const { return m_tables[factor].scope; }
    /// @param values row-major in the order of the factor's scope
    void setFactor(std::size_t factor, Values values) {
        m_tables[factor].values = std::move(values);
    }

    /// Upward sweep. All factors must have values. Buckets that join the very same tables in the
    /// same way, as those of the copies of a run do, are worked out once.
    void eliminate(Monitor& monitor);
    /// After eliminate(): sum of all constants, the optimum if nothing is kept.
    double constant() const;
    /// After eliminate(): the tables left over the kept variables, without the constants.
    std::vector<const Table*> remaining() const;

    /// Best values of the eliminated variables given the kept ones, lowest index among equals.
    /// @param value by variable; kept ones are read, the others written
    void decode(std::vector<std::uint32_t>& value) const;

    /// Downward sweep; nothing may be kept. Needed once before marginal().
    void sweepDown(Monitor& monitor);
    /// Least total cost by value of the variable.
    std::vector<double> marginal(Var var, Monitor& monitor) const;

private:
    struct Bucket {
        Var var = 0;
        std::vector<std::size_t> inputs; ///< tables
        std::optional<Join> up;
        std::size_t form = 0;   ///< equal for buckets that differ in the names of variables alone
        std::size_t parent = 0; ///< bucket that takes the message, or none
        std::vector<std::size_t> children;
        std::optional<Table> down; ///< cost of all that is above, over part of the scope
    };
    static constexpr std::size_t kNone = ~std::size_t{0};

    /// The tables at a bucket, its downward message included, one of them left out.
    std::vector<const Table*> inputs(std::size_t bucket, std::size_t leftOut) const;
    std::size_t message(std::size_t bucket) const { return m_factors + bucket; }
    /// How a bucket's tables hang together, its variables numbered as they come.
    std::vector<std::uint32_t> formOf(const Bucket& bucket, const Scope& result) const;
    Scope sortedUnion(std::span<const Table* const> tables) const;
    double constantWithout(std::size_t table) const;

    std::vector<std::uint32_t> m_dims;
    std::size_t m_factors = 0;
    std::vector<Table> m_tables; ///< factors, then the message of each bucket
    std::vector<Bucket> m_buckets;
    std::vector<std::size_t> m_position;  ///< by variable: its bucket; kept ones come after
    std::vector<std::size_t> m_constants; ///< tables over nothing
    std::vector<std::size_t> m_remaining;
};

} // namespace shardlens::solve
