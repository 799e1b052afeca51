// SPDX-License-Identifier: Apache-2.0
// Factorisations and solutions of matrices, each batch entry for itself: textbook algorithms
// (Golub, Van Loan: Matrix Computations, 4th edition), and gradients from their differentials
// (Giles: Collected matrix derivative results for forward and reverse mode, 2008; Murray:
// Differentiation of the Cholesky decomposition, 2016).
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_support.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shardlens::kernels {

namespace {

/// A matrix of its own.
struct Matrix {
    std::size_t rows = 0, columns = 0;
    Numbers elements;

    Matrix(std::size_t m, std::size_t n) : rows(m), columns(n), elements(m * n, 0.0) {}
    double& operator()(std::size_t i, std::size_t j) { return elements[i * columns + j]; }
    double operator()(std::size_t i, std::size_t j) const { return elements[i * columns + j]; }

    static Matrix identity(std::size_t m, std::size_t n) {
        Matrix result(m, n);
        for (std::size_t i = 0; i < std::min(m, n); ++i) result(i, i) = 1;
        return result;
    }
};

Matrix transposed(const Matrix& a) {
    Matrix result(a.columns, a.rows);
    for (std::size_t i = 0; i < a.rows; ++i)
        for (std::size_t j = 0; j < a.columns; ++j) result(j, i) = a(i, j);
    return result;
}

Matrix product(const Matrix& a, const Matrix& b) {
    Matrix result(a.rows, b.columns);
    for (std::size_t i = 0; i < a.rows; ++i)
        for (std::size_t k = 0; k < a.columns; ++k)
            for (std::size_t j = 0; j < b.columns; ++j) result(i, j) += a(i, k) * b(k, j);
    return result;
}

Matrix symmetric(const Matrix& a) {
    Matrix result(a.rows, a.columns);
    for (std::size_t i = 0; i < a.rows; ++i)
        for (std::size_t j = 0; j < a.columns; ++j) result(i, j) = (a(i, j) + a(j, i)) / 2;
    return result;
}

/// Matrices in the last two dims of an array.
class Batch {
public:
    explicit Batch(const Shape& shape)
        : m_rows(static_cast<std::size_t>(shape[shape.size() - 2])),
          m_columns(static_cast<std::size_t>(shape.back())),
          m_count(countOf({shape.begin(), shape.end() - 2})) {}

    std::size_t count() const { return m_count; }
    Matrix get(const Array& array, std::size_t b) const {
        Matrix matrix(m_rows, m_columns);
        const auto from = array.reals.begin() + offset(b);
        std::copy(from, from + static_cast<std::ptrdiff_t>(matrix.elements.size()),
                  matrix.elements.begin());
        return matrix;
    }
    void set(Array& array, std::size_t b, const Matrix& matrix) const {
        std::ranges::copy(matrix.elements, array.reals.begin() + offset(b));
    }

private:
    std::ptrdiff_t offset(std::size_t b) const {
        return static_cast<std::ptrdiff_t>(b * m_rows * m_columns);
    }

    std::size_t m_rows, m_columns, m_count;
};

bool flag(const KernelContext& context, const char* name, std::int64_t fallback) {
    return context.op().attributes.integer(name, fallback) != 0;
}

// --- triangular solutions -----------------------------------------------------------------------

/// x of t x = b, for a triangular t.
Matrix solved(const Matrix& t, bool lower, bool unit, Matrix b) {
    const std::size_t n = t.rows;
    for (std::size_t column = 0; column < b.columns; ++column)
        for (std::size_t step = 0; step < n; ++step) {
            const std::size_t i = lower ? step : n - 1 - step;
            double rest = b(i, column);
            for (std::size_t k = lower ? 0 : i + 1; k < (lower ? i : n); ++k)
                rest -= t(i, k) * b(k, column);
            b(i, column) = unit ? rest : rest / t(i, i);
        }
    return b;
}

/// A system as t x = b: on the right x a = b is a' x' = b'.
struct System {
    bool left, turned, lower, unit;

    explicit System(const KernelContext& context)
        : left(flag(context, "left", 1)), turned(flag(context, "transpose", 0) == left),
          lower(flag(context, "lower", 1) != turned), unit(flag(context, "unit", 0)) {}

    Matrix matrix(const Matrix& a) const { return turned ? transposed(a) : a; }
    Matrix side(const Matrix& b) const { return left ? b : transposed(b); }
};

Arrays solveForward(const KernelContext& context, Operands operands) {
    const System system(context);
    const Batch a(operands[0]->shape), b(operands[1]->shape);
    Array result = emptyResult(context, 0);
    for (std::size_t i = 0; i < a.count(); ++i) {
        const Matrix x = solved(system.matrix(a.get(*operands[0], i)), system.lower, system.unit,
                                system.side(b.get(*operands[1], i)));
        b.set(result, i, system.side(x));
    }
    return {std::move(result)};
}

/// With b' = t^-T x', t' = -b' x^T in the triangle that is read.
Arrays solveBackward(const KernelContext& context, Operands operands, const Array& result,
                     const Array& gradient) {
    const System system(context);
    const Batch a(operands[0]->shape), b(operands[1]->shape);
    Arrays given{zerosLike(operands, 0), zerosLike(operands, 1)};
    for (std::size_t i = 0; i < a.count(); ++i) {
        const Matrix t = system.matrix(a.get(*operands[0], i));
        const Matrix back =
            solved(transposed(t), !system.lower, system.unit, system.side(b.get(gradient, i)));
        Matrix toT = product(back, transposed(system.side(b.get(result, i))));
        for (std::size_t r = 0; r < toT.rows; ++r)
            for (std::size_t c = 0; c < toT.columns; ++c) {
                const bool read = r == c ? !system.unit : (system.lower ? c < r : c > r);
                toT(r, c) = read ? -toT(r, c) : 0.0;
            }
        a.set(given[0], i, system.matrix(toT));
        b.set(given[1], i, system.side(back));
    }
    return given;
}

// --- Cholesky -----------------------------------------------------------------------------------

/// l of l l^T = a, from the lower triangle of a.
Matrix cholesky(const Matrix& a) {
    const std::size_t n = a.rows;
    Matrix l(n, n);
    for (std::size_t j = 0; j < n; ++j)
        for (std::size_t i = j; i < n; ++i) {
            double rest = a(i, j);
            for (std::size_t k = 0; k < j; ++k) rest -= l(i, k) * l(j, k);
            l(i, j) = i == j ? std::sqrt(rest) : rest / l(j, j);
        }
    return l;
}

Arrays choleskyForward(const KernelContext& context, Operands operands) {
    const bool lower = flag(context, "lower", 1);
    const Batch batch(operands[0]->shape);
    Array result = emptyResult(context, 0);
    for (std::size_t i = 0; i < batch.count(); ++i) {
        const Matrix a = batch.get(*operands[0], i);
        const Matrix l = cholesky(lower ? a : transposed(a));
        batch.set(result, i, lower ? l : transposed(l));
    }
    return {std::move(result)};
}

/// a' = l^-T phi(l^T l') l^-1, phi the lower triangle with half the diagonal; only the triangle
/// that is read has a gradient, that of both.
Arrays choleskyBackward(const KernelContext& context, Operands operands, const Array& result,
                        const Array& gradient) {
    const bool lower = flag(context, "lower", 1);
    const Batch batch(operands[0]->shape);
    Arrays given{zerosLike(operands, 0)};
    const auto turned = [lower](const Matrix& m) { return lower ? m : transposed(m); };
    for (std::size_t b = 0; b < batch.count(); ++b) {
        const Matrix l = turned(batch.get(result, b));
        Matrix back = turned(batch.get(gradient, b));
        for (std::size_t i = 0; i < l.rows; ++i) // what is above the diagonal is always 0
            for (std::size_t j = i + 1; j < l.rows; ++j) back(i, j) = 0;
        Matrix phi = product(transposed(l), back);
        for (std::size_t i = 0; i < l.rows; ++i)
            for (std::size_t j = i; j < l.rows; ++j) phi(i, j) = i == j ? phi(i, i) / 2 : 0.0;
        const Matrix half = solved(transposed(l), false, false, phi); // l^-T phi
        Matrix whole = symmetric(transposed(solved(transposed(l), false, false,
                                                   transposed(half)))); // (l^-T phi) l^-1
        for (std::size_t i = 0; i < l.rows; ++i)
            for (std::size_t j = 0; j < l.rows; ++j)
                if (i != j) whole(i, j) = j < i ? 2 * whole(i, j) : 0.0;
        batch.set(given[0], b, turned(whole));
    }
    return given;
}

// --- eigenvalues --------------------------------------------------------------------------------

/// One rotation of Jacobi's method: makes a(p, q) zero.
void rotate(Matrix& a, Matrix& vectors, std::size_t p, std::size_t q) {
    if (a(p, q) == 0) return;
    const double tau = (a(q, q) - a(p, p)) / (2 * a(p, q));
    const double t = std::copysign(1.0, tau) / (std::abs(tau) + std::hypot(1.0, tau));
    const double c = 1 / std::hypot(1.0, t), s = t * c;
    const auto turn = [c, s](double& x, double& y) {
        const double before = x;
        x = c * before - s * y;
        y = s * before + c * y;
    };
    for (std::size_t k = 0; k < a.rows; ++k) turn(a(k, p), a(k, q));
    for (std::size_t k = 0; k < a.rows; ++k) turn(a(p, k), a(q, k));
    for (std::size_t k = 0; k < a.rows; ++k) turn(vectors(k, p), vectors(k, q));
}

/// Vectors as columns and values in ascending order, of the symmetric part of a.
std::pair<Matrix, Numbers> eigen(const Matrix& matrix) {
    constexpr int kSweeps = 30; // converges quadratically
    Matrix a = symmetric(matrix), vectors = Matrix::identity(a.rows, a.rows);
    for (int sweep = 0; sweep < kSweeps; ++sweep)
        for (std::size_t p = 0; p < a.rows; ++p)
            for (std::size_t q = p + 1; q < a.rows; ++q) rotate(a, vectors, p, q);
    std::vector<std::size_t> order(a.rows);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return a(i, i); });
    Matrix sorted(a.rows, a.rows);
    Numbers values;
    for (std::size_t j = 0; j < order.size(); ++j) {
        values.push_back(a(order[j], order[j]));
        for (std::size_t i = 0; i < a.rows; ++i) sorted(i, j) = vectors(i, order[j]);
    }
    return {std::move(sorted), std::move(values)};
}

Arrays eighForward(const KernelContext& context, Operands operands) {
    const Batch batch(operands[0]->shape);
    Array vectors = emptyResult(context, 0), values = emptyResult(context, 1);
    for (std::size_t b = 0; b < batch.count(); ++b) {
        const auto [v, w] = eigen(batch.get(*operands[0], b));
        batch.set(vectors, b, v);
        std::ranges::copy(w, values.reals.begin() + static_cast<std::ptrdiff_t>(b * w.size()));
    }
    return {std::move(vectors), std::move(values)};
}

/// a' = v (diag(w') + (v^T v') / (w_j - w_i) off the diagonal) v^T, of which the symmetric part.
Arrays eighBackward(Operands operands, std::span<const Array> results,
                    std::span<const Array> gradients) {
    const Batch batch(operands[0]->shape);
    const auto n = static_cast<std::size_t>(operands[0]->shape.back());
    const Array *toVectors = gradientOf(gradients, 0), *toValues = gradientOf(gradients, 1);
    Arrays given{zerosLike(operands, 0)};
    for (std::size_t b = 0; b < batch.count(); ++b) {
        const Matrix v = batch.get(results[0], b);
        Matrix inner(n, n);
        if (toVectors) inner = product(transposed(v), batch.get(*toVectors, b));
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j) {
                const Numbers& w = results[1].reals;
                if (i != j)
                    inner(i, j) /= w[b * n + j] - w[b * n + i];
                else
                    inner(i, i) = toValues ? toValues->reals[b * n + i] : 0.0;
            }
        batch.set(given[0], b, symmetric(product(product(v, inner), transposed(v))));
    }
    return given;
}

// --- Householder reflectors: H = 1 - tau v v^T, v below the diagonal with a 1 on it
// ---------------

void reflect(Matrix& a, const Matrix& reflectors, std::size_t k, double tau, std::size_t from) {
    for (std::size_t j = from; j < a.columns; ++j) {
        double dot = a(k, j);
        for (std::size_t i = k + 1; i < a.rows; ++i) dot += reflectors(i, k) * a(i, j);
        a(k, j) -= tau * dot;
        for (std::size_t i = k + 1; i < a.rows; ++i) a(i, j) -= tau * dot * reflectors(i, k);
    }
}

/// R on and above the diagonal, reflectors below (as LAPACK's geqrf leaves them).
Numbers factorise(Matrix& a) {
    Numbers scales;
    for (std::size_t k = 0; k < std::min(a.rows, a.columns); ++k) {
        double below = 0;
        for (std::size_t i = k + 1; i < a.rows; ++i) below += a(i, k) * a(i, k);
        scales.push_back(0);
        if (below == 0) continue;
        const double alpha = a(k, k),
                     beta = -std::copysign(std::hypot(alpha, std::sqrt(below)), alpha);
        scales.back() = (beta - alpha) / beta;
        for (std::size_t i = k + 1; i < a.rows; ++i) a(i, k) /= alpha - beta;
        reflect(a, a, k, scales.back(), k + 1);
        a(k, k) = beta;
    }
    return scales;
}

Arrays qrForward(const KernelContext& context, Operands operands) {
    const Batch batch(operands[0]->shape);
    Array packed = emptyResult(context, 0), scales = emptyResult(context, 1);
    for (std::size_t b = 0; b < batch.count(); ++b) {
        Matrix a = batch.get(*operands[0], b);
        const Numbers taus = factorise(a);
        batch.set(packed, b, a);
        std::ranges::copy(taus,
                          scales.reals.begin() + static_cast<std::ptrdiff_t>(b * taus.size()));
    }
    return {std::move(packed), std::move(scales)};
}

/// The product H1 H2 … applied to the identity.
Arrays householderForward(const KernelContext& context, Operands operands) {
    const Batch batch(operands[0]->shape);
    const auto count = static_cast<std::size_t>(operands[1]->shape.back());
    Array result = emptyResult(context, 0);
    for (std::size_t b = 0; b < batch.count(); ++b) {
        const Matrix reflectors = batch.get(*operands[0], b);
        Matrix q = Matrix::identity(reflectors.rows, reflectors.columns);
        for (std::size_t k = count; k-- > 0;)
            reflect(q, reflectors, k, operands[1]->reals[b * count + k], 0);
        batch.set(result, b, q);
    }
    return {std::move(result)};
}

Arrays linearAlgebraForward(const KernelContext& context, Operands operands) {
    const std::string function = context.op().attributes.text("function");
    if (function == "cholesky") return choleskyForward(context, operands);
    if (function == "solve") return solveForward(context, operands);
    if (function == "eigh") return eighForward(context, operands);
    if (function == "qr") return qrForward(context, operands);
    return householderForward(context, operands);
}

/// The packed factors of a QR decomposition have no gradient of their own.
Arrays linearAlgebraBackward(const KernelContext& context, Operands operands,
                             std::span<const Array> results, std::span<const Array> gradients) {
    const std::string function = context.op().attributes.text("function");
    if (function == "eigh" && differentiable(operands, 0))
        return eighBackward(operands, results, gradients);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient != nullptr && differentiable(operands, 0)) {
        if (function == "cholesky")
            return choleskyBackward(context, operands, results[0], *gradient);
        if (function == "solve") return solveBackward(context, operands, results[0], *gradient);
    }
    return noGradients(operands);
}

} // namespace

Kernel linearAlgebraKernel() {
    return {OpKind::LinearAlgebra, linearAlgebraForward, linearAlgebraBackward};
}

} // namespace shardlens::kernels
