// SPDX-License-Identifier: Apache-2.0
// Indexes of weights in several files: the config beside, the files' headers, names that lead away.
#include "core/import/safetensors_index.h"
#include "tests/core/import/hf_testing.h"
#include "tests/test_program.h"

#include <QTemporaryDir>
#include <QTest>

namespace tst_safetensors_index {

using namespace shardlens;
using namespace shardlens::test;
namespace fs = std::filesystem;

class TestSafetensorsIndex : public QObject {
    Q_OBJECT

private slots:
    void wholeModel();
    void missingFiles();
    void findingsAreSaid();
    void noConfig();
    void refusals_data();
    void refusals();
};

namespace {

constexpr const char* kConfig =
    R"({"model_type": "llama", "hidden_size": 8, "intermediate_size": 16,
    "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 10, "torch_dtype": "float32"})";
constexpr const char* kFirst = "model-00001-of-00002.safetensors";
constexpr const char* kSecond = "model-00002-of-00002.safetensors";

void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

/// A weights file with one f32 tensor.
std::string weights(const std::string& name, const Shape& shape) {
    const auto bytes = static_cast<std::size_t>(elementsOf(shape)) * 4;
    const nlohmann::json header{
        {name, {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {0, bytes}}}}};
    const std::string json = header.dump();
    std::string file;
    for (std::size_t i = 0; i < 8; ++i) file.push_back(static_cast<char>(json.size() >> (8 * i)));
    return file + json + std::string(bytes, '\0');
}

std::string index(std::uint64_t total) {
    return nlohmann::json{
        {"metadata", {{"total_size", total}}},
        {"weight_map", {{"model.embed_tokens.weight", kFirst}, {"lm_head.weight", kSecond}}}}
        .dump();
}

struct Folder {
    QTemporaryDir dir;
    fs::path path = dir.path().toStdString();
    fs::path index = path / "model.safetensors.index.json";
    Folder() { write(path / "config.json", kConfig); }
};

} // namespace

void TestSafetensorsIndex::wholeModel() {
    const Folder folder;
    write(folder.index, index(2 * 10 * 8 * 4));
    write(folder.path / kFirst, weights("model.embed_tokens.weight", {10, 8}));
    write(folder.path / kSecond, weights("lm_head.weight", {10, 8}));
    const Graph graph = importModel(folder.index, smallWorkload());
    QVERIFY2(graph.warnings.empty(), graph.warnings.empty() ? "" : graph.warnings[0].c_str());
    QCOMPARE(graph.format, std::string("safetensors index with HF config"));
    QCOMPARE(graph.facts.at("weights files"), std::string("2"));
    QCOMPARE(graph.facts.at("tensors in the weights index"), std::string("2"));
    QCOMPARE(graph.facts.at("bytes of weights"), std::string("640"));
}

void TestSafetensorsIndex::missingFiles() {
    const Folder folder;
    write(folder.index, index(640));
    write(folder.path / kFirst, weights("model.embed_tokens.weight", {10, 8}));
    const Graph graph = importModel(folder.index, smallWorkload());
    QCOMPARE(graph.warnings.size(), std::size_t{1});
    const QString warning = QString::fromStdString(graph.warnings[0]);
    QVERIFY2(warning.contains("1 of the 2 weights files") && warning.contains(kSecond),
             warning.toUtf8());
}

void TestSafetensorsIndex::findingsAreSaid() {
    const Folder folder;
    write(folder.index, index(640));
    write(folder.path / kFirst, weights("model.embed_tokens.weight", {10, 4})); // not the config's
    write(folder.path / kSecond, weights("other", {10, 8}));                    // not the index's
    const Graph graph = importModel(folder.index, smallWorkload());
    QCOMPARE(graph.warnings.size(), std::size_t{3});
    const auto said = [&](const char* text) {
        return std::ranges::any_of(graph.warnings, [text](const std::string& warning) {
            return warning.find(text) != std::string::npos;
        });
    };
    QVERIFY(said("[10,4] in the weights and [10,8] by the config"));
    QVERIFY(said("'lm_head.weight'"));
    QVERIFY(said("hold 480 bytes, the index says 640"));
}

void TestSafetensorsIndex::noConfig() {
    const Folder folder;
    fs::remove(folder.path / "config.json");
    write(folder.index, index(640));
    QVERIFY_THROWS_EXCEPTION(InputError, importModel(folder.index));
    // A damaged weights file is named.
    write(folder.path / "config.json", kConfig);
    write(folder.path / kFirst, "damaged");
    try {
        importModel(folder.index, smallWorkload());
        QFAIL("accepted");
    } catch (const InputError& error) {
        QVERIFY2(QString(error.what()).contains(kFirst), error.what());
    }
}

void TestSafetensorsIndex::refusals_data() {
    QTest::addColumn<QByteArray>("json");
    QTest::addColumn<QString>("expected");
    const auto row = [](const char* tag, const char* json, const char* expected) {
        QTest::newRow(tag) << QByteArray(json) << expected;
    };
    row("good", R"({"weight_map": {"a": "b.safetensors"}})", "accepted");
    row("absolute", R"({"weight_map": {"a": "/etc/passwd"}})", "'/etc/passwd' is not one beside");
    row("up", R"({"weight_map": {"a": "../b"}})", "'../b' is not one beside");
    row("two dots", R"({"weight_map": {"a": ".."}})", "is not one beside");
    row("windows", R"({"weight_map": {"a": "c\\b"}})", "is not one beside");
    row("nothing", R"({"weight_map": {"a": ""}})", "is not one beside");
    row("end of text", R"({"weight_map": {"a": "b\u0000c"}})", "is not one beside");
    row("number", R"({"weight_map": {"a": 1}})", "the file of 'a' is no name");
    row("object", R"({"weight_map": {"a": {"b": 1}}})", "the file of 'a' is no name");
    row("twice", R"({"weight_map": {"a": "b", "a": "c"}})", "'a' is listed twice");
    row("no tensors", R"({"weight_map": {}})", "lists no tensors");
    row("list", "[]", "lists no tensors");
    row("cut off", R"({"weight_map": {"a": "b")", "not valid JSON at byte");
    row("deep", R"({"weight_map": {"a": [[[[[[[[[[[[1]]]]]]]]]]]]}})", "nests too deeply");
}

void TestSafetensorsIndex::refusals() {
    QFETCH(QByteArray, json);
    QFETCH(QString, expected);
    QString got = "accepted";
    try {
        parseSafetensorsIndex(json.toStdString(), "index.json");
    } catch (const InputError& error) {
        got = error.what();
    }
    QVERIFY2(got.contains(expected), got.toUtf8());
}

SHARDLENS_TEST(TestSafetensorsIndex)

} // namespace tst_safetensors_index

#include "tst_safetensors_index.moc"
