// SPDX-License-Identifier: Apache-2.0
// Sharding dumps of MaxText: the published ones read and written back, their figures, damage.
#include "core/error.h"
#include "core/import/sharding_dump.h"
#include "tests/core/import/hf_testing.h"
#include "tests/test_program.h"

#include <fmt/format.h>

#include <QTemporaryDir>
#include <QTest>

namespace tst_sharding_dump {

using namespace shardlens;
using namespace shardlens::test;

class TestShardingDump : public QObject {
    Q_OBJECT

private slots:
    void publishedFiles_data();
    void publishedFiles();
    void publishedFigures();
    void logicalNames();
    void smallDump();
    void activations();
    void unevenCuts();
    void isNoModel();
    void refusals_data();
    void refusals();
    void cutOffAnywhere();
};

namespace {

namespace fs = std::filesystem;

fs::path planPath(const std::string& kind) {
    return fs::path(SHARDLENS_SHARED) / "data" / "models" / "plans" /
           ("maxtext_gpt-oss-20b_tpu7x-16_default_" + kind + "_shardings.json");
}

QString refusalOf(const std::string& json) {
    try {
        parseShardingDump(json, "plan.json");
    } catch (const InputError& error) {
        return QString::fromUtf8(error.what());
    }
    return "accepted";
}

std::string
named(const std::string& spec, const std::string& shape,
      const std::string& mesh = R"({"axis_names": ["x", "y"], "shape": {"x": 2, "y": 4}})") {
    return R"({"w": {"mesh": )" + mesh + R"(, "partition_spec": )" + spec + R"(, "shape": )" +
           shape + "}}";
}

} // namespace

void TestShardingDump::publishedFiles_data() {
    QTest::addColumn<QString>("kind");
    QTest::addColumn<int>("entries");
    QTest::newRow("named") << "named" << 126;
    QTest::newRow("logical") << "logical" << 126;
    QTest::newRow("input") << "input" << 22;
}

void TestShardingDump::publishedFiles() {
    QFETCH(QString, kind);
    QFETCH(int, entries);
    const fs::path path = planPath(kind.toStdString());
    if (!fs::exists(path)) QSKIP("the shared folder of real plans is not beside the checkout");
    const std::string text = readFile(path);
    QVERIFY(looksLikeShardingDump(text.substr(0, 65536)));
    const ShardingDump dump = parseShardingDump(text, path.string());
    QCOMPARE(dump.entries.size(), static_cast<std::size_t>(entries));
    // The same content, and here even the same bytes.
    const std::string written = writeShardingDump(dump);
    QVERIFY(nlohmann::json::parse(written) == nlohmann::json::parse(text));
    QVERIFY(written == text);
    QVERIFY(parseShardingDump(written, "again") == dump);
}

void TestShardingDump::publishedFigures() {
    const fs::path path = planPath("named");
    if (!fs::exists(path)) QSKIP("the shared folder of real plans is not beside the checkout");
    const ShardingDump dump = parseShardingDump(readFile(path), path.string());
    QCOMPARE(dump.mesh.size(), std::size_t{12});
    QCOMPARE(dump.devices(), std::int64_t{16});
    double parameters = 0, elements = 0, local = 0;
    for (const DumpEntry& entry : dump.entries) {
        elements += elementsOf(entry.shape);
        local += shardElements(dump, entry);
        if (entry.name.starts_with(".params")) parameters += elementsOf(entry.shape);
        QVERIFY(shardingOf(dump, entry).has_value());
    }
    // gpt-oss-20b is published with 20.9 billion parameters; the sums were taken with Python.
    QCOMPARE(parameters, 20'914'757'184.0);
    QCOMPARE(elements, 62'744'271'555.0);
    QCOMPARE(local, 3'940'928'355.0);
    QCOMPARE(bytesPerDevice(dump, 4), 4 * 3'940'928'355.0);
}

void TestShardingDump::logicalNames() {
    if (!fs::exists(planPath("named"))) QSKIP("the shared plans are not beside the checkout");
    ShardingDump dump = parseShardingDump(readFile(planPath("named")), "named");
    const ShardingDump logical = parseShardingDump(readFile(planPath("logical")), "logical");
    QCOMPARE(addLogicalNames(dump, logical), std::size_t{126});
    const auto kernel = std::ranges::find_if(dump.entries, [](const DumpEntry& entry) {
        return entry.name.ends_with("['GptOssAttention']/['key']/['kernel']");
    });
    QVERIFY(kernel != dump.entries.end());
    QCOMPARE(kernel->logical.front().names, std::vector<std::string>{"embed"});
    QCOMPARE(writeShardingDump(dump), readFile(planPath("named"))); // names do not show in it
}

void TestShardingDump::smallDump() {
    const ShardingDump dump =
        parseShardingDump(named(R"([["y", "x"], null, "x2", ["z"]])", "[16, 3, 4, 5, 6]",
                                R"({"axis_names": ["x", "y", "x2", "z"],
                                    "shape": {"z": 1, "x": 2, "y": 4, "x2": 2}})"),
                          "plan");
    const DumpEntry& entry = dump.entries.front();
    QCOMPARE(shardElements(dump, entry), 2.0 * 3 * 2 * 5 * 6);
    using Dims = std::vector<std::vector<std::uint8_t>>;
    QCOMPARE(shardingOf(dump, entry)->dims, (Dims{{1, 0}, {}, {2}, {3}, {}}));
    QVERIFY(entry.spec[3].tuple && !entry.spec[2].tuple);
    QCOMPARE(dump.devices(), std::int64_t{16});
    QVERIFY(nlohmann::json::parse(writeShardingDump(dump))["w"]["partition_spec"][3].is_array());
}

void TestShardingDump::activations() {
    const std::string text = R"J({"Activation Sharding Dump": [
        {"a/b: bfloat16[192,2048]": {"logic_axes": "('batch', None)",
                                     "PartitionSpec": "P(('x', 'y'), None)"}},
        {"a/b: bool[]": {"logic_axes": "Unknown", "PartitionSpec": "P()"}},
        {"c: int8[4]": {"logic_axes": "('n',)", "PartitionSpec": "P(None,)"}}]})J";
    ShardingDump dump = parseShardingDump(text, "plan");
    QCOMPARE(dump.kind, ShardingDump::Kind::Activation);
    QCOMPARE(dump.entries.size(), std::size_t{3}); // names may repeat
    QCOMPARE(dump.entries[0].dtype, DType::BF16);
    QCOMPARE(dump.entries[0].spec[0].names, (std::vector<std::string>{"x", "y"}));
    QVERIFY(nlohmann::json::parse(writeShardingDump(dump)) == nlohmann::json::parse(text));
    // The file does not say the mesh; with one, bytes follow from the types.
    dump.mesh = {{"x", 2}, {"y", 4}};
    QCOMPARE(bytesPerDevice(dump, 100), 192.0 / 8 * 2048 * 2 + 1 + 4);
}

void TestShardingDump::unevenCuts() {
    const ShardingDump dump = parseShardingDump(named(R"(["y"])", "[10]"), "plan");
    QCOMPARE(shardElements(dump, dump.entries[0]), 3.0); // 3, 3, 3, 1
}

void TestShardingDump::isNoModel() {
    const QTemporaryDir folder;
    const std::string path = folder.filePath("plan.json").toStdString();
    std::ofstream(path) << named("[]", "[]");
    try {
        importModel(path);
        QFAIL("accepted");
    } catch (const InputError& error) {
        const QString message = error.what();
        QVERIFY2(message.contains("this is a sharding plan") &&
                     message.contains("open the model it was made for"),
                 error.what());
    }
}

void TestShardingDump::refusals_data() {
    QTest::addColumn<QByteArray>("json");
    QTest::addColumn<QString>("expected");
    const auto row = [](const char* tag, const std::string& json, const char* expected) {
        QTest::newRow(tag) << QByteArray::fromStdString(json) << expected;
    };
    const auto activation = [](const char* key, const char* names, const char* spec) {
        return fmt::format(R"({{"Activation Sharding Dump": [{{"{}": {{"logic_axes": "{}",
                           "PartitionSpec": "{}"}}}}]}})",
                           key, names, spec);
    };
    row("good", named(R"(["x"])", "[4]"), "accepted");
    row("no JSON", "{\"w\": ", "not valid JSON at byte");
    row("no object", "[1]", "is a JSON object");
    row("empty", "{}", "lists no arrays");
    row("unknown axis", named(R"(["z"])", "[4]"), "no axis 'z'");
    row("axis twice", named(R"(["x", "x"])", "[4, 4]"), "'x' is used twice");
    row("long spec", named(R"(["x", null])", "[4]"), "more dimensions than its array");
    row("number in spec", named("[1]", "[4]"), "something else than names");
    row("number in tuple", named("[[1]]", "[4]"), "something else than names");
    row("negative size", named("[]", "[-1]"), "out of range");
    row("2^63", named("[]", "[9223372036854775808]"), "out of range");
    row("size is text", named("[]", R"(["4"])"), "no number");
    row("no shape", R"({"w": {"partition_spec": []}})", "no proper \"shape\"");
    row("other key", R"({"w": {"partition_spec": [], "shape": [], "dtype": "f32"}})",
        "a key that is not known");
    row("mesh without devices", named("[]", "[]", R"({"axis_names": ["x"], "shape": {"x": 0}})"),
        "no devices");
    row("mesh too large",
        named("[]", "[]",
              R"({"axis_names": ["x", "y"], "shape": {"x": 1099511627776, "y": 1099511627776}})"),
        "more than there are");
    row("mesh without size", named("[]", "[]", R"({"axis_names": ["x"], "shape": {}})"),
        "has no size");
    row("mesh with more sizes",
        named("[]", "[]", R"({"axis_names": ["x"], "shape": {"x": 1, "y": 1}})"),
        "do not fit together");
    std::string two = named("[]", "[]");
    two.back() = ',';
    row("listed twice", two + named("[]", "[]").substr(1), "listed twice");
    std::string other = named("[]", "[]", R"({"axis_names": ["z"], "shape": {"z": 1}})");
    other.replace(other.find("\"w\""), 3, "\"v\"");
    row("two meshes", two + other.substr(1), "different meshes");
    row("mixed", two + R"("v": {"partition_spec": [], "shape": []}})", "different kinds");
    row("deep", R"({"w": )" + std::string(1000, '[') + std::string(1000, ']') + "}",
        "nests too deeply");
    row("activation without type", activation("a", "Unknown", "P()"), "its type and shape");
    row("activation of a strange type", activation("a: f99[1]", "Unknown", "P()"), "'f99'");
    row("activation with a bad shape", activation("a: int8[1,,2]", "Unknown", "P()"), "no number");
    row("no spec", activation("a: int8[1]", "Unknown", "Q()"), "is no PartitionSpec");
    row("open spec", activation("a: int8[1]", "Unknown", "P('x'"), "is no PartitionSpec");
    row("odd blanks", activation("a: int8[1]", "Unknown", "P( 'x' )"), "the usual form");
}

void TestShardingDump::refusals() {
    QFETCH(QByteArray, json);
    QFETCH(QString, expected);
    const QString got = refusalOf(json.toStdString());
    QVERIFY2(got.contains(expected), got.toUtf8());
}

void TestShardingDump::cutOffAnywhere() {
    const std::string text = named(R"([["y", "x"], null])", "[16, 3]");
    for (std::size_t length = 0; length < text.size(); ++length)
        QVERIFY(refusalOf(text.substr(0, length)) != "accepted");
}

SHARDLENS_TEST(TestShardingDump)

} // namespace tst_sharding_dump

#include "tst_sharding_dump.moc"
