// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms by their definition, a dimension after the other. Complex arrays have
// a last dimension more than their tensor: real and imaginary part (array.h).
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_support.h"

#include <cmath>
#include <complex>
#include <numbers>

namespace shardlens::kernels {

namespace {

struct Field {
    Shape shape;
    std::vector<std::complex<double>> values;
};

Field fieldOf(const Array& array, bool complex) {
    Field field{array.shape, {}};
    if (complex) field.shape.pop_back();
    for (std::size_t i = 0; i < countOf(field.shape); ++i)
        field.values.push_back(complex ? std::complex(array.reals[2 * i], array.reals[2 * i + 1])
                                       : std::complex(array.reals[i], 0.0));
    return field;
}

/// e^(-2 pi i k / n), or its conjugate.
std::complex<double> root(std::size_t k, std::size_t n, bool inverse) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n);
    return std::polar(1.0, inverse ? angle : -angle);
}

void transform(Field& field, std::size_t dim, bool inverse) {
    const std::vector<std::size_t> strides = stridesOf(field.shape);
    const auto n = static_cast<std::size_t>(field.shape[dim]);
    std::vector<std::complex<double>> line(n);
    for (std::size_t first = 0; first < field.values.size(); ++first) {
        if (first / strides[dim] % n != 0) continue;
        for (std::size_t k = 0; k < n; ++k) {
            line[k] = 0;
            for (std::size_t j = 0; j < n; ++j)
                line[k] += field.values[first + j * strides[dim]] * root(j * k, n, inverse);
            if (inverse) line[k] /= static_cast<double>(n);
        }
        for (std::size_t k = 0; k < n; ++k) field.values[first + k * strides[dim]] = line[k];
    }
}

/// The last dim cut to, or filled up to, `size`: the other half of a real signal's transform
/// mirrors the first, once the other dims are real in time.
Field resized(const Field& field, std::size_t size) {
    const auto before = static_cast<std::size_t>(field.shape.back());
    Field result{field.shape, {}};
    result.shape.back() = static_cast<std::int64_t>(size);
    for (std::size_t line = 0; line < field.values.size(); line += before)
        for (std::size_t k = 0; k < size; ++k)
            result.values.push_back(k < before ? field.values[line + k]
                                               : std::conj(field.values[line + size - k]));
    return result;
}

Arrays fourierForward(const KernelContext& context, Operands operands) {
    const std::string function = context.op().attributes.text("function");
    const auto length = context.op().attributes.integers("length");
    const bool inverse = function.starts_with("i");
    Field field = fieldOf(*operands[0], function != "rfft");
    const std::size_t last = field.shape.size() - 1;
    for (std::size_t d = last + 1 - length.size(); d < last; ++d) transform(field, d, inverse);
    if (function == "irfft") field = resized(field, static_cast<std::size_t>(length.back()));
    transform(field, last, inverse);
    if (function == "rfft") field = resized(field, static_cast<std::size_t>(length.back()) / 2 + 1);
    Array result = emptyResult(context, 0);
    for (std::size_t i = 0; i < field.values.size(); ++i) {
        if (function == "irfft") {
            result.reals[i] = field.values[i].real();
            continue;
        }
        result.reals[2 * i] = field.values[i].real();
        result.reals[2 * i + 1] = field.values[i].imag();
    }
    return {std::move(result)};
}

} // namespace

/// Gradients of complex numbers are not followed: transforms are run forwards.
Kernel fourierKernel() {
    return {OpKind::Fourier, fourierForward, nullptr};
}

} // namespace shardlens::kernels
