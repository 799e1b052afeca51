// SPDX-License-Identifier: Apache-2.0
// Dense row-major host arrays for the reference kernels. Two element types are enough to check
// rules: every floating-point type is computed in double, every integer and bool in int64. A
// complex tensor has a dimension more here, behind the others: real and imaginary part.
#pragma once

#include "core/model/tensor.h"

#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

namespace shardlens {

struct Array {
    Shape shape;
    bool integral = false;     ///< the elements are in `ints`, else in `reals`
    std::vector<double> reals; ///< elementsOf(shape) of them, or none
    std::vector<std::int64_t> ints;

    static Array real(Shape shape, double fill = 0);
    static Array integer(Shape shape, std::int64_t fill = 0);
    static Array like(const Array& other, Shape shape); ///< zeros of the same element type
    /// @param shape a part of the spec's; complex arrays get their last dimension
    static Array zeros(const TensorSpec& spec, Shape shape);

    std::size_t size() const { return integral ? ints.size() : reals.size(); }
    bool empty() const { return size() == 0 && shape.empty(); } ///< holds nothing: "no gradient"
    double at(std::size_t i) const { return integral ? static_cast<double>(ints[i]) : reals[i]; }
    friend bool operator==(const Array&, const Array&) = default;
};

/// Whether elements of this type are held as int64 (integers, bool), not double.
bool isHeldAsInteger(DType dtype) noexcept;
bool isComplex(DType dtype) noexcept;

std::size_t countOf(const Shape& shape);                ///< product of the sizes, 1 for a scalar
std::vector<std::size_t> stridesOf(const Shape& shape); ///< row-major, in elements

/// The part of an array where dimension d lies in [begin[d], begin[d] + size[d]).
Array block(const Array& array, const Shape& begin, const Shape& size);
/// Adds a block to the array, from begin[d] on.
void addBlock(Array& array, const Shape& begin, const Array& part);
/// One dimension cut: elements [begin, begin + size) of dimension `dim`.
Array sliceOf(const Array& array, std::size_t dim, std::int64_t begin, std::int64_t size);
/// Arrays joined along a dimension. @pre at least one, equal off the dimension
Array joined(std::span<const Array> parts, std::size_t dim);
/// a += b, elementwise. @pre equal shapes and types
void add(Array& a, const Array& b);

/// Steps through all index vectors of a shape in row-major order:
/// for (Counter at(shape); !at.done(); at.next()) use(at.index()).
class Counter {
public:
    explicit Counter(const Shape& shape)
        : m_shape(shape), m_index(shape.size(), 0), m_left(countOf(shape)) {}
    bool done() const { return m_left == 0; }
    const Shape& index() const { return m_index; }
    void next();

private:
    Shape m_shape, m_index;
    std::size_t m_left;
};

} // namespace shardlens
