// SPDX-License-Identifier: Apache-2.0
// Strides, and the walk that keeps one offset an operand.
#include "core/execute/strided.h"

#include <algorithm>

namespace shardlens {

Strides signedStrides(const Shape& shape) {
    Strides strides(shape.size(), 1);
    for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
    return strides;
}

Strides broadcastStrides(const Shape& shape, const Shape& result) {
    assert(shape.size() <= result.size());
    const Strides own = signedStrides(shape);
    const std::size_t lead = result.size() - shape.size();
    Strides strides(result.size(), 0);
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (shape[d] != 1) strides[lead + d] = own[d];
    return strides;
}

bool holds(const std::vector<std::int64_t>& axes, std::size_t dim) {
    return std::ranges::find(axes, static_cast<std::int64_t>(dim)) != axes.end();
}

Shape rowShape(Shape shape, const std::vector<std::int64_t>& axes) {
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (holds(axes, d)) shape[d] = 1;
    return shape;
}

Strides rowStrides(const Shape& shape, const std::vector<std::int64_t>& axes) {
    return broadcastStrides(rowShape(shape, axes), shape);
}

double countAlong(const Shape& shape, const std::vector<std::int64_t>& axes) {
    double count = 1;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (holds(axes, d)) count *= static_cast<double>(shape[d]);
    return count;
}

StridedWalk::StridedWalk(const Shape& shape, std::vector<Strides> strides)
    : m_shape(shape), m_index(shape.size(), 0), m_strides(std::move(strides)),
      m_offsets(m_strides.size(), 0), m_left(countOf(shape)) {
}

void StridedWalk::next() {
    if (--m_left == 0) return;
    for (std::size_t d = m_shape.size(); d-- > 0;) {
        const bool carries = ++m_index[d] == m_shape[d];
        for (std::size_t k = 0; k < m_strides.size(); ++k)
            m_offsets[k] += carries ? m_strides[k][d] * (1 - m_shape[d]) : m_strides[k][d];
        if (!carries) return;
        m_index[d] = 0;
    }
}

} // namespace shardlens
