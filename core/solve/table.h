// SPDX-License-Identifier: Apache-2.0
// Dense tables over small sets of variables, row-major in the order of their scope. Values are
// shared: the many edges of a problem that have one matrix have one table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shardlens::solve {

class Monitor;

using Var = std::uint32_t;
using Scope = std::vector<Var>;
using Dims = std::span<const std::uint32_t>; ///< choices by variable
using Values = std::shared_ptr<const double[]>;

struct Table {
    Scope scope;
    Values values;
};

inline bool contains(const Scope& scope, Var var) {
    return std::ranges::find(scope, var) != scope.end();
}

/// Entries of a table over the scope.
std::size_t jointSize(Dims dims, const Scope& scope);
/// The same in floating point, for sizes that no memory holds.
double jointSizeEstimate(Dims dims, const Scope& scope);

/// Step in a table over `scope` for each variable of `along`; 0 where the table does not have it.
std::vector<std::size_t> stridesAlong(Dims dims, const Scope& scope, const Scope& along);

/// Adds a table to a larger one whose scope contains its scope, in any order.
void addTable(Dims dims, double* out, const Scope& outScope, const double* in, const Scope& inScope,
              Monitor& monitor);

/// The diagonal of a table in whose scope a variable may occur more than once: scope without
/// repeats (first occurrences) and the entries where the repeats agree.
Table diagonal(Dims dims, const Scope& scope, const double* values);

/// Steps through all value tuples of a scope, last variable fastest, keeping the offsets of some
/// tables at the current tuple.
class Odometer {
public:
    Odometer(Dims dims, const Scope& scope);
    /// @return the number of the table, for offset(); strides as of stridesAlong()
    std::size_t add(std::vector<std::size_t> strides);
    std::size_t offset(std::size_t table) const { return m_offset[table]; }
    /// @return false after the last tuple
    bool next();

private:
    std::vector<std::uint32_t> m_dims, m_value;
    std::vector<std::vector<std::size_t>> m_strides;
    std::vector<std::size_t> m_offset;
};

} // namespace shardlens::solve
