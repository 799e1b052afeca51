// SPDX-License-Identifier: Apache-2.0
// Wire fields to structs. Fields of a type we do not expect are skipped, as protobuf readers do;
// what is missing shows later, where it is needed. A budget on the number of structs keeps memory
// in proportion to any honest file.
#include "core/import/onnx_model.h"

#include "core/error.h"
#include "core/import/onnx_tensor.h"
#include "core/import/protobuf_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace shardlens::onnx {

namespace {

using wire::Field;
using wire::Reader;
using wire::Type;

constexpr std::size_t kMaxItems = 4'000'000; ///< nodes, attributes, tensors and values together

class Parser {
public:
    Parser(std::string_view where, const std::stop_token& stop) : m_where(where), m_stop(stop) {}

    Model model(std::span<const std::byte> file);

private:
    /// Counts a struct, and polls for cancellation.
    void count(const Reader& reader) {
        if (++m_items > kMaxItems)
            reader.fail(fmt::format("more than {} nodes and values", kMaxItems), reader.offset());
        if (m_items % 1024 == 0 && m_stop.stop_requested()) throw Cancelled();
    }

    GraphData graph(Reader reader, int depth);
    void graphField(const Reader& reader, const Field& field, GraphData& graph, int depth);
    Node node(Reader reader, int depth);
    Attribute attribute(Reader reader, int depth);
    TensorData tensor(const Reader& reader) {
        count(reader);
        return parseTensor(reader);
    }
    TensorData sparseTensor(Reader reader);
    ValueInfo value(Reader reader);
    void valueType(Reader reader, ValueInfo& value);
    void shape(Reader reader, ValueInfo& value);
    Function function(Reader reader);
    OpsetImport opset(Reader reader);

    std::string_view m_where;
    const std::stop_token& m_stop;
    std::size_t m_items = 0;
    std::size_t m_nodes = 0;
};

Model Parser::model(std::span<const std::byte> file) {
    Reader reader(file, 0, m_where);
    Model model;
    bool hasGraph = false;
    for (Field field; reader.next(field);) {
        if (field.is(1, Type::Varint)) model.irVersion = field.integer();
        if (field.is(2, Type::Bytes)) model.producer = field.text();
        if (field.is(3, Type::Bytes)) model.producerVersion = field.text();
        if (field.is(7, Type::Bytes)) {
            if (hasGraph) reader.fail("a second graph begins", field.offset);
            model.graph = graph(reader.nested(field), 0);
            hasGraph = true;
        }
        if (field.is(8, Type::Bytes)) model.opsets.push_back(opset(reader.nested(field)));
        if (field.is(25, Type::Bytes)) model.functions.push_back(function(reader.nested(field)));
    }
    model.nodeCount = m_nodes;
    if (!hasGraph) reader.fail("the file is cut off: there is no graph", reader.offset());
    return model;
}

GraphData Parser::graph(Reader reader, int depth) {
    if (depth > kMaxDepth)
        reader.fail(fmt::format("graphs are nested deeper than {}", kMaxDepth), reader.offset());
    GraphData graph;
    for (Field field; reader.next(field);)
        if (field.type == Type::Bytes) graphField(reader, field, graph, depth);
    return graph;
}

void Parser::graphField(const Reader& reader, const Field& field, GraphData& graph, int depth) {
    const Reader inner = reader.nested(field);
    switch (field.number) {
    case 1:
        graph.nodes.push_back(node(inner, depth));
        break;
    case 2:
        graph.name = field.text();
        break;
    case 5:
        graph.initializers.push_back(tensor(inner));
        break;
    case 11:
        graph.inputs.push_back(value(inner));
        break;
    case 12:
        graph.outputs.push_back(value(inner));
        break;
    case 13:
        graph.values.push_back(value(inner));
        break;
    case 15:
        graph.initializers.push_back(sparseTensor(inner));
        break;
    default:
        break;
    }
}

Node Parser::node(Reader reader, int depth) {
    count(reader);
    Node node;
    node.offset = reader.offset();
    const std::size_t nodesBefore = ++m_nodes;
    for (Field field; reader.next(field);) {
        if (field.type != Type::Bytes) continue;
        switch (field.number) {
        case 1:
            node.inputs.push_back(field.text());
            break;
        case 2:
            node.outputs.push_back(field.text());
            break;
        case 3:
            node.name = field.text();
            break;
        case 4:
            node.type = field.text();
            break;
        case 5:
            node.attributes.push_back(attribute(reader.nested(field), depth));
            break;
        case 7:
            node.domain = normalDomain(field.text());
            break;
        case 8:
            node.overload = field.text();
            break;
        default:
            break;
        }
    }
    if (node.type.empty()) reader.fail("a node has no op type", node.offset);
    node.nested = m_nodes - nodesBefore;
    return node;
}

Attribute::Type typeFromNumber(std::int64_t number) {
    using enum Attribute::Type;
    switch (number) {
    case 1:
        return Float;
    case 2:
        return Int;
    case 3:
        return String;
    case 4:
        return Tensor;
    case 5:
        return Graph;
    case 6:
        return Floats;
    case 7:
        return Ints;
    case 8:
        return Strings;
    default:
        return number == 0 ? Undefined : Other;
    }
}

Attribute Parser::attribute(Reader reader, int depth) {
    count(reader);
    using enum Attribute::Type;
    Attribute attribute;
    Attribute::Type seen = Undefined; // files of IR 1 do not state the type
    constexpr std::size_t kAll = ~std::size_t{0};
    for (Field field; reader.next(field);) {
        if (field.is(1, Type::Bytes)) attribute.name = field.text();
        if (field.is(20, Type::Varint)) attribute.type = typeFromNumber(field.integer());
        if (field.is(21, Type::Bytes)) attribute.reference = field.text();
        if (field.is(2, Type::Fixed32)) {
            const auto bits = static_cast<std::uint32_t>(field.value);
            attribute.number = static_cast<double>(std::bit_cast<float>(bits));
            seen = Float;
        } else if (field.is(3, Type::Varint)) {
            attribute.integer = field.integer();
            seen = Int;
        } else if (field.is(4, Type::Bytes)) {
            attribute.text = field.text();
            seen = String;
        } else if (field.is(5, Type::Bytes)) {
            attribute.tensor = std::make_unique<TensorData>(tensor(reader.nested(field)));
            seen = Tensor;
        } else if (field.is(6, Type::Bytes)) {
            attribute.graph = std::make_unique<GraphData>(graph(reader.nested(field), depth + 1));
            seen = Graph;
        } else if (field.number == 7) {
            wire::appendFloats(reader, field, attribute.numbers, kAll);
            seen = Floats;
        } else if (field.number == 8) {
            wire::appendIntegers(reader, field, attribute.integers, kAll);
            seen = Ints;
        } else if (field.is(9, Type::Bytes)) {
            attribute.texts.push_back(field.text());
            seen = Strings;
        }
    }
    if (attribute.type == Undefined) attribute.type = seen;
    return attribute;
}

TensorData Parser::sparseTensor(Reader reader) {
    TensorData dense;
    Shape dims;
    for (Field field; reader.next(field);) {
        if (field.is(1, Type::Bytes)) dense = tensor(reader.nested(field));
        if (field.number == 3) wire::appendIntegers(reader, field, dims, kMaxRank + 1);
    }
    checkDims(reader, dims, dense.name);
    dense.dims = std::move(dims);
    dense.ints.reset();
    dense.floats.reset();
    return dense;
}

ValueInfo Parser::value(Reader reader) {
    count(reader);
    ValueInfo value;
    value.offset = reader.offset();
    for (Field field; reader.next(field);) {
        if (field.is(1, Type::Bytes)) value.name = field.text();
        if (field.is(2, Type::Bytes)) valueType(reader.nested(field), value);
    }
    return value;
}

void Parser::valueType(Reader reader, ValueInfo& value) {
    for (Field field; reader.next(field);) {
        if (!field.is(1, Type::Bytes)) continue; // sequences, maps and optionals are no tensors
        Reader type = reader.nested(field);
        for (Field part; type.next(part);) {
            if (part.is(1, Type::Varint))
                value.dtype = dtypeFromOnnx(part.integer()).value_or(DType::Unknown);
            if (part.is(2, Type::Bytes)) shape(type.nested(part), value);
        }
    }
}

void Parser::shape(Reader reader, ValueInfo& value) {
    value.dims.emplace();
    for (Field field; reader.next(field);) {
        if (!field.is(1, Type::Bytes)) continue;
        if (value.dims->size() >= kMaxRank)
            reader.fail(fmt::format("a shape has more than {} dimensions", kMaxRank), field.offset);
        Dimension dimension;
        Reader dim = reader.nested(field);
        for (Field part; dim.next(part);) {
            if (part.is(1, Type::Varint)) dimension = part.integer();
            if (part.is(2, Type::Bytes) && !part.bytes.empty()) dimension = part.text();
        }
        value.dims->push_back(dimension);
    }
}

Function Parser::function(Reader reader) {
    count(reader);
    Function function;
    for (Field field; reader.next(field);) {
        if (field.type != Type::Bytes) continue;
        switch (field.number) {
        case 1:
            function.name = field.text();
            break;
        case 4:
            function.inputs.push_back(field.text());
            break;
        case 5:
            function.outputs.push_back(field.text());
            break;
        case 7:
            function.nodes.push_back(node(reader.nested(field), 0));
            break;
        case 9:
            function.opsets.push_back(opset(reader.nested(field)));
            break;
        case 10:
            function.domain = normalDomain(field.text());
            break;
        case 11:
            function.defaults.push_back(attribute(reader.nested(field), 0));
            break;
        case 12:
            function.values.push_back(value(reader.nested(field)));
            break;
        case 13:
            function.overload = field.text();
            break;
        default:
            break;
        }
    }
    return function;
}

OpsetImport Parser::opset(Reader reader) {
    count(reader);
    OpsetImport import;
    for (Field field; reader.next(field);) {
        if (field.is(1, Type::Bytes)) import.domain = normalDomain(field.text());
        if (field.is(2, Type::Varint)) import.version = field.integer();
    }
    return import;
}

} // namespace

const Attribute* Node::attribute(std::string_view wanted) const {
    const auto found = std::ranges::find(attributes, wanted, &Attribute::name);
    return found == attributes.end() ? nullptr : &*found;
}

std::string_view normalDomain(std::string_view domain) {
    return domain == "ai.onnx" ? std::string_view{} : domain;
}

Model parseModel(std::span<const std::byte> file, const std::string& where,
                 const std::stop_token& stop) {
    return Parser(where, stop).model(file);
}

} // namespace shardlens::onnx
