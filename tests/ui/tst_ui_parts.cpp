// SPDX-License-Identifier: Apache-2.0
// Parts of the window that can be tested alone: item models, formats, colours, commands, shards.
#include "tests/test_program.h"
#include "ui/commands/command_palette.h"
#include "ui/commands/command_registry.h"
#include "ui/format.h"
#include "ui/models/alternatives_model.h"
#include "ui/models/list_models.h"
#include "ui/panels/totals_panel.h"
#include "ui/views/mesh_view.h"

#include <QAbstractItemModelTester>
#include <QMouseEvent>
#include <QTest>
#include <QWheelEvent>

#include <limits>
#include <set>

namespace tst_ui_parts {

using namespace shardlens;

namespace {

Mesh meshOf(const std::vector<std::pair<std::string, int>>& axes) {
    Mesh mesh;
    for (auto& [name, size] : axes) mesh.axes.push_back({name, size, {}, false});
    return mesh;
}

} // namespace

class TestUiParts : public QObject {
    Q_OBJECT

    /// Nodes of 8 devices, in 8 stages of equally many.
    static void showStages(MeshView& view, int nodes) {
        view.resize(300, 260);
        view.setMesh(meshOf({{"dp", nodes}, {"tp", 8}}), 8);
        std::vector<int> stages;
        for (int device = 0; device < 8 * nodes; ++device) stages.push_back(device / nodes);
        QStringList held;
        for (int stage = 0; stage < 8; ++stage) held << QStringLiteral("layers of %1").arg(stage);
        view.setStages(stages, held);
    }

    static void turnWheel(MeshView& view, QPointF at, int angle) {
        QWheelEvent event(at, view.mapToGlobal(at), {}, {0, angle}, {}, {}, Qt::NoScrollPhase,
                          false);
        QApplication::sendEvent(&view, &event);
    }

private slots:
    void alternativesModel() {
        AlternativesModel model;
        QAbstractItemModelTester tester(&model,
                                        QAbstractItemModelTester::FailureReportingMode::QtTest);
        Alternative chosen;
        chosen.text = "n@tp";
        chosen.time = 0.5;
        chosen.current = true;
        Alternative slower = chosen;
        slower.text = "replicated";
        slower.current = false;
        slower.time = slower.leastTime = 0.502;
        slower.deltaTime = 0.002;
        slower.deltaMemory = 1024.0 * 1024;
        Alternative illegal;
        illegal.text = "heads@tp";
        illegal.legal = false;
        illegal.reason = "heads has 6 elements, tp=4 does not divide it";
        Alternative impossible = slower;
        impossible.time = impossible.leastTime = std::numeric_limits<double>::infinity();
        Alternative searched = slower, notFound = slower;
        searched.leastTime = 0.501;
        notFound.time = std::numeric_limits<double>::infinity();
        model.setAlternatives({chosen, slower, impossible, illegal, searched, notFound}, "s",
                              QStringLiteral("n@tp"));
        QCOMPARE(model.rowCount(), 6);
        const auto cell = [&](int row, int column) {
            return model.index(row, column).data().toString();
        };
        QCOMPARE(cell(0, AlternativesModel::Choice), QStringLiteral("n@tp"));
        QCOMPARE(cell(0, AlternativesModel::DeltaTime), QStringLiteral("±0"));
        QCOMPARE(cell(0, AlternativesModel::Note), QStringLiteral("pinned"));
        QCOMPARE(cell(1, AlternativesModel::DeltaTime), QStringLiteral("+2 ms"));
        QCOMPARE(cell(1, AlternativesModel::DeltaMemory), QStringLiteral("+1 MiB"));
        QCOMPARE(cell(2, AlternativesModel::DeltaTime), QStringLiteral("impossible"));
        QCOMPARE(cell(3, AlternativesModel::Note), QString::fromStdString(illegal.reason));
        QCOMPARE(cell(4, AlternativesModel::DeltaTime), QStringLiteral("≤ +2 ms"));
        QVERIFY(model.index(4, 0)
                    .data(Qt::ToolTipRole)
                    .toString()
                    .contains(QStringLiteral("at least 501 ms")));
        QCOMPARE(cell(5, AlternativesModel::DeltaTime), QStringLiteral("not found"));
        QVERIFY(!model.index(3, 0).data(AlternativesModel::LegalRole).toBool());
        QVERIFY(model.index(0, 0).data(Qt::FontRole).value<QFont>().bold());
        model.clear();
        QCOMPARE(model.rowCount(), 0);
    }

    void pinsModel() {
        PinsModel model;
        QAbstractItemModelTester tester(&model,
                                        QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.setPins({{"layers.3.q", "n@tp"}, {"class:layers.0.k", "replicated"}}, {true});
        QCOMPARE(model.rowCount(), 2);
        QCOMPARE(model.index(0, PinsModel::State).data().toString(), QStringLiteral("⚠ clashes"));
        QCOMPARE(model.index(1, PinsModel::State).data().toString(), QStringLiteral("holds"));
        QCOMPARE(model.index(1, PinsModel::Target).data().toString(),
                 QStringLiteral("all like layers.0.k"));
    }

    void issuesModelCountsEqualOnes() {
        IssuesModel model;
        QAbstractItemModelTester tester(&model,
                                        QAbstractItemModelTester::FailureReportingMode::QtTest);
        const Issue twice{Issue::Severity::Warning, QStringLiteral("odd"), {}};
        model.setIssues(
            {twice, {Issue::Severity::Error, QStringLiteral("bad"), QStringLiteral("op")}, twice});
        QCOMPARE(model.rowCount(), 2);
        QVERIFY(model.index(0, 0).data().toString().contains(QStringLiteral("2 times")));
        QCOMPARE(model.index(1, 1).data().toString(), QStringLiteral("op"));
    }

    void formats() {
        QCOMPARE(formatTime(0.0123), QStringLiteral("12.3 ms"));
        QCOMPARE(formatBytes(3.5 * 1024 * 1024 * 1024), QStringLiteral("3.50 GiB"));
        QCOMPARE(formatDelta(0), QStringLiteral("±0"));
        QCOMPARE(formatDelta(-0.002), QStringLiteral("−2 ms"));
        QCOMPARE(formatPercent(0.0012), QStringLiteral("0.12 %"));
        QCOMPARE(formatShape({8, 2048}), QStringLiteral("8×2048"));
        QCOMPARE(formatShape({}), QStringLiteral("scalar"));
        QCOMPARE(formatCost(12.5, "Alpa units"), QStringLiteral("12.5"));
        QCOMPARE(shortName("model.layers.0.mlp.down_proj"), QStringLiteral("down_proj"));
        QCOMPARE(shortName("/model/layers.0/MatMul"), QStringLiteral("MatMul"));
        QCOMPARE(shortName("mlp.experts.0"), QStringLiteral("experts.0"));
        QCOMPARE(shortName("x"), QStringLiteral("x"));
    }

    void coloursAreReadable() {
        for (const Palette* palette : {&Palette::light(), &Palette::dark()}) {
            for (const QColor& ground : {palette->canvas, palette->surface, palette->frame}) {
                QVERIFY(Palette::contrast(palette->text, ground) >= 7);
                QVERIFY(Palette::contrast(palette->muted, ground) >= 4.5);
                QVERIFY(Palette::contrast(palette->bad, ground) >= 4.5);
                QVERIFY(Palette::contrast(palette->warning, ground) >= 4.5);
                QVERIFY(Palette::contrast(palette->good, ground) >= 4.5);
            }
            for (int i = 0; i <= 20; ++i) {
                const QColor ground = palette->scale(i / 20.0);
                QVERIFY(Palette::contrast(palette->textOn(ground), ground) >= 4.5);
            }
            for (std::size_t a = 0; a < 4; ++a)
                QVERIFY(Palette::contrast(palette->textOn(palette->axis(a)), palette->axis(a)) >=
                        4.5);
        }
        // More is further from the ground, in both themes.
        for (const Palette* palette : {&Palette::light(), &Palette::dark()})
            QVERIFY(Palette::contrast(palette->scale(1), palette->canvas) >
                    Palette::contrast(palette->scale(0), palette->canvas));
    }

    void widgetPaletteTellsItsTheme() {
        QVERIFY(Palette::isDark(Palette::dark().widgetPalette()));
        QVERIFY(!Palette::isDark(Palette::light().widgetPalette()));
    }

    void commandsAreWellFormed() {
        std::set<std::string> ids;
        std::set<QString> keys;
        for (const CommandSpec& spec : commandTable()) {
            QVERIFY2(ids.insert(spec.id).second, spec.id);
            QVERIFY(*spec.text && *spec.description);
            if (!*spec.keys) continue; // in menus only
            for (const QKeySequence& key : QKeySequence::listFromString(QLatin1String(spec.keys))) {
                QVERIFY2(!key.isEmpty(), spec.id);
                QVERIFY2(keys.insert(key.toString()).second, spec.keys);
            }
        }
    }

    void paletteFindsByLetters() {
        QVERIFY(fuzzyScore(QStringLiteral("opn"), QStringLiteral("Open…")) > 0);
        QVERIFY(fuzzyScore(QStringLiteral("xyz"), QStringLiteral("Open…")) < 0);
        QVERIFY(fuzzyScore(QStringLiteral("sa"), QStringLiteral("Save As")) >
                fuzzyScore(QStringLiteral("sa"), QStringLiteral("Undo: last action")));
    }

    void shardsFollowTheMesh() {
        const Mesh mesh = meshOf({{"dp", 2}, {"tp", 4}});
        SideLayout side;
        side.fill(kStateReplicated);
        side[0] = 0;
        side[1] = 1;
        const auto shards = shardsOf({8, 16}, side, mesh);
        QCOMPARE(shards.size(), std::size_t{8});
        QCOMPARE(shards[0].slices,
                 (std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 4}, {0, 4}}));
        QCOMPARE(shards[5].slices,
                 (std::vector<std::pair<std::int64_t, std::int64_t>>{{4, 8}, {4, 8}}));
        // Both axes on one dimension: the outer axis is the major one.
        side[1] = 0;
        const auto both = shardsOf({8, 16}, side, mesh);
        QCOMPARE(both[1].slices[0], (std::pair<std::int64_t, std::int64_t>{1, 2}));
        QCOMPARE(both[4].slices[0], (std::pair<std::int64_t, std::int64_t>{4, 5}));
        // Replicated: all devices hold shard 0.
        side.fill(kStateReplicated);
        for (const DeviceShard& shard : shardsOf({8, 16}, side, mesh)) QCOMPARE(shard.shard, 0);
    }

    void meshViewPlacesDevicesApart() {
        for (const auto& [outer, inner, perNode] : std::vector<std::tuple<int, int, int>>{
                 {1, 8, 8}, {8, 8, 8}, {16, 8, 8}, {4, 16, 8}, {128, 8, 8}}) {
            MeshView view;
            view.resize(300, 260);
            view.setMesh(meshOf({{"dp", outer}, {"tp", inner}}), perNode);
            for (int a = 0; a < view.deviceCount(); ++a) {
                QVERIFY(QRectF(view.rect()).contains(view.deviceRect(a)));
                QCOMPARE(view.deviceAt(view.deviceRect(a).center()), a);
                for (int b = 0; b < a; ++b)
                    QVERIFY(!view.deviceRect(a)
                                 .adjusted(0.1, 0.1, -0.1, -0.1)
                                 .intersects(view.deviceRect(b)));
            }
        }
    }

    /// 128 nodes are tiles that say what is in them; enlarged they show their devices.
    void meshViewHasLevelsOfDetail() {
        MeshView view;
        showStages(view, 128);
        QVERIFY(!view.showsDevices());
        for (int node = 0; node < 128; ++node) {
            const QRectF tile = view.nodeRect(node);
            QVERIFY(QRectF(view.rect()).contains(tile));
            QVERIFY(std::min(tile.width(), tile.height()) >= 12); // a number can be read
            for (int device = 8 * node; device < 8 * node + 8; ++device)
                QVERIFY(tile.contains(view.deviceRect(device)));
        }
        const QPointF at = view.nodeRect(77).center();
        QCOMPARE(view.describeAt(at),
                 QStringLiteral("Node 77, devices 616–623, stage 4 (layers of 4)"));
        turnWheel(view, at, 480);
        QVERIFY(std::abs(view.zoom() - 2) < 1e-9); // four notches
        QCOMPARE(view.nodeAt(at), 77);             // what is under the mouse stays there
        for (int i = 0; i < 20; ++i) turnWheel(view, at, 480);
        QVERIFY(view.showsDevices());
        const QPointF device = view.deviceRect(620).center();
        QCOMPARE(view.deviceAt(device), 620);
        QVERIFY(view.describeAt(device).startsWith(
            QStringLiteral("Device 620 (dp=77, tp=4), node 77, stage 4 (layers of 4)")));
        for (int i = 0; i < 20; ++i) turnWheel(view, {10, 10}, -480);
        QCOMPARE(view.zoom(), 1.0); // no smaller than all of it
        QVERIFY(QRectF(view.rect()).contains(view.nodeRect(0)));
        // few devices need none of this
        for (const int nodes : {1, 8}) {
            showStages(view, nodes);
            QVERIFY(view.showsDevices());
            QCOMPARE(view.zoom(), 1.0);
        }
    }

    void meshViewKeysAndDrags() {
        MeshView view;
        showStages(view, 128);
        QTest::keyClick(&view, Qt::Key_Right);
        QCOMPARE(view.selectedDevice(), 0);
        QTest::keyClick(&view, Qt::Key_Right); // from node to node
        QCOMPARE(view.selectedDevice(), 8);
        QCOMPARE(view.accessibleDescription(), view.describeNode(1));
        QTest::keyClick(&view, Qt::Key_Down);
        const int below = view.selectedDevice() / 8;
        QVERIFY(std::abs(view.nodeRect(below).left() - view.nodeRect(1).left()) < 1e-6);
        QVERIFY(view.nodeRect(below).top() > view.nodeRect(1).bottom());
        while (!view.showsDevices()) QTest::keyClick(&view, Qt::Key_Plus);
        QTest::keyClick(&view, Qt::Key_Right); // from device to device
        QCOMPARE(view.selectedDevice(), 8 * below + 1);
        for (int i = 0; i < 40; ++i) QTest::keyClick(&view, Qt::Key_Right);
        QVERIFY(QRectF(view.rect()).contains(view.deviceRect(8 * below + 41))); // came along
        // a drag moves the page and selects nothing
        const QRectF before = view.deviceRect(8 * below + 41);
        const QPoint from(150, 130), to(110, 130);
        QTest::mousePress(&view, Qt::LeftButton, {}, from);
        QMouseEvent move(QEvent::MouseMove, to, view.mapToGlobal(to), Qt::NoButton, Qt::LeftButton,
                         {});
        QApplication::sendEvent(&view, &move);
        QTest::mouseRelease(&view, Qt::LeftButton, {}, to);
        QCOMPARE(view.selectedDevice(), 8 * below + 41);
        QVERIFY(std::abs(view.deviceRect(8 * below + 41).left() - before.left() + 40) < 1e-6);
        QTest::keyClick(&view, Qt::Key_0);
        QCOMPARE(view.zoom(), 1.0);
        // the same mesh again, as after every selection, is looked at as before
        QTest::keyClick(&view, Qt::Key_Plus);
        view.setMesh(meshOf({{"dp", 128}, {"tp", 8}}), 8);
        QVERIFY(view.zoom() > 1);
        view.setMesh(meshOf({{"dp", 64}, {"tp", 8}}), 8);
        QCOMPARE(view.zoom(), 1.0);
        // a click anywhere on a tile is its node
        QTest::mouseClick(&view, Qt::LeftButton, {},
                          view.nodeRect(5).topLeft().toPoint() + QPoint(1, 1));
        QCOMPARE(view.selectedDevice() / 8, 5);
    }

    void stackedBarSaysItsParts() {
        StackedBar bar;
        bar.setParts({{QStringLiteral("compute"), QStringLiteral("1 s"), 1, 0},
                      {QStringLiteral("communication"), QStringLiteral("2 s"), 2, 1}},
                     10, QStringLiteral("limit 10 s"));
        QVERIFY(bar.accessibleDescription().contains(QStringLiteral("communication 2 s")));
        QVERIFY(bar.accessibleDescription().contains(QStringLiteral("limit 10 s")));
        QVERIFY(bar.heightForWidth(80) >= bar.heightForWidth(800));
    }
};

SHARDLENS_TEST(TestUiParts)

} // namespace tst_ui_parts

#include "tst_ui_parts.moc"
