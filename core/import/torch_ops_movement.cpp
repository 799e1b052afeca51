// SPDX-License-Identifier: Apache-2.0
// Operators of PyTorch that move data: views, permutations, slices, joins; sizes and tuples.
#include "core/import/torch_translation.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace shardlens::torch {

namespace {

using Ints = Translation::Ints;

std::size_t asIndex(std::int64_t value) {
    return static_cast<std::size_t>(value);
}

void reshape(Translation& t, TensorId x, Shape shape) {
    if (shape == t.shape(x)) return t.alias(x);
    t.result(OpKind::Reshape, {{"shape", std::move(shape)}}, {x});
}

/// One size may be -1: what is left.
Shape completed(const Translation& t, TensorId x, Shape shape) {
    const auto open = std::ranges::find(shape, -1);
    if (open == shape.end()) return shape;
    double rest = 1;
    for (const std::int64_t size : shape)
        if (size != -1) rest *= static_cast<double>(size);
    const double elements = elementsOf(t.shape(x));
    t.require(rest > 0, "the size that is left open cannot be found");
    *open = static_cast<std::int64_t>(elements / rest);
    return shape;
}

void view(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    t.require(t.overload() != "dtype" && t.argument(1, "size").kind != Value::Kind::Text,
              "it reads the bits as another type");
    reshape(t, x, completed(t, x, t.intsFrom(1, "size|shape")));
}

void viewAs(Translation& t, std::string_view) {
    reshape(t, t.tensor(0, "self"), t.shape(t.tensor(1, "other")));
}

void unsqueeze(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    Shape shape = t.shape(x);
    const std::int64_t axis = t.axis(t.integer(1, "dim", 0), t.rank(x) + 1);
    shape.insert(shape.begin() + axis, 1);
    reshape(t, x, std::move(shape));
}

void squeeze(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    const Shape before = t.shape(x);
    Ints dims = t.ints(1, "dim");
    for (std::int64_t& dim : dims) dim = t.axis(dim, t.rank(x));
    const bool all = !t.has(1, "dim");
    Shape shape;
    for (std::size_t d = 0; d < before.size(); ++d) {
        const bool named = std::ranges::find(dims, static_cast<std::int64_t>(d)) != dims.end();
        if (before[d] != 1 || !(all || named)) shape.push_back(before[d]);
    }
    reshape(t, x, std::move(shape));
}

void flatten(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    const Shape before = t.shape(x);
    if (before.empty()) return reshape(t, x, {1});
    const std::size_t first = asIndex(t.axis(t.integer(1, "start_dim", 0), t.rank(x)));
    const std::size_t last = asIndex(t.axis(t.integer(2, "end_dim", -1), t.rank(x)));
    t.require(first <= last, "it ends before it begins");
    Shape shape;
    for (std::size_t d = 0; d < before.size(); ++d) {
        if (d > first && d <= last)
            shape.back() *= before[d];
        else
            shape.push_back(before[d]);
    }
    reshape(t, x, std::move(shape));
}

void unflatten(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    Shape shape = t.shape(x);
    const std::size_t axis = asIndex(t.axis(t.integer(1, "dim", 0), t.rank(x)));
    const Ints sizes = t.ints(2, "sizes");
    t.require(axis < shape.size(), "its operand has no dimension");
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), sizes.begin(), sizes.end());
    reshape(t, x, completed(t, x, std::move(shape)));
}

// --- permutations -------------------------------------------------------------------------------

void permuted(Translation& t, TensorId x, Ints perm) {
    t.result(OpKind::Transpose, {{"perm", std::move(perm)}}, {x});
}

Ints identityOf(std::int64_t rank) {
    Ints perm(asIndex(rank));
    std::iota(perm.begin(), perm.end(), std::int64_t{0});
    return perm;
}

void permute(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    Ints perm = t.intsFrom(1, "dims");
    for (std::int64_t& dim : perm) dim = t.axis(dim, t.rank(x));
    permuted(t, x, std::move(perm));
}

void transpose(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    const std::int64_t rank = t.rank(x);
    if (rank == 0) return t.alias(x);
    Ints perm = identityOf(rank);
    std::swap(perm[asIndex(t.axis(t.integer(1, "dim0", 0), rank))],
              perm[asIndex(t.axis(t.integer(2, "dim1", 0), rank))]);
    permuted(t, x, std::move(perm));
}

/// t, T, mT: all or the last two dimensions turned round.
void transposeAll(Translation& t, std::string_view which) {
    const TensorId x = t.tensor(0, "self");
    const std::int64_t rank = t.rank(x);
    if (rank < 2) return t.alias(x);
    Ints perm = identityOf(rank);
    if (which == "last")
        std::swap(perm[asIndex(rank - 1)], perm[asIndex(rank - 2)]);
    else
        std::ranges::reverse(perm);
    permuted(t, x, std::move(perm));
}

// --- broadcasting -------------------------------------------------------------------------------

void expandTo(Translation& t, TensorId x, Shape shape) {
    if (shape == t.shape(x)) return t.alias(x);
    t.result(OpKind::Expand, {{"shape", std::move(shape)}}, {x});
}

void expand(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    const Shape before = t.shape(x);
    Shape shape = t.intsFrom(1, "size|shape");
    t.require(shape.size() >= before.size(), "it has fewer dimensions than its operand");
    const std::size_t lead = shape.size() - before.size();
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (shape[d] != -1) continue;
        t.require(d >= lead, "a new dimension has no size");
        shape[d] = before[d - lead];
    }
    expandTo(t, x, std::move(shape));
}

void expandAs(Translation& t, std::string_view) {
    expandTo(t, t.tensor(0, "self"), t.shape(t.tensor(1, "other")));
}

void repeat(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    const Ints repeats = t.intsFrom(1, "repeats|dims");
    Shape shape = t.shape(x);
    t.require(repeats.size() >= shape.size(), "it repeats fewer dimensions than there are");
    shape.insert(shape.begin(), repeats.size() - shape.size(), 1);
    t.require(std::ranges::all_of(repeats, [](auto r) { return r >= 0 && r < (1LL << 31); }),
              "it repeats impossibly often");
    t.result(OpKind::Tile, {{"repeats", repeats}}, {t.reshaped(x, shape)});
}

/// Each entry along a dimension several times: grouped keys and values.
void repeatInterleave(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    const std::int64_t times = t.integer(1, "repeats", 1);
    t.require(t.has(2, "dim") && times > 0 && times < (1LL << 31), "it flattens its operand");
    const std::size_t axis = asIndex(t.axis(t.integer(2, "dim", 0), t.rank(x)));
    const Shape before = t.shape(x);
    t.require(axis < before.size(), "its operand has no dimension");
    Shape apart = before, wide = before, joined = before;
    apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis) + 1, 1);
    wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(axis) + 1, times);
    joined[axis] *= times;
    const TensorId spread =
        t.step(OpKind::Expand, {{"shape", std::move(wide)}}, {t.reshaped(x, apart)});
    reshape(t, spread, std::move(joined));
}

// --- joins and parts ----------------------------------------------------------------------------

void concat(Translation& t, std::string_view) {
    std::vector<TensorId> parts = t.tensors(0, "tensors");
    // torch.cat ignores empty tensors of rank 1, whatever the rank of the others.
    std::erase_if(parts, [&](TensorId part) { return t.shape(part) == Shape{0}; });
    t.require(!parts.empty(), "it joins nothing");
    if (parts.size() == 1) return t.alias(parts[0]);
    const std::int64_t axis = t.axis(t.integer(1, "dim", 0), t.rank(parts[0]));
    t.result(OpKind::Concat, {{"axis", axis}}, std::move(parts));
}

void stack(Translation& t, std::string_view) {
    std::vector<TensorId> parts = t.tensors(0, "tensors");
    t.require(!parts.empty(), "it joins nothing");
    const std::int64_t axis = t.axis(t.integer(1, "dim", 0), t.rank(parts[0]) + 1);
    for (TensorId& part : parts) {
        Shape shape = t.shape(part);
        t.require(axis <= t.rank(part), "its operands differ");
        shape.insert(shape.begin() + axis, 1);
        part = t.reshaped(part, std::move(shape));
    }
    if (parts.size() == 1) return t.alias(parts[0]);
    t.result(OpKind::Concat, {{"axis", axis}}, std::move(parts));
}

void splitInto(Translation& t, TensorId x, std::int64_t axis, Ints sizes) {
    t.result(OpKind::Split, {{"axis", axis}, {"sizes", std::move(sizes)}}, {x});
}

Ints equalParts(const Translation& t, std::int64_t whole, std::int64_t size) {
    constexpr std::int64_t kMostParts = 1 << 16;
    t.require(size > 0 && whole / size < kMostParts, "its parts have no size, or are too many");
    Ints sizes;
    for (std::int64_t left = whole; left > 0; left -= size) sizes.push_back(std::min(left, size));
    if (sizes.empty()) sizes.push_back(0);
    return sizes;
}

void splitParts(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    const std::int64_t axis = t.axis(t.integer(2, "dim", 0), t.rank(x));
    t.require(t.rank(x) > 0, "its operand has no dimension");
    const Value& sizes = t.argument(1, "split_size|split_sizes|split_size_or_sections");
    if (sizes.kind == Value::Kind::List)
        return splitInto(t, x, axis, t.ints(1, "split_size|split_sizes|split_size_or_sections"));
    const std::int64_t size = t.integer(1, "split_size|split_size_or_sections", 1);
    splitInto(t, x, axis, equalParts(t, t.shape(x)[asIndex(axis)], size));
}

void chunk(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    const std::int64_t axis = t.axis(t.integer(2, "dim", 0), t.rank(x));
    const std::int64_t chunks = t.integer(1, "chunks", 1);
    t.require(t.rank(x) > 0 && chunks > 0, "it makes no parts");
    const std::int64_t whole = t.shape(x)[asIndex(axis)];
    splitInto(t, x, axis,
              equalParts(t, whole, std::max<std::int64_t>((whole - 1) / chunks + 1, 1)));
}

TensorId sliced(Translation& t, TensorId x, std::int64_t axis, std::int64_t from, std::int64_t to) {
    return t.step(
        OpKind::Slice,
        {{"axes", Ints{axis}}, {"starts", Ints{from}}, {"ends", Ints{to}}, {"steps", Ints{1}}},
        {x});
}

/// unbind: the parts without the dimension.
void unbind(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    const std::int64_t axis = t.axis(t.integer(1, "dim", 0), t.rank(x));
    t.require(t.rank(x) > 0, "its operand has no dimension");
    Shape shape = t.shape(x);
    const std::int64_t count = shape[asIndex(axis)];
    const std::vector<TensorId> parts =
        t.steps(OpKind::Split, {{"axis", axis}, {"sizes", equalParts(t, count, 1)}}, {x});
    shape.erase(shape.begin() + axis);
    for (std::size_t port = 0; port < parts.size(); ++port)
        t.result(OpKind::Reshape, {{"shape", shape}}, {parts[port]}, DType::Unknown, port);
}

struct Range {
    std::int64_t axis, from, to, step;
};

Range rangeOf(const Translation& t, TensorId x, std::size_t first) {
    Range range{t.axis(t.integer(first, "dim", 0), t.rank(x)), 0, 0, 1};
    t.require(t.rank(x) > 0, "its operand has no dimension");
    const std::int64_t size = t.shape(x)[asIndex(range.axis)];
    const auto clamped = [size](std::int64_t at) {
        return std::clamp<std::int64_t>(at < 0 && at >= -size ? at + size : at, 0, size);
    };
    range.from = clamped(t.integer(first + 1, "start", 0));
    range.to = clamped(t.integer(first + 2, "end", std::numeric_limits<std::int64_t>::max()));
    range.step = t.integer(first + 3, "step", 1);
    t.require(range.step > 0, "its step is not positive");
    return range;
}

bool isWhole(const Translation& t, TensorId x, const Range& range) {
    return range.from == 0 && range.step == 1 && range.to == t.shape(x)[asIndex(range.axis)];
}

void sliceBy(Translation& t, TensorId x, const Range& range) {
    if (isWhole(t, x, range)) return t.alias(x);
    t.result(OpKind::Slice,
             {{"axes", Ints{range.axis}},
              {"starts", Ints{range.from}},
              {"ends", Ints{range.to}},
              {"steps", Ints{range.step}}},
             {x});
}

void slice(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    sliceBy(t, x, rangeOf(t, x, 1));
}

void narrow(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    Range range = rangeOf(t, x, 1);
    range.to = range.from + std::max<std::int64_t>(t.integer(3, "length", 0), 0);
    range.step = 1;
    t.require(range.to <= t.shape(x)[asIndex(range.axis)], "it reaches past the end");
    sliceBy(t, x, range);
}

/// Overwrites the whole of its operand, or else it is not understood.
void sliceScatter(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self"), source = t.tensor(1, "src");
    t.require(isWhole(t, x, rangeOf(t, x, 2)), "it overwrites a part");
    t.alias(source);
}

void selectAt(Translation& t, TensorId x, std::int64_t axis, std::int64_t index) {
    Shape shape = t.shape(x);
    t.require(!shape.empty(), "its operand has no dimension");
    const std::int64_t size = shape[asIndex(axis)];
    if (index < 0) index += size;
    t.require(index >= 0 && index < size, "its index is past the end");
    shape.erase(shape.begin() + axis);
    const TensorId part = size == 1 ? x : sliced(t, x, axis, index, index + 1);
    reshape(t, part, std::move(shape));
}

void select(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    selectAt(t, x, t.axis(t.integer(1, "dim", 0), t.rank(x)), t.integer(2, "index", 0));
}

void pad(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    const Ints pairs = t.ints(1, "pad"); // begin and end, last dimension first
    const std::size_t rank = t.shape(x).size();
    t.require(pairs.size() % 2 == 0 && pairs.size() / 2 <= rank, "its pads do not fit its operand");
    const std::string mode = t.text(2, "mode");
    t.require(mode.empty() || mode == "constant", "it does not pad with a number");
    t.require(
        std::ranges::all_of(pairs, [](auto p) { return p > -(1LL << 40) && p < (1LL << 40); }),
        "it pads impossibly far");
    Ints pads(2 * rank, 0);
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
        const std::size_t d = rank - 1 - i / 2;
        pads[d] = pairs[i];
        pads[d + rank] = pairs[i + 1];
    }
    t.result(OpKind::Pad, {{"pads", std::move(pads)}}, {x});
}

// --- sizes and tuples ---------------------------------------------------------------------------

void size(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    const Shape shape = t.shape(x);
    if (t.has(1, "dim")) {
        t.require(!shape.empty(), "its operand has no dimension");
        const std::int64_t axis = t.axis(t.integer(1, "dim", 0), t.rank(x));
        return t.value(Value::ofInteger(shape[asIndex(axis)]));
    }
    std::vector<Value> sizes;
    for (const std::int64_t dim : shape) sizes.push_back(Value::ofInteger(dim));
    t.value(Value::ofList(std::move(sizes)));
}

void elementCount(Translation& t, std::string_view) {
    const double count = elementsOf(t.shape(t.tensor(0, "self")));
    t.value(Value::ofInteger(static_cast<std::int64_t>(count)));
}

/// list[i] of a tuple; tensor[i].
void getItem(Translation& t, std::string_view) {
    const Value whole = t.argument(0, "a");
    t.require(t.argument(1, "b").kind == Value::Kind::Integer, "its index is no number");
    std::int64_t at = t.integer(1, "b", 0);
    if (whole.kind == Value::Kind::Tensor) return selectAt(t, whole.tensor, 0, at);
    if (whole.kind == Value::Kind::None) return; // a result that nothing reads
    const auto count = static_cast<std::int64_t>(whole.items.size());
    if (at < 0) at += count;
    // A result that its op does not give is one that nothing reads.
    if (at >= 0 && at < count) t.value(whole.items[asIndex(at)]);
}

void same(Translation& t, std::string_view) {
    t.value(t.argument(0, "x"));
}

} // namespace

std::vector<Rule> movementRules() {
    return {
        {"view", view},
        {"reshape", view},
        {"_unsafe_view", view},
        {"_reshape_alias", view},
        {"view_copy", view},
        {"view_as", viewAs},
        {"reshape_as", viewAs},
        {"unsqueeze", unsqueeze},
        {"squeeze", squeeze},
        {"flatten", flatten},
        {"unflatten", unflatten},
        {"permute", permute},
        {"transpose", transpose},
        {"swapaxes", transpose},
        {"t", transposeAll},
        {"T", transposeAll},
        {"numpy_T", transposeAll},
        {"mT", transposeAll, "last"},
        {"expand", expand},
        {"broadcast_to", expand},
        {"expand_as", expandAs},
        {"repeat", repeat},
        {"tile", repeat},
        {"repeat_interleave", repeatInterleave},
        {"cat", concat},
        {"concat", concat},
        {"stack", stack},
        {"split", splitParts, {}, true},
        {"split_with_sizes", splitParts, {}, true},
        {"chunk", chunk, {}, true},
        {"unbind", unbind, {}, true},
        {"slice", slice},
        {"narrow", narrow},
        {"slice_scatter", sliceScatter},
        {"select", select},
        {"constant_pad_nd", pad},
        {"pad", pad},
        {"sym_size", size},
        {"size", size},
        {"shape", size},
        {"numel", elementCount},
        {"sym_numel", elementCount},
        {"getitem", getItem},
        {"same", same},
    };
}

} // namespace shardlens::torch
