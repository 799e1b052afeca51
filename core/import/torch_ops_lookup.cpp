// SPDX-License-Identifier: Apache-2.0
// Operators of PyTorch that read or write at places which a tensor names, and triangles.
#include "core/import/torch_translation.h"

namespace shardlens::torch {

namespace {

void embedding(Translation& t, std::string_view) {
    t.result(OpKind::Gather, {{"axis", std::int64_t{0}}},
             {t.tensor(0, "weight"), t.tensor(1, "indices|input")});
}

void indexSelect(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    t.require(t.rank(x) > 0, "its operand has no dimension");
    t.result(OpKind::Gather, {{"axis", t.axis(t.integer(1, "dim", 0), t.rank(x))}},
             {x, t.tensor(2, "index")});
}

void gather(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self"), index = t.tensor(2, "index");
    t.require(t.rank(x) > 0, "its operand has no dimension");
    t.result(OpKind::GatherElements, {{"axis", t.axis(t.integer(1, "dim", 0), t.rank(x))}},
             {x, index});
}

/// Along one dimension; updates are written over the entries, or added.
void scatter(Translation& t, std::string_view reduction) {
    const TensorId x = t.tensor(0, "self");
    t.require(t.rank(x) > 0 && !t.has(4, "reduce"), "it reduces otherwise");
    t.result(OpKind::Scatter,
             {{"mode", std::string("elements")},
              {"axis", t.axis(t.integer(1, "dim", 0), t.rank(x))},
              {"reduction", std::string(reduction)}},
             {x, t.tensor(2, "index"), t.tensor(3, "src")});
}

bool countsUp(Translation& t, TensorId x, std::int64_t size) {
    const Graph& graph = t.builder().graph();
    const Op& op = graph.op(graph.tensor(x).producer);
    return op.kind == OpKind::Generate && op.attributes.text("function") == "range" &&
           op.attributes.number("start", 0) == 0 && op.attributes.number("step", 1) == 1 &&
           graph.tensor(x).spec.shape == Shape{size};
}

/// x[rows, labels] with rows 0, 1, 2 …: one entry a row.
void pickByRow(Translation& t, TensorId x, TensorId rows, TensorId labels) {
    const Shape shape = t.shape(x);
    t.require(shape.size() == 2 && countsUp(t, rows, shape[0]) &&
                  t.shape(labels) == Shape{shape[0]},
              "it looks up by several indices");
    const TensorId column = t.reshaped(labels, {shape[0], 1});
    const TensorId picked =
        t.step(OpKind::GatherElements, {{"axis", std::int64_t{1}}}, {x, column});
    t.alias(t.reshaped(picked, {shape[0]}));
}

/// index.Tensor: one list of whole numbers is a look-up; masks have results of unknown size.
void index(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    const Value& list = t.argument(1, "indices");
    std::vector<std::pair<std::int64_t, TensorId>> indices;
    for (std::size_t d = 0; d < list.items.size(); ++d)
        if (list.items[d].kind == Value::Kind::Tensor)
            indices.emplace_back(static_cast<std::int64_t>(d), list.items[d].tensor);
    t.require(!indices.empty(), "it looks up by no tensor");
    for (const auto& [dim, tensor] : indices)
        t.require(t.typeOf(tensor) != DType::Bool && dim < t.rank(x), "it looks up by a mask");
    if (indices.size() == 2 && indices[0].first == 0 && indices[1].first == 1)
        return pickByRow(t, x, indices[0].second, indices[1].second);
    t.require(indices.size() == 1, "it looks up by several indices");
    t.result(OpKind::Gather, {{"axis", indices[0].first}}, {x, indices[0].second});
}

/// What lies on the other side of a diagonal becomes 0.
void triangle(Translation& t, std::string_view side) {
    t.result(OpKind::Trilu,
             {{"upper", std::int64_t{side == "upper" ? 1 : 0}},
              {"diagonal", t.integer(1, "diagonal", 0)}},
             {t.tensor(0, "self")});
}

} // namespace

std::vector<Rule> lookupRules() {
    return {
        {"embedding", embedding},     {"index_select", indexSelect},   {"gather", gather},
        {"scatter", scatter, "none"}, {"scatter_add", scatter, "add"}, {"index", index},
        {"_unsafe_index", index},     {"tril", triangle, "lower"},     {"triu", triangle, "upper"},
    };
}

} // namespace shardlens::torch
