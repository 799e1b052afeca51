// SPDX-License-Identifier: Apache-2.0
// Walking several arrays at once: every reference kernel that is not a matrix product is a walk
// over an index space in which each operand has its own strides (0 where it is broadcast).
#pragma once

#include "core/execute/array.h"

#include <cstddef>
#include <vector>

namespace shardlens {

using Strides = std::vector<std::ptrdiff_t>; ///< in elements, one a dimension

Strides signedStrides(const Shape& shape);
/// Strides of an array read under multidirectional broadcasting to `result`: aligned at the right
/// end, 0 where it is repeated.
Strides broadcastStrides(const Shape& shape, const Shape& result);
/// Strides with which an array of `shape`, with dims of `axes` taken as 1, is read at indices of
/// `shape`: those of a row statistic kept in place of each row.
Strides rowStrides(const Shape& shape, const std::vector<std::int64_t>& axes);
/// The shape with the dims of `axes` set to 1.
Shape rowShape(Shape shape, const std::vector<std::int64_t>& axes);
bool holds(const std::vector<std::int64_t>& axes, std::size_t dim);
/// Product of the sizes of these dims.
double countAlong(const Shape& shape, const std::vector<std::int64_t>& axes);

/// Steps through a shape in row-major order with the offset of each operand:
/// for (StridedWalk at(shape, {a, b}); !at.done(); at.next()) use(x[at[0]], y[at[1]]).
class StridedWalk {
public:
    StridedWalk(const Shape& shape, std::vector<Strides> strides);

    bool done() const { return m_left == 0; }
    void next();
    std::size_t operator[](std::size_t operand) const {
        return static_cast<std::size_t>(m_offsets[operand]);
    }
    const Shape& index() const { return m_index; }

private:
    Shape m_shape, m_index;
    std::vector<Strides> m_strides;
    std::vector<std::ptrdiff_t> m_offsets;
    std::size_t m_left;
};

} // namespace shardlens
