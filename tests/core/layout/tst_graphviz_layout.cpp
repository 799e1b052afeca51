// SPDX-License-Identifier: Apache-2.0
// Graphviz as a layout engine: sound drawings in the common form, whatever the locale, and the
// yardstick for our own crossing reduction.
#include "core/error.h"
#include "core/layout/graphviz_layout.h"
#include "core/layout/layered_layout.h"
#include "tests/core/layout/layout_graphs.h"
#include "tests/test_program.h"

#include <QTest>

#include <clocale>

namespace tst_graphviz_layout {

using namespace shardlens;
using namespace shardlens::test;

namespace {

LayoutInput completeBipartite(std::uint32_t side) {
    LayoutInput input;
    input.boxes.assign(2 * side, {30, 30});
    for (std::uint32_t i = 0; i < side; ++i)
        for (std::uint32_t j = 0; j < side; ++j) input.edges.push_back({i, side + j});
    return input;
}

LayoutInput binaryTree(std::uint32_t boxes) {
    LayoutInput input;
    input.boxes.assign(boxes, {30, 20});
    for (std::uint32_t i = 1; i < boxes; ++i) input.edges.push_back({(i - 1) / 2, i});
    return input;
}

LayoutInput grid(std::uint32_t side) {
    LayoutInput input;
    input.boxes.assign(side * side, {30, 20});
    for (std::uint32_t i = 0; i < side * side; ++i) {
        if (i % side + 1 < side) input.edges.push_back({i, i + 1});
        if (i / side + 1 < side) input.edges.push_back({i, i + side});
    }
    return input;
}

} // namespace

class TestGraphvizLayout : public QObject {
    Q_OBJECT

private slots:
    void drawsNothing() { QVERIFY(graphvizLayout({}).centres.empty()); }

    void isSound_data() {
        QTest::addColumn<int>("kind");
        for (int kind = 0; kind < 6; ++kind) QTest::addRow("kind %d", kind) << kind;
    }
    void isSound() {
        QFETCH(int, kind);
        const LayoutInput input = kind == 0   ? transformer(3).input
                                  : kind == 1 ? randomLocal(60, 90, 10, 2)
                                  : kind == 2 ? randomCyclic(40, 60, 3)
                                  : kind == 3 ? training(transformer(1).input)
                                  : kind == 4 ? binaryTree(31)
                                              : randomLocal(30, 10, 3, 4);
        const LayoutResult result = graphvizLayout(input);
        QCOMPARE(defect(input, result), std::string());
        QCOMPARE(result.engine, std::string("graphviz"));
        QVERIFY(result == graphvizLayout(input));
    }

    void keepsTheGaps() {
        LayoutInput input;
        input.boxes = {{40, 20}, {60, 30}, {20, 10}};
        input.edges = {{0, 1}, {0, 2}};
        input.rankGap = 50;
        input.nodeGap = 8;
        const LayoutResult result = graphvizLayout(input);
        QVERIFY(std::abs(result.height - (20 + 50 + 30)) <= 2); // dot rounds to points
        QVERIFY(std::abs(std::abs(result.centres[2].x - result.centres[1].x) - (30 + 8 + 10)) <= 2);
    }

    void turnsSideways() {
        LayoutInput input = transformer(1).input;
        input.leftToRight = true;
        const LayoutResult result = graphvizLayout(input);
        QCOMPARE(defect(transposed(input), transposed(result)), std::string());
    }

    void ignoresTheLocale() {
        const LayoutInput input = transformer(1).input;
        const LayoutResult before = graphvizLayout(input);
        for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8"})
            if (std::setlocale(LC_NUMERIC, name) != nullptr) break;
        const bool comma = *std::localeconv()->decimal_point == ',';
        const LayoutResult after = graphvizLayout(input);
        std::setlocale(LC_NUMERIC, "C");
        QVERIFY(before == after);
        if (!comma) QSKIP("no locale with a decimal comma is installed");
    }

    void refusesBadInput() {
        LayoutInput input;
        input.boxes = {{10, 10}};
        input.edges = {{0, 7}};
        QVERIFY_THROWS_EXCEPTION(InputError, graphvizLayout(input));
    }

    void crossesNotMuchLessThanOurs_data() {
        QTest::addColumn<int>("kind");
        for (int kind = 0; kind < 12; ++kind) QTest::addRow("graph %d", kind) << kind;
    }
    void crossesNotMuchLessThanOurs() {
        QFETCH(int, kind);
        const auto seed = static_cast<unsigned>(kind);
        const LayoutInput input = kind == 0   ? transformer(3).input
                                  : kind == 1 ? binaryTree(31)
                                  : kind == 2 ? grid(5)
                                  : kind == 3 ? completeBipartite(5)
                                  : kind == 4 ? training(transformer(1).input)
                                  : kind < 9  ? randomLocal(40, 60, 10, seed)
                                              : randomLocal(60, 120, 6, seed);
        const int ours = curveCrossings(input, layeredLayout(input));
        const int theirs = curveCrossings(input, graphvizLayout(input));
        QVERIFY2(ours <= 1.75 * theirs + 2,
                 qPrintable(QString("%1 against %2").arg(ours).arg(theirs)));
    }
};

SHARDLENS_TEST(TestGraphvizLayout)

} // namespace tst_graphviz_layout

#include "tst_graphviz_layout.moc"
