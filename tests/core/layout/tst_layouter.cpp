// SPDX-License-Identifier: Apache-2.0
// The front: which engine draws what, and the cache.
#include "core/error.h"
#include "core/layout/graphviz_layout.h"
#include "core/layout/layered_layout.h"
#include "core/layout/layouter.h"
#include "tests/core/layout/layout_graphs.h"
#include "tests/test_program.h"

#include <QTest>

#include <functional>
#include <thread>

namespace tst_layouter {

using namespace shardlens;
using namespace shardlens::test;

namespace {

LayoutInput chainOf(std::size_t boxes, double width = 30) {
    LayoutInput input;
    input.boxes.assign(boxes, {width, 20});
    for (std::uint32_t i = 1; i < boxes; ++i) input.edges.push_back({i - 1, i});
    return input;
}

std::shared_ptr<const LayoutResult> drawing(const std::string& note) {
    LayoutResult result;
    result.note = note;
    return std::make_shared<const LayoutResult>(result);
}

} // namespace

class TestLayouter : public QObject {
    Q_OBJECT

private slots:
    void choosesTheEngineBySize() {
        LayouterOptions options;
        options.helperExecutable = LAYOUT_HELPER;
        options.timeLimitSeconds = 600;
        QCOMPARE(layoutBoxes(chainOf(maxGraphvizBoxes), options).engine, std::string("graphviz"));
        QCOMPARE(layoutBoxes(chainOf(maxGraphvizBoxes + 1), options).engine,
                 std::string("layered"));
        options.helperExecutable.clear();
        QCOMPARE(layoutBoxes(chainOf(3), options).engine, std::string("layered"));
    }

    void takesFromTheCache() {
        LayoutCache cache;
        LayouterOptions options;
        options.cache = &cache;
        const LayoutInput input = transformer(1).input;
        const LayoutResult first = layoutBoxes(input, options);
        QCOMPARE(cache.size(), std::size_t{1});
        QVERIFY(*cache.find(input) == first);
        QVERIFY(layoutBoxes(input, options) == first);
        LayoutCache other;
        other.insert(input, drawing("from the cache"));
        options.cache = &other;
        QCOMPARE(layoutBoxes(input, options).note, std::string("from the cache"));
    }

    void stops() {
        std::stop_source stop;
        stop.request_stop();
        LayouterOptions options;
        options.stop = stop.get_token();
        QVERIFY_THROWS_EXCEPTION(Cancelled, layoutBoxes(chainOf(3), options));
    }

    void hashesEverythingThatMatters() {
        const LayoutInput input = transformer(1).input;
        const std::uint64_t hash = structuralHash(input);
        QCOMPARE(structuralHash(LayoutInput(input)), hash);
        const std::vector<std::function<void(LayoutInput&)>> changes{
            [](LayoutInput& i) { i.boxes[2].width += 1e-9; },
            [](LayoutInput& i) { i.boxes[2].height += 1; },
            [](LayoutInput& i) { i.boxes.push_back({1, 1}); },
            [](LayoutInput& i) { std::swap(i.edges[0], i.edges[1]); },
            [](LayoutInput& i) { std::swap(i.edges[0].from, i.edges[0].to); },
            [](LayoutInput& i) { i.rankGap += 1; },
            [](LayoutInput& i) { i.nodeGap += 1; },
            [](LayoutInput& i) { i.leftToRight = true; }};
        for (const auto& change : changes) {
            LayoutInput other = input;
            change(other);
            QVERIFY(structuralHash(other) != hash);
        }
    }

    void forgetsTheLeastRecentlyUsed() {
        LayoutCache cache(3 * (1 + 4 + 3)); // three chains of four boxes
        for (int i = 0; i < 3; ++i) cache.insert(chainOf(4, i), drawing(std::to_string(i)));
        QCOMPARE(cache.find(chainOf(4, 0))->note, std::string("0"));
        cache.insert(chainOf(4, 3), drawing("3"));
        QCOMPARE(cache.size(), std::size_t{3});
        QVERIFY(cache.find(chainOf(4, 0)) && !cache.find(chainOf(4, 1)));
        QVERIFY(cache.find(chainOf(4, 2)) && cache.find(chainOf(4, 3)));
        cache.insert(chainOf(100), drawing("too large"));
        QVERIFY(!cache.find(chainOf(100)));
        QCOMPARE(cache.size(), std::size_t{3});
        cache.insert(chainOf(10), drawing("most of it"));
        QCOMPARE(cache.size(), std::size_t{1});
    }

    void keepsTheFirstOfEqualProblems() {
        LayoutCache cache;
        cache.insert(chainOf(4), drawing("first"));
        cache.insert(chainOf(4), drawing("second"));
        QCOMPARE(cache.size(), std::size_t{1});
        QCOMPARE(cache.find(chainOf(4))->note, std::string("first"));
    }

    void isSharedByThreads() {
        LayoutCache cache(100);
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&] {
                for (int i = 0; i < 500; ++i) {
                    const LayoutInput input = chainOf(4, i % 20);
                    if (const auto found = cache.find(input))
                        QCOMPARE(found->note, std::to_string(i % 20));
                    else
                        cache.insert(input, drawing(std::to_string(i % 20)));
                }
            });
    }
};

SHARDLENS_TEST(TestLayouter)

} // namespace tst_layouter

#include "tst_layouter.moc"
