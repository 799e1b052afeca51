// SPDX-License-Identifier: Apache-2.0
// Rows of the catalogue for windows: at positions that are data (dynamic slices, gathers and
// scatters of windows), and sliding over all dimensions (reduce-window, select-and-scatter). A
// window is read from data that are cut as a row is from a table that is cut: each part gives the
// elements it has and zeros for the others, so that the parts add up.
#include "core/model/catalogue_rows.h"
#include "core/model/index_windows.h"

#include <algorithm>
#include <numeric>

namespace shardlens::catalogue {
namespace {

using Ints = std::vector<std::int64_t>;

/// One dim of data of which a window is taken: alike on both sides where all of it is.
void addWindowDim(FactorRule& rule, const std::string& name, std::int64_t whole, std::int64_t part,
                  FactorKind dataKind, FactorKind partKind, DimFactors& data, DimFactors& window) {
    if (whole == part) {
        data = window = {rule.addFactor(name, whole)};
        return;
    }
    data = {rule.addFactor("in_" + name, whole, dataKind)};
    window = {rule.addFactor("part_" + name, part, partKind)};
}

// --- DynamicSlice, DynamicUpdate: a position a dim ----------------------------------------------

void requirePositions(const OpView& view, std::size_t first, std::size_t rank) {
    require(view.inputs.size() == first + rank, view, "there must be a position a dimension");
    for (std::size_t i = first; i < view.inputs.size(); ++i)
        require(shapeOf(view, i).empty(), view, "a position must be a scalar");
}

void requireInside(const OpView& view, const Shape& part, const Shape& whole) {
    require(part.size() == whole.size(), view, "the window has another rank than its operand");
    for (std::size_t d = 0; d < whole.size(); ++d)
        require(part[d] >= 0 && part[d] <= whole[d], view, "the window is larger than its operand");
}

std::vector<TensorSpec> dynamicSliceShape(const OpView& view) {
    const Ints sizes = view.op.attributes.integers("sizes");
    requireInside(view, sizes, shapeOf(view, 0));
    requirePositions(view, 1, sizes.size());
    return {{view.inputs[0].dtype, sizes}};
}

FactorRule dynamicSliceRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape &x = view.inputs[0].shape, &part = view.outputs[0].shape;
    for (std::size_t d = 0; d < x.size(); ++d)
        addWindowDim(rule, dimName(d, x.size()), x[d], part[d], FactorKind::Reduction,
                     FactorKind::Parallel, rule.operands[0][d], rule.results[0][d]);
    return rule;
}

std::vector<TensorSpec> dynamicUpdateShape(const OpView& view) {
    requireInside(view, shapeOf(view, 1), shapeOf(view, 0));
    requirePositions(view, 2, view.inputs[0].shape.size());
    return {view.inputs[0]};
}

FactorRule dynamicUpdateRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape &x = view.inputs[0].shape, &part = view.inputs[1].shape;
    for (std::size_t d = 0; d < x.size(); ++d) {
        addWindowDim(rule, dimName(d, x.size()), x[d], part[d], FactorKind::Parallel,
                     FactorKind::Replicate, rule.operands[0][d], rule.operands[1][d]);
        rule.results[0][d] = rule.operands[0][d];
    }
    return rule;
}

SavedTensors savePositions(const OpView& view) {
    SavedTensors saved = saveNothing(view);
    const std::size_t first = view.op.kind == OpKind::DynamicSlice ? 1 : 2;
    for (std::size_t i = first; i < saved.operands.size(); ++i) saved.operands[i] = true;
    return saved;
}

double updateBytes(const OpView& view, const FactorRule&) {
    return 2 * bytesOf(view.inputs[0]) + 2 * bytesOf(view.inputs[1]);
}

// --- GatherWindows, ScatterWindows --------------------------------------------------------------

std::vector<TensorSpec> gatherWindowsShape(const OpView& view) {
    const Shape &data = shapeOf(view, 0), &indices = shapeOf(view, 1);
    const Ints sizes = view.op.attributes.integers("slice_sizes");
    require(sizes.size() == data.size(), view, "there must be a window size a dimension");
    Shape shape(windowsRank(view), 1);
    const IndexWindows w = indexWindows(view, data, indices, shape, sizes);
    for (std::size_t d = 0; d < indices.size(); ++d)
        if (w.entries[d] != IndexWindows::kNone) shape[w.entries[d]] = indices[d];
    for (const IndexWindows::DataDim& dim : w.data)
        if (dim.window != IndexWindows::kNone) shape[dim.window] = dim.size;
    return {{view.inputs[0].dtype, shape}};
}

/// Factors of the indices, shared with the dims of the windows; by dim of the windows.
std::vector<int> entryFactors(FactorRule& rule, const IndexWindows& w, std::size_t indicesPort,
                              const Shape& indices, std::size_t windows,
                              const std::vector<bool>& batch, FactorKind kind) {
    std::vector<int> factors(windows, -1);
    for (std::size_t d = 0; d < indices.size(); ++d) {
        if (w.entries[d] == IndexWindows::kNone) {
            rule.operands[indicesPort][d] = {
                rule.addFactor("vector", indices[d], FactorKind::Replicate)};
            continue;
        }
        const std::size_t to = w.entries[d];
        factors[to] = rule.addFactor(fmt::format("i{}", d), indices[d],
                                     batch[to] ? FactorKind::Parallel : kind);
        rule.operands[indicesPort][d] = {factors[to]};
    }
    return factors;
}

/// Dims of the windows that are batch dims of the data.
std::vector<bool> batchDims(const IndexWindows& w, std::size_t windows) {
    std::vector<bool> batch(windows, false);
    for (const IndexWindows::DataDim& dim : w.data)
        if (dim.batch != IndexWindows::kNone) batch[dim.batch] = true;
    return batch;
}

struct WindowKinds {
    FactorKind data, part, entries; ///< where the data, a window, the indices are cut
};

/// Writes the dims of the data and of the windows.
void addWindows(FactorRule& rule, const IndexWindows& w, const WindowKinds& kinds,
                std::size_t indicesPort, const Shape& indices, const Shape& dataShape,
                std::vector<DimFactors>& data, std::vector<DimFactors>& windows) {
    const std::vector<int> entries = entryFactors(rule, w, indicesPort, indices, windows.size(),
                                                  batchDims(w, windows.size()), kinds.entries);
    for (std::size_t d = 0; d < windows.size(); ++d)
        if (entries[d] >= 0) windows[d] = {entries[d]};
    for (std::size_t d = 0; d < w.data.size(); ++d) {
        const IndexWindows::DataDim& dim = w.data[d];
        const std::string name = dimName(d, w.data.size());
        if (dim.batch != IndexWindows::kNone)
            data[d] = windows[dim.batch];
        else if (dim.window == IndexWindows::kNone)
            data[d] = {rule.addFactor("in_" + name, dataShape[d], kinds.data)};
        else
            addWindowDim(rule, name, dataShape[d], dim.size, kinds.data, kinds.part, data[d],
                         windows[dim.window]);
    }
}

FactorRule gatherWindowsRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape &data = view.inputs[0].shape, &indices = view.inputs[1].shape;
    const IndexWindows w = indexWindows(view, data, indices, view.outputs[0].shape,
                                        view.op.attributes.integers("slice_sizes"));
    addWindows(rule, w, {FactorKind::Reduction, FactorKind::Parallel, FactorKind::Parallel}, 1,
               indices, data, rule.operands[0], rule.results[0]);
    return rule;
}

std::vector<TensorSpec> scatterWindowsShape(const OpView& view) {
    const std::size_t arrays = scatteredArrays(view);
    require(arrays > 0 && view.inputs.size() == 2 * arrays + 1, view,
            "there must be as many updates as arrays");
    const Shape &data = shapeOf(view, 0), &indices = shapeOf(view, arrays),
                &updates = shapeOf(view, arrays + 1);
    const IndexWindows w = indexWindows(view, data, indices, updates, {});
    for (std::size_t d = 0; d < indices.size(); ++d)
        require(w.entries[d] == IndexWindows::kNone || updates[w.entries[d]] == indices[d], view,
                "the updates do not fit the indices");
    for (std::size_t i = 0; i < arrays; ++i)
        require(shapeOf(view, i) == data && shapeOf(view, arrays + 1 + i) == updates, view,
                "the arrays differ in shape");
    return {view.inputs.begin(), view.inputs.begin() + static_cast<std::ptrdiff_t>(arrays)};
}

FactorRule scatterWindowsRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const std::size_t arrays = scatteredArrays(view);
    const Shape &data = view.inputs[0].shape, &indices = view.inputs[arrays].shape;
    const IndexWindows w = indexWindows(view, data, indices, view.inputs[arrays + 1].shape, {});
    // Updates that are added add up; in any other mode their order counts.
    const FactorKind updates = view.op.attributes.text("reduction", "none") == "add"
                                   ? FactorKind::Reduction
                                   : FactorKind::Replicate;
    addWindows(rule, w, {FactorKind::Parallel, updates, updates}, arrays, indices, data,
               rule.operands[0], rule.operands[arrays + 1]);
    for (std::size_t i = 0; i < arrays; ++i) {
        rule.operands[i] = rule.results[i] = rule.operands[0];
        rule.operands[arrays + 1 + i] = rule.operands[arrays + 1];
        rule.addedOnce.push_back(i); // the data are not part of every part's updates
    }
    return rule;
}

SavedTensors scatterWindowsSaved(const OpView& view) {
    const std::string reduction = view.op.attributes.text("reduction", "none");
    if (reduction != "none" && reduction != "add") {
        SavedTensors saved = saveOperands(view);
        saved.results.assign(saved.results.size(), true);
        return saved;
    }
    SavedTensors saved = saveNothing(view);
    saved.operands[scatteredArrays(view)] = true;
    return saved;
}

double scatterWindowsBytes(const OpView& view, const FactorRule&) {
    const std::size_t arrays = scatteredArrays(view);
    double bytes = 0;
    for (std::size_t i = 0; i < arrays; ++i)
        bytes += 2 * bytesOf(view.inputs[i]) + 2 * bytesOf(view.inputs[arrays + 1 + i]);
    return bytes;
}

// --- ReduceWindow, SelectAndScatter: windows over all dims --------------------------------------

struct Sliding {
    Ints kernel, strides, dilations, low, high;
};

Sliding slidingOf(const OpView& view, std::size_t rank) {
    const Attributes& a = view.op.attributes;
    const auto orDefault = [](Ints values, std::size_t count, std::int64_t fallback) {
        if (values.empty()) values.assign(count, fallback);
        return values;
    };
    Sliding s{a.integers("kernel"),
              orDefault(a.integers("strides"), rank, 1),
              orDefault(a.integers("dilations"), rank, 1),
              {},
              {}};
    const Ints pads = orDefault(a.integers("pads"), 2 * rank, 0);
    const auto positive = [](const Ints& values) {
        return std::ranges::all_of(values, [](std::int64_t v) { return v > 0; });
    };
    require(s.kernel.size() == rank && s.strides.size() == rank && s.dilations.size() == rank &&
                pads.size() == 2 * rank,
            view, "kernel, strides, pads and dilations must have an entry a dimension");
    require(positive(s.kernel) && positive(s.strides) && positive(s.dilations), view,
            "kernel, strides and dilations must be positive");
    const auto half = pads.begin() + static_cast<std::ptrdiff_t>(rank);
    s.low.assign(pads.begin(), half);
    s.high.assign(half, pads.end());
    return s;
}

Shape placesOf(const OpView& view, const Sliding& s, const Shape& x) {
    Shape places;
    constexpr double kSane = 1e15;
    for (std::size_t d = 0; d < x.size(); ++d) {
        const double span =
            static_cast<double>(s.dilations[d]) * static_cast<double>(s.kernel[d] - 1) + 1;
        const double padded = static_cast<double>(x[d]) + static_cast<double>(s.low[d]) +
                              static_cast<double>(s.high[d]);
        require(span < kSane && padded < kSane && padded >= span, view,
                "the window is larger than the padded operand");
        places.push_back(static_cast<std::int64_t>(padded - span) / s.strides[d] + 1);
    }
    return places;
}

/// A dim of x and of the places. Windows of one element, and windows that fill x one behind the
/// other, can be cut between them; what others need of their neighbours is not sharded.
void addSlidingDim(FactorRule& rule, const Sliding& s, std::size_t d, std::int64_t x,
                   std::int64_t places, const std::string& name, DimFactors& in, DimFactors& out) {
    const bool apart = s.strides[d] == s.kernel[d] && (s.dilations[d] == 1 || s.kernel[d] == 1) &&
                       s.low[d] == 0 && s.high[d] == 0 && places * s.kernel[d] == x;
    if (!apart) {
        in = {rule.addFactor(name, x, FactorKind::Permutation)};
        out = {rule.addFactor("out_" + name, places, FactorKind::Permutation)};
        return;
    }
    out = in = {rule.addFactor(name, places)};
    if (s.kernel[d] > 1)
        in.push_back(rule.addFactor("window_" + name, s.kernel[d], FactorKind::Replicate));
}

std::vector<TensorSpec> reduceWindowShape(const OpView& view) {
    const Shape& x = shapeOf(view, 0);
    const Shape places = placesOf(view, slidingOf(view, x.size()), x);
    std::vector<TensorSpec> results;
    for (std::size_t i = 0; i < view.inputs.size(); ++i) {
        require(shapeOf(view, i) == x, view, "the operands differ in shape");
        results.push_back({view.inputs[i].dtype, places});
    }
    return results;
}

FactorRule reduceWindowRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape& x = view.inputs[0].shape;
    const Sliding s = slidingOf(view, x.size());
    for (std::size_t d = 0; d < x.size(); ++d)
        addSlidingDim(rule, s, d, x[d], view.outputs[0].shape[d], dimName(d, x.size()),
                      rule.operands[0][d], rule.results[0][d]);
    for (auto& dims : rule.operands) dims = rule.operands[0];
    for (auto& dims : rule.results) dims = rule.results[0];
    return rule;
}

double windowFlops(const OpView& view, const FactorRule&) {
    const Ints kernel = view.op.attributes.integers("kernel");
    const bool scatters = view.op.kind == OpKind::SelectAndScatter;
    const double places = elementsOf((scatters ? view.inputs[1] : view.outputs[0]).shape);
    return places * elementsOf(kernel) * static_cast<double>(view.outputs.size());
}

std::vector<TensorSpec> selectAndScatterShape(const OpView& view) {
    const Shape& x = shapeOf(view, 0);
    require(shapeOf(view, 1) == placesOf(view, slidingOf(view, x.size()), x), view,
            "the source does not have an element a window");
    return {view.inputs[0]};
}

FactorRule selectAndScatterRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape& x = view.inputs[0].shape;
    const Sliding s = slidingOf(view, x.size());
    for (std::size_t d = 0; d < x.size(); ++d) {
        addSlidingDim(rule, s, d, x[d], view.inputs[1].shape[d], dimName(d, x.size()),
                      rule.operands[0][d], rule.operands[1][d]);
        rule.results[0][d] = rule.operands[0][d];
    }
    return rule;
}

SavedTensors reduceWindowSaved(const OpView& view) {
    return view.op.attributes.text("function", "sum") == "sum" ? saveNothing(view)
                                                               : saveOperands(view);
}

SavedTensors selectSaved(const OpView& view) {
    SavedTensors saved = saveNothing(view);
    saved.operands[0] = true;
    return saved;
}

} // namespace

std::vector<Row> windowRows() {
    using enum OpKind;
    constexpr auto kVector = ComputeClass::Vector;
    return {
        {DynamicSlice, dynamicSliceShape, dynamicSliceRule, kVector, noFlops, twiceResult,
         savePositions},
        {DynamicUpdate, dynamicUpdateShape, dynamicUpdateRule, kVector, noFlops, updateBytes,
         savePositions},
        {GatherWindows, gatherWindowsShape, gatherWindowsRule, kVector, noFlops, twiceResult,
         saveIndices},
        {ScatterWindows, scatterWindowsShape, scatterWindowsRule, kVector, noFlops,
         scatterWindowsBytes, scatterWindowsSaved},
        {ReduceWindow, reduceWindowShape, reduceWindowRule, kVector, windowFlops, nullptr,
         reduceWindowSaved},
        {SelectAndScatter, selectAndScatterShape, selectAndScatterRule, kVector, windowFlops,
         nullptr, selectSaved},
    };
}

} // namespace shardlens::catalogue
