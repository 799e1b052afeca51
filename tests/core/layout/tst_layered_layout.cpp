// SPDX-License-Identifier: Apache-2.0
// The layered layout, by geometry alone: nothing overlaps, edges flow and touch their boxes, chains
// are straight, runs are equal; its phases against brute force.
#include "core/error.h"
#include "core/layout/layered/crossing_reduction.h"
#include "core/layout/layered/horizontal_placement.h"
#include "core/layout/layered/ranking.h"
#include "core/layout/layered_layout.h"
#include "tests/core/layout/layout_graphs.h"
#include "tests/test_program.h"

#include <QTest>

#include <chrono>
#include <set>
#include <thread>

namespace tst_layered_layout {

using namespace shardlens;
using namespace shardlens::test;

namespace {

layered::RankedComponent rankedComponent(const LayoutInput& input) {
    const auto boxes = static_cast<std::uint32_t>(input.boxes.size());
    layered::RankedComponent component{input.boxes, {}, {}, {}};
    for (const LayoutBox& box : input.boxes) component.room.push_back(box.width);
    for (const LayoutEdge edge : input.edges)
        if (edge.from != edge.to) component.edges.push_back(edge);
    component.rank = layered::assignRanks(boxes, component.edges, {});
    return component;
}

std::uint64_t crossingsByPairs(const layered::LayerGraph& graph) {
    std::uint64_t count = 0;
    for (const auto [a, b] : graph.segments())
        for (const auto [c, d] : graph.segments())
            count += graph.layerOf(a) == graph.layerOf(c) &&
                     graph.position(a) < graph.position(c) && graph.position(b) > graph.position(d);
    return count;
}

// Least crossings over all orders of a graph of two layers.
std::uint64_t leastCrossings(layered::LayerGraph graph) {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    std::vector<std::uint32_t> upper(graph.layer(0).begin(), graph.layer(0).end());
    std::vector<std::uint32_t> lower(graph.layer(1).begin(), graph.layer(1).end());
    std::ranges::sort(upper);
    do {
        std::ranges::sort(lower);
        do {
            std::vector<std::uint32_t> order = upper;
            order.insert(order.end(), lower.begin(), lower.end());
            graph.setOrder(order);
            least = std::min(least, layered::countCrossings(graph));
        } while (std::ranges::next_permutation(lower).found);
    } while (std::ranges::next_permutation(upper).found);
    return least;
}

} // namespace

class TestLayeredLayout : public QObject {
    Q_OBJECT

private slots:
    void drawsNothing() {
        const LayoutResult result = layeredLayout({});
        QVERIFY(result.centres.empty() && result.routes.empty());
        QCOMPARE(result.width, 0.0);
        QCOMPARE(result.height, 0.0);
    }

    void placesOneBoxAtTheOrigin() {
        LayoutInput input;
        input.boxes = {{40, 20}};
        const LayoutResult result = layeredLayout(input);
        QCOMPARE(result.centres[0], (LayoutPoint{20, 10}));
        QCOMPARE(result.width, 40.0);
        QCOMPARE(result.height, 20.0);
        QCOMPARE(result.engine, std::string("layered"));
    }

    void keepsTheGaps() {
        LayoutInput input; // one above two
        input.boxes = {{40, 20}, {60, 30}, {20, 10}};
        input.edges = {{0, 1}, {0, 2}};
        input.rankGap = 50;
        input.nodeGap = 8;
        const LayoutResult result = layeredLayout(input);
        QCOMPARE(result.height, 20.0 + 50 + 30);
        QCOMPARE(result.centres[2].x - result.centres[1].x, 60 / 2.0 + 8 + 20 / 2.0);
        QCOMPARE(result.centres[1].y, 20 + 50 + 30 / 2.0);
        QCOMPARE(result.centres[1].y, result.centres[2].y);
    }

    void isSound_data() {
        QTest::addColumn<int>("kind");
        QTest::addColumn<int>("seed");
        for (int kind = 0; kind < 7; ++kind)
            for (int seed = 1; seed <= 8; ++seed)
                QTest::addRow("kind %d seed %d", kind, seed) << kind << seed;
    }
    void isSound() {
        QFETCH(int, kind);
        QFETCH(int, seed);
        const auto s = static_cast<unsigned>(seed);
        const LayoutInput input = kind == 0   ? randomLocal(40, 60, 10, s)
                                  : kind == 1 ? randomLocal(200, 300, 50, s)
                                  : kind == 2 ? randomLocal(60, 240, 8, s)
                                  : kind == 3 ? randomLocal(150, 100, 5, s) // many components
                                  : kind == 4 ? randomCyclic(50, 80, s)
                                  : kind == 5 ? training(transformer(seed).input)
                                              : transformer(seed).input;
        const LayoutResult result = layeredLayout(input);
        QCOMPARE(defect(input, result), std::string());
        QCOMPARE(curvesThroughBoxes(input, result), 0);
        QVERIFY(result == layeredLayout(input));
    }

    void turnsSideways() {
        LayoutInput input = randomCyclic(40, 60, 3);
        input.leftToRight = true;
        const LayoutResult result = layeredLayout(input);
        const LayoutInput upright = transposed(input);
        QCOMPARE(defect(upright, transposed(result)), std::string());
        QVERIFY(transposed(result) == layeredLayout(upright));
    }

    void keepsTheChainStraight() {
        const auto [input, chain] = transformer(3);
        const LayoutResult result = layeredLayout(input);
        for (const auto op : chain)
            QVERIFY(std::abs(result.centres[op].x - result.centres[chain[0]].x) < 1e-9);
        for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
            const auto edge = std::ranges::find(input.edges, LayoutEdge{chain[i], chain[i + 1]});
            if (edge == input.edges.end()) continue; // by way of q, k or v
            for (const LayoutPoint p :
                 result.routes[static_cast<std::size_t>(edge - input.edges.begin())].points)
                QVERIFY(std::abs(p.x - result.centres[chain[0]].x) < 1e-9);
        }
    }

    // A skip edge leaves the chain at once, runs beside all of it and comes back at the end.
    void leadsSkipEdgesBesideTheChain() {
        GraphBuilder graph;
        const auto first = graph.box(80);
        auto last = first;
        for (int i = 0; i < 6; ++i) last = graph.opAfter(last, 60 + 10 * i);
        graph.edge(first, last);
        const LayoutInput input = graph.take();
        const LayoutResult result = layeredLayout(input);
        const auto line = flattened(result.routes.back());
        const double x = result.centres[first].x;
        QCOMPARE(curvesThroughBoxes(input, result), 0);
        for (const LayoutPoint p : line)
            if (p.y > result.centres[first + 1].y && p.y < result.centres[last - 1].y)
                QVERIFY(std::abs(p.x - x) > 110 / 2.0); // beyond the widest box between
        QVERIFY(result.width < 80 + 2 * 110);           // and close to it
    }

    void mirrorsNothingForAnAcyclicInput() {
        const LayoutInput input = randomLocal(100, 200, 20, 5);
        QVERIFY(layered::acyclicEdges(100, input.edges) == input.edges);
    }

    void breaksCyclesOnly() {
        LayoutInput input;
        input.boxes.assign(3, {30, 20});
        input.edges = {{0, 1}, {1, 2}, {2, 0}, {1, 1}};
        QVERIFY(layered::acyclicEdges(3, input.edges) ==
                (std::vector<LayoutEdge>{{0, 1}, {1, 2}, {0, 2}, {1, 1}}));
        const LayoutResult result = layeredLayout(input);
        QCOMPARE(defect(input, result), std::string());
        QVERIFY(result.centres[0].y < result.centres[1].y);
        QVERIFY(result.centres[1].y < result.centres[2].y);
    }

    void drawsSelfLoopsBesideTheBox() {
        LayoutInput input;
        input.boxes = {{30, 20}, {30, 20}};
        input.edges = {{0, 0}, {0, 1}, {0, 0}};
        const LayoutResult result = layeredLayout(input);
        QCOMPARE(defect(input, result), std::string());
        QCOMPARE(curvesThroughBoxes(input, result), 0);
        QVERIFY(std::ranges::max(result.routes[0].points, {}, &LayoutPoint::x).x >
                rectOf(input, result, 0).right);
    }

    void keepsParallelEdgesApart() {
        LayoutInput input;
        input.boxes = {{60, 20}, {60, 20}};
        input.edges = {{0, 1}, {0, 1}, {0, 1}};
        const LayoutResult result = layeredLayout(input);
        std::set<double> xs;
        for (const LayoutRoute& route : result.routes) xs.insert(route.points[0].x);
        QCOMPARE(xs.size(), std::size_t{3});
        QCOMPARE(curveCrossings(input, result), 0);
    }

    void putsComponentsSideBySide() {
        LayoutInput input;
        input.boxes.assign(6, {30, 20});
        input.edges = {{0, 3}, {1, 4}, {2, 5}};
        const LayoutResult result = layeredLayout(input);
        QVERIFY(result.centres[0].x < result.centres[1].x);
        QVERIFY(result.centres[1].x < result.centres[2].x);
        for (const auto [from, to] : input.edges)
            QCOMPARE(result.centres[from].x, result.centres[to].x);
        QCOMPARE(result.height, 20.0 + 40 + 20);
    }

    void wrapsManyComponents() {
        LayoutInput input;
        input.boxes.assign(1000, {30, 20});
        const LayoutResult result = layeredLayout(input);
        QCOMPARE(defect(input, result), std::string());
        QVERIFY(result.width < 4 * result.height && result.height < 4 * result.width);
    }

    // Edges over more ranks than the limit go around the drawing, and cost little.
    void leadsVeryLongEdgesAround() {
        GraphBuilder graph;
        auto last = graph.box(80);
        for (int i = 0; i < 100; ++i) last = graph.opAfter(last, 80);
        graph.edge(10, 50); // 40 ranks
        graph.edge(10, 51); // 41 ranks
        const LayoutInput input = graph.take();
        const LayoutResult result = layeredLayout(input);
        QCOMPARE(defect(input, result), std::string());
        QCOMPARE(curvesThroughBoxes(input, result), 0);
        QVERIFY(!result.routes[100].sideChannel);
        QVERIFY(result.routes[101].sideChannel);
        QCOMPARE(std::ranges::count_if(result.routes, &LayoutRoute::sideChannel), 1);

        const LayoutInput train = training(transformer(50).input);
        const LayoutResult drawn = layeredLayout(train);
        QCOMPARE(defect(train, drawn), std::string());
        std::size_t points = 0;
        for (const LayoutRoute& route : drawn.routes) points += route.points.size();
        QVERIFY(points < 30 * train.edges.size());
    }

    void laysOutALargeGraph() {
        const LayoutInput input = randomLocal(20000, 30000, 40, 7);
        std::stop_source stop;
        const LayoutResult result = layeredLayout(input, stop.get_token());
        QCOMPARE(defect(input, result), std::string());
        std::size_t points = 0;
        for (const LayoutRoute& route : result.routes) points += route.points.size();
        QVERIFY(points < 30 * input.edges.size());
    }

    void survivesDeepAndWideGraphs() {
        constexpr std::uint32_t n = 20000;
        LayoutInput chain, star;
        chain.boxes.assign(n, {30, 20});
        star.boxes.assign(n, {30, 20});
        for (std::uint32_t i = 1; i < n; ++i) {
            chain.edges.push_back({i - 1, i});
            star.edges.push_back({0, i});
        }
        const LayoutResult deep = layeredLayout(chain);
        QCOMPARE(deep.width, 30.0);
        QCOMPARE(deep.height, n * 20.0 + (n - 1) * 40.0);
        const LayoutResult wide = layeredLayout(star);
        QCOMPARE(wide.height, 20.0 + 40 + 20);
        QVERIFY(std::abs(wide.width - ((n - 1) * 30.0 + (n - 2) * 24.0)) < 1e-3);
    }

    void stopsAtOnce() {
        std::stop_source stop;
        stop.request_stop();
        QVERIFY_THROWS_EXCEPTION(Cancelled, layeredLayout(transformer(2).input, stop.get_token()));
    }

    void stopsInTheMiddle() {
        const LayoutInput input = randomLocal(50000, 75000, 40, 7);
        std::stop_source stop;
        const std::jthread other([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            stop.request_stop();
        });
        QVERIFY_THROWS_EXCEPTION(Cancelled, layeredLayout(input, stop.get_token()));
    }

    void refusesBadInput_data() {
        QTest::addColumn<double>("width");
        QTest::addColumn<double>("gap");
        QTest::addColumn<int>("to");
        const double nan = std::numeric_limits<double>::quiet_NaN();
        QTest::addRow("negative size") << -1.0 << 10.0 << 0;
        QTest::addRow("no size") << nan << 10.0 << 0;
        QTest::addRow("endless gap") << 10.0 << std::numeric_limits<double>::infinity() << 0;
        QTest::addRow("unknown box") << 10.0 << 10.0 << 1;
    }
    void refusesBadInput() {
        QFETCH(double, width);
        QFETCH(double, gap);
        QFETCH(int, to);
        LayoutInput input;
        input.boxes = {{width, 10}};
        input.edges = {{0, static_cast<std::uint32_t>(to)}};
        input.nodeGap = gap;
        QVERIFY_THROWS_EXCEPTION(InputError, layeredLayout(input));
    }

    void ranksAlongLongestPaths() {
        const LayoutInput input = transformer(3).input;
        const auto rank =
            layered::assignRanks(static_cast<std::uint32_t>(input.boxes.size()), input.edges, {});
        for (const auto [from, to] : input.edges) QVERIFY(rank[from] < rank[to]);
        // norm, q, scores, softmax, mixed, out, add, norm, up, gelu, down, add: 12 ranks a block.
        QCOMPARE(std::ranges::max(rank), 3u * 12);
    }

    void pullsParametersToTheirConsumers() {
        GraphBuilder graph; // a row of four, weight -> cast -> last, (scale, bias) -> sum -> last
        const auto first = graph.box(30), second = graph.opAfter(first, 30),
                   third = graph.opAfter(second, 30), last = graph.opAfter(third, 30);
        graph.edge(graph.opAfter(graph.box(30), 30), last);
        const auto scale = graph.box(30), bias = graph.box(30), sum = graph.opAfter(scale, 30);
        graph.edge(bias, sum);
        graph.edge(sum, last);
        const LayoutInput input = graph.take();
        const auto rank = layered::assignRanks(9, input.edges, {});
        QVERIFY(rank == (std::vector<std::uint32_t>{0, 1, 2, 3, 1, 2, 1, 1, 2}));
    }

    void countsCrossingsLikePairs() {
        for (unsigned seed = 1; seed <= 10; ++seed) {
            layered::LayerGraph graph(rankedComponent(randomLocal(60, 120, 12, seed)), 40);
            QCOMPARE(layered::countCrossings(graph), crossingsByPairs(graph));
            const std::uint64_t before = layered::countCrossings(graph);
            layered::reduceCrossings(graph, {});
            QCOMPARE(layered::countCrossings(graph), crossingsByPairs(graph));
            QVERIFY(layered::countCrossings(graph) <= before);
        }
    }

    void findsFewestCrossingsOfSmallGraphs() {
        int optimal = 0;
        constexpr int graphs = 40;
        for (unsigned seed = 1; seed <= graphs; ++seed) {
            std::mt19937 random(seed);
            LayoutInput input;
            input.boxes.assign(10, {30, 20});
            for (std::uint32_t i = 0; i < 5; ++i) {
                input.edges.push_back({i, 5 + i});
                input.edges.push_back({i, static_cast<std::uint32_t>(5 + random() % 5)});
                input.edges.push_back({i, static_cast<std::uint32_t>(5 + random() % 5)});
            }
            layered::LayerGraph graph(rankedComponent(input), 40);
            layered::reduceCrossings(graph, {});
            const std::uint64_t least = leastCrossings(graph),
                                found = layered::countCrossings(graph);
            QVERIFY(found >= least);
            QVERIFY2(found <= least + 2, qPrintable(QString("%1 %2").arg(found).arg(least)));
            optimal += found == least;
        }
        QVERIFY2(optimal >= graphs * 8 / 10, qPrintable(QString::number(optimal)));
    }

    void keepsOrderAndSeparation() {
        for (unsigned seed = 1; seed <= 20; ++seed) {
            layered::LayerGraph graph(rankedComponent(randomLocal(120, 260, 15, seed)), 40);
            layered::reduceCrossings(graph, {});
            const std::vector<double> x = layered::placeHorizontally(graph, 10, {});
            for (std::uint32_t layer = 0; layer < graph.layerCount(); ++layer) {
                const auto nodes = graph.layer(layer);
                for (std::size_t i = 1; i < nodes.size(); ++i) {
                    const bool boxes = graph.isBox(nodes[i - 1]) && graph.isBox(nodes[i]);
                    const double gap = x[nodes[i]] - graph.width(nodes[i]) / 2 - x[nodes[i - 1]] -
                                       graph.width(nodes[i - 1]) / 2;
                    QVERIFY(gap >= (boxes ? 10 : 5) - 1e-6);
                }
            }
        }
    }

    void findsTheLongestChain() {
        const auto [input, ops] = transformer(2);
        const layered::LayerGraph graph(rankedComponent(input), 40);
        const auto chain = layered::longestChain(graph);
        QCOMPARE(chain.size(), std::size_t{2 * 12});
        std::set<std::uint32_t> boxes;
        for (const auto segment : chain) {
            boxes.insert(graph.segments()[segment].from);
            boxes.insert(graph.segments()[segment].to);
        }
        for (const auto op : ops) QVERIFY(boxes.contains(op));
    }
};

SHARDLENS_TEST(TestLayeredLayout)

} // namespace tst_layered_layout

#include "tst_layered_layout.moc"
