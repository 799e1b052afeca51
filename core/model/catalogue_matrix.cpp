// SPDX-License-Identifier: Apache-2.0
// Rows of the catalogue that need some dimensions whole and work on each batch entry for itself:
// factorisations and solutions of matrices, Fourier transforms, sorts; and what works on the bits
// of numbers.
#include "core/model/catalogue_rows.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace shardlens::catalogue {
namespace {

// --- Sort: keys, and what goes with them --------------------------------------------------------

std::vector<TensorSpec> sortShape(const OpView& view) {
    const Shape& keys = shapeOf(view, 0);
    const std::size_t axis = axisOf(view, view.op.attributes.integer("axis", -1), keys.size());
    const std::int64_t k = view.op.attributes.integer("k", keys[axis]);
    require(k >= 0 && k <= keys[axis], view, "more elements are asked for than there are");
    std::vector<TensorSpec> results = view.inputs;
    for (std::size_t i = 0; i < results.size(); ++i) {
        require(shapeOf(view, i) == keys, view, "the operands of a sort differ in shape");
        results[i].shape[axis] = k;
    }
    return results;
}

FactorRule sortRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape &keys = view.inputs[0].shape, &first = view.outputs[0].shape;
    const std::size_t axis = axisOf(view, view.op.attributes.integer("axis", -1), keys.size());
    for (std::size_t d = 0; d < keys.size(); ++d) {
        const int f = rule.addFactor(dimName(d, keys.size()), keys[d],
                                     d == axis ? FactorKind::Replicate : FactorKind::Parallel);
        rule.operands[0][d] = rule.results[0][d] = {f};
        if (first[d] != keys[d])
            rule.results[0][d] = {rule.addFactor("k", first[d], FactorKind::Replicate)};
    }
    for (auto& dims : rule.operands) dims = rule.operands[0];
    for (auto& dims : rule.results) dims = rule.results[0];
    return rule;
}

/// n log n comparisons a line.
double sortFlops(const OpView& view, const FactorRule&) {
    const Shape& keys = view.inputs[0].shape;
    const auto length = static_cast<double>(
        keys[axisOf(view, view.op.attributes.integer("axis", -1), keys.size())]);
    return elementsOf(keys) * std::log2(std::max(length, 2.0));
}

SavedTensors saveKeys(const OpView& view) {
    SavedTensors saved = saveNothing(view);
    saved.operands[0] = true;
    return saved;
}

// --- LinearAlgebra: the last two dims -----------------------------------------------------------

enum class Routine { Cholesky, Solve, Eigh, Qr, Householder };

Routine routineOf(const OpView& view) {
    static constexpr std::array<std::pair<std::string_view, Routine>, 5> kRoutines{{
        {"cholesky", Routine::Cholesky},
        {"solve", Routine::Solve},
        {"eigh", Routine::Eigh},
        {"qr", Routine::Qr},
        {"householder", Routine::Householder},
    }};
    const std::string name = view.op.attributes.text("function");
    const auto found =
        std::ranges::find(kRoutines, name, &std::pair<std::string_view, Routine>::first);
    if (found == kRoutines.end()) fail(view, "there is no routine '" + name + "'");
    return found->second;
}

bool solvesLeft(const OpView& view) {
    return view.op.attributes.integer("left", 1) != 0;
}

struct Matrix {
    std::int64_t rows = 0, columns = 0;
    std::size_t batch = 0; ///< dims in front
};

Matrix matrixOf(const OpView& view, std::size_t port) {
    const Shape& shape = shapeOf(view, port);
    require(shape.size() >= 2, view, "a matrix needs two dimensions");
    return {shape[shape.size() - 2], shape.back(), shape.size() - 2};
}

void requireSameBatch(const OpView& view, std::size_t dims) {
    const Shape &a = view.inputs[0].shape, &b = shapeOf(view, 1);
    require(b.size() >= dims &&
                std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(dims), b.begin()),
            view, "the operands differ in their batch dimensions");
}

std::vector<TensorSpec> linearAlgebraShape(const OpView& view) {
    const Routine routine = routineOf(view);
    const TensorSpec& a = view.inputs.at(0);
    const Matrix m = matrixOf(view, 0);
    const bool needsSquare = routine != Routine::Qr && routine != Routine::Householder;
    require(!needsSquare || m.rows == m.columns, view, "the matrix is not square");
    TensorSpec values = a; // a number a row
    values.shape.resize(m.batch);
    switch (routine) {
    case Routine::Cholesky:
        return {a};
    case Routine::Solve: {
        requireSameBatch(view, m.batch);
        const Matrix b = matrixOf(view, 1);
        require(b.batch == m.batch && (solvesLeft(view) ? b.rows : b.columns) == m.rows, view,
                "the right-hand sides do not fit the matrix");
        return {view.inputs[1]};
    }
    case Routine::Eigh:
        values.shape.push_back(m.rows);
        return {a, values};
    case Routine::Qr:
        values.shape.push_back(std::min(m.rows, m.columns));
        return {a, values};
    case Routine::Householder:
        requireSameBatch(view, m.batch);
        require(view.inputs[1].shape.size() == m.batch + 1 &&
                    view.inputs[1].shape.back() <= std::min(m.rows, m.columns),
                view, "the scales do not fit the reflectors");
        return {a};
    }
    return {};
}

FactorRule linearAlgebraRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const std::size_t batch = matrixOf(view, 0).batch;
    const auto eachTensor = [&](auto use) {
        for (std::size_t i = 0; i < rule.operands.size(); ++i)
            use(rule.operands[i], view.inputs[i].shape);
        for (std::size_t r = 0; r < rule.results.size(); ++r)
            use(rule.results[r], view.outputs[r].shape);
    };
    for (std::size_t d = 0; d < batch; ++d) {
        const int f = rule.addFactor(fmt::format("b{}", d), view.inputs[0].shape[d]);
        eachTensor([&](std::vector<DimFactors>& dims, const Shape&) { dims[d] = {f}; });
    }
    // Right-hand sides are solved each for itself: columns on the left, rows on the right.
    if (routineOf(view) == Routine::Solve) {
        const std::size_t d = batch + (solvesLeft(view) ? 1 : 0);
        const int f = rule.addFactor("rhs", view.inputs[1].shape[d]);
        rule.operands[1][d] = rule.results[0][d] = {f};
    }
    eachTensor([&](std::vector<DimFactors>& dims, const Shape& shape) {
        for (std::size_t d = batch; d < shape.size(); ++d)
            if (dims[d].empty())
                dims[d] = {rule.addFactor(fmt::format("m{}", d), shape[d], FactorKind::Replicate)};
    });
    return rule;
}

/// Leading terms (Golub, Van Loan: Matrix Computations, 4th edition; eigenvalues: 8.3).
double linearAlgebraFlops(const OpView& view, const FactorRule&) {
    const Matrix m = matrixOf(view, 0);
    const auto rows = static_cast<double>(m.rows), columns = static_cast<double>(m.columns);
    const double small = std::min(rows, columns);
    const double batch = elementsOf(view.inputs[0].shape) / std::max(rows * columns, 1.0);
    switch (routineOf(view)) {
    case Routine::Cholesky:
        return batch * rows * rows * rows / 3;
    case Routine::Solve:
        return elementsOf(view.inputs[1].shape) * rows;
    case Routine::Eigh:
        return batch * 9 * rows * rows * rows;
    case Routine::Qr:
    case Routine::Householder:
        return batch * 2 * small * small * (std::max(rows, columns) - small / 3);
    }
    return 0;
}

SavedTensors linearAlgebraSaved(const OpView& view) {
    SavedTensors saved = saveNothing(view);
    switch (routineOf(view)) {
    case Routine::Cholesky:
        return saveResult(view);
    case Routine::Solve:
        saved.operands[0] = saved.results[0] = true;
        return saved;
    case Routine::Eigh:
        saved.results.assign(saved.results.size(), true);
        return saved;
    default: // no gradient: factors are multiplied out first
        return saved;
    }
}

// --- Fourier: the last dims ---------------------------------------------------------------------

bool isComplex(DType dtype) {
    return dtype == DType::C64 || dtype == DType::C128;
}

std::vector<TensorSpec> fourierShape(const OpView& view) {
    TensorSpec result{view.inputs.at(0).dtype, shapeOf(view, 0)};
    const std::string function = view.op.attributes.text("function");
    const bool toHalf = function == "rfft", fromHalf = function == "irfft";
    require(toHalf || fromHalf || function == "fft" || function == "ifft", view,
            "there is no such transform");
    require(isComplex(result.dtype) != toHalf, view, "the element type does not fit the transform");
    const auto length = view.op.attributes.integers("length");
    Shape& shape = result.shape;
    require(!length.empty() && length.size() <= shape.size(), view,
            "more dimensions are transformed than there are");
    const std::size_t first = shape.size() - length.size();
    for (std::size_t i = 0; i < length.size(); ++i) {
        const bool last = i + 1 == length.size();
        require(length[i] >= 1 &&
                    shape[first + i] == (last && fromHalf ? length[i] / 2 + 1 : length[i]),
                view, "the lengths do not fit the operand");
    }
    if (toHalf) shape.back() = length.back() / 2 + 1;
    if (fromHalf) shape.back() = length.back();
    if (toHalf) result.dtype = result.dtype == DType::F64 ? DType::C128 : DType::C64;
    if (fromHalf) result.dtype = result.dtype == DType::C128 ? DType::F64 : DType::F32;
    return {result};
}

FactorRule fourierRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape &in = view.inputs[0].shape, &out = view.outputs[0].shape;
    const std::size_t first = in.size() - view.op.attributes.integers("length").size();
    for (std::size_t d = 0; d < in.size(); ++d) {
        const FactorKind kind = d < first ? FactorKind::Parallel : FactorKind::Replicate;
        rule.operands[0][d] =
            rule.results[0][d] = {rule.addFactor(dimName(d, in.size()), in[d], kind)};
        if (in[d] != out[d])
            rule.results[0][d] = {
                rule.addFactor("out_" + dimName(d, in.size()), out[d], FactorKind::Replicate)};
    }
    return rule;
}

/// 5 n log2 n (Cooley, Tukey 1965, as benchmarks count it); a real transform is half of one.
double fourierFlops(const OpView& view, const FactorRule&) {
    double length = 1;
    for (const std::int64_t n : view.op.attributes.integers("length"))
        length *= static_cast<double>(n);
    const bool half = view.op.attributes.text("function").size() == 5 ||
                      view.op.attributes.text("function").starts_with("r");
    const double elements =
        std::max(elementsOf(view.inputs[0].shape), elementsOf(view.outputs[0].shape));
    return (half ? 2.5 : 5.0) * elements * std::log2(std::max(length, 2.0));
}

// --- bits ---------------------------------------------------------------------------------------

std::vector<TensorSpec> bitcastShape(const OpView& view) {
    const auto to = dtypeFromName(view.op.attributes.text("to"));
    const DType from = view.inputs.at(0).dtype;
    require(to && bitsOf(*to) > 0 && bitsOf(from) > 0, view, "the element type is not known");
    Shape shape = shapeOf(view, 0);
    const std::int64_t wide = bitsOf(from), narrow = bitsOf(*to);
    if (wide > narrow) {
        require(wide % narrow == 0, view, "the widths are not multiples of each other");
        shape.push_back(wide / narrow);
    } else if (narrow > wide) {
        require(narrow % wide == 0 && !shape.empty() && shape.back() == narrow / wide, view,
                "the last dimension does not fill the wider type");
        shape.pop_back();
    }
    return {{*to, shape}};
}

FactorRule bitcastRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape &in = view.inputs[0].shape, &out = view.outputs[0].shape;
    for (std::size_t d = 0; d < std::max(in.size(), out.size()); ++d) {
        const bool both = d < in.size() && d < out.size();
        const int f =
            rule.addFactor(both ? dimName(d, in.size()) : "bits", d < in.size() ? in[d] : out[d],
                           both ? FactorKind::Parallel : FactorKind::Replicate);
        if (d < in.size()) rule.operands[0][d] = {f};
        if (d < out.size()) rule.results[0][d] = {f};
    }
    return rule;
}

std::vector<TensorSpec> randomBitsShape(const OpView& view) {
    const auto to = dtypeFromName(view.op.attributes.text("to"));
    const Shape shape = view.op.attributes.integers("shape");
    shapeOf(view, 0);
    require(to && bitsOf(*to) > 0, view, "the element type is not known");
    require(std::ranges::all_of(shape, [](auto d) { return d >= 0; }), view, "a size is negative");
    return {view.inputs[0], {*to, shape}};
}

/// Each element depends on the state and its place alone.
FactorRule randomBitsRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    addOwnFactors(rule, rule.operands[0], view.inputs[0].shape, FactorKind::Replicate, "state");
    rule.results[0] = rule.operands[0];
    addOwnFactors(rule, rule.results[1], view.outputs[1].shape, FactorKind::Parallel);
    return rule;
}

} // namespace

std::vector<Row> matrixRows() {
    using enum OpKind;
    constexpr auto kVector = ComputeClass::Vector;
    return {
        {Sort, sortShape, sortRule, kVector, sortFlops, nullptr, saveKeys},
        {LinearAlgebra, linearAlgebraShape, linearAlgebraRule, kVector, linearAlgebraFlops, nullptr,
         linearAlgebraSaved},
        {Fourier, fourierShape, fourierRule, kVector, fourierFlops},
        {Bitcast, bitcastShape, bitcastRule, kVector, noFlops},
        {RandomBits, randomBitsShape, randomBitsRule, kVector},
    };
}

} // namespace shardlens::catalogue
