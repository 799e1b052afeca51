// SPDX-License-Identifier: Apache-2.0
// Private to the catalogue: the row type of its table and the functions that fill it, grouped in
// one .cpp per family of ops.
#pragma once

#include "core/error.h"
#include "core/model/catalogue.h"

#include <fmt/format.h>

namespace shardlens::catalogue {

using ShapeFunction = std::vector<TensorSpec> (*)(const OpView&);
using RuleFunction = FactorRule (*)(const OpView&);
using NumberFunction = double (*)(const OpView&, const FactorRule&);
using SavedFunction = SavedTensors (*)(const OpView&);

struct Row {
    OpKind kind = OpKind::Opaque;
    ShapeFunction shape = nullptr;
    RuleFunction rule = nullptr;
    ComputeClass compute = ComputeClass::None;
    NumberFunction flops = nullptr; ///< nullptr: one per result element
    NumberFunction bytes = nullptr; ///< nullptr: operands + results
    SavedFunction saved = nullptr;  ///< nullptr: nothing
};

// --- helpers shared by the families -----------------------------------------------------------

/// @throws InputError naming the op
[[noreturn]] void fail(const OpView& view, const std::string& problem);
void require(bool condition, const OpView& view, std::string_view problem);
const Shape& shapeOf(const OpView& view, std::size_t port); ///< @throws InputError if absent
std::size_t axisOf(const OpView& view, std::int64_t axis, std::size_t rank);

std::vector<bool> none(std::size_t count);
SavedTensors saveNothing(const OpView& view);
SavedTensors saveOperands(const OpView& view);
SavedTensors saveResult(const OpView& view);
SavedTensors saveIndices(const OpView& view); ///< operand 1, if there is one

constexpr double noFlops(const OpView&, const FactorRule&) {
    return 0;
}
/// Read and written: what is moved, not the whole operand.
inline double twiceResult(const OpView& view, const FactorRule&) {
    return 2 * bytesOf(view.outputs[0]);
}

/// One rule dimension list per dim of `shape`, all empty.
std::vector<DimFactors> emptyDims(const Shape& shape);
/// A rule with empty dims for every operand and result of the view.
FactorRule emptyRule(const OpView& view);
/// Adds one factor per dim (size > 1) of a tensor and writes it into `dims`.
void addOwnFactors(FactorRule& rule, std::vector<DimFactors>& dims, const Shape& shape,
                   FactorKind kind, std::string_view prefix = "d");
/// Name for dim i of a tensor of that rank, as people say it: b, s, h for rank 3, else d0, d1, …
std::string dimName(std::size_t dim, std::size_t rank);
/// The result itself, in its element type, as what is exchanged.
Statistic resultStatistic(const OpView& view, ReduceOp reduce);
/// A maximum or minimum is exchanged whole, and in the backward pass how many elements reach it:
/// the gradient goes to them in equal parts.
void extremumStatistics(FactorRule& rule, const OpView& view);
Shape broadcastShapes(const OpView& view, const Shape& a, const Shape& b);

// --- families ---------------------------------------------------------------------------------
std::vector<Row> sourceRows();
std::vector<Row> contractionRows();
std::vector<Row> convolutionRows();
std::vector<Row> vectorRows();
std::vector<Row> movementRows();
std::vector<Row> mixtureRows();
std::vector<Row> indexingRows();
std::vector<Row> imageRows();
std::vector<Row> recurrentRows();
std::vector<Row> windowRows(); ///< at positions of the data, and sliding over all dims
std::vector<Row> matrixRows(); ///< linear algebra, transforms, sorts, bits
std::vector<Row> gradientRows();

} // namespace shardlens::catalogue
