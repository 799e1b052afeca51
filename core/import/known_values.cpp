// SPDX-License-Identifier: Apache-2.0
// Bookkeeping of known elements, and the ops that move them: a transpose, an expansion and a slice
// are one and the same strided walk over the operand.
#include "core/import/known_values.h"

#include "core/import/element_functions.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace shardlens {

namespace {

using Scalar = KnownValues::Scalar;
using Elements = KnownValues::Elements;
using Ints = std::vector<std::int64_t>;

std::size_t countOf(const Shape& shape) {
    return std::accumulate(
        shape.begin(), shape.end(), std::size_t{1},
        [](std::size_t n, std::int64_t d) { return n * static_cast<std::size_t>(d); });
}

Ints stridesOf(const Shape& shape) {
    Ints strides(shape.size(), 1);
    for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
    return strides;
}

/// Strides of an operand read under numpy broadcasting to `result`; 0 where it is repeated.
Ints broadcastStrides(const Shape& shape, const Shape& result) {
    const Ints own = stridesOf(shape);
    Ints strides(result.size(), 0);
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (shape[d] != 1) strides[d + result.size() - shape.size()] = own[d];
    return strides;
}

/// Calls `visit(index)` for each position of `shape` in row-major order with the strided index.
template <typename Visit>
void walk(const Shape& shape, const Ints& strides, std::int64_t offset, Visit visit) {
    const std::size_t count = countOf(shape);
    Ints position(shape.size(), 0);
    std::int64_t index = offset;
    for (std::size_t i = 0; i < count; ++i) {
        visit(static_cast<std::size_t>(index));
        for (std::size_t d = shape.size(); d-- > 0;) {
            index += strides[d];
            if (++position[d] < shape[d]) break;
            index -= strides[d] * shape[d];
            position[d] = 0;
        }
    }
}

Elements strided(const Elements& data, const Shape& result, const Ints& strides,
                 std::int64_t offset = 0) {
    Elements elements;
    walk(result, strides, offset, [&](std::size_t i) { elements.push_back(data[i]); });
    return elements;
}

/// An op with everything an evaluation reads.
struct Work {
    const Op& op;
    std::vector<TensorSpec> specs; ///< of the operands
    std::vector<Elements> values;  ///< of the operands
    TensorSpec result;             ///< result 0
};
using Evaluated = std::optional<Elements>;

Evaluated transpose(const Work& work) {
    const Ints own = stridesOf(work.specs[0].shape);
    Ints strides;
    for (const std::int64_t p : work.op.attributes.integers("perm"))
        strides.push_back(own[static_cast<std::size_t>(p)]);
    return strided(work.values[0], work.result.shape, strides);
}

Evaluated expand(const Work& work) {
    return strided(work.values[0], work.result.shape,
                   broadcastStrides(work.specs[0].shape, work.result.shape));
}

Evaluated slice(const Work& work) {
    const Attributes& a = work.op.attributes;
    const Ints axes = a.integers("axes"), starts = a.integers("starts"),
               steps = a.integers("steps");
    Ints strides = stridesOf(work.specs[0].shape);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        auto& stride = strides[static_cast<std::size_t>(axes[i])];
        offset += starts[i] * stride;
        stride *= steps[i];
    }
    return strided(work.values[0], work.result.shape, strides, offset);
}

Evaluated gather(const Work& work) {
    const Shape& table = work.specs[0].shape;
    const auto axis = static_cast<std::size_t>(work.op.attributes.integer("axis", 0));
    const auto at = table.begin() + static_cast<std::ptrdiff_t>(axis);
    const std::size_t outer = countOf({table.begin(), at}), inner = countOf({at + 1, table.end()});
    const std::int64_t size = table[axis];
    Elements elements;
    for (std::size_t o = 0; o < outer; ++o) {
        for (const Scalar& entry : work.values[1]) {
            const auto* index = std::get_if<std::int64_t>(&entry);
            if (!index || *index < -size || *index >= size) return std::nullopt;
            const auto row = static_cast<std::size_t>(*index < 0 ? *index + size : *index);
            const auto first =
                work.values[0].begin() +
                static_cast<std::ptrdiff_t>((o * static_cast<std::size_t>(size) + row) * inner);
            elements.insert(elements.end(), first, first + static_cast<std::ptrdiff_t>(inner));
        }
    }
    return elements;
}

Evaluated concat(const Work& work) {
    const auto axis = static_cast<std::size_t>(work.op.attributes.integer("axis", 0));
    const Shape& result = work.result.shape;
    const std::size_t outer =
        countOf({result.begin(), result.begin() + static_cast<std::ptrdiff_t>(axis)});
    Elements elements;
    for (std::size_t o = 0; o < outer; ++o) {
        for (const Elements& value : work.values) {
            const std::size_t block = value.size() / outer;
            const auto first = value.begin() + static_cast<std::ptrdiff_t>(o * block);
            elements.insert(elements.end(), first, first + static_cast<std::ptrdiff_t>(block));
        }
    }
    return elements;
}

Evaluated tile(const Work& work) {
    const Shape &in = work.specs[0].shape, &out = work.result.shape;
    const Ints inStrides = stridesOf(in), outStrides = stridesOf(out);
    Elements elements;
    for (std::size_t i = 0; i < countOf(out); ++i) {
        std::size_t index = 0;
        for (std::size_t d = 0; d < out.size(); ++d) {
            const auto position = static_cast<std::int64_t>(i) / outStrides[d] % out[d];
            index += static_cast<std::size_t>(position % in[d] * inStrides[d]);
        }
        elements.push_back(work.values[0][index]);
    }
    return elements;
}

Evaluated elementwise(const Work& work) {
    const Shape& result = work.result.shape;
    std::vector<Elements> operands;
    for (std::size_t i = 0; i < work.values.size(); ++i)
        operands.push_back(
            strided(work.values[i], result, broadcastStrides(work.specs[i].shape, result)));
    Elements elements;
    std::vector<Scalar> arguments(operands.size());
    for (std::size_t e = 0; e < countOf(result); ++e) {
        for (std::size_t i = 0; i < operands.size(); ++i) arguments[i] = operands[i][e];
        const auto value = applyFunction(work.op.attributes, arguments, work.result.dtype);
        if (!value) return std::nullopt;
        elements.push_back(*value);
    }
    return elements;
}

Evaluated reduce(const Work& work) {
    const std::string function = work.op.attributes.text("function");
    const std::string_view step = function == "sum"    ? "add"
                                  : function == "prod" ? "mul"
                                  : function == "max"  ? "max"
                                  : function == "min"  ? "min"
                                                       : "";
    if (step.empty()) return std::nullopt;
    const Attributes combine{{"function", std::string(step)}};
    const Shape& in = work.specs[0].shape;
    // Strides into the result: 0 along what is reduced.
    Shape kept = in;
    for (const std::int64_t axis : work.op.attributes.integers("axes"))
        kept[static_cast<std::size_t>(axis)] = 1;
    std::vector<std::optional<Scalar>> sums(countOf(kept));
    std::size_t next = 0;
    bool failed = false;
    walk(in, broadcastStrides(kept, in), 0, [&](std::size_t target) {
        const Scalar& element = work.values[0][next++];
        auto& sum = sums[target];
        sum = sum ? applyFunction(combine, std::vector<Scalar>{*sum, element}, work.result.dtype)
                  : std::optional(element);
        failed = failed || !sum;
    });
    Elements elements;
    for (const auto& sum : sums) {
        if (failed || !sum) return std::nullopt;
        elements.push_back(*sum);
    }
    return elements;
}

Evaluated cumulative(const Work& work) {
    const Attributes& a = work.op.attributes;
    const Shape& shape = work.specs[0].shape;
    if (shape.size() != 1 || a.has("reverse") || a.has("exclusive") || a.has("function"))
        return std::nullopt;
    const Attributes add{{"function", std::string("add")}};
    Elements elements;
    for (const Scalar& element : work.values[0]) {
        const auto sum = elements.empty()
                             ? std::optional(element)
                             : applyFunction(add, std::vector<Scalar>{elements.back(), element},
                                             work.result.dtype);
        if (!sum) return std::nullopt;
        elements.push_back(*sum);
    }
    return elements;
}

Evaluated evaluate(const Work& work) {
    switch (work.op.kind) {
    case OpKind::Reshape:
        return work.values[0];
    case OpKind::Transpose:
        return transpose(work);
    case OpKind::Expand:
        return expand(work);
    case OpKind::Slice:
        return slice(work);
    case OpKind::Gather:
        return gather(work);
    case OpKind::Concat:
        return concat(work);
    case OpKind::Tile:
        return tile(work);
    case OpKind::Elementwise:
        return elementwise(work);
    case OpKind::Reduce:
        return reduce(work);
    case OpKind::CumSum:
        return cumulative(work);
    default:
        return std::nullopt;
    }
}

/// The parts of a known tensor that is split.
std::vector<Elements> split(const Work& work) {
    const Shape& in = work.specs[0].shape;
    const auto axis = static_cast<std::size_t>(work.op.attributes.integer("axis", 0));
    const Ints strides = stridesOf(in);
    std::int64_t offset = 0;
    std::vector<Elements> parts;
    for (const std::int64_t size : work.op.attributes.integers("sizes")) {
        Shape shape = in;
        shape[axis] = size;
        parts.push_back(strided(work.values[0], shape, strides, offset * strides[axis]));
        offset += size;
    }
    return parts;
}

} // namespace

const KnownInts* KnownValues::ints(TensorId id) const {
    if (id == kNoTensor) return nullptr;
    const auto& value = m_graph.tensor(id).value;
    return value ? &*value : nullptr;
}

const std::vector<double>* KnownValues::floats(TensorId id) const {
    const auto found = m_floats.find(id);
    return found == m_floats.end() ? nullptr : &found->second;
}

std::optional<Elements> KnownValues::elements(TensorId id) const {
    if (const KnownInts* values = ints(id)) return Elements(values->begin(), values->end());
    if (const auto* values = floats(id)) return Elements(values->begin(), values->end());
    return std::nullopt;
}

bool KnownValues::takes(TensorId id, std::size_t count, std::size_t limit) {
    const TensorSpec& spec = m_graph.tensor(id).spec;
    if (count > limit || elementsOf(spec.shape) != static_cast<double>(count)) return false;
    if (m_total + count > kMaxTotal) return false;
    m_total += count;
    return true;
}

void KnownValues::setInts(TensorId id, KnownInts values) {
    if (isFloat(m_graph.tensor(id).spec.dtype) || !takes(id, values.size(), kMaxInts)) return;
    m_graph.setKnownValue(id, std::move(values));
}

void KnownValues::setFloats(TensorId id, std::vector<double> values) {
    if (!isFloat(m_graph.tensor(id).spec.dtype) || !takes(id, values.size(), kMaxFloats)) return;
    m_graph.setKnownReals(id, values);
    m_floats[id] = std::move(values);
}

void KnownValues::set(TensorId id, const Elements& elements) {
    const DType dtype = m_graph.tensor(id).spec.dtype;
    KnownInts integers;
    std::vector<double> numbers;
    for (const Scalar& element : elements) {
        const auto value = castTo(element, dtype);
        if (!value) return;
        if (const auto* integer = std::get_if<std::int64_t>(&*value)) integers.push_back(*integer);
        if (const auto* number = std::get_if<double>(&*value)) numbers.push_back(*number);
    }
    if (isFloat(dtype))
        setFloats(id, std::move(numbers));
    else
        setInts(id, std::move(integers));
}

void KnownValues::propagate(OpId id) {
    const Op& op = m_graph.op(id);
    if (op.inputs.empty() || op.outputs.empty()) return;
    const TensorSpec& result = m_graph.tensor(op.outputs[0]).spec;
    const std::size_t limit = isFloat(result.dtype) ? kMaxFloats : kMaxInts;
    if (result.dtype == DType::Unknown || elementsOf(result.shape) > static_cast<double>(limit))
        return;
    Work work{op, m_graph.inputSpecs(id), {}, result};
    for (const TensorId input : op.inputs) {
        auto values = elements(input);
        if (!values) return;
        work.values.push_back(std::move(*values));
    }
    if (elementsOf(result.shape) == 0) return set(op.outputs[0], {});
    const auto isEmpty = [](const Elements& values) { return values.empty(); };
    if (op.kind != OpKind::Concat && std::ranges::any_of(work.values, isEmpty)) return;
    if (op.kind == OpKind::Split) {
        const std::vector<Elements> parts = split(work);
        for (std::size_t i = 0; i < parts.size(); ++i) set(op.outputs[i], parts[i]);
    } else if (const Evaluated value = evaluate(work)) {
        set(op.outputs[0], *value);
    }
}

} // namespace shardlens
