// SPDX-License-Identifier: Apache-2.0
// GGUF: headers by hand from the format's description, the models their values describe, damage.
#include "core/error.h"
#include "core/import/gguf.h"
#include "core/import/gguf_import.h"
#include "tests/core/import/gguf_writer.h"
#include "tests/test_program.h"

#include <fmt/format.h>

#include <QTest>

#include <algorithm>

namespace tst_gguf {

using namespace shardlens;
using namespace shardlens::test;

class TestGguf : public QObject {
    Q_OBJECT

private slots:
    void headerValues();
    void packedBits_data();
    void packedBits();
    void llama();
    void families_data();
    void families();
    void mixtureOfExperts();
    void tokensGiveTheVocabulary();
    void layersThatDiffer();
    void missingWeightsAreSaid();
    void parts();
    void refusals_data();
    void refusals();
    void cutOffAnywhere();
    void flippedBytes();
};

namespace {

constexpr int kHidden = 256, kInner = 512, kVocabulary = 512, kLayers = 2, kHeads = 4;

gguf::Header parse(const std::string& bytes) {
    return gguf::parseHeader(std::as_bytes(std::span(bytes)), "m.gguf");
}

Graph import(const std::string& bytes) {
    ImportOptions options;
    options.batch = 1;
    options.sequence = 16;
    return importGguf(std::as_bytes(std::span(bytes)), "m.gguf", options);
}

QString refusalOf(const std::string& bytes) {
    try {
        import(bytes);
    } catch (const InputError& error) {
        return QString(error.what());
    }
    return "accepted";
}

void decoderValues(GgufWriter& file, const std::string& architecture, std::uint32_t kvHeads) {
    file.text("general.architecture", architecture);
    file.text("general.name", "Tiny");
    const auto key = [&](const char* name) { return architecture + "." + name; };
    file.integer(key("block_count"), kLayers);
    file.integer(key("embedding_length"), kHidden);
    file.integer(key("feed_forward_length"), kInner);
    file.integer(key("context_length"), 128);
    file.integer(key("attention.head_count"), kHeads);
    file.integer(key("attention.head_count_kv"), kvHeads);
}

/// The tensors of a Llama-like decoder as llama.cpp names them.
void decoderTensors(GgufWriter& file, std::int64_t kvWidth, bool qkvBias, bool headNorms,
                    bool tied) {
    constexpr std::uint32_t kQ4K = 12;
    constexpr double kBits = 4.5;
    file.tensor("token_embd.weight", {kVocabulary, kHidden}, kQ4K, kBits);
    for (int layer = 0; layer < kLayers; ++layer) {
        const auto name = [&](const char* part) { return fmt::format("blk.{}.{}", layer, part); };
        file.tensor(name("attn_norm.weight"), {kHidden});
        file.tensor(name("attn_q.weight"), {kHidden, kHidden}, kQ4K, kBits);
        file.tensor(name("attn_k.weight"), {kvWidth, kHidden}, kQ4K, kBits);
        file.tensor(name("attn_v.weight"), {kvWidth, kHidden}, 14, 6.5625); // Q6_K
        file.tensor(name("attn_output.weight"), {kHidden, kHidden}, kQ4K, kBits);
        if (qkvBias) {
            file.tensor(name("attn_q.bias"), {kHidden});
            file.tensor(name("attn_k.bias"), {kvWidth});
            file.tensor(name("attn_v.bias"), {kvWidth});
        }
        if (headNorms) {
            file.tensor(name("attn_q_norm.weight"), {kHidden / kHeads});
            file.tensor(name("attn_k_norm.weight"), {kHidden / kHeads});
        }
        file.tensor(name("ffn_norm.weight"), {kHidden});
        file.tensor(name("ffn_gate.weight"), {kInner, kHidden}, kQ4K, kBits);
        file.tensor(name("ffn_up.weight"), {kInner, kHidden}, kQ4K, kBits);
        file.tensor(name("ffn_down.weight"), {kHidden, kInner}, kQ4K, kBits);
    }
    file.tensor("output_norm.weight", {kHidden});
    if (!tied) file.tensor("output.weight", {kVocabulary, kHidden}, kQ4K, kBits);
}

GgufWriter smallLlama() {
    GgufWriter file;
    decoderValues(file, "llama", 2);
    decoderTensors(file, kHidden / 2, false, false, false);
    return file;
}

} // namespace

void TestGguf::headerValues() {
    GgufWriter file;
    file.integer("a", 7);
    file.raw("b", 6, GgufWriter::number(0x3fc00000, 4)); // 1.5f
    file.raw("c", 7, std::string(1, '\1'));
    file.text("d", "text");
    file.strings("e", 1000);
    file.integers("f", {3, 4});
    file.raw("g", 10, GgufWriter::number(~std::uint64_t{0}, 8));
    // a list of lists
    file.raw("h", 9,
             GgufWriter::number(9, 4) + GgufWriter::number(1, 8) + GgufWriter::number(4, 4) +
                 GgufWriter::number(1, 8) + GgufWriter::number(5, 4));
    file.tensor("w", {2, 3, 4}, 1, 16);
    const std::string bytes = file.bytes();
    const gguf::Header header = parse(bytes);
    QCOMPARE(header.version, std::uint32_t{3});
    QCOMPARE(header.integer("a").value_or(0), std::int64_t{7});
    QCOMPARE(header.number("b").value_or(0), 1.5);
    QCOMPARE(header.integer("c").value_or(0), std::int64_t{1});
    QCOMPARE(std::string(header.text("d").value_or("")), std::string("text"));
    QCOMPARE(header.list("e")->length, std::uint64_t{1000});
    QVERIFY(header.list("e")->integers.empty());
    QCOMPARE(header.list("f")->integers, (std::vector<std::int64_t>{3, 4}));
    QCOMPARE(header.integer("g").value_or(0), std::numeric_limits<std::int64_t>::max());
    QVERIFY(!header.integer("d") && !header.integer("none"));
    QCOMPARE(header.tensors[0].shape, (Shape{2, 3, 4}));
    QCOMPARE(std::string(header.tensors[0].packing.name), std::string("F16"));
    QCOMPARE(header.dataBegin, (file.header().size() + 31) / 32 * 32);
}

void TestGguf::packedBits_data() {
    QTest::addColumn<int>("type");
    QTest::addColumn<double>("bits");
    // The figures of the format's documentation.
    const auto row = [](const char* name, int type, double bits) {
        QTest::newRow(name) << type << bits;
    };
    row("F32", 0, 32);
    row("F16", 1, 16);
    row("BF16", 30, 16);
    row("Q8_0", 8, 8.5);
    row("Q4_0", 2, 4.5);
    row("Q4_K", 12, 4.5);
    row("Q6_K", 14, 6.5625);
    row("MXFP4", 39, 4.25);
}

void TestGguf::packedBits() {
    QFETCH(int, type);
    QFETCH(double, bits);
    GgufWriter file;
    file.tensor("w", {2, 256}, static_cast<std::uint32_t>(type), bits);
    const std::string bytes = file.bytes();
    const gguf::Header header = parse(bytes);
    QCOMPARE(header.tensors[0].packing.bits(), bits);
    QCOMPARE(std::string(header.tensors[0].packing.name), std::string(QTest::currentDataTag()));
}

void TestGguf::llama() {
    const Graph graph = import(smallLlama().bytes());
    QVERIFY2(graph.warnings.empty(), graph.warnings.empty() ? "" : graph.warnings[0].c_str());
    QCOMPARE(graph.name, std::string("Tiny"));
    QCOMPARE(graph.format, std::string("GGUF"));
    QCOMPARE(graph.facts.at("layers"), std::string("2"));
    QCOMPARE(graph.facts.at("model type"), std::string("llama"));
    // By hand: two tables, and a layer of q, k, v, o, three matrices and two norms.
    const double layer = 2.0 * 256 * 256 + 2.0 * 128 * 256 + 3.0 * 512 * 256 + 2.0 * 256;
    QCOMPARE(graph.parameterCount(), 2.0 * 512 * 256 + 2 * layer + 256);
    QCOMPARE(graph.facts.at("weights in Q6_K"),
             std::string("2 tensors, 65536 elements of 6.5625 bits"));
    QCOMPARE(graph.facts.at("weights in F32"), std::string("5 tensors, 1280 elements of 32 bits"));
    QCOMPARE(graph.facts.at("tensors in the weights file"), std::string("21"));
}

void TestGguf::families_data() {
    QTest::addColumn<QString>("architecture");
    QTest::addColumn<bool>("bias");
    QTest::addColumn<bool>("norms");
    QTest::addColumn<bool>("tied");
    QTest::newRow("llama, tied") << "llama" << false << false << true;
    QTest::newRow("qwen2") << "qwen2" << true << false << false;
    QTest::newRow("qwen3") << "qwen3" << false << true << true;
    QTest::newRow("gemma") << "gemma" << false << false << true;
}

void TestGguf::families() {
    QFETCH(QString, architecture);
    QFETCH(bool, bias);
    QFETCH(bool, norms);
    QFETCH(bool, tied);
    GgufWriter file;
    file.version = 2;
    decoderValues(file, architecture.toStdString(), 2);
    decoderTensors(file, kHidden / 2, bias, norms, tied);
    const Graph graph = import(file.bytes());
    QVERIFY2(graph.warnings.empty(), graph.warnings.empty() ? "" : graph.warnings[0].c_str());
    QCOMPARE(graph.facts.at("model type"), architecture.toStdString());
}

void TestGguf::mixtureOfExperts() {
    GgufWriter file;
    decoderValues(file, "llama", 2);
    file.integer("llama.expert_count", 4);
    file.integer("llama.expert_used_count", 2);
    file.tensor("token_embd.weight", {kVocabulary, kHidden}, 1, 16);
    for (int layer = 0; layer < kLayers; ++layer) {
        const auto name = [&](const char* part) { return fmt::format("blk.{}.{}", layer, part); };
        file.tensor(name("attn_norm.weight"), {kHidden});
        file.tensor(name("attn_q.weight"), {kHidden, kHidden}, 1, 16);
        file.tensor(name("attn_k.weight"), {kHidden / 2, kHidden}, 1, 16);
        file.tensor(name("attn_v.weight"), {kHidden / 2, kHidden}, 1, 16);
        file.tensor(name("attn_output.weight"), {kHidden, kHidden}, 1, 16);
        file.tensor(name("ffn_norm.weight"), {kHidden});
        file.tensor(name("ffn_gate_inp.weight"), {4, kHidden});
        for (const char* part : {"ffn_gate_exps.weight", "ffn_up_exps.weight"})
            file.tensor(name(part), {4, kInner, kHidden}, 1, 16);
        file.tensor(name("ffn_down_exps.weight"), {4, kHidden, kInner}, 1, 16);
    }
    file.tensor("output_norm.weight", {kHidden});
    file.tensor("output.weight", {kVocabulary, kHidden}, 1, 16);
    file.tensor("rope_freqs.weight", {32}); // computed, not trained
    const Graph graph = import(file.bytes());
    QVERIFY2(graph.warnings.empty(), graph.warnings.empty() ? "" : graph.warnings[0].c_str());
    QCOMPARE(graph.facts.at("model type"), std::string("mixtral"));
    QVERIFY(std::ranges::find(graph.ops(), OpKind::MoeDispatch, &Op::kind) != graph.ops().end());
    QCOMPARE(graph.facts.at("element type"), std::string("f16"));
}

void TestGguf::tokensGiveTheVocabulary() {
    GgufWriter file;
    decoderValues(file, "llama", 4);
    file.strings("tokenizer.ggml.tokens", 777);
    const Graph graph = import(file.bytes());
    const auto table = graph.findOp("model.embed_tokens.weight");
    QVERIFY(table.has_value());
    QCOMPARE(graph.tensor(graph.op(*table).outputs[0]).spec.shape, (Shape{777, kHidden}));
}

void TestGguf::layersThatDiffer() {
    GgufWriter same;
    decoderValues(same, "qwen2", 2);
    QVERIFY(refusalOf(same.bytes()).contains("vocab_size"));
    for (const bool equal : {true, false}) {
        GgufWriter file;
        file.text("general.architecture", "llama");
        file.integer("llama.block_count", kLayers);
        file.integer("llama.embedding_length", kHidden);
        file.integers("llama.feed_forward_length",
                      {kInner, static_cast<std::uint32_t>(equal ? kInner : 2 * kInner)});
        file.integer("llama.attention.head_count", kHeads);
        file.integer("llama.vocab_size", kVocabulary);
        QCOMPARE(refusalOf(file.bytes()).contains("llama.feed_forward_length differs from layer"),
                 !equal);
    }
}

void TestGguf::missingWeightsAreSaid() {
    GgufWriter file;
    decoderValues(file, "llama", 2);
    decoderTensors(file, kHidden / 2, false, false, false);
    file.tensor("extra.weight", {10});
    const Graph graph = import(file.bytes());
    QCOMPARE(graph.warnings.size(), std::size_t{1});
    QVERIFY(QString::fromStdString(graph.warnings[0]).contains("they differ by 10."));
}

void TestGguf::parts() {
    GgufWriter file;
    decoderValues(file, "llama", 2);
    file.raw("split.count", 2, GgufWriter::number(3, 2));
    file.tensor("token_embd.weight", {kVocabulary, kHidden}, 1, 16);
    const Graph graph = import(file.bytes());
    QCOMPARE(graph.warnings.size(), std::size_t{1});
    QVERIFY(QString::fromStdString(graph.warnings[0]).contains("one of 3 parts"));
}

void TestGguf::refusals_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("expected");
    const auto row = [](const char* tag, const std::string& bytes, const char* expected) {
        QTest::newRow(tag) << QByteArray::fromStdString(bytes) << expected;
    };
    const auto with = [](const std::string& values, std::uint64_t tensors, std::uint64_t count) {
        return "GGUF" + GgufWriter::number(3, 4) + GgufWriter::number(tensors, 8) +
               GgufWriter::number(count, 8) + values;
    };
    const auto list = [](std::uint32_t type, std::uint64_t length) {
        return GgufWriter::string("k") + GgufWriter::number(9, 4) + GgufWriter::number(type, 4) +
               GgufWriter::number(length, 8);
    };
    const auto version = [](std::uint32_t number) {
        GgufWriter file = smallLlama();
        file.version = number;
        return file.bytes();
    };
    row("version 1", version(1), "version 1 of GGUF");
    row("version 4", version(4), "version 4 of GGUF");
    row("big-endian", version(3U << 24), "big-endian");
    row("many tensors", with("", ~std::uint64_t{0}, 0), "the header says");
    row("many values", with("", 0, std::uint64_t{1} << 40), "the header says");
    row("long key", with(GgufWriter::number(std::uint64_t{1} << 62, 8), 0, 1),
        "longer than the file");
    row("long list", with(list(4, std::uint64_t{1} << 62), 0, 1), "longer than the file");
    row("long list of texts", with(list(8, std::uint64_t{1} << 62), 0, 1), "longer than the file");
    row("unknown type", with(GgufWriter::string("k") + GgufWriter::number(99, 4), 0, 1),
        "the type 99 of a value");
    row("unknown list", with(list(99, 1), 0, 1), "the type 99 of a list");
    std::string nested = list(9, 1);
    for (int i = 0; i < 20; ++i) nested += GgufWriter::number(9, 4) + GgufWriter::number(1, 8);
    row("deep lists", with(nested, 0, 1), "nest too deeply");
    GgufWriter twice;
    twice.integer("a", 1);
    twice.integer("a", 1);
    row("value twice", twice.bytes(), "'a' is given twice");
    GgufWriter same;
    same.tensor("w", {1});
    same.tensor("w", {1});
    row("tensor twice", same.bytes(), "'w' is listed twice");
    GgufWriter huge;
    huge.tensor("w", {1, 1});
    std::string hugeBytes = huge.bytes();
    hugeBytes.replace(4 + 4 + 16 + 9 + 4, 8, GgufWriter::number(std::uint64_t{1} << 63, 8));
    row("2^63 elements", hugeBytes, "impossibly large");
    GgufWriter odd;
    odd.tensor("w", {4, 100}, 12, 4.5);
    row("odd rows", odd.bytes(), "do not fill blocks of 256");
    GgufWriter unknown;
    unknown.tensor("w", {4}, 77);
    row("unknown packing", unknown.bytes(), "element type 77");
    GgufWriter none;
    none.integer("a", 1);
    row("no architecture", none.bytes(), "does not say its architecture");
    GgufWriter other;
    other.text("general.architecture", "mamba");
    row("unknown architecture", other.bytes(), "'mamba' is not known");
    GgufWriter more = smallLlama();
    more.extraTensors = 1;
    row("tensor that is not there", more.header(), "the header is cut off");
    std::string shortData = smallLlama().bytes();
    shortData.resize(shortData.size() - 40);
    row("weights cut off", shortData, "the file is cut off");
}

void TestGguf::refusals() {
    QFETCH(QByteArray, bytes);
    QFETCH(QString, expected);
    const QString got = refusalOf(bytes.toStdString());
    QVERIFY2(got.contains(expected), got.toUtf8());
}

void TestGguf::cutOffAnywhere() {
    const std::string header = smallLlama().header();
    for (std::size_t length = 0; length < header.size(); ++length)
        QVERIFY(refusalOf(header.substr(0, length)) != "accepted");
}

void TestGguf::flippedBytes() {
    const std::string bytes = smallLlama().bytes();
    const std::size_t header = smallLlama().header().size();
    for (std::size_t i = 4; i < header; i += 3) {
        std::string damaged = bytes;
        damaged[i] = static_cast<char>(~damaged[i]);
        try {
            parse(damaged);
        } catch (const InputError&) {}
    }
}

SHARDLENS_TEST(TestGguf)

} // namespace tst_gguf

#include "tst_gguf.moc"
