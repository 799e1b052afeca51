// SPDX-License-Identifier: Apache-2.0
// Scenes and overlays of a small transformer-like model: what is shown where, that nothing overlaps
// or leaves its frame, that repeats share a picture, that texts have room.
#include "core/layout/layered_layout.h"
#include "core/model/catalogue.h"
#include "core/plan/planner.h"
#include "tests/test_program.h"
#include "ui/format.h"
#include "ui/views/graph_controller.h"

#include <QFontMetricsF>
#include <QImage>
#include <QPainter>
#include <QTest>

namespace tst_graph_scene {

using namespace shardlens;

namespace {

constexpr int kBlocks = 6;

OpId add(Graph& graph, const std::string& name, OpKind kind, std::vector<TensorId> inputs,
         Attributes attributes = {}) {
    Op op;
    op.name = name;
    op.kind = kind;
    op.attributes = std::move(attributes);
    op.inputs = std::move(inputs);
    return addInferred(graph, op);
}

TensorId source(Graph& graph, const std::string& name, OpKind kind, Shape shape) {
    Op op;
    op.name = name;
    op.kind = kind;
    return graph.op(graph.addOp(op, {{DType::BF16, std::move(shape)}})).outputs[0];
}

/// x -> [norm -> up -> gelu -> down -> +x] x 6 -> head
std::shared_ptr<const Graph> mlp() {
    auto graph = std::make_shared<Graph>();
    graph->name = "mlp";
    TensorId x = source(*graph, "x", OpKind::Input, {16, 128, 64});
    const auto result = [&](OpId op) { return graph->op(op).outputs[0]; };
    for (int i = 0; i < kBlocks; ++i) {
        const std::string at = "model.layers." + std::to_string(i) + ".";
        const TensorId scale = source(*graph, at + "norm.weight", OpKind::Parameter, {64});
        const TensorId up = source(*graph, at + "up.weight", OpKind::Parameter, {64, 256});
        const TensorId down = source(*graph, at + "down.weight", OpKind::Parameter, {256, 64});
        const OpId norm =
            add(*graph, at + "norm", OpKind::Norm, {x, scale},
                {{"mode", std::string("rms")}, {"axes", std::vector<std::int64_t>{2}}});
        const OpId first = add(*graph, at + "up", OpKind::MatMul, {result(norm), up});
        const OpId act = add(*graph, at + "act", OpKind::Elementwise, {result(first)},
                             {{"function", std::string("gelu")}});
        const OpId second = add(*graph, at + "down", OpKind::MatMul, {result(act), down});
        const OpId sum = add(*graph, at + "add", OpKind::Elementwise, {x, result(second)},
                             {{"function", std::string("add")}});
        x = result(sum);
    }
    const TensorId head = source(*graph, "head.weight", OpKind::Parameter, {64, 512});
    const OpId logits = add(*graph, "head", OpKind::MatMul, {x, head});
    graph->markOutput(result(logits));
    return graph;
}

} // namespace

class TestGraphScene : public QObject {
    Q_OBJECT

    std::shared_ptr<const Graph> m_graph = mlp();
    std::shared_ptr<const Folding> m_folding = std::make_shared<const Folding>(fold(*m_graph));

    std::shared_ptr<const GraphScene> scene(std::set<int> open, bool parameters = true) const {
        SceneOptions options;
        options.openRuns = std::move(open);
        options.showParameters = parameters;
        options.font = QFont();
        options.layout = [](const LayoutInput& input, const std::stop_token& stop) {
            return layeredLayout(input, stop);
        };
        return buildScene(m_graph, m_folding, options, {});
    }

    PlanRequest request() const {
        PlanRequest wish;
        wish.mesh = {{"dp", 2}, {"tp", 4}};
        wish.batch = 16;
        return wish;
    }

    std::shared_ptr<const Plan> plan(std::vector<Pin> pins = {}) const {
        PlanRequest wish = request();
        wish.pins = std::move(pins);
        return std::make_shared<const Plan>(optimise(makeContext(m_graph, m_folding, wish)));
    }

    OpId op(const char* name) const { return m_graph->findOp(name).value(); }

    static void verifyGeometry(const GraphScene& shown) {
        const BoxMetrics metrics(shown.options.font);
        const QFontMetricsF title(metrics.title), small(metrics.small);
        for (std::size_t i = 0; i < shown.items.size(); ++i) {
            const SceneItem& a = shown.items[i];
            QVERIFY(shown.bounds.contains(a.rect));
            if (a.parent >= 0)
                QVERIFY(shown.items[static_cast<std::size_t>(a.parent)].rect.contains(a.rect));
            for (const ParameterChip& chip : a.chips) QVERIFY(a.rect.contains(chip.rect));
            for (std::size_t j = 0; j < i; ++j)
                if (shown.items[j].parent == a.parent)
                    QVERIFY2(!shown.items[j].rect.adjusted(1, 1, -1, -1).intersects(a.rect),
                             qPrintable(a.title + QStringLiteral(" / ") + shown.items[j].title));
            if (a.kind == ItemKind::Op) {
                // Name and kind stand side by side; the lines fit the height.
                QVERIFY(title.horizontalAdvance(a.title) + small.horizontalAdvance(a.subtitle) <
                        a.rect.width());
                QVERIFY(metrics.titleHeight + metrics.stripHeight() < a.rect.height());
            }
        }
        for (const SceneEdge& edge : shown.edges) {
            const QRectF from = shown.items[static_cast<std::size_t>(edge.from)].rect;
            const QRectF to = shown.items[static_cast<std::size_t>(edge.to)].rect;
            QCOMPARE(edge.path.size() % 3, std::size_t{1});
            QCOMPARE(edge.path.front().y(), from.bottom());
            QCOMPARE(edge.path.back().y(), to.top());
            QVERIFY(from.bottom() <= to.top());
        }
    }

private slots:
    void foldsToOneBlock() {
        QCOMPARE(m_folding->runs.size(), std::size_t{1});
        QCOMPARE(nameOfRun(*m_graph, *m_folding, 0), QStringLiteral("model.layers"));
    }

    void closedSceneShowsTheBlockOnce() {
        const auto shown = scene({});
        verifyGeometry(*shown);
        const int block = shown->itemOf(op("model.layers.4.up"));
        QVERIFY(block >= 0);
        const SceneItem& item = shown->items[static_cast<std::size_t>(block)];
        QCOMPARE(item.kind, ItemKind::Block);
        QCOMPARE(item.title, QStringLiteral("model.layers ×%1").arg(m_folding->runs[0].count));
        QCOMPARE(shown->itemAt(item.rect.center()), block);
        QCOMPARE(shown->itemAt(shown->bounds.topLeft() - QPointF(50, 50)), -1);
    }

    void openSceneShowsOneRepeatInAFrame() {
        const auto shown = scene({0});
        verifyGeometry(*shown);
        const int up = shown->itemOf(op("model.layers.2.up"));
        QVERIFY(up >= 0);
        const SceneItem& item = shown->items[static_cast<std::size_t>(up)];
        QCOMPARE(item.kind, ItemKind::Op);
        QVERIFY(item.parent >= 0);
        QCOMPARE(shown->items[static_cast<std::size_t>(item.parent)].kind, ItemKind::Frame);
        // All repeats of a class are one item, and the item leads to each of them.
        QCOMPARE(shown->itemOf(op("model.layers.3.up")), up);
        QCOMPARE(shown->inRepeat(item.op, 0, m_folding->instanceOf[op("model.layers.3.up")]),
                 op("model.layers.3.up"));
        // Its parameter is a chip on it.
        QCOMPARE(item.chips.size(), std::size_t{1});
        QCOMPARE(shown->itemOf(op("model.layers.3.up.weight")), up);
        QVERIFY(shown->chipOf(op("model.layers.3.up.weight"), up) != nullptr);
        // The innermost item is hit, and both doors of the frame are there.
        QCOMPARE(shown->itemAt(item.rect.center()), up);
        const auto has = [&](ItemKind kind) {
            return std::any_of(shown->items.begin(), shown->items.end(),
                               [&](const SceneItem& other) { return other.kind == kind; });
        };
        QVERIFY(has(ItemKind::PortIn));
        QVERIFY(has(ItemKind::PortOut));
    }

    void parametersCanBeHidden() {
        const auto shown = scene({0}, false);
        verifyGeometry(*shown);
        for (const SceneItem& item : shown->items) QVERIFY(item.chips.empty());
    }

    void samePlaceForEveryPlan() {
        const auto first = scene({0}), second = scene({0});
        QCOMPARE(first->items.size(), second->items.size());
        for (std::size_t i = 0; i < first->items.size(); ++i)
            QCOMPARE(first->items[i].rect, second->items[i].rect);
    }

    void overlayShowsThePlan() {
        const auto shown = scene({0});
        const auto made = plan();
        const auto overlay = buildOverlay(shown, made, {2}, {});
        QCOMPARE(overlay->axisNames.size(), std::size_t{2});
        const std::size_t repeat = overlay->repeats[0];
        for (std::size_t i = 0; i < shown->items.size(); ++i) {
            const SceneItem& item = shown->items[i];
            if (item.kind != ItemKind::Op) continue;
            const OpId id = shown->inRepeat(item.op, item.run, item.run < 0 ? 0 : repeat);
            const FactorRule rule = factorRule(viewOf(*m_graph, id));
            const Mesh& mesh = made->context->mesh;
            QCOMPARE(overlay->items[i].choice, text(toString(made->decisions.op[id], rule, mesh)));
            const Shape& shape = m_graph->tensor(m_graph->op(id).outputs[0]).spec.shape;
            const Shape local = localShape(
                shape, valueSide(resultLayout(made->decisions.op[id], rule, 0, mesh)), mesh);
            for (std::size_t d = 0; d < shape.size(); ++d) {
                QCOMPARE(overlay->items[i].result.dims[d].global, shape[d]);
                QCOMPARE(overlay->items[i].result.dims[d].local, local[d]);
            }
        }
        // Unfolded, the collectives of one repeat and of what is outside are all drawn somewhere.
        const auto whole = rangesOf(*made, 0);
        QCOMPARE(whole.front().first, std::size_t{0});
        QCOMPARE(whole.back().last, m_folding->runs[0].count - 1);
    }

    void aPinSplitsTheRanges() {
        const auto free = plan();
        const OpId target = op("model.layers.3.up");
        const std::size_t at = m_folding->instanceOf[target];
        const FactorRule rule = factorRule(viewOf(*m_graph, target));
        const auto choices =
            enumerateChoices(rule, free->context->mesh, free->context->cost->divisibility());
        std::string other;
        for (const Choice& choice : choices.legal)
            if (choice != free->decisions.op[target])
                other = toString(choice, rule, free->context->mesh);
        const auto pinned = plan({{"model.layers.3.up", other}});
        const auto ranges = rangesOf(*pinned, 0);
        QVERIFY(ranges.size() > 1);
        QVERIFY(std::any_of(ranges.begin(), ranges.end(), [&](const RepeatRange& range) {
            return range.first <= at && at <= range.last &&
                   range.last - range.first + 1 < m_folding->runs[0].count;
        }));
        QVERIFY(!GraphPainter::rangesText(ranges).isEmpty());
        const auto overlay = buildOverlay(scene({0}), pinned, {at}, {});
        const int item = overlay->scene->itemOf(target);
        QVERIFY(overlay->items[static_cast<std::size_t>(item)].pinned);
        const auto elsewhere =
            buildOverlay(overlay->scene, pinned, {at == 1 ? std::size_t{2} : 1}, {});
        QVERIFY(!elsewhere->items[static_cast<std::size_t>(item)].pinned);
    }

    void labelsKeepOffBoxes() {
        const auto overlay = buildOverlay(scene({0}), plan(), {1}, {});
        for (std::size_t e = 0; e < overlay->edges.size(); ++e) {
            const QRectF label = overlay->edges[e].label;
            if (label.isNull()) continue;
            for (const SceneItem& item : overlay->scene->items)
                if (item.kind != ItemKind::Frame) QVERIFY(!item.rect.intersects(label));
            for (std::size_t o = 0; o < e; ++o) QVERIFY(!overlay->edges[o].label.intersects(label));
            for (const EdgeMark& other : overlay->edges)
                for (const Lozenge& lozenge : other.collectives)
                    QVERIFY(!lozenge.rect.intersects(label));
        }
        for (const EdgeMark& edge : overlay->edges)
            for (const Lozenge& lozenge : edge.collectives) QVERIFY(!lozenge.rect.isNull());
    }

    void paintsAtEveryZoom() {
        const auto overlay = buildOverlay(scene({0}), plan(), {1}, {});
        for (const Palette* palette : {&Palette::light(), &Palette::dark()}) {
            for (const double zoom : {0.01, 0.09, 0.2, 0.3, 0.6, 1.0, 2.0}) {
                GraphPaintState state;
                state.colour = ColourMode::Time;
                state.selected = 0;
                QImage image(400, 300, QImage::Format_RGB32);
                image.fill(palette->canvas);
                QPainter painter(&image);
                painter.scale(zoom, zoom);
                const QRectF area(0, 0, 400 / zoom, 300 / zoom);
                GraphPainter(*overlay, *palette, state).paint(painter, area, zoom);
                painter.end();
                QImage empty(image.size(), image.format());
                empty.fill(palette->canvas);
                QVERIFY(image != empty);
            }
        }
    }

    void searchFindsByNameKindAndClass() {
        const auto names = [&](const char* typed) {
            QStringList list;
            for (const OpId id : findOps(*m_graph, *m_folding, typed))
                list << text(m_graph->op(id).name);
            return list;
        };
        QCOMPARE(names("layers.3.down weight").size(), 1);
        QCOMPARE(names("layers.3.down weight").front(),
                 QStringLiteral("model.layers.3.down.weight"));
        QVERIFY(names("MATMUL").size() >= 3); // up, down, head: one for each class
        QVERIFY(!names("gelu").empty());
        QCOMPARE(names("no such thing").size(), 0);
        QCOMPARE(names("  ").size(), 0);
    }

    void curvePoints() {
        const std::vector<QPointF> line{{0, 0}, {0, 10}, {0, 20}, {0, 30}};
        QCOMPARE(pointOnCurve(line, 0), QPointF(0, 0));
        QCOMPARE(pointOnCurve(line, 0.5), QPointF(0, 15));
        QCOMPARE(pointOnCurve(line, 1), QPointF(0, 30));
    }
};

SHARDLENS_TEST(TestGraphScene)

} // namespace tst_graph_scene

#include "tst_graph_scene.moc"
