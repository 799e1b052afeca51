// SPDX-License-Identifier: Apache-2.0
// Operations that move data: broadcasts, transposes, slices, lookups.
#include "core/import/mlir_call.h"

#include <algorithm>
#include <numeric>

namespace shardlens::mlir {

namespace {

using Ints = Call::Ints;

Ints counting(std::size_t count) {
    Ints result(count);
    std::iota(result.begin(), result.end(), std::int64_t{0});
    return result;
}

void reshape(Call& call, std::string_view) {
    Shape shape = call.declared(0).shape;
    const auto open = std::ranges::count(shape, kDynamic);
    call.require(open <= 1, "a reshape leaves more than one size open");
    if (open == 1) { // the only one that keeps the number of elements
        double rest = 1;
        for (const std::int64_t size : shape)
            if (size != kDynamic) rest *= static_cast<double>(size);
        call.require(rest > 0, "a reshape leaves a size open");
        *std::ranges::find(shape, kDynamic) =
            static_cast<std::int64_t>(elementsOf(call.shape(0)) / rest);
    }
    call.result(OpKind::Reshape, {{"shape", shape}}, {call.input(0)});
}

/// Puts dimension i of x at dims[i] of `target`: transpose, ones in between, expand.
void broadcastTo(Call& call, const Ints& dims, const Shape& target) {
    TensorId x = call.input(0);
    const auto rank = static_cast<std::int64_t>(target.size());
    call.require(dims.size() == call.shape(0).size(), "dims and the operand's rank differ");
    Ints order = counting(dims.size());
    std::ranges::sort(order, {}, [&](std::int64_t i) { return dims[static_cast<std::size_t>(i)]; });
    x = call.transposed(x, order);
    Shape spread(target.size(), 1);
    std::int64_t before = -1;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const std::int64_t at = call.axis(dims[static_cast<std::size_t>(order[i])], rank);
        call.require(at != before, "dims names a dimension twice");
        before = at;
        spread[static_cast<std::size_t>(at)] = call.shapeOf(x)[i];
    }
    // Dimensions of 1 before the first need not be written: Expand aligns at the right end.
    const std::size_t own = call.shapeOf(x).size();
    const Shape tail(spread.end() - static_cast<std::ptrdiff_t>(own), spread.end());
    const bool aligned = tail == call.shapeOf(x) && elementsOf(tail) == elementsOf(spread);
    if (!aligned && spread == target) return call.result(OpKind::Reshape, {{"shape", target}}, {x});
    if (!aligned) x = call.reshaped(x, spread);
    call.result(OpKind::Expand, {{"shape", target}}, {x});
}

void broadcastInDim(Call& call, std::string_view) {
    const Ints dims = call.ints("dims", "broadcast_dimensions");
    Shape target = call.declared(0).shape;
    if (call.count() > 1) { // dynamic_broadcast_in_dim: the shape is an operand
        if (const KnownInts* known = call.knownInts(1); known && known->size() == target.size())
            target = *known;
    }
    for (std::size_t i = 0; i < dims.size() && i < call.shape(0).size(); ++i) {
        std::int64_t& size = target.at(
            static_cast<std::size_t>(call.axis(dims[i], static_cast<std::int64_t>(target.size()))));
        if (size == kDynamic) size = call.shape(0)[i];
    }
    call.require(std::ranges::all_of(target, [](auto size) { return size >= 0; }),
                 "the target shape is not known");
    broadcastTo(call, dims, target);
}

/// broadcast: new dimensions in front.
void broadcast(Call& call, std::string_view) {
    Shape target = call.ints("sizes", "broadcast_sizes");
    target.insert(target.end(), call.shape(0).begin(), call.shape(0).end());
    call.result(OpKind::Expand, {{"shape", target}}, {call.input(0)});
}

void dynamicReshape(Call& call, std::string_view) {
    const KnownInts* known = call.knownInts(1);
    call.require(known != nullptr, "the target shape is not known");
    call.result(OpKind::Reshape, {{"shape", *known}}, {call.input(0)});
}

void dimensionSize(Call& call, std::string_view) {
    const std::int64_t dim = call.axis(call.integer("dim", "dimension"), call.rank(0));
    const std::int64_t size = call.shape(0)[static_cast<std::size_t>(dim)];
    call.declaredResult(OpKind::Constant, {}, {});
    std::vector<Value> results = call.takeResults();
    call.builder().known().setInts(results.at(0).tensors.at(0), {size});
    call.setResults(std::move(results));
}

void transpose(Call& call, std::string_view) {
    call.result(OpKind::Transpose, {{"perm", call.ints("dims", "permutation")}}, {call.input(0)});
}

void concatenate(Call& call, std::string_view) {
    const std::int64_t axis = call.axis(call.integer("dim", "dimension"), call.rank(0));
    call.result(OpKind::Concat, {{"axis", axis}}, call.inputs());
}

void pad(Call& call, std::string_view) {
    const auto rank = call.shape(0).size();
    Ints pads = call.intsOr("low", "edge_padding_low", rank, 0);
    const Ints high = call.intsOr("high", "edge_padding_high", rank, 0);
    const Ints interior = call.intsOr("interior", "interior_padding", rank, 0);
    call.require(std::ranges::all_of(interior, [](auto p) { return p == 0; }),
                 "padding between elements");
    pads.insert(pads.end(), high.begin(), high.end());
    call.result(OpKind::Pad, {{"pads", pads}}, {call.input(0)});
}

// --- slices -------------------------------------------------------------------------------------

/// Slices x to [starts, starts + sizes) per dimension; whole dimensions are left out.
void sliceTo(Call& call, const Ints& starts, const Ints& ends, const Ints& steps) {
    Ints axes, from, to, by;
    for (std::size_t d = 0; d < call.shape(0).size(); ++d) {
        if (starts[d] == 0 && ends[d] == call.shape(0)[d] && steps[d] == 1) continue;
        axes.push_back(static_cast<std::int64_t>(d));
        from.push_back(starts[d]);
        to.push_back(ends[d]);
        by.push_back(steps[d]);
    }
    if (axes.empty()) return call.alias(call.input(0));
    call.result(OpKind::Slice, {{"axes", axes}, {"starts", from}, {"ends", to}, {"steps", by}},
                {call.input(0)});
}

/// "[0:1, 0:32:2]" or three attributes.
void slice(Call& call, std::string_view) {
    const std::size_t rank = call.shape(0).size();
    Ints starts, ends, steps;
    const std::string_view text = call.op().positional(0);
    if (!text.starts_with("[")) {
        starts = call.intsOr("start_indices", {}, rank, 0);
        ends = call.ints("limit_indices");
        steps = call.intsOr("strides", {}, rank, 1);
        if (ends.size() == 1 && rank > 1) ends.assign(rank, ends.front());
        call.require(ends.size() == rank, "a slice has another rank than its operand");
        return sliceTo(call, starts, ends, steps);
    }
    std::string_view rest = text.substr(1);
    for (std::size_t d = 0; d < rank; ++d) {
        const auto end = rest.find_first_of(",]");
        call.require(end != std::string_view::npos, "a slice has another rank than its operand");
        std::string range(rest.substr(0, end));
        rest.remove_prefix(end + 1);
        std::ranges::replace(range, ':', ',');
        const Ints numbers = readIntegers("[" + range + "]").value_or(Ints{});
        call.require(numbers.size() == 2 || numbers.size() == 3, "a slice cannot be read");
        starts.push_back(numbers[0]);
        ends.push_back(numbers[1]);
        steps.push_back(numbers.size() == 3 ? numbers[2] : 1);
    }
    sliceTo(call, starts, ends, steps);
}

void reverse(Call& call, std::string_view) {
    const Ints axes = call.ints("dims", "dimensions");
    const Ints all(axes.size(), -1);
    Ints ends;
    for (const std::int64_t axis : axes)
        ends.push_back(-call.shape(0)[static_cast<std::size_t>(call.axis(axis, call.rank(0)))] - 1);
    call.result(OpKind::Slice, {{"axes", axes}, {"starts", all}, {"ends", ends}, {"steps", all}},
                {call.input(0)});
}

/// Start indices that are known, clamped so that `sizes` fit; std::nullopt if one is not known.
std::optional<Ints> knownStarts(Call& call, std::size_t firstOperand, const Ints& sizes) {
    const std::size_t rank = call.shape(0).size();
    call.require(sizes.size() == rank && call.count() == firstOperand + rank,
                 "a dynamic slice has another rank than its operand");
    Ints starts;
    for (std::size_t d = 0; d < rank; ++d) {
        const std::int64_t room = call.shape(0)[d] - sizes[d];
        call.require(room >= 0, "a slice is larger than its operand");
        const auto start =
            room == 0 ? std::optional<std::int64_t>(0) : call.knownScalar(firstOperand + d);
        if (!start) return std::nullopt;
        starts.push_back(std::clamp<std::int64_t>(*start, 0, room));
    }
    return starts;
}

/// With known starts (a turn of an unrolled loop) an ordinary slice.
void dynamicSlice(Call& call, std::string_view) {
    const Ints sizes = call.ints("sizes", "slice_sizes");
    const auto starts = knownStarts(call, 1, sizes);
    if (!starts) return call.result(OpKind::DynamicSlice, {{"sizes", sizes}}, call.inputs());
    Ints ends = *starts;
    for (std::size_t d = 0; d < ends.size(); ++d) ends[d] += sizes[d];
    sliceTo(call, *starts, ends, Ints(ends.size(), 1));
}

/// With known starts along one dimension: what is before, the update, what is behind.
void dynamicUpdateSlice(Call& call, std::string_view) {
    const Shape whole = call.shape(0), part = call.shape(1);
    const auto starts = knownStarts(call, 2, part);
    if (!starts) return call.result(OpKind::DynamicUpdate, {}, call.inputs());
    Ints axes;
    for (std::size_t d = 0; d < whole.size(); ++d)
        if (whole[d] != part[d]) axes.push_back(static_cast<std::int64_t>(d));
    if (axes.empty()) return call.alias(call.input(1));
    if (axes.size() > 1) return call.result(OpKind::DynamicUpdate, {}, call.inputs());
    const auto axis = static_cast<std::size_t>(axes[0]);
    const std::int64_t start = (*starts)[axis], end = start + part[axis];
    const auto piece = [&](std::int64_t from, std::int64_t to) {
        return call.step(
            OpKind::Slice,
            {{"axes", axes}, {"starts", Ints{from}}, {"ends", Ints{to}}, {"steps", Ints{1}}},
            {call.input(0)});
    };
    std::vector<TensorId> parts;
    if (start > 0) parts.push_back(piece(0, start));
    parts.push_back(call.input(1));
    if (end < whole[axis]) parts.push_back(piece(end, whole[axis]));
    call.result(OpKind::Concat, {{"axis", axes[0]}}, parts);
}

// --- lookups ------------------------------------------------------------------------------------

void indexSelect(Call& call, std::string_view) {
    call.require(call.integer("batch_dims") == 0, "a lookup with batch dimensions");
    const std::int64_t axis = call.axis(call.integer("dim"), call.rank(0));
    call.result(OpKind::Gather, {{"axis", axis}}, {call.input(0), call.input(1)});
}

struct GatherNumbers {
    Ints offset, collapsed, start, batching, indexBatching, sizes;
    std::int64_t vectorDim = 0;
};

GatherNumbers gatherNumbers(const Call& call) {
    const std::string_view text = call.op().attribute("dimension_numbers");
    const auto field = [&](std::string_view name) {
        return readIntegers(fieldOf(text, name)).value_or(Ints{});
    };
    GatherNumbers numbers{field("offset_dims"),
                          field("collapsed_slice_dims"),
                          field("start_index_map"),
                          field("operand_batching_dims"),
                          field("start_indices_batching_dims"),
                          call.ints("slice_sizes"),
                          0};
    const Ints vector = field("index_vector_dim");
    numbers.vectorDim = vector.empty() ? 0 : vector.front();
    return numbers;
}

/// Rows found by vectors of indices over the first dimensions, all of the others taken whole.
bool gatherNd(Call& call, const GatherNumbers& n) {
    const Shape table = call.shape(0), indices = call.shape(1);
    const std::size_t length = n.start.size();
    if (length < 2 || n.start != counting(length) || n.collapsed != n.start ||
        n.vectorDim != call.rank(1) - 1 || indices.back() != static_cast<std::int64_t>(length))
        return false;
    for (std::size_t d = 0; d < table.size(); ++d)
        if (n.sizes[d] != (d < length ? 1 : table[d])) return false;
    Ints trailing = counting(table.size() - length);
    for (std::int64_t& dim : trailing) dim += call.rank(1) - 1;
    if (n.offset != trailing) return false;
    call.result(OpKind::GatherND, {{"batch_dims", std::int64_t{0}}},
                {call.input(0), call.input(1)});
    return true;
}

bool findsRows(Call& call, const GatherNumbers& n) {
    const Shape &table = call.shape(0), &indices = call.shape(1);
    if (!n.batching.empty() || n.start.size() != 1 || n.collapsed != n.start) return false;
    for (std::size_t d = 0; d < table.size(); ++d)
        if (n.sizes[d] != (static_cast<std::int64_t>(d) == n.start[0] ? 1 : table[d])) return false;
    return n.vectorDim >= call.rank(1) ||
           (n.vectorDim >= 0 && indices[static_cast<std::size_t>(n.vectorDim)] == 1);
}

Attributes windowNumbers(Ints offset, Ints collapsed, Ints map, std::int64_t vectorDim,
                         Ints batching, Ints indexBatching) {
    return {
        {"offset_dims", std::move(offset)},     {"collapsed_dims", std::move(collapsed)},
        {"index_map", std::move(map)},          {"index_vector_dim", vectorDim},
        {"batching_dims", std::move(batching)}, {"index_batching_dims", std::move(indexBatching)}};
}

/// The embedding form: whole rows along one dimension of the table; all else as windows.
void gather(Call& call, std::string_view) {
    const GatherNumbers n = gatherNumbers(call);
    const Shape table = call.shape(0), indices = call.shape(1);
    call.require(call.count() == 2 && n.sizes.size() == table.size(),
                 "a gather without its window sizes");
    if (n.batching.empty() && !indices.empty() && gatherNd(call, n)) return;
    if (indices.empty() || !findsRows(call, n)) {
        Attributes attributes =
            windowNumbers(n.offset, n.collapsed, n.start, n.vectorDim, n.batching, n.indexBatching);
        attributes.set("slice_sizes", n.sizes);
        return call.result(OpKind::GatherWindows, std::move(attributes), call.inputs());
    }
    const std::int64_t axis = call.axis(n.start[0], call.rank(0));
    Shape batch = indices;
    if (n.vectorDim < call.rank(1)) {
        const auto at = batch.begin() + call.axis(n.vectorDim, call.rank(1));
        call.require(*at == 1, "a gather with several indices");
        batch.erase(at);
    }
    const TensorId rows = call.reshaped(call.input(1), batch);
    // Gather gives table[..axis], batch, table[axis+1..]; the result wants its offset_dims.
    const std::size_t rank = batch.size() + table.size() - 1;
    call.require(n.offset.size() == table.size() - 1 && std::ranges::is_sorted(n.offset),
                 "a gather whose offset_dims do not fit");
    Ints perm(rank, -1);
    for (std::size_t i = 0; i < n.offset.size(); ++i) {
        const auto at =
            static_cast<std::size_t>(call.axis(n.offset[i], static_cast<std::int64_t>(rank)));
        const auto dim = static_cast<std::int64_t>(i);
        perm[at] = dim < axis ? dim : dim + static_cast<std::int64_t>(batch.size());
    }
    std::int64_t next = axis;
    for (std::int64_t& p : perm)
        if (p < 0) p = next++;
    call.require(next == axis + static_cast<std::int64_t>(batch.size()),
                 "a gather whose offset_dims do not fit");
    const Attributes attributes{{"axis", axis}};
    if (std::ranges::is_sorted(perm))
        return call.result(OpKind::Gather, attributes, {call.input(0), rows});
    const TensorId found = call.step(OpKind::Gather, attributes, {call.input(0), rows});
    call.result(OpKind::Transpose, {{"perm", perm}}, {found});
}

struct ScatterNumbers {
    Ints window, inserted, map, batching, indexBatching;
    std::int64_t vectorDim = 0;

    explicit ScatterNumbers(std::string_view text) {
        const auto field = [&](std::string_view name) {
            return readIntegers(fieldOf(text, name)).value_or(Ints{});
        };
        window = field("update_window_dims");
        inserted = field("inserted_window_dims");
        map = field("scatter_dims_to_operand_dims");
        batching = field("input_batching_dims");
        indexBatching = field("scatter_indices_batching_dims");
        const Ints vector = field("index_vector_dim");
        vectorDim = vector.empty() ? 0 : vector.front();
    }
};

/// Whole rows, found by vectors of indices over the first dimensions.
bool writesRows(Call& call, const ScatterNumbers& n) {
    const std::size_t length = n.inserted.size();
    if (call.count() != 3 || call.rank(1) < 1 || length < 1 || length > call.shape(0).size())
        return false;
    const std::int64_t batch = call.rank(1) - 1;
    Ints window = counting(call.shape(0).size() - length);
    for (std::int64_t& dim : window) dim += batch;
    const Shape &data = call.shape(0), &updates = call.shape(2);
    const bool whole = updates.size() == static_cast<std::size_t>(batch) + window.size() &&
                       std::equal(data.begin() + static_cast<std::ptrdiff_t>(length), data.end(),
                                  updates.begin() + batch);
    return whole && n.inserted == counting(length) && n.map == n.inserted && n.batching.empty() &&
           n.vectorDim == batch && call.shape(1).back() == static_cast<std::int64_t>(length) &&
           n.window == window;
}

/// Rows (the gradient of a lookup) or windows, of one array or several.
void scatter(Call& call, std::string_view) {
    const ScatterNumbers n(call.op().attribute("scatter_dimension_numbers"));
    const std::size_t arrays = call.count() / 2;
    std::string_view reduction = scatterReduction(call.op());
    if (arrays > 1) { // all alike, by the name that Scatter has for it
        const auto apart = reductionsApart(call.op(), arrays);
        const bool alike =
            !apart.empty() && std::ranges::count(apart, apart[0]) == std::ssize(apart);
        reduction = !alike               ? std::string_view{}
                    : apart[0] == "sum"  ? std::string_view("add")
                    : apart[0] == "prod" ? std::string_view("mul")
                                         : apart[0];
    }
    if (reduction.empty()) return call.opaque();
    if (writesRows(call, n))
        return call.result(OpKind::Scatter,
                           {{"mode", std::string("nd")}, {"reduction", std::string(reduction)}},
                           call.inputs());
    Attributes attributes =
        windowNumbers(n.window, n.inserted, n.map, n.vectorDim, n.batching, n.indexBatching);
    attributes.set("reduction", std::string(reduction));
    call.result(OpKind::ScatterWindows, std::move(attributes), call.inputs());
}

} // namespace

std::vector<Rule> movementRules() {
    return {
        {"reshape", reshape},
        {"broadcast_in_dim", broadcastInDim},
        {"dynamic_broadcast_in_dim", broadcastInDim},
        {"broadcast", broadcast},
        {"dynamic_reshape", dynamicReshape},
        {"get_dimension_size", dimensionSize},
        {"transpose", transpose},
        {"concatenate", concatenate},
        {"pad", pad},
        {"slice", slice},
        {"reverse", reverse},
        {"dynamic_slice", dynamicSlice},
        {"dynamic_update_slice", dynamicUpdateSlice},
        {"torch_index_select", indexSelect},
        {"gather", gather},
        {"scatter", scatter},
    };
}

} // namespace shardlens::mlir
