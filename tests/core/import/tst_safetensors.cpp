// SPDX-License-Identifier: Apache-2.0
// Headers of weights files: a real one, and every kind of damage; and finding the config beside.
#include "core/import/safetensors.h"
#include "tests/core/import/hf_testing.h"
#include "tests/test_program.h"

#include <QTemporaryDir>
#include <QTest>

namespace tst_safetensors {

using namespace shardlens;
using namespace shardlens::test;

class TestSafetensors : public QObject {
    Q_OBJECT

private slots:
    void realHeader();
    void smallHeader();
    void recognition();
    void damage_data();
    void damage();
    void everyCutIsRefused();
    void everyFlippedByteIsReadOrRefused();
    void configBeside();
    void mismatchIsSaid();
};

namespace {

std::string withLength(const std::string& json, std::size_t dataBytes) {
    std::string bytes;
    for (std::size_t i = 0; i < 8; ++i)
        bytes.push_back(static_cast<char>((json.size() >> (8 * i)) & 0xff));
    return bytes + json + std::string(dataBytes, '\0');
}

SafetensorsHeader parse(const std::string& bytes) {
    return parseSafetensorsHeader(std::as_bytes(std::span(bytes)), bytes.size(), "w.safetensors");
}

QString refusalOf(const std::string& bytes) {
    try {
        parse(bytes);
    } catch (const InputError& error) {
        return QString::fromUtf8(error.what());
    }
    return "accepted";
}

const std::string kSmall =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
    R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})";

void write(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

} // namespace

void TestSafetensors::realHeader() {
    const auto path = sharedPath("tiny_t5_model.safetensors");
    if (!std::filesystem::exists(path)) QSKIP("the shared models are not beside the checkout");
    const std::string bytes = readFile(path);
    const SafetensorsHeader header = parse(bytes);
    QCOMPARE(header.headerBytes, std::uint64_t{4976});
    QCOMPARE(header.tensors.size(), std::size_t{47});
    QCOMPARE(header.metadata.at("format"), "pt");
    QCOMPARE(header.tensors.back().name, "shared.weight");
    QCOMPARE(header.tensors.back().shape, (Shape{1024, 8}));
    QCOMPARE(header.tensors.back().end, std::uint64_t{43904});
}

void TestSafetensors::smallHeader() {
    const SafetensorsHeader header = parse(withLength(kSmall, 16));
    QCOMPARE(header.tensors.size(), std::size_t{2});
    QCOMPARE(header.tensors[0].name, "a"); // by byte range, not by place in the header
    QVERIFY(header.tensors[0].shape.empty());
    QCOMPARE(header.tensors[1].dtype, "BF16");
    // Padded with blanks, as the format's writer does; packed types; empty tensors.
    QCOMPARE(refusalOf(withLength(kSmall + "     ", 16)), "accepted");
    QCOMPARE(refusalOf(withLength(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2)),
             "accepted");
    QCOMPARE(refusalOf(withLength(R"({"e":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
                                  R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                                  1)),
             "accepted");
    QCOMPARE(refusalOf(withLength("{}", 0)), "accepted");
}

void TestSafetensors::recognition() {
    const std::string good = withLength(kSmall, 16);
    const auto looks = [](const std::string& bytes, std::uint64_t size) {
        return looksLikeSafetensors(std::as_bytes(std::span(bytes)), size);
    };
    QVERIFY(looks(good, good.size()));
    QVERIFY(looks(good.substr(0, 9), good.size()));
    QVERIFY(!looks(good.substr(0, 8), good.size()));
    QVERIFY(!looks(good, 20));
    QVERIFY(!looks(withLength("[]", 0), 10));
    QVERIFY(!looks(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{", 9), 1'000'000));
    QVERIFY(!looks("", 0));
}

void TestSafetensors::damage_data() {
    QTest::addColumn<std::string>("json");
    QTest::addColumn<int>("dataBytes");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* tag, const std::string& json, int bytes, const char* says) {
        QTest::newRow(tag) << json << bytes << QString(says);
    };
    const auto one = [](const std::string& body) { return "{\"a\":" + body + "}"; };
    row("not json", "{\"a\":}", 0, "not valid JSON at byte 14");
    row("twice",
        R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
        R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
        1, "the tensor 'a' is listed twice");
    row("hole",
        R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
        R"("b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
        3, "the tensor 'b' begins at byte 2 of the data, not at 1");
    row("overlap",
        R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
        R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
        3, "the tensor 'b' begins at byte 1 of the data, not at 2");
    row("too long", one(R"({"dtype":"U8","shape":[9],"data_offsets":[0,9]})"), 4,
        "the tensors end at byte 9 of the data, the file at 4");
    row("too short", one(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})"), 4,
        "the tensors end at byte 1 of the data, the file at 4");
    row("size", one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), 4,
        "'a' of shape [2] does not fill bytes 0 to 4");
    row("reversed", one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), 8,
        "does not fill bytes 8 to 0");
    row("dtype", one(R"({"dtype":"F33","shape":[1],"data_offsets":[0,4]})"), 4,
        "is of the unknown type 'F33'");
    row("no shape", one(R"({"dtype":"F32","data_offsets":[0,4]})"), 4, "no proper \"shape\"");
    row("negative", one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"), 4, "bad shape");
    row("huge", one(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]})"), 4,
        "bad shape");
    row("one offset", one(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})"), 4,
        "bad \"data_offsets\"");
    row("number", one("5"), 0, "no proper \"dtype\"");
    row("list", one("[]"), 0, "no proper \"dtype\"");
    row("metadata", R"({"__metadata__":{"a":1}})", 0, "is no map of texts");
    row("metadata twice", R"({"__metadata__":{},"__metadata__":{}})", 0, "listed twice");
}

void TestSafetensors::damage() {
    QFETCH(std::string, json);
    QFETCH(int, dataBytes);
    QFETCH(QString, says);
    const QString message = refusalOf(withLength(json, static_cast<std::size_t>(dataBytes)));
    QVERIFY2(message.contains(says), qPrintable(message));
    QVERIFY(message.startsWith("w.safetensors: "));
}

void TestSafetensors::everyCutIsRefused() {
    const std::string bytes = withLength(kSmall, 16);
    for (std::size_t length = 0; length < bytes.size(); ++length)
        QVERIFY(refusalOf(bytes.substr(0, length)) != "accepted");
}

void TestSafetensors::everyFlippedByteIsReadOrRefused() {
    const std::string bytes = withLength(kSmall, 16);
    for (std::size_t at = 0; at < bytes.size(); ++at)
        for (const char byte : {'\0', '1', '"', '[', '{', '}', '-', '\xff'}) {
            std::string damaged = bytes;
            damaged[at] = byte;
            refusalOf(damaged); // any other exception fails the test
        }
}

void TestSafetensors::configBeside() {
    QTemporaryDir folder;
    const std::filesystem::path root = folder.path().toStdString();
    const std::filesystem::path weights = root / "small-00001-of-00002.safetensors";
    write(weights, withLength(kSmall, 16));
    try {
        importSafetensors(weights, smallWorkload());
        QFAIL("a weights file alone is no model");
    } catch (const InputError& error) {
        QVERIFY(QString(error.what()).contains("put the model's config.json beside it"));
    }
    write(root / "other_config.json", patched("llama3-8b", "{}"));
    write(root / "smaller_config.json", patched("llama3-8b", "{}"));
    QVERIFY_EXCEPTION_THROWN(importSafetensors(weights, smallWorkload()), InputError);
    write(root / "config.json", patched("bert-base", "{}"));
    QCOMPARE(importSafetensors(weights, smallWorkload()).facts.at("model type"), "bert");
    write(root / "small_config.json", patched("gpt2", "{}"));
    const Graph graph = importSafetensors(weights, smallWorkload());
    QCOMPARE(graph.facts.at("model type"), "gpt2");
    QCOMPARE(graph.name, "small");
}

void TestSafetensors::mismatchIsSaid() {
    QTemporaryDir folder;
    const std::filesystem::path root = folder.path().toStdString();
    write(root / "config.json", patched("gpt2", "{}"));
    write(root / "model.safetensors",
          withLength(R"({"transformer.wpe.weight":{"dtype":"U8","shape":[2,3],)"
                     R"("data_offsets":[0,6]}})",
                     6));
    const Graph graph = importSafetensors(root / "model.safetensors", smallWorkload());
    QCOMPARE(graph.warnings.size(), std::size_t{1});
    QVERIFY(graph.warnings.front().find("'transformer.wpe.weight' is [2,3] in the weights and "
                                        "[1024,768] by the config") != std::string::npos);
}

SHARDLENS_TEST(TestSafetensors)

} // namespace tst_safetensors

#include "tst_safetensors.moc"
