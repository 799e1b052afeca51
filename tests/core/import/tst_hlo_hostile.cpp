// SPDX-License-Identifier: Apache-2.0
// HLO text that is cut off, contradicts itself or tries to exhaust memory: one clear sentence, or a
// graph, never anything else.
#include "core/fold/folding.h"
#include "core/model/canonical.h"
#include "tests/core/import/hlo_testing.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_hlo_hostile {

using namespace shardlens;
using namespace shardlens::test::hlo;

namespace {

bool says(const std::string& error, const char* part) {
    return QString::fromStdString(error).contains(part);
}

std::string repeated(const std::string& text, std::size_t times) {
    std::string result;
    for (std::size_t i = 0; i < times; ++i) result += text;
    return result;
}

} // namespace

class TestHloHostile : public QObject {
    Q_OBJECT

private slots:
    void truncatedAtEveryByte() {
        const std::string whole = scan(3, ", metadata={op_name=\"a/b\"}");
        const std::size_t last = whole.rfind('}');
        for (std::size_t length = 9; length <= last; ++length) {
            const std::string error = errorOf(whole.substr(0, length));
            QVERIFY2(!error.empty(), std::to_string(length).c_str());
        }
        QVERIFY(errorOf(whole.substr(0, last + 1)).empty());
    }
    void truncationIsSaid() {
        const std::string whole = scan(3);
        for (const double part : {0.05, 0.3, 0.6, 0.9})
            QVERIFY(says(errorOf(whole.substr(0, static_cast<std::size_t>(
                                                     part * static_cast<double>(whole.size())))),
                         "truncated"));
        QVERIFY(says(errorOf(whole.substr(0, whole.find("ENTRY"))), "no ENTRY"));
    }
    /// One byte changed anywhere: an error or a graph that every later stage can take.
    void changedAtEveryByte() {
        const std::string whole = scan(2);
        for (const char c : {'}', '9', '\0', '"'})
            for (std::size_t at = 0; at < whole.size(); at += 3) {
                std::string text = whole;
                text[at] = c;
                try {
                    const Graph graph = canonicalise(importText(text));
                    for (OpId id = 0; id < graph.ops().size(); ++id) {
                        const OpView view = viewOf(graph, id);
                        forwardWork(view, factorRule(view));
                    }
                    fold(graph);
                } catch (const InputError&) { // said
                }
            }
    }

    void clearSentences_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QString>("part");
        const auto row = [](const char* name, const std::string& text, const char* part) {
            QTest::newRow(name) << QByteArray::fromStdString(text) << part;
        };
        row("dims of 2^63", moduleOf("  ROOT %x = f32[9223372036854775808]{0} parameter(0)\n"),
            "is no number");
        row("dims whose product is too large",
            moduleOf("  ROOT %x = f32[4611686018427387904,4611686018427387904] parameter(0)\n"),
            "too many elements");
        row("and with a zero among them",
            moduleOf("  ROOT %x = f32[0,4611686018427387904,4611686018427387904] parameter(0)\n"),
            "too many elements");
        row("negative dims", moduleOf("  ROOT %x = f32[-1]{0} parameter(0)\n"), "is no number");
        row("unknown type", moduleOf("  ROOT %x = f33[1]{0} parameter(0)\n"), "f33");
        row("deep tuples", moduleOf("  ROOT %x = " + repeated("(", 100000) + " parameter(0)\n"),
            "too deeply");
        row("operand that is not there", moduleOf("  ROOT %x = f32[] negate(%y)\n"),
            "is not defined before it");
        row("operand of itself", moduleOf("  ROOT %x = f32[] negate(%x)\n"),
            "is not defined before it");
        row("duplicate names",
            moduleOf("  %x = f32[] constant(0)\n  ROOT %x = f32[] constant(1)\n"), "twice");
        row("two entries",
            moduleOf("  ROOT %x = f32[] constant(0)\n") +
                "ENTRY %other {\n  ROOT %x = f32[] constant(0)\n}\n",
            "two ENTRY");
        row("missing parameter", moduleOf("  ROOT %x = f32[] parameter(1)\n"), "lacks one");
        row("parameter twice",
            moduleOf("  %y = f32[] parameter(0)\n  ROOT %x = f32[] parameter(0)\n"), "twice");
        row("parameter far away", moduleOf("  ROOT %x = f32[] parameter(4294967295)\n"),
            "not usable");
        row("computation that is not there",
            moduleOf("  %y = f32[] constant(0)\n  ROOT %x = f32[] call(%y), to_apply=%none\n"),
            "not in the file");
        row("calls itself",
            moduleOf("  %y = f32[] constant(0)\n  ROOT %x = f32[] call(%y), to_apply=%loop\n",
                     "%loop (a: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  ROOT %b = f32[] "
                     "call(%a), to_apply=%loop\n}\n"),
            "calls itself");
        row("too few arguments", moduleOf("  ROOT %x = f32[] call(), to_apply=%sum\n"),
            "is given 0");
        row("tuple of another size",
            moduleOf("  %y = f32[] constant(0)\n  ROOT %x = (f32[], f32[]) tuple(%y)\n"),
            "where its type has 2");
        row("element that is not there",
            moduleOf("  %y = f32[] constant(0)\n  %t = (f32[]) tuple(%y)\n  ROOT %x = f32[] "
                     "get-tuple-element(%t), index=1\n"),
            "not there");
        row("tuple where an array is needed",
            moduleOf("  %y = f32[] constant(0)\n  %t = (f32[], f32[]) tuple(%y, %y)\n  ROOT %x = "
                     "f32[] negate(%t)\n"),
            "is no array");
        row("empty entry", moduleOf(""), "is empty");
        row("not HLO after all", "HloModular nonsense", "begins with HloModule");
    }
    void clearSentences() {
        QFETCH(QByteArray, text);
        QFETCH(QString, part);
        const std::string error = errorOf(text.toStdString());
        QVERIFY2(says(error, part.toUtf8().constData()), error.c_str());
    }

    /// Each computation calls the one before twice: 2^40 ops. They are not written out.
    void callBomb() {
        std::string before;
        for (int i = 0; i < 40; ++i)
            before += fmt::format(
                "%c{} (a: f32[]) -> f32[] {{\n  %a = f32[] parameter(0)\n  %b = "
                "f32[] {}\n  ROOT %c = f32[] {}\n}}\n\n",
                i, i == 0 ? "negate(%a)" : fmt::format("call(%a), to_apply=%c{}", i - 1),
                i == 0 ? "negate(%b)" : fmt::format("call(%b), to_apply=%c{}", i - 1));
        const Graph graph = importText(moduleOf(
            "  %y = f32[] parameter(0)\n  ROOT %x = f32[] call(%y), to_apply=%c39\n", before));
        QVERIFY(graph.ops().size() < 300'000);
        QVERIFY(!graph.warnings.empty());
    }
    void deepCalls() {
        std::string before = "%c0 (a: f32[]) -> f32[] {\n  ROOT %a = f32[] parameter(0)\n}\n";
        for (int i = 1; i < 5000; ++i)
            before += fmt::format("%c{} (a: f32[]) -> f32[] {{\n  %a = f32[] parameter(0)\n  ROOT "
                                  "%b = f32[] call(%a), to_apply=%c{}\n}}\n",
                                  i, i - 1);
        QVERIFY(says(errorOf(moduleOf("  ROOT %x = f32[] constant(0)\n", before)), "too deeply"));
    }
    /// Loops in loops, each of a million rounds.
    void loopBomb() {
        std::string before = "%yes (p: f32[]) -> pred[] {\n  %p = f32[] parameter(0)\n  ROOT %t = "
                             "pred[] constant(true)\n}\n%b0 (a: f32[]) -> f32[] {\n  %a = f32[] "
                             "parameter(0)\n  ROOT %n = f32[] negate(%a)\n}\n";
        for (int i = 1; i < 30; ++i)
            before += fmt::format("%b{} (a: f32[]) -> f32[] {{\n  %a = f32[] parameter(0)\n  ROOT "
                                  "%w = f32[] while(%a), condition=%yes, body=%b{}, "
                                  "backend_config={{\"known_trip_count\":{{\"n\":\"1000000\"}}}}\n"
                                  "}}\n",
                                  i, i - 1);
        const Graph graph = importText(moduleOf(
            "  %y = f32[] parameter(0)\n  ROOT %x = f32[] call(%y), to_apply=%b29\n", before));
        QVERIFY(graph.ops().size() < 300'000);
    }
    /// A wide tuple handed through many rounds.
    void wideTuples() {
        const std::string types = repeated("f32[],", 20000) + "f32[]";
        const std::string operands = repeated("%y,", 20000) + "%y";
        const std::string text =
            moduleOf("  %y = f32[] constant(0)\n  %t = (" + types + ") tuple(" + operands +
                         ")\n  ROOT %x = (" + types +
                         ") while(%t), condition=%yes, body=%same, "
                         "backend_config={\"known_trip_count\":{\"n\":\"60000\"}}\n",
                     "%yes (p: f32[]) -> pred[] {\n  %p = f32[] parameter(0)\n  ROOT %t = pred[] "
                     "constant(true)\n}\n%same (p: f32[]) -> f32[] {\n  %p = (" +
                         types + ") parameter(0)\n  ROOT %t = (" + types + ") tuple(" +
                         repeated("%p,", 0) + "%p)\n}\n");
        const std::string error = errorOf(text);
        QVERIFY2(says(error, "too large") || error.empty(), error.c_str());
    }
    /// A kilobyte that asks for a mesh of 2^60 devices.
    void hugeMeshes() {
        const Graph graph = importText(
            "HloModule m, num_partitions=9223372036854775807, replica_count=9223372036854775807\n"
            "ENTRY %e {\n  ROOT %x = f32[8]{0} parameter(0), "
            "sharding={devices=[1152921504606846976]<=[1152921504606846976]}\n}\n");
        QVERIFY(!graph.partition.has_value());
        QCOMPARE(graph.warnings.size(), std::size_t{1});
    }
};

SHARDLENS_TEST(TestHloHostile)

} // namespace tst_hlo_hostile

#include "tst_hlo_hostile.moc"
