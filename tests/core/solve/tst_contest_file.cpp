// SPDX-License-Identifier: Apache-2.0
// The contest's file format: what is read, what is written, and what bad files get: one sentence.
#include "core/error.h"
#include "core/solve/contest_file.h"
#include "tests/core/solve/interval_problems.h"
#include "tests/test_program.h"

#include <zlib.h>

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <cmath>
#include <sstream>

namespace tst_contest_file {

using namespace shardlens::solve;
using namespace shardlens::solve::test;

namespace {

const char* const kExample = R"({"problem": {"name": "example", "nodes": {
"intervals": [[30, 70], [40, 70], [50, 120], [110, 140], [110, 150]],
"costs": [[15], [55, 65], [25, 45, 35], [85, 75], [95]],
"usages": [[10], [25, 25], [15, 20, 15], [10, 10], [15]]},
"edges": {"nodes": [[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]],
"costs": [[30, 40], [50, 10, 40], [90, 10, 20, 80], [60, 20, 30], [70, 60]]},
"usage_limit": 50}})";

std::string gzip(const std::string& text) {
    z_stream stream{};
    deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    std::string out(deflateBound(&stream, uLong(text.size())) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = uInt(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = uInt(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

/// What reading says is wrong; empty if nothing is.
std::string complaint(const std::string& bytes) {
    try {
        readContest(bytes);
    } catch (const shardlens::InputError& error) {
        return error.what();
    }
    return {};
}

std::string with(const std::string& before, const std::string& after) {
    std::string text = kExample;
    const auto at = text.find(before);
    if (at == std::string::npos) qFatal("no %s", before.c_str());
    return text.replace(at, before.size(), after);
}

bool same(const IntervalProblem& a, const IntervalProblem& b) {
    if (a.name != b.name || a.limit != b.limit || a.nodes.size() != b.nodes.size() ||
        a.pairs.size() != b.pairs.size()) {
        return false;
    }
    for (std::size_t i = 0; i < a.nodes.size(); ++i) {
        const auto &m = a.nodes[i], &n = b.nodes[i];
        if (!(m.alive == n.alive) || m.cost != n.cost || m.usage != n.usage) return false;
    }
    for (std::size_t e = 0; e < a.pairs.size(); ++e) {
        const auto &p = a.pairs[e], &q = b.pairs[e];
        if (p.u != q.u || p.v != q.v || p.cost->rows != q.cost->rows ||
            p.cost->values != q.cost->values) {
            return false;
        }
    }
    return true;
}

} // namespace

class TestContestFile : public QObject {
    Q_OBJECT

private slots:
    void problemsAreKnownByTheirHead();
    void exampleIsRead();
    void gzipIsRead();
    void membersMayComeInAnyOrder();
    void equalMatricesAreShared();
    void writtenProblemsAreReadBack();
    void otherNumbersAreScaled();
    void badFiles_data();
    void badFiles();
    void cutOffAtEveryByte();
    void damagedGzip();
    void solutions();
    void publishedInstancesHaveTheirCounts();
};

void TestContestFile::exampleIsRead() {
    const IntervalProblem p = readContest(kExample);
    QCOMPARE(p.name, std::string("example"));
    QCOMPARE(p.limit, 50.0);
    QCOMPARE(p.nodes.size(), std::size_t{5});
    QVERIFY((p.nodes[2].alive == Interval{50, 120}));
    QCOMPARE(p.nodes[2].cost, (std::vector<double>{25, 45, 35}));
    QCOMPARE(p.nodes[2].usage, (std::vector<double>{15, 20, 15}));
    QCOMPARE(p.pairs.size(), std::size_t{5});
    QCOMPARE(p.pairs[2].u, NodeId{1});
    QCOMPARE(p.pairs[2].cost->at(1, 0), 20.0);
    const IntervalProblem free = readContest(with(",\n\"usage_limit\": 50", ""));
    QCOMPARE(free.limit, kInfinite);
    const IntervalProblem barred = readContest(with("[70, 60]", "[1000000000000000000, 60]"));
    QCOMPARE(barred.pairs[4].cost->at(0, 0), kInfinite);
}

void TestContestFile::gzipIsRead() {
    QVERIFY(same(readContest(gzip(kExample)), readContest(kExample)));
    const std::string text = kExample;
    QVERIFY(same(readContest(gzip(text.substr(0, 200)) + gzip(text.substr(200))),
                 readContest(kExample))); // two members, as gzip(1) allows
}

void TestContestFile::membersMayComeInAnyOrder() {
    const char* const text = R"({"comment": {"deep": [[1, {"x": null}], true]}, "problem": {
"usage_limit": 7, "edges": {"costs": [[1, 2], [5, 6]], "nodes": [[0, 1], [1]], "more": 3},
"nodes": {"usages": [[1], [2, 3]], "costs": [[4], [5, 6]], "intervals": [[0, 1], [2, 2]]}}})";
    const IntervalProblem p = readContest(text);
    QCOMPARE(p.limit, 7.0);
    QCOMPARE(p.pairs.size(), std::size_t{1});
    QCOMPARE(p.nodes[1].cost, (std::vector<double>{10, 12})); // an edge of one node adds to it
    QVERIFY(p.nodes[1].alive.empty());
}

void TestContestFile::equalMatricesAreShared() {
    const IntervalProblem p = readContest(with("[70, 60]", "[30, 40]"));
    QVERIFY(p.pairs[0].cost->rows == 1 && p.pairs[4].cost->rows == 2);
    QVERIFY(p.pairs[0].cost != p.pairs[4].cost); // equal numbers of another shape
    const IntervalProblem q = readContest(with("[30, 40], [50, 10, 40]", "[30, 40], [60, 20, 30]"));
    QVERIFY(q.pairs[1].cost != q.pairs[3].cost);
    const IntervalProblem r = readContest(
        with("[[30, 40], [50, 10, 40], [90", "[[30, 40], [50, 10, 40], [90")); // as it is
    QVERIFY(same(r, readContest(kExample)));
}

void TestContestFile::writtenProblemsAreReadBack() {
    for (unsigned seed = 0; seed < 300; ++seed) {
        IntervalProblem p = IntervalMaker(seed).make(shapeOf(seed));
        p.name = "a \"name\" \xc3\xa9";
        std::ostringstream out;
        const ContestScale scale = writeContest(out, p);
        QCOMPARE(scale.cost, 1.0);
        QCOMPARE(scale.usage, 1.0);
        QVERIFY(same(readContest(out.str()), p));
    }
}

void TestContestFile::otherNumbersAreScaled() {
    IntervalProblem p = readContest(kExample);
    p.nodes[1].cost = {0.5, 0.25};
    p.nodes[1].usage = {24.5, 25};
    std::ostringstream out;
    const ContestScale scale = writeContest(out, p);
    const IntervalProblem q = readContest(out.str());
    QVERIFY(scale.cost > 1000 && scale.usage > 1000);
    QCOMPARE(q.nodes[1].cost[0], 0.5 * scale.cost);
    QCOMPARE(q.nodes[1].usage[0], 24.5 * scale.usage);
    QCOMPARE(q.limit, 50 * scale.usage);
    const ChoiceList published = {0, 0, 2, 1, 0};
    QCOMPARE(evaluate(q, published).cost, evaluate(p, published).cost * scale.cost);
    p.nodes[1].usage.clear();
    std::ostringstream unused;
    writeContest(unused, p);
    QCOMPARE(readContest(unused.str()).nodes[1].usage, (std::vector<double>{0, 0}));
}

void TestContestFile::badFiles_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("says");
    const auto row = [](const char* name, const std::string& text, const char* says) {
        QTest::newRow(name) << QByteArray::fromStdString(text) << QByteArray(says);
    };
    row("empty", "", "ends too early");
    row("not json", "hello", "not JSON");
    row("a list", "[1]", "a list is not expected");
    row("a number", "1", "not expected");
    row("no problem", "{}", "problem is missing");
    row("no edges", R"({"problem": {"nodes": {"intervals": [], "costs": [], "usages": []}}})",
        "problem.edges.nodes is missing");
    row("twice", with("\"usage_limit\"", "\"name\": \"b\", \"usage_limit\""), "given twice");
    row("count of intervals", with("[30, 70], ", ""), "4 intervals, 5 rows of costs");
    row("count of usages", with("[[10], ", "[[10, 11], "), "2 usages for 1 choices");
    row("count of rows", with(", [70, 60]]", "]"), "5 edges have 4 rows");
    row("count of costs", with("[70, 60]", "[70, 60, 50]"), "3 costs for 2 x 1 choices");
    row("no choice", with("[[15], ", "[[], "), "a node has no choice");
    row("interval of three", with("[30, 70]", "[30, 70, 90]"), "two whole numbers");
    row("interval of halves", with("[30, 70]", "[30.5, 70]"), "two whole numbers");
    row("interval backwards", with("[30, 70]", "[70, 30]"), "ends before it begins");
    row("huge time", with("[30, 70]", "[30, 9223372036854775808]"), "two whole numbers");
    row("negative usage", with("[25, 25]", "[25, -25]"), "a usage is negative");
    row("negative limit", with("\"usage_limit\": 50", "\"usage_limit\": -50"), "limit is negative");
    row("negative node", with("[[0, 1]", "[[0, -1]"), "there is no node -1");
    row("node beyond", with("[[0, 1]", "[[0, 5]"), "there is no node 5");
    row("half a node", with("[[0, 1]", "[[0, 0.5]"), "there is no node 0.5");
    row("huge node", with("[[0, 1]", "[[0, 18446744073709551615]"), "there is no node");
    row("three ends", with("[[0, 1]", "[[0, 1, 2]"), "joins 3 nodes");
    row("not a number", with("[70, 60]", "[NaN, 60]"), "not JSON");
    row("beyond doubles", with("[70, 60]", "[1e999, 60]"), "JSON");
    row("text for a number", with("[70, 60]", "[\"70\", 60]"), "a text is not expected");
    row("null for a number", with("[70, 60]", "[null, 60]"), "null is not expected");
    row("list in a row", with("[70, 60]", "[[70], 60]"), "a number is expected");
    row("object in a row", with("[70, 60]", "[{}, 60]"), "a number is expected");
    row("number for a row", with("[70, 60]", "70"), "a number is not expected");
    row("object for a list", with("\"usages\": [[10]", "\"usages\": {\"a\": [[10]"),
        "an object is not expected");
    row("deep", std::string(100'000, '['), "a list is not expected");
    row("deep unknown", "{\"x\": " + std::string(100'000, '['), "ends too early");
    row("more after it", std::string(kExample) + "x", "not JSON");
}

void TestContestFile::badFiles() {
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, says);
    const std::string what = complaint(text.toStdString());
    QVERIFY2(QByteArray::fromStdString(what).contains(says), what.c_str());
    QVERIFY(what.find('\n') == std::string::npos);
}

void TestContestFile::cutOffAtEveryByte() {
    const std::string text = kExample, packed = gzip(text);
    for (std::size_t i = 0; i < text.size(); ++i) QVERIFY(!complaint(text.substr(0, i)).empty());
    for (std::size_t i = 0; i < packed.size(); ++i) {
        QVERIFY(!complaint(packed.substr(0, i)).empty());
    }
}

void TestContestFile::damagedGzip() {
    std::string packed = gzip(kExample);
    for (std::size_t i = 10; i < packed.size(); ++i) {
        std::string bad = packed;
        bad[i] = char(bad[i] ^ 0x55);
        complaint(bad); // whatever it says, it does not crash
    }
    QVERIFY(complaint(packed + "tail").find("gzip") != std::string::npos);
}

void TestContestFile::solutions() {
    const ChoiceList published = {0, 0, 2, 1, 0};
    QCOMPARE(solutionLine(published), std::string("[0, 0, 2, 1, 0]"));
    QCOMPARE(readSolution("[0, 0, 2, 1, 0]\n"), published);
    QCOMPARE(readSolution(" [ 0,0 ,2,1,0]"), published);
    QCOMPARE(readSolution("[]"), ChoiceList{});
    QCOMPARE(solutionLine({}), std::string("[]"));
    for (const char* bad : {"", "[", "]", "0, 1", "[0,]", "[,0]", "[0 1]", "[0", "[-1]", "[0] 1",
                            "[65536]", "[1.5]", "[a]", "[0,"}) {
        QVERIFY_EXCEPTION_THROWN(readSolution(bad), shardlens::InputError);
    }
}

void TestContestFile::publishedInstancesHaveTheirCounts() {
    struct Instance {
        const char* letter;
        std::size_t nodes, edges;
    };
    const QString folder = QStringLiteral(SHARDLENS_SHARED "/data/iopddl/");
    if (!QFile::exists(folder)) QSKIP("the shared data are not there");
    for (const Instance& i :
         {Instance{"B", 816, 1096}, Instance{"G", 816, 1023}, Instance{"U", 34932, 20188}}) {
        const QString file = folder + "asplos-2025-iopddl-" + i.letter + ".json.gz";
        const IntervalProblem p = readContestFile(file.toStdString());
        QCOMPARE(p.nodes.size(), i.nodes);
        QCOMPARE(p.pairs.size(), i.edges);
    }
    QVERIFY_EXCEPTION_THROWN(readContestFile("no such file"), shardlens::InputError);
}

void TestContestFile::problemsAreKnownByTheirHead() {
    QTemporaryDir folder;
    const auto isProblem = [&](const QByteArray& bytes) {
        const QString path = folder.filePath(QStringLiteral("file"));
        QFile file(path);
        if (!file.open(QIODevice::WriteOnly)) return false;
        file.write(bytes);
        file.close();
        return isContestFile(path.toStdString());
    };
    QVERIFY(isProblem("{\"problem\": {\"name\": \"a\""));
    QVERIFY(isProblem("\n{\n  \"problem\" :\t{}}"));
    QVERIFY(!isProblem("{\"problem\": 3}"));
    QVERIFY(!isProblem("{\"model_type\": \"llama\", \"problem\": {}}"));
    QVERIFY(isProblem(QByteArray::fromStdString(gzip(kExample))));
    QVERIFY(!isProblem(""));
    QVERIFY(!isProblem("\x1f\x8b")); // gzip, cut off
    QVERIFY(!isContestFile("/no/such/file"));
}

SHARDLENS_TEST(TestContestFile)

} // namespace tst_contest_file

#include "tst_contest_file.moc"
