// SPDX-License-Identifier: Apache-2.0
// Taking merged dimensions apart changes no number: random chains of reshapes, transposes and other
// ops are computed element by element before and after.
#include "core/model/canonical.h"
#include "core/model/catalogue.h"
#include "core/model/merged_dims.h"
#include "tests/test_program.h"

#include <QTest>

#include <cmath>
#include <random>

namespace tst_merged_dims {

using namespace shardlens;

namespace {

using Values = std::vector<double>;

std::size_t elements(const Shape& shape) {
    return static_cast<std::size_t>(elementsOf(shape));
}

std::size_t flat(const Shape& shape, const Shape& at) {
    std::size_t index = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
        index = index * static_cast<std::size_t>(shape[d]) + static_cast<std::size_t>(at[d]);
    return index;
}

Shape position(const Shape& shape, std::size_t index) {
    Shape at(shape.size());
    for (std::size_t d = shape.size(); d-- > 0;) {
        at[d] = static_cast<std::int64_t>(index) % shape[d];
        index /= static_cast<std::size_t>(shape[d]);
    }
    return at;
}

/// The element of a tensor that broadcasts to a result position, aligned at the right.
double broadcast(const Values& values, const Shape& shape, const Shape& at) {
    Shape own(at.end() - static_cast<std::ptrdiff_t>(shape.size()), at.end());
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (shape[d] == 1) own[d] = 0;
    return values[flat(shape, own)];
}

/// Reference kernels of the ops that the tests use, straight from the comments of OpKind.
class Machine {
public:
    explicit Machine(const Graph& graph) : m_graph(graph), m_values(graph.tensors().size()) {
        for (OpId id = 0; id < graph.ops().size(); ++id) run(graph.op(id));
    }
    const Values& of(TensorId id) const { return m_values[id]; }

private:
    const Shape& shape(TensorId id) const { return m_graph.tensor(id).spec.shape; }

    void run(const Op& op) {
        const Shape& out = shape(op.outputs[0]);
        Values result(elements(out));
        for (std::size_t i = 0; i < result.size(); ++i)
            result[i] = element(op, position(out, i), i);
        m_values[op.outputs[0]] = std::move(result);
    }

    double element(const Op& op, const Shape& at, std::size_t index) const {
        const auto in = [&](std::size_t port) -> const Values& {
            return m_values[op.inputs[port]];
        };
        switch (op.kind) {
        case OpKind::Reshape:
            return in(0)[index];
        case OpKind::Elementwise:
            return broadcast(in(0), shape(op.inputs[0]), at) +
                   2 * broadcast(in(1), shape(op.inputs[1]), at);
        case OpKind::Transpose: {
            const auto perm = op.attributes.integers("perm");
            Shape from(at.size());
            for (std::size_t d = 0; d < at.size(); ++d)
                from[static_cast<std::size_t>(perm[d])] = at[d];
            return in(0)[flat(shape(op.inputs[0]), from)];
        }
        case OpKind::MatMul:
            return product(op, at);
        case OpKind::Reduce:
        case OpKind::Softmax:
            return alongAxes(op, at);
        case OpKind::Slice: {
            Shape from = at;
            const auto axes = op.attributes.integers("axes"),
                       starts = op.attributes.integers("starts");
            for (std::size_t i = 0; i < axes.size(); ++i)
                from[static_cast<std::size_t>(axes[i])] += starts[i];
            return in(0)[flat(shape(op.inputs[0]), from)];
        }
        case OpKind::GatherElements: {
            const auto axis = static_cast<std::size_t>(op.attributes.integer("axis", 0));
            Shape from = at;
            from[axis] = static_cast<std::int64_t>(in(1)[index] * 1000) % shape(op.inputs[0])[axis];
            return in(0)[flat(shape(op.inputs[0]), from)];
        }
        case OpKind::Gather: {
            const Shape &table = shape(op.inputs[0]), &indices = shape(op.inputs[1]);
            const Shape row(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(indices.size()));
            const double chosen = std::fmod(std::abs(in(1)[flat(indices, row)]) * 1000,
                                            static_cast<double>(table[0]));
            return in(0)[flat(table, {static_cast<std::int64_t>(chosen), at.back()})];
        }
        default: // sources: the same numbers in both graphs, by name
            return static_cast<double>((std::hash<std::string>{}(op.name) / 64 + index * 7919) %
                                       1000) /
                   1000;
        }
    }

    double product(const Op& op, const Shape& at) const {
        const Shape &a = shape(op.inputs[0]), &b = shape(op.inputs[1]);
        double sum = 0;
        for (std::int64_t k = 0; k < a.back(); ++k) {
            Shape left = at, right = at;
            left.back() = k;
            right[right.size() - 2] = k;
            sum += broadcast(m_values[op.inputs[0]], a, left) *
                   broadcast(m_values[op.inputs[1]], b, right);
        }
        return sum;
    }

    double alongAxes(const Op& op, const Shape& at) const {
        const Shape& in = shape(op.inputs[0]);
        std::vector<bool> reduced(in.size());
        for (const auto axis : op.attributes.integers("axes"))
            reduced[static_cast<std::size_t>(axis)] = true;
        Shape wanted = at; // a position of the operand
        if (wanted.size() < in.size())
            for (std::size_t d = 0; d < in.size(); ++d)
                if (reduced[d]) wanted.insert(wanted.begin() + static_cast<std::ptrdiff_t>(d), 0);
        double sum = 0, own = 0;
        for (std::size_t i = 0; i < elements(in); ++i) {
            const Shape from = position(in, i);
            bool belongs = true;
            for (std::size_t d = 0; d < in.size(); ++d)
                belongs = belongs && (reduced[d] || from[d] == wanted[d]);
            if (!belongs) continue;
            const double value = m_values[op.inputs[0]][i];
            sum += op.kind == OpKind::Reduce ? value : std::exp(value);
            if (from == wanted) own = std::exp(value);
        }
        return op.kind == OpKind::Reduce ? sum : own / sum;
    }

    const Graph& m_graph;
    std::vector<Values> m_values;
};

/// Grows a random chain.
class Grower {
public:
    explicit Grower(unsigned seed) : m_random(seed) {}

    Graph grow() {
        Op op;
        op.kind = OpKind::Input;
        op.name = "x";
        m_graph.addOp(std::move(op), {{DType::F32, {2, 3, 4, 6}}});
        m_at = 0;
        for (int i = 0; i < 12; ++i) step();
        m_graph.markOutput(m_at);
        return std::move(m_graph);
    }

private:
    std::size_t any(std::size_t count) {
        return std::uniform_int_distribution<std::size_t>(0, count - 1)(m_random);
    }
    Shape shape() const { return m_graph.tensor(m_at).spec.shape; }

    TensorId source(Shape of) {
        Op op;
        op.kind = OpKind::Parameter;
        return m_graph.op(m_graph.addOp(std::move(op), {{DType::F32, std::move(of)}})).outputs[0];
    }

    void add(OpKind kind, Attributes attributes, std::vector<TensorId> inputs) {
        Op op;
        op.kind = kind;
        op.attributes = std::move(attributes);
        op.inputs = std::move(inputs);
        m_at = m_graph.op(addInferred(m_graph, std::move(op))).outputs[0];
    }

    Shape regrouped() {
        Shape next = shape();
        const std::size_t d = any(next.size());
        switch (any(3)) {
        case 0: // merge
            if (next.size() < 2 || d + 1 == next.size()) return next;
            next[d] *= next[d + 1];
            next.erase(next.begin() + static_cast<std::ptrdiff_t>(d) + 1);
            return next;
        case 1: // split
            for (const std::int64_t part : {2, 3})
                if (next[d] % part == 0 && next.size() < 6) {
                    next[d] /= part;
                    next.insert(next.begin() + static_cast<std::ptrdiff_t>(d) + 1, part);
                    return next;
                }
            return next;
        default: // a dimension of size 1, added or taken away
            if (next[d] == 1 && next.size() > 1)
                next.erase(next.begin() + static_cast<std::ptrdiff_t>(d));
            else if (next.size() < 6)
                next.insert(next.begin() + static_cast<std::ptrdiff_t>(d), 1);
            return next;
        }
    }

    void step() {
        const Shape now = shape();
        const auto axis = static_cast<std::int64_t>(any(now.size()));
        switch (any(10)) {
        case 0:
        case 1:
        case 2:
            return add(OpKind::Reshape, {{"shape", regrouped()}}, {m_at});
        case 3: {
            std::vector<std::int64_t> perm(now.size());
            std::iota(perm.begin(), perm.end(), std::int64_t{0});
            std::ranges::shuffle(perm, m_random);
            return add(OpKind::Transpose, {{"perm", perm}}, {m_at});
        }
        case 4: {
            Shape other(now.end() - static_cast<std::ptrdiff_t>(1 + any(now.size())), now.end());
            for (std::int64_t& size : other)
                if (any(3) == 0) size = 1;
            return add(OpKind::Elementwise, {{"function", std::string("add")}},
                       {m_at, source(other)});
        }
        case 5: {
            Shape weight{now.back(), 4};
            if (any(2) == 0) {
                weight = now;
                weight.back() = 3;
                if (now.size() > 1) weight[now.size() - 2] = now.back();
            }
            if (now.size() < 2) return;
            return add(OpKind::MatMul, {}, {m_at, source(weight)});
        }
        case 6:
            return add(OpKind::Softmax, {{"axes", std::vector<std::int64_t>{axis}}}, {m_at});
        case 9: {
            Shape indices = now;
            indices[static_cast<std::size_t>(axis)] = 2;
            return add(OpKind::GatherElements, {{"axis", axis}}, {m_at, source(indices)});
        }
        case 7:
            if (now.size() < 3 || elementsOf(now) < 100) return;
            return add(OpKind::Reduce,
                       {{"function", std::string("sum")},
                        {"axes", std::vector<std::int64_t>{axis}},
                        {"keepdims", std::int64_t{any(2) == 0}}},
                       {m_at});
        default:
            if (now[static_cast<std::size_t>(axis)] < 2 || elementsOf(now) < 100) return;
            return add(OpKind::Slice,
                       {{"axes", std::vector<std::int64_t>{axis}},
                        {"starts", std::vector<std::int64_t>{1}},
                        {"ends", std::vector<std::int64_t>{now[static_cast<std::size_t>(axis)]}},
                        {"steps", std::vector<std::int64_t>{1}}},
                       {m_at});
        }
    }

    std::mt19937 m_random;
    Graph m_graph;
    TensorId m_at = 0;
};

} // namespace

class TestMergedDims : public QObject {
    Q_OBJECT

private slots:
    void randomChainsComputeTheSame();
    void shapesAreAsTheCatalogueInfersThem();
    void lookUpsAndLinearLayers();
};

void TestMergedDims::randomChainsComputeTheSame() {
    std::size_t fewer = 0;
    for (unsigned seed = 0; seed < 300; ++seed) {
        const Graph graph = Grower(seed).grow();
        const Graph apart = withMergedDimsApart(graph);
        QCOMPARE(apart.outputs().size(), std::size_t{1});
        const TensorId before = graph.outputs()[0], after = apart.outputs()[0];
        QCOMPARE(apart.tensor(after).spec, graph.tensor(before).spec);
        const Machine old(graph), now(apart);
        const Values &x = old.of(before), &y = now.of(after);
        for (std::size_t i = 0; i < x.size(); ++i)
            QVERIFY2(std::abs(x[i] - y[i]) <= 1e-9 * std::max(1.0, std::abs(x[i])),
                     qPrintable(QString("seed %1 element %2").arg(seed).arg(i)));
        const auto reshapes = [](const Graph& g) {
            return std::ranges::count(canonicalise(g).ops(), OpKind::Reshape, &Op::kind);
        };
        fewer += reshapes(apart) < reshapes(graph);
    }
    QVERIFY2(fewer > 50, qPrintable(QString("%1 chains have fewer reshapes").arg(fewer)));
}

void TestMergedDims::shapesAreAsTheCatalogueInfersThem() {
    for (unsigned seed = 0; seed < 300; ++seed) {
        const Graph apart = withMergedDimsApart(Grower(seed).grow());
        for (OpId id = 0; id < apart.ops().size(); ++id) {
            const OpView view = viewOf(apart, id);
            if (view.inputs.empty()) continue;
            QCOMPARE(inferShapes(view)[0].shape, view.outputs[0].shape);
            factorRule(view);
        }
    }
}

void TestMergedDims::lookUpsAndLinearLayers() {
    Graph graph;
    const auto source = [&](OpKind kind, const char* name, Shape shape) {
        Op op;
        op.kind = kind;
        op.name = name;
        return graph.op(graph.addOp(std::move(op), {{DType::F32, std::move(shape)}})).outputs[0];
    };
    const auto add = [&](OpKind kind, Attributes attributes, std::vector<TensorId> inputs) {
        Op op;
        op.kind = kind;
        op.attributes = std::move(attributes);
        op.inputs = std::move(inputs);
        return graph.op(addInferred(graph, std::move(op))).outputs[0];
    };
    const TensorId tokens = source(OpKind::Input, "tokens", {2, 3});
    const TensorId table = source(OpKind::Parameter, "table", {7, 4});
    const TensorId weight = source(OpKind::Parameter, "weight", {4, 5});
    const TensorId merged = add(OpKind::Reshape, {{"shape", Shape{6}}}, {tokens});
    const TensorId rows = add(OpKind::Gather, {{"axis", std::int64_t{0}}}, {table, merged});
    const TensorId product = add(OpKind::MatMul, {}, {rows, weight});
    graph.markOutput(add(OpKind::Reshape, {{"shape", Shape{2, 3, 5}}}, {product}));
    const Graph apart = canonicalise(withMergedDimsApart(graph));
    QCOMPARE(std::ranges::count(apart.ops(), OpKind::Reshape, &Op::kind), 0);
    const Machine old(graph), now(apart);
    QCOMPARE(now.of(apart.outputs()[0]), old.of(graph.outputs()[0]));
}

SHARDLENS_TEST(TestMergedDims)

} // namespace tst_merged_dims

#include "tst_merged_dims.moc"
