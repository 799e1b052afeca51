// SPDX-License-Identifier: Apache-2.0
// The table itself, and what every row shares: defaults for traffic and FLOPs, and the rules of
// sources and of opaque ops.
#include "core/model/catalogue.h"

#include "core/model/catalogue_rows.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace shardlens {
namespace catalogue {

void fail(const OpView& view, const std::string& problem) {
    throw InputError(problem, fmt::format("op '{}' ({})", view.op.name,
                                          view.op.type.empty() ? std::string(nameOf(view.op.kind))
                                                               : view.op.type));
}

void require(bool condition, const OpView& view, std::string_view problem) {
    if (!condition) fail(view, std::string(problem));
}

const Shape& shapeOf(const OpView& view, std::size_t port) {
    if (!view.hasInput(port)) fail(view, fmt::format("operand {} is missing", port));
    return view.inputs[port].shape;
}

std::size_t axisOf(const OpView& view, std::int64_t axis, std::size_t rank) {
    const auto signedRank = static_cast<std::int64_t>(rank);
    if (axis < 0) axis += signedRank;
    if (axis < 0 || axis >= signedRank)
        fail(view, fmt::format("axis {} does not exist in a tensor of rank {}", axis, rank));
    return static_cast<std::size_t>(axis);
}

std::vector<bool> none(std::size_t count) {
    return std::vector<bool>(count, false);
}

SavedTensors saveNothing(const OpView& view) {
    return {none(view.inputs.size()), none(view.outputs.size()), 0};
}

SavedTensors saveOperands(const OpView& view) {
    SavedTensors saved = saveNothing(view);
    for (std::size_t i = 0; i < view.inputs.size(); ++i) saved.operands[i] = view.hasInput(i);
    return saved;
}

SavedTensors saveIndices(const OpView& view) {
    SavedTensors saved = saveNothing(view);
    if (saved.operands.size() > 1) saved.operands[1] = true;
    return saved;
}

SavedTensors saveResult(const OpView& view) {
    SavedTensors saved = saveNothing(view);
    if (!saved.results.empty()) saved.results[0] = true;
    return saved;
}

std::vector<DimFactors> emptyDims(const Shape& shape) {
    return std::vector<DimFactors>(shape.size());
}

FactorRule emptyRule(const OpView& view) {
    FactorRule rule;
    for (const TensorSpec& spec : view.inputs) rule.operands.push_back(emptyDims(spec.shape));
    for (const TensorSpec& spec : view.outputs) rule.results.push_back(emptyDims(spec.shape));
    return rule;
}

std::string dimName(std::size_t dim, std::size_t rank) {
    static constexpr std::array<std::string_view, 3> kThree{"b", "s", "h"};
    static constexpr std::array<std::string_view, 4> kFour{"b", "s", "n", "h"};
    if (rank == 3) return std::string(kThree[dim]);
    if (rank == 4) return std::string(kFour[dim]);
    return fmt::format("d{}", dim);
}

void addOwnFactors(FactorRule& rule, std::vector<DimFactors>& dims, const Shape& shape,
                   FactorKind kind, std::string_view prefix) {
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (shape[d] > 1)
            dims[d].push_back(rule.addFactor(fmt::format("{}{}", prefix, d), shape[d], kind));
}

Statistic resultStatistic(const OpView& view, ReduceOp reduce) {
    const TensorSpec& result = view.outputs[0];
    return {reduce, elementsOf(result.shape), bitsOf(result.dtype) / 8.0};
}

void extremumStatistics(FactorRule& rule, const OpView& view) {
    rule.forwardStatistics = {resultStatistic(view, ReduceOp::Max)};
    rule.backwardStatistics = {{ReduceOp::Sum, elementsOf(view.outputs[0].shape)}};
}

Shape broadcastShapes(const OpView& view, const Shape& a, const Shape& b) {
    const std::size_t rank = std::max(a.size(), b.size());
    Shape result(rank, 1);
    for (std::size_t i = 0; i < rank; ++i) {
        const std::int64_t x = i < rank - a.size() ? 1 : a[i - (rank - a.size())];
        const std::int64_t y = i < rank - b.size() ? 1 : b[i - (rank - b.size())];
        if (x != y && x != 1 && y != 1)
            fail(view, fmt::format("operand shapes {} and {} do not broadcast", toString(a),
                                   toString(b)));
        result[i] = x == 1 ? y : x;
    }
    return result;
}

namespace {

FactorRule sourceRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    for (std::size_t r = 0; r < view.outputs.size(); ++r)
        addOwnFactors(rule, rule.results[r], view.outputs[r].shape, FactorKind::Parallel);
    return rule;
}

FactorRule replicatedRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    for (std::size_t i = 0; i < view.inputs.size(); ++i)
        addOwnFactors(rule, rule.operands[i], view.inputs[i].shape, FactorKind::Replicate,
                      fmt::format("in{}_", i));
    for (std::size_t r = 0; r < view.outputs.size(); ++r)
        addOwnFactors(rule, rule.results[r], view.outputs[r].shape, FactorKind::Replicate,
                      fmt::format("out{}_", r));
    return rule;
}

/// What the importer knows of an op it could not translate, else one per result element.
double opaqueFlops(const OpView& view, const FactorRule&) {
    double elements = 0;
    for (const TensorSpec& spec : view.outputs) elements += elementsOf(spec.shape);
    return view.op.attributes.number("flops", elements);
}

std::vector<TensorSpec> keepResults(const OpView& view) {
    if (view.outputs.empty()) fail(view, "the shape of this op's results is not known");
    return view.outputs;
}

const Row& rowOf(OpKind kind) {
    static const std::vector<Row> table = [] {
        std::vector<Row> rows;
        for (auto family :
             {sourceRows, contractionRows, convolutionRows, vectorRows, movementRows, mixtureRows,
              indexingRows, imageRows, recurrentRows, windowRows, matrixRows, gradientRows}) {
            const std::vector<Row> more = family();
            rows.insert(rows.end(), more.begin(), more.end());
        }
        std::ranges::sort(rows, {}, &Row::kind);
        return rows;
    }();
    const auto row = std::ranges::lower_bound(table, kind, {}, &Row::kind);
    if (row == table.end() || row->kind != kind)
        throw Error(fmt::format("the op catalogue has no row for {}", nameOf(kind)));
    return *row;
}

} // namespace

std::vector<Row> sourceRows() {
    return {
        {OpKind::Input, keepResults, sourceRule, ComputeClass::Vector, noFlops},
        {OpKind::Parameter, keepResults, sourceRule, ComputeClass::None, noFlops},
        {OpKind::Constant, keepResults, replicatedRule, ComputeClass::None, noFlops},
        {OpKind::Collective, keepResults, replicatedRule, ComputeClass::None, noFlops},
        {OpKind::Opaque, keepResults, replicatedRule, ComputeClass::Vector, opaqueFlops, nullptr,
         saveOperands},
    };
}

} // namespace catalogue

namespace {

/// The contracted length is the product of the factors no result carries: k of a matrix product,
/// channels times window of a convolution. What may be cut of it is the reduction.
void addContraction(OpWork& work, const FactorRule& rule) {
    const auto inResult = [&](int f) {
        return std::ranges::any_of(rule.results, [f](const std::vector<DimFactors>& dims) {
            return std::ranges::any_of(dims, [f](const DimFactors& dim) {
                return std::ranges::find(dim, f) != dim.end();
            });
        });
    };
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        const Factor& factor = rule.factors[f];
        const bool summed =
            factor.kind == FactorKind::Reduction || factor.kind == FactorKind::Replicate;
        if (!summed || inResult(static_cast<int>(f))) continue;
        work.reduceSize *= static_cast<double>(factor.size);
        if (factor.kind == FactorKind::Reduction) work.reduceFactor = static_cast<int>(f);
    }
}

} // namespace

std::vector<TensorSpec> inferShapes(const OpView& view) {
    return catalogue::rowOf(view.op.kind).shape(view);
}

FactorRule factorRule(const OpView& view) {
    return catalogue::rowOf(view.op.kind).rule(view);
}

OpWork forwardWork(const OpView& view, const FactorRule& rule) {
    const catalogue::Row& row = catalogue::rowOf(view.op.kind);
    OpWork work;
    work.compute = row.compute;
    const double resultElements = std::accumulate(
        view.outputs.begin(), view.outputs.end(), 0.0,
        [](double sum, const TensorSpec& spec) { return sum + elementsOf(spec.shape); });
    work.flops = row.flops ? row.flops(view, rule) : resultElements;
    const auto addBytes = [](double sum, const TensorSpec& spec) { return sum + bytesOf(spec); };
    work.bytes = row.bytes ? row.bytes(view, rule)
                           : std::accumulate(view.inputs.begin(), view.inputs.end(),
                                             std::accumulate(view.outputs.begin(),
                                                             view.outputs.end(), 0.0, addBytes),
                                             addBytes);
    if (work.compute == ComputeClass::Contraction) addContraction(work, rule);
    return work;
}

SavedTensors savedForBackward(const OpView& view) {
    const catalogue::Row& row = catalogue::rowOf(view.op.kind);
    return row.saved ? row.saved(view) : catalogue::saveNothing(view);
}

OpView viewOf(const Graph& graph, OpId id) {
    return OpView{graph.op(id), graph.inputSpecs(id), graph.outputSpecs(id)};
}

OpId addInferred(Graph& graph, Op op, std::vector<std::string> resultNames) {
    OpView view{op, {}, {}};
    for (const TensorId id : op.inputs)
        view.inputs.push_back(id == kNoTensor ? TensorSpec{} : graph.tensor(id).spec);
    std::vector<TensorSpec> results = inferShapes(view);
    return graph.addOp(std::move(op), std::move(results), std::move(resultNames));
}

} // namespace shardlens
