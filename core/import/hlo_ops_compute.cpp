// SPDX-License-Identifier: Apache-2.0
// Opcodes that contract or reduce: dot, convolution, reduce, and the reduce-window that is a
// running sum.
#include "core/import/hlo_attributes.h"
#include "core/import/hlo_contraction.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace shardlens::hlo {

namespace {

using Ints = std::vector<std::int64_t>;

/// Whether reducing from `initial` is reducing from nothing.
bool isNeutral(const std::string& function, std::optional<double> initial, DType dtype) {
    if (!initial) return false;
    if (function == "sum") return *initial == 0;
    if (function == "prod") return *initial == 1;
    constexpr double kLowest = -1e30, kInteger = -2147483648.0;
    const bool boolean = dtype == DType::Bool;
    if (function == "max")
        return boolean ? *initial == 0 : *initial < (isFloat(dtype) ? kLowest : kInteger + 1);
    return boolean ? *initial == 1 : *initial > (isFloat(dtype) ? -kLowest : -kInteger - 2);
}

std::string combining(const std::string& function) {
    return function == "sum" ? "add" : function == "prod" ? "mul" : function;
}

std::optional<Leaf> reduce(Translation& t, const Site& site) {
    const std::string function = t.reducer(site.instruction);
    const auto dims = integersIn(site.instruction.attribute("dimensions"));
    if (site.instruction.operands.size() != 2 || function.empty() || !dims) return std::nullopt;
    const TensorSpec& spec = site.instruction.type.spec;
    const TensorId from = t.tensor(site, 0), initial = t.tensor(site, 1);
    if (dims->empty()) return std::nullopt;
    const auto reduced = t.tryEmit(
        site, OpKind::Reduce,
        {{"function", function}, {"axes", *dims}, {"keepdims", std::int64_t{0}}}, {from}, spec);
    if (!reduced || isNeutral(function, t.splatValue(initial), spec.dtype)) return reduced;
    return t.emit(site, OpKind::Elementwise, {{"function", combining(function)}},
                  {*reduced, initial}, spec);
}

/// Kernel, strides, dilations and pads of a window over all dimensions. std::nullopt for a dilated
/// operand or a mirrored window.
std::optional<Attributes> slidingAttributes(const Window& window, std::string function) {
    const std::size_t rank = window.size.size();
    Ints pads(2 * rank);
    for (std::size_t d = 0; d < rank; ++d) {
        if (window.lhsDilate[d] != 1 || (window.reversal[d] != 0 && window.size[d] > 1))
            return std::nullopt;
        pads[d] = window.pad[d].low;
        pads[rank + d] = window.pad[d].high;
    }
    return Attributes{{"function", std::move(function)},
                      {"kernel", window.size},
                      {"strides", window.stride},
                      {"dilations", window.rhsDilate},
                      {"pads", std::move(pads)}};
}

std::optional<Leaf> slide(Translation& t, const Site& site, const Window& window) {
    const std::string function = t.reducer(site.instruction);
    const TensorSpec& spec = site.instruction.type.spec;
    if (function.empty() || !isNeutral(function, t.splatValue(t.tensor(site, 1)), spec.dtype))
        return std::nullopt;
    const auto attributes = slidingAttributes(window, function);
    if (!attributes) return std::nullopt;
    return t.tryEmit(site, OpKind::ReduceWindow, *attributes, {t.tensor(site, 0)}, spec);
}

/// Each window chooses one of its elements; what arrives there is added up.
std::optional<Leaf> selectAndScatter(Translation& t, const Site& site) {
    const auto window = windowIn(site.instruction.attribute("window"));
    const Computation* select = t.module().callee(site.instruction, "select");
    if (site.instruction.operands.size() != 3 || !window || !select ||
        t.reducer(site.instruction, "scatter") != "sum" || t.splatValue(t.tensor(site, 2)) != 0.0 ||
        select->parameters.size() != 2)
        return std::nullopt;
    const Instruction& root = select->instructions[select->root];
    const std::string_view direction = root.attribute("direction");
    const bool most = direction == "GE" || direction == "GT";
    if (root.opcode != "compare" || (!most && direction != "LE" && direction != "LT") ||
        root.operands != select->parameters)
        return std::nullopt;
    const auto attributes = slidingAttributes(*window, most ? "max" : "min");
    if (!attributes) return std::nullopt;
    return t.tryEmit(site, OpKind::SelectAndScatter, *attributes,
                     {t.tensor(site, 0), t.tensor(site, 1)}, site.instruction.type.spec);
}

/// size=1xN pad=0_0xN-1_0 with addition: a running sum along that dimension.
std::optional<Leaf> runningSum(Translation& t, const Site& site, const Window& window) {
    if (t.reducer(site.instruction) != "sum" || t.splatValue(t.tensor(site, 1)) != 0.0)
        return std::nullopt;
    const TensorId from = t.tensor(site, 0);
    const Shape& shape = t.spec(from).shape;
    const auto trivial = [](const Ints& values) {
        return std::ranges::all_of(values, [](std::int64_t v) { return v == 1; });
    };
    if (window.size.size() != shape.size() || !trivial(window.stride) ||
        !trivial(window.lhsDilate) || !trivial(window.rhsDilate))
        return std::nullopt;
    std::optional<std::size_t> axis;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        const PadRange& pad = window.pad[d];
        if (window.size[d] == 1 && pad.low == 0 && pad.high == 0) continue;
        if (axis || window.size[d] != shape[d] || pad.low != shape[d] - 1 || pad.high != 0)
            return std::nullopt;
        axis = d;
    }
    if (!axis) return std::nullopt;
    return t.tryEmit(site, OpKind::CumSum, {{"axis", static_cast<std::int64_t>(*axis)}}, {from},
                     site.instruction.type.spec);
}

std::optional<Leaf> reduceWindow(Translation& t, const Site& site) {
    const auto window = windowIn(site.instruction.attribute("window"));
    if (site.instruction.operands.size() != 2 || !window) return std::nullopt;
    if (const auto sum = runningSum(t, site, *window)) return sum;
    return slide(t, site, *window);
}

std::optional<Leaf> dot(Translation& t, const Site& site) {
    const auto dims = [&](std::string_view key) {
        return integersIn(site.instruction.attribute(key)).value_or(Ints{-1});
    };
    return emitDot(t, site,
                   {dims("lhs_contracting_dims"), dims("rhs_contracting_dims"),
                    dims("lhs_batch_dims"), dims("rhs_batch_dims")},
                   site.instruction.type.spec);
}

std::optional<Leaf> convolution(Translation& t, const Site& site) {
    const TensorSpec& spec = site.instruction.type.spec;
    if (const auto result = emitConvolution(t, site, spec)) return result;
    const Value value = t.opaque(site, "convolution", convolutionFlops(t, site, spec));
    return t.leavesOf(value)[0];
}

std::optional<Leaf> map(Translation& t, const Site& site) {
    const std::string function = t.reducer(site.instruction);
    if (site.instruction.operands.size() != 2 || function.empty()) return std::nullopt;
    const TensorId a = t.tensor(site, 0), b = t.tensor(site, 1);
    return t.tryEmit(site, OpKind::Elementwise, {{"function", combining(function)}}, {a, b},
                     site.instruction.type.spec);
}

/// perm such that dimension i of the result is dimension order[i] of the operand.
TensorId reorder(Translation& t, const Site& site, TensorId from,
                 const std::vector<std::size_t>& order) {
    Ints perm;
    TensorSpec spec = t.spec(from);
    for (std::size_t i = 0; i < order.size(); ++i) {
        perm.push_back(static_cast<std::int64_t>(order[i]));
        spec.shape[i] = t.spec(from).shape[order[i]];
    }
    if (std::ranges::is_sorted(perm)) return from;
    return t.emit(site, OpKind::Transpose, {{"perm", perm}}, {from}, spec);
}

/// Batch (output) first, feature (input) second, then space.
std::vector<std::size_t> canonicalOrder(const DimLabels::Side& side) {
    std::vector<std::size_t> order{side.first, side.second};
    order.insert(order.end(), side.spatial.begin(), side.spatial.end());
    return order;
}

std::int64_t groupsOf(const Site& site, std::string_view key) {
    const auto value = integersIn(site.instruction.attribute(key));
    return value && value->size() == 1 ? (*value)[0] : 1;
}

/// What the catalogue's Conv can say: no dilated input, no reversed kernel, no negative padding.
std::optional<Attributes> convAttributes(const Site& site, const Window& window) {
    Ints pads(2 * window.size.size(), 0);
    constexpr std::int64_t kSane = std::int64_t{1} << 40;
    for (std::size_t d = 0; d < window.size.size(); ++d) {
        const PadRange& pad = window.pad[d];
        if (pad.low < 0 || pad.high < 0 || pad.low > kSane || pad.high > kSane ||
            window.lhsDilate[d] != 1 || window.stride[d] < 1 || window.stride[d] > kSane ||
            window.rhsDilate[d] < 1 || window.rhsDilate[d] > kSane ||
            (window.reversal[d] != 0 && window.size[d] > 1))
            return std::nullopt;
        pads[d] = pad.low;
        pads[window.size.size() + d] = pad.high;
    }
    return Attributes{{"strides", window.stride},
                      {"pads", pads},
                      {"dilations", window.rhsDilate},
                      {"group", groupsOf(site, "feature_group_count")}};
}

/// [g b, c, …] -> [b, g c, …]: a group of the batch meets a group of the kernel's outputs, as a
/// group of channels does.
std::optional<TensorId> batchGroupsAsChannels(Translation& t, const Site& site, TensorId image,
                                              std::int64_t groups) {
    const DType dtype = t.spec(image).dtype;
    Shape shape = t.spec(image).shape;
    if (groups < 1 || shape[0] % groups != 0) return std::nullopt;
    shape[0] /= groups;
    Shape apart = shape, together = shape;
    apart.insert(apart.begin(), groups);
    together[1] *= groups;
    std::vector<std::size_t> order(apart.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::swap(order[0], order[1]);
    image = t.emit(site, OpKind::Reshape, {{"shape", apart}}, {image}, {dtype, apart});
    image = reorder(t, site, image, order);
    return t.emit(site, OpKind::Reshape, {{"shape", together}}, {image}, {dtype, together});
}

} // namespace

std::optional<Value> reduceSeveral(Translation& t, const Site& site) {
    const std::size_t n = site.instruction.operands.size() / 2;
    const auto dims = integersIn(site.instruction.attribute("dimensions"));
    const auto functions = t.reducersApart(site.instruction, n);
    const auto& parts = site.instruction.type.parts;
    if (site.instruction.opcode != "reduce" || functions.empty() || !dims || dims->empty() ||
        site.instruction.operands.size() != 2 * n || parts.size() != n)
        return std::nullopt;
    std::vector<Leaf> results;
    for (std::size_t i = 0; i < n; ++i) {
        const TensorSpec& spec = parts[i].spec;
        const TensorId initial = t.tensor(site, n + i);
        auto reduced =
            t.tryEmit(site, OpKind::Reduce,
                      {{"function", functions[i]}, {"axes", *dims}, {"keepdims", std::int64_t{0}}},
                      {t.tensor(site, i)}, spec);
        if (!reduced) return std::nullopt;
        if (!isNeutral(functions[i], t.splatValue(initial), spec.dtype))
            reduced = t.emit(site, OpKind::Elementwise, {{"function", combining(functions[i])}},
                             {*reduced, initial}, spec);
        results.push_back(*reduced);
    }
    return t.pool(results);
}

std::optional<std::string> dotEquation(std::size_t lhsRank, std::size_t rhsRank,
                                       const DotDims& dims) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    if (dims.lhsContracting.size() != dims.rhsContracting.size() ||
        dims.lhsBatch.size() != dims.rhsBatch.size() || lhsRank + rhsRank > kLetters.size())
        return std::nullopt;
    std::string lhs(lhsRank, ' '), rhs(rhsRank, ' '), result;
    std::size_t next = 0;
    const auto pair = [&](const Ints& left, const Ints& right, bool kept) {
        for (std::size_t i = 0; i < left.size(); ++i) {
            const auto l = static_cast<std::size_t>(left[i]),
                       r = static_cast<std::size_t>(right[i]);
            if (l >= lhsRank || r >= rhsRank || lhs[l] != ' ' || rhs[r] != ' ') return false;
            lhs[l] = rhs[r] = kLetters[next++];
            if (kept) result.push_back(lhs[l]);
        }
        return true;
    };
    if (!pair(dims.lhsBatch, dims.rhsBatch, true) ||
        !pair(dims.lhsContracting, dims.rhsContracting, false))
        return std::nullopt;
    for (std::string* side : {&lhs, &rhs})
        for (char& letter : *side)
            if (letter == ' ') {
                letter = kLetters[next++];
                result.push_back(letter);
            }
    return lhs + "," + rhs + "->" + result;
}

std::optional<TensorId> emitDot(Translation& t, const Site& site, const DotDims& dims,
                                const TensorSpec& result) {
    if (site.instruction.operands.size() < 2) return std::nullopt;
    const TensorId lhs = t.tensor(site, 0), rhs = t.tensor(site, 1);
    const auto equation = dotEquation(t.spec(lhs).shape.size(), t.spec(rhs).shape.size(), dims);
    if (!equation) return std::nullopt;
    return t.tryEmit(site, OpKind::Einsum, {{"equation", *equation}}, {lhs, rhs}, result);
}

std::optional<TensorId> emitConvolution(Translation& t, const Site& site,
                                        const TensorSpec& result) {
    const auto labels = dimLabelsIn(site.instruction.attribute("dim_labels"));
    if (!labels || site.instruction.operands.size() < 2) return std::nullopt;
    const std::int64_t batches = groupsOf(site, "batch_group_count");
    if (batches != 1 && groupsOf(site, "feature_group_count") != 1) return std::nullopt;
    TensorId input = t.tensor(site, 0), kernel = t.tensor(site, 1);
    const std::size_t rank = labels->input.spatial.size() + 2;
    if (t.spec(input).shape.size() != rank || t.spec(kernel).shape.size() != rank ||
        result.shape.size() != rank)
        return std::nullopt;
    if (rank == 2 && batches != 1) return std::nullopt;
    if (rank == 2 && groupsOf(site, "feature_group_count") == 1) {
        std::string lhs(2, 'b'), rhs(2, 'o'), out(2, 'b');
        lhs[labels->input.second] = rhs[labels->kernel.second] = 'i';
        out[labels->output.second] = 'o';
        return t.tryEmit(site, OpKind::Einsum, {{"equation", lhs + "," + rhs + "->" + out}},
                         {input, kernel}, result);
    }
    const auto window = windowIn(site.instruction.attribute("window"));
    if (!window || window->size.size() + 2 != rank) return std::nullopt;
    auto attributes = convAttributes(site, *window);
    if (!attributes) return std::nullopt;
    input = reorder(t, site, input, canonicalOrder(labels->input));
    if (batches != 1) {
        const auto grouped = batchGroupsAsChannels(t, site, input, batches);
        if (!grouped) return std::nullopt;
        input = *grouped;
        attributes->set("group", batches);
    }
    kernel = reorder(t, site, kernel, canonicalOrder(labels->kernel));
    const std::vector<std::size_t> order = canonicalOrder(labels->output);
    TensorSpec canonical = result;
    std::vector<std::size_t> back(rank);
    for (std::size_t i = 0; i < rank; ++i) {
        canonical.shape[i] = result.shape[order[i]];
        back[order[i]] = i;
    }
    const auto conv = t.tryEmit(site, OpKind::Conv, *attributes, {input, kernel}, canonical);
    if (!conv) return std::nullopt;
    return reorder(t, site, *conv, back);
}

double convolutionFlops(Translation& t, const Site& site, const TensorSpec& result) {
    const auto labels = dimLabelsIn(site.instruction.attribute("dim_labels"));
    if (!labels || site.instruction.operands.size() < 2) return elementsOf(result.shape);
    const Shape& kernel = t.spec(t.tensor(site, 1)).shape;
    if (kernel.size() != labels->kernel.spatial.size() + 2) return elementsOf(result.shape);
    const double outputs = std::max(1.0, static_cast<double>(kernel[labels->kernel.first]));
    return 2 * elementsOf(result.shape) * elementsOf(kernel) / outputs;
}

std::span<const OpcodeRow> computeRows() {
    static constexpr std::array kRows{
        OpcodeRow{"dot", dot},       OpcodeRow{"convolution", convolution},
        OpcodeRow{"reduce", reduce}, OpcodeRow{"reduce-window", reduceWindow},
        OpcodeRow{"map", map},       OpcodeRow{"select-and-scatter", selectAndScatter},
    };
    return kRows;
}

} // namespace shardlens::hlo
