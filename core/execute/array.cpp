// SPDX-License-Identifier: Apache-2.0
// Host arrays: making, cutting and joining them.
#include "core/execute/array.h"

#include <algorithm>

namespace shardlens {

Array Array::real(Shape shape, double fill) {
    Array array;
    array.reals.assign(countOf(shape), fill);
    array.shape = std::move(shape);
    return array;
}

Array Array::integer(Shape shape, std::int64_t fill) {
    Array array;
    array.integral = true;
    array.ints.assign(countOf(shape), fill);
    array.shape = std::move(shape);
    return array;
}

Array Array::like(const Array& other, Shape shape) {
    return other.integral ? integer(std::move(shape)) : real(std::move(shape));
}

Array Array::zeros(const TensorSpec& spec, Shape shape) {
    if (isComplex(spec.dtype)) shape.push_back(2);
    return isHeldAsInteger(spec.dtype) ? integer(std::move(shape)) : real(std::move(shape));
}

bool isComplex(DType dtype) noexcept {
    return dtype == DType::C64 || dtype == DType::C128;
}

bool isHeldAsInteger(DType dtype) noexcept {
    switch (dtype) {
    case DType::I64:
    case DType::I32:
    case DType::I16:
    case DType::I8:
    case DType::I4:
    case DType::U64:
    case DType::U32:
    case DType::U16:
    case DType::U8:
    case DType::U4:
    case DType::Bool:
        return true;
    default:
        return false;
    }
}

std::size_t countOf(const Shape& shape) {
    std::size_t count = 1;
    for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
    return count;
}

std::vector<std::size_t> stridesOf(const Shape& shape) {
    std::vector<std::size_t> strides(shape.size(), 1);
    for (std::size_t d = shape.size(); d-- > 1;)
        strides[d - 1] = strides[d] * static_cast<std::size_t>(shape[d]);
    return strides;
}

void Counter::next() {
    if (--m_left == 0) return;
    for (std::size_t d = m_shape.size(); d-- > 0;) {
        if (++m_index[d] < m_shape[d]) return;
        m_index[d] = 0;
    }
}

namespace {

/// Calls copy(fullOffset, partOffset, length) for every contiguous row of the block.
template <typename Copy>
void eachRow(const Shape& full, const Shape& begin, const Shape& size, Copy copy) {
    if (countOf(size) == 0) return;
    if (full.empty()) {
        copy(std::size_t{0}, std::size_t{0}, std::size_t{1});
        return;
    }
    const std::vector<std::size_t> strides = stridesOf(full);
    const auto length = static_cast<std::size_t>(size.back());
    std::size_t part = 0;
    for (Counter row(Shape(size.begin(), size.end() - 1)); !row.done(); row.next()) {
        std::size_t offset = static_cast<std::size_t>(begin.back());
        for (std::size_t d = 0; d + 1 < full.size(); ++d)
            offset += static_cast<std::size_t>(begin[d] + row.index()[d]) * strides[d];
        copy(offset, part, length);
        part += length;
    }
}

template <typename T>
void copyRow(const std::vector<T>& from, std::size_t at, std::vector<T>& to, std::size_t start,
             std::size_t length) {
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(at), length,
                to.begin() + static_cast<std::ptrdiff_t>(start));
}

} // namespace

Array block(const Array& array, const Shape& begin, const Shape& size) {
    Array part = Array::like(array, size);
    eachRow(array.shape, begin, size, [&](std::size_t whole, std::size_t at, std::size_t length) {
        if (array.integral)
            copyRow(array.ints, whole, part.ints, at, length);
        else
            copyRow(array.reals, whole, part.reals, at, length);
    });
    return part;
}

void addBlock(Array& array, const Shape& begin, const Array& part) {
    assert(array.integral == part.integral);
    eachRow(array.shape, begin, part.shape,
            [&](std::size_t whole, std::size_t at, std::size_t length) {
                for (std::size_t i = 0; i < length; ++i) {
                    if (array.integral)
                        array.ints[whole + i] += part.ints[at + i];
                    else
                        array.reals[whole + i] += part.reals[at + i];
                }
            });
}

Array sliceOf(const Array& array, std::size_t dim, std::int64_t begin, std::int64_t size) {
    Shape from(array.shape.size(), 0), shape = array.shape;
    from[dim] = begin;
    shape[dim] = size;
    return block(array, from, shape);
}

Array joined(std::span<const Array> parts, std::size_t dim) {
    Shape shape = parts.front().shape;
    shape[dim] = 0;
    for (const Array& part : parts) shape[dim] += part.shape[dim];
    Array whole = Array::like(parts.front(), shape);
    Shape begin(shape.size(), 0);
    for (const Array& part : parts) {
        eachRow(shape, begin, part.shape, [&](std::size_t at, std::size_t from, std::size_t n) {
            if (part.integral)
                copyRow(part.ints, from, whole.ints, at, n);
            else
                copyRow(part.reals, from, whole.reals, at, n);
        });
        begin[dim] += part.shape[dim];
    }
    return whole;
}

void add(Array& a, const Array& b) {
    assert(a.shape == b.shape && a.integral == b.integral);
    if (a.integral)
        std::ranges::transform(a.ints, b.ints, a.ints.begin(), std::plus<>{});
    else
        std::ranges::transform(a.reals, b.reals, a.reals.begin(), std::plus<>{});
}

} // namespace shardlens
