// SPDX-License-Identifier: Apache-2.0
// Ops that move data: shapes, axes, starts and sizes become attributes with every default filled
// in, whether the file has them as attributes (old opsets) or as operands (new ones).
#include "core/import/onnx_tensor.h"
#include "core/import/onnx_translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace shardlens::onnx {

namespace {

using Ints = Translation::Ints;

/// Result of known type whose sizes cannot be told: declared ones are taken if they are there.
void unknownSizes(Translation& t) {
    t.opaque();
}

void toShape(Translation& t, Shape shape) {
    t.result(OpKind::Reshape, {{"shape", std::move(shape)}}, {t.input(0)});
}

/// 0 copies the operand's size (unless allowzero), -1 is worked out.
void reshape(Translation& t, std::string_view) {
    const auto target = t.listed("shape", 1);
    if (!target.known) return unknownSizes(t);
    t.require(target.values.has_value(), "the target shape is missing");
    Shape shape = *target.values;
    const Shape& in = t.shape(0);
    const bool copies = t.integer("allowzero", 0) == 0;
    double others = 1;
    std::ptrdiff_t open = -1;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (shape[d] == 0 && copies) {
            t.require(d < in.size(), "the target shape copies a dimension that does not exist");
            shape[d] = in[d];
        }
        if (shape[d] == -1) {
            t.require(open < 0, "the target shape leaves two sizes open");
            open = static_cast<std::ptrdiff_t>(d);
        } else {
            t.require(shape[d] >= 0 && shape[d] <= kMaxDim, "the target shape is out of range");
            others *= static_cast<double>(shape[d]);
        }
    }
    if (open >= 0) {
        const double total = elementsOf(in);
        const double size = others == 0 ? 0 : total / others;
        t.require(size == static_cast<double>(static_cast<std::int64_t>(size)),
                  fmt::format("{} cannot be reshaped to {}", toString(in), toString(shape)));
        shape[static_cast<std::size_t>(open)] = static_cast<std::int64_t>(size);
    }
    toShape(t, std::move(shape));
}

void flatten(Translation& t, std::string_view) {
    const Shape& in = t.shape(0);
    std::int64_t axis = t.integer("axis", 1);
    const std::int64_t rank = t.rank(0);
    if (axis < 0) axis += rank;
    t.require(axis >= 0 && axis <= rank, "axis does not exist");
    const auto at = in.begin() + axis;
    const double rows = elementsOf({in.begin(), at}), columns = elementsOf({at, in.end()});
    t.require(rows <= kMaxElements && columns <= kMaxElements, "the result is too large");
    toShape(t, {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)});
}

void squeeze(Translation& t, std::string_view) {
    const auto listed = t.listed("axes", 1);
    if (!listed.known) return unknownSizes(t);
    const Shape& in = t.shape(0);
    const Ints axes = t.axes(listed.values.value_or(Ints{}), t.rank(0));
    Shape shape;
    for (std::size_t d = 0; d < in.size(); ++d) {
        const bool named = std::ranges::binary_search(axes, static_cast<std::int64_t>(d));
        t.require(!named || in[d] == 1, fmt::format("dimension {} of {} is squeezed away, but its "
                                                    "size is not 1",
                                                    d, toString(in)));
        if (listed.values ? !named : in[d] != 1) shape.push_back(in[d]);
    }
    toShape(t, std::move(shape));
}

void unsqueeze(Translation& t, std::string_view) {
    const auto listed = t.listed("axes", 1);
    if (!listed.known) return unknownSizes(t);
    const Ints given = listed.values.value_or(Ints{});
    t.require(given.size() <= kMaxRank, "there are too many axes");
    const std::int64_t rank = t.rank(0) + static_cast<std::int64_t>(given.size());
    const Ints axes = t.axes(given, rank);
    t.require(axes.size() == given.size(), "an axis is named twice");
    Shape shape;
    std::size_t next = 0;
    for (std::int64_t d = 0; d < rank; ++d)
        shape.push_back(std::ranges::binary_search(axes, d) ? 1 : t.shape(0)[next++]);
    toShape(t, std::move(shape));
}

void transpose(Translation& t, std::string_view) {
    Ints perm = t.integers("perm").value_or(Ints{});
    if (perm.empty()) {
        perm.resize(t.shape(0).size());
        std::iota(perm.rbegin(), perm.rend(), std::int64_t{0});
    }
    t.result(OpKind::Transpose, {{"perm", std::move(perm)}}, {t.input(0)});
}

void expand(Translation& t, std::string_view) {
    const KnownInts* wanted = t.ints(1);
    if (wanted == nullptr) return unknownSizes(t);
    const Shape& in = t.shape(0);
    Shape shape = *wanted;
    if (in.size() > shape.size()) shape.insert(shape.begin(), in.size() - shape.size(), 1);
    for (std::size_t d = 0; d < in.size(); ++d) {
        auto& size = shape[shape.size() - in.size() + d];
        t.require(size == in[d] || size == 1 || in[d] == 1,
                  fmt::format("{} does not expand to {}", toString(in), toString(*wanted)));
        if (size == 1) size = in[d];
    }
    t.result(OpKind::Expand, {{"shape", std::move(shape)}}, {t.input(0)});
}

void tile(Translation& t, std::string_view) {
    const KnownInts* repeats = t.ints(1);
    if (repeats == nullptr) return unknownSizes(t);
    const Shape& in = t.shape(0);
    t.require(repeats->size() == in.size(), "repeats and the operand's rank differ");
    for (std::size_t d = 0; d < in.size(); ++d)
        t.require((*repeats)[d] >= 0 &&
                      static_cast<double>((*repeats)[d]) * static_cast<double>(in[d]) <=
                          static_cast<double>(kMaxDim),
                  "repeats are out of range");
    t.result(OpKind::Tile, {{"repeats", *repeats}}, {t.input(0)});
}

/// Some exporters join [n] with a bare number: that is read as one element, and reported.
std::vector<TensorId> concatOperands(Translation& t) {
    std::vector<TensorId> operands;
    bool mixed = false;
    const auto rankOf = [&](std::size_t i) { return t.shape(i).size(); };
    std::size_t rank = 0;
    for (std::size_t i = 0; i < t.inputCount(); ++i) rank = std::max(rank, rankOf(i));
    for (std::size_t i = 0; i < t.inputCount(); ++i) {
        const bool bare = rankOf(i) == 0 && rank == 1;
        mixed = mixed || bare;
        operands.push_back(bare ? t.reshaped(t.input(i), {1}) : t.input(i));
    }
    if (mixed) t.builder().import().report.mixedRanks(t.index());
    return operands;
}

void concat(Translation& t, std::string_view) {
    t.input(0);
    std::vector<TensorId> operands = concatOperands(t);
    const auto rank = static_cast<std::int64_t>(t.specOf(operands[0]).shape.size());
    const std::int64_t axis = t.axis(t.integer("axis", 1), rank);
    if (operands.size() == 1) return t.alias(operands[0]);
    t.result(OpKind::Concat, {{"axis", axis}}, std::move(operands));
}

/// Equal parts where the file gives no sizes; the last one is smaller if they do not come out.
Ints equalParts(const Translation& t, std::int64_t size, std::int64_t parts) {
    t.require(parts > 0, "the number of parts must be positive");
    const std::int64_t each = (size + parts - 1) / parts;
    Ints sizes;
    for (std::int64_t i = 0; i < parts; ++i)
        sizes.push_back(std::clamp<std::int64_t>(size - i * each, 0, each));
    return sizes;
}

void split(Translation& t, std::string_view) {
    const auto listed = t.listed("split", 1);
    if (!listed.known) return unknownSizes(t);
    const std::int64_t axis = t.axis(t.integer("axis", 0), t.rank(0));
    const auto outputs = static_cast<std::int64_t>(t.outputCount());
    const std::int64_t size = t.shape(0)[static_cast<std::size_t>(axis)];
    Ints sizes =
        listed.values && !listed.values->empty() ? *listed.values : equalParts(t, size, outputs);
    t.require(static_cast<std::int64_t>(sizes.size()) == outputs &&
                  std::ranges::all_of(sizes, [size](auto s) { return s >= 0 && s <= size; }),
              "the parts do not fit the results");
    if (sizes.size() == 1) return t.alias(t.input(0));
    t.result(OpKind::Split, {{"axis", axis}, {"sizes", std::move(sizes)}}, {t.input(0)});
}

/// One axis of a slice with bounds inside the dimension; a downward one ends at -1 to take all.
struct Cut {
    std::int64_t axis, start, end, step;
};

Cut cutOf(const Translation& t, std::int64_t axis, std::int64_t start, std::int64_t end,
          std::int64_t step) {
    const std::int64_t size = t.shape(0)[static_cast<std::size_t>(axis)];
    t.require(step != 0, "a slice step is zero");
    step = std::clamp(step, -kMaxDim, kMaxDim);
    const auto fromFront = [size](std::int64_t at) {
        return at >= 0 ? at : std::max<std::int64_t>(at, -1 - size) + size; // -1: before the first
    };
    if (size == 0) return {axis, 0, 0, 1};
    if (step > 0)
        return {axis, std::clamp<std::int64_t>(fromFront(start), 0, size),
                std::clamp<std::int64_t>(fromFront(end), 0, size), step};
    return {axis, std::clamp<std::int64_t>(fromFront(start), 0, size - 1),
            std::clamp<std::int64_t>(fromFront(end), -1, size - 1), step};
}

void slice(Translation& t, std::string_view) {
    const auto starts = t.listed("starts", 1), ends = t.listed("ends", 2),
               axes = t.listed("axes", 3), steps = t.listed("steps", 4);
    if (!starts.known || !ends.known || !axes.known || !steps.known) return unknownSizes(t);
    t.require(starts.values && ends.values, "starts or ends are missing");
    const std::size_t count = starts.values->size();
    const auto fits = [count](const auto& list) {
        return !list.values || list.values->size() == count;
    };
    t.require(fits(ends) && fits(axes) && fits(steps),
              "starts, ends, axes and steps differ in length");
    std::vector<Cut> cuts;
    for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t axis =
            t.axis(axes.values ? (*axes.values)[i] : static_cast<std::int64_t>(i), t.rank(0));
        cuts.push_back(cutOf(t, axis, (*starts.values)[i], (*ends.values)[i],
                             steps.values ? (*steps.values)[i] : 1));
    }
    std::ranges::sort(cuts, {}, &Cut::axis);
    t.require(std::ranges::adjacent_find(cuts, {}, &Cut::axis) == cuts.end(),
              "an axis is sliced twice");
    std::erase_if(cuts, [&](const Cut& cut) {
        return cut.start == 0 && cut.step == 1 &&
               cut.end == t.shape(0)[static_cast<std::size_t>(cut.axis)];
    });
    if (cuts.empty()) return t.alias(t.input(0));
    Ints columns[4];
    for (const Cut& cut : cuts) {
        columns[0].push_back(cut.axis);
        columns[1].push_back(cut.start);
        // -1 would count from the end again: "down to the first element" is written below all.
        const std::int64_t size = t.shape(0)[static_cast<std::size_t>(cut.axis)];
        columns[2].push_back(cut.end < 0 ? -1 - size : cut.end);
        columns[3].push_back(cut.step);
    }
    t.result(
        OpKind::Slice,
        {{"axes", columns[0]}, {"starts", columns[1]}, {"ends", columns[2]}, {"steps", columns[3]}},
        {t.input(0)});
}

/// What fills the padding: 0, a known number, or an operand.
void setPadValue(const Translation& t, Attributes& attributes, std::vector<TensorId>& operands) {
    const auto* numbers = t.floats(2);
    std::optional<double> value;
    if (const auto integer = t.scalar(2)) value = static_cast<double>(*integer);
    if (numbers != nullptr && numbers->size() == 1) value = numbers->front();
    if (t.hasAttribute("value")) value = t.number("value", 0);
    if (value && *value != 0) attributes.set("value", *value);
    if (!value && t.has(2)) operands.push_back(t.input(2));
}

void pad(Translation& t, std::string_view) {
    const auto pads = t.listed(t.opset() < 2 ? "paddings" : "pads", 1);
    const auto listedAxes = t.listed("", 3);
    if (!pads.known || !listedAxes.known) return unknownSizes(t);
    t.require(pads.values.has_value(), "pads are missing");
    const auto rank = static_cast<std::size_t>(t.rank(0));
    Ints axes(rank);
    std::iota(axes.begin(), axes.end(), std::int64_t{0});
    if (listedAxes.values) axes = *listedAxes.values;
    const std::size_t count = axes.size();
    t.require(pads.values->size() == 2 * count, "pads must have two entries a dimension");
    Ints full(2 * rank, 0);
    for (std::size_t i = 0; i < count; ++i) {
        const auto d = static_cast<std::size_t>(t.axis(axes[i], t.rank(0)));
        full[d] = (*pads.values)[i];
        full[d + rank] = (*pads.values)[i + count];
    }
    t.require(std::ranges::all_of(full, [](auto p) { return p >= -kMaxDim && p <= kMaxDim; }),
              "pads are out of range");
    if (std::ranges::all_of(full, [](auto p) { return p == 0; })) return t.alias(t.input(0));
    Attributes attributes{{"pads", std::move(full)}};
    const std::string_view mode = t.text("mode", "constant");
    if (mode != "constant") attributes.set("mode", std::string(mode));
    std::vector<TensorId> operands{t.input(0)};
    setPadValue(t, attributes, operands);
    t.result(OpKind::Pad, std::move(attributes), std::move(operands));
}

/// Indices that are known must exist: a table of positions bounds the sequence length.
void gather(Translation& t, std::string_view) {
    const std::int64_t axis = t.axis(t.integer("axis", 0), t.rank(0));
    const std::int64_t size = t.shape(0)[static_cast<std::size_t>(axis)];
    if (const KnownInts* indices = t.ints(1))
        for (const std::int64_t index : *indices)
            t.require(index >= -size && index < size,
                      fmt::format("index {} is read from a table of {}", index, size));
    t.result(OpKind::Gather, {{"axis", axis}}, {t.input(0), t.input(1)});
}

/// DepthToSpace and SpaceToDepth are a reshape, a transpose and a reshape.
void depthToSpace(Translation& t, std::string_view) {
    t.require(t.rank(0) == 4, "the operand must have four dimensions");
    const Shape in = t.shape(0);
    const std::int64_t s = t.integer("blocksize", 1);
    t.require(s > 0 && s <= 4096 && in[1] % (s * s) == 0, "blocksize does not divide the channels");
    const std::int64_t c = in[1] / (s * s);
    const bool columnFirst = t.text("mode", "DCR") == "CRD";
    const TensorId blocks =
        t.reshaped(t.input(0), columnFirst ? Shape{in[0], c, s, s, in[2], in[3]}
                                           : Shape{in[0], s, s, c, in[2], in[3]});
    const TensorId moved =
        t.transposed(blocks, columnFirst ? Ints{0, 1, 4, 2, 5, 3} : Ints{0, 3, 4, 1, 5, 2});
    t.result(OpKind::Reshape, {{"shape", Shape{in[0], c, in[2] * s, in[3] * s}}}, {moved});
}

void spaceToDepth(Translation& t, std::string_view) {
    t.require(t.rank(0) == 4, "the operand must have four dimensions");
    const Shape in = t.shape(0);
    const std::int64_t s = t.integer("blocksize", 1);
    t.require(s > 0 && s <= 4096 && in[2] % s == 0 && in[3] % s == 0,
              "blocksize does not divide the image");
    const TensorId blocks = t.reshaped(t.input(0), {in[0], in[1], in[2] / s, s, in[3] / s, s});
    const TensorId moved = t.transposed(blocks, {0, 3, 5, 1, 2, 4});
    t.result(OpKind::Reshape, {{"shape", Shape{in[0], in[1] * s * s, in[2] / s, in[3] / s}}},
             {moved});
}

} // namespace

std::vector<Rule> movementRules() {
    return {
        {"Reshape", reshape},
        {"Flatten", flatten},
        {"Squeeze", squeeze},
        {"Unsqueeze", unsqueeze},
        {"Transpose", transpose},
        {"Expand", expand},
        {"Tile", tile},
        {"Concat", concat},
        {"Split", split},
        {"Slice", slice},
        {"Pad", pad},
        {"Gather", gather},
        {"DepthToSpace", depthToSpace},
        {"SpaceToDepth", spaceToDepth},
    };
}

} // namespace shardlens::onnx
