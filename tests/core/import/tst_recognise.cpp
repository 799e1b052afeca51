// SPDX-License-Identifier: Apache-2.0
// Kinds of files by their content, the reading of bytes below them (gzip, protobuf wire, symbolic
// dimensions), and what is said about files that are no models.
#include "core/import/dim_expression.h"
#include "core/import/gunzip.h"
#include "core/import/mapped_file.h"
#include "core/import/protobuf_wire.h"
#include "core/import/text.h"
#include "tests/core/import/onnx_writer.h"
#include "tests/test_program.h"

#include <zlib.h>

#include <QTemporaryDir>
#include <QTest>

#include <fstream>
#include <sstream>

namespace tst_recognise {

using namespace shardlens;
using namespace shardlens::test;
namespace fs = std::filesystem;

class TestRecognise : public QObject {
    Q_OBJECT

private slots:
    void magics_data();
    void magics();
    void onnxInAnyFieldOrder();
    void otherProtobufs();
    void sharedFiles_data();
    void sharedFiles();
    void messagesSayWhatToDo();
    void unreadablePaths();
    void gzipRoundTrip();
    void gzipBombIsRefused();
    void dimensionExpressions_data();
    void dimensionExpressions();
    void dimensionNames();
    void wireNumbers();
    void textIsCleaned();
};

namespace {

std::span<const std::byte> bytesOf(const std::string& text) {
    return std::as_bytes(std::span(text));
}

QString kindName(FileKind kind) {
    switch (kind) {
    case FileKind::HfConfig:
        return "config";
    case FileKind::Onnx:
        return "onnx";
    case FileKind::Safetensors:
        return "safetensors";
    case FileKind::SafetensorsIndex:
        return "safetensors index";
    case FileKind::Gguf:
        return "gguf";
    case FileKind::HloText:
        return "hlo";
    case FileKind::MlirText:
        return "mlir";
    case FileKind::FxText:
        return "fx";
    case FileKind::TorchExport:
        return "torch.export";
    case FileKind::ExecutionTrace:
        return "execution trace";
    case FileKind::ModelExplorer:
        return "model explorer";
    case FileKind::Session:
        return "session";
    case FileKind::Unsupported:
        break;
    }
    return "unsupported";
}

std::string smallOnnx() {
    GraphParts parts;
    parts.inputs = {value("x", kF32, {"4"})};
    parts.nodes = {node("Neg", {"x"}, {"y"})};
    parts.outputs = {Message().text(1, "y")};
    return onnxFile(parts);
}

std::string gzipped(const std::string& content) {
    z_stream stream{};
    deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    std::string result(deflateBound(&stream, content.size()), '\0');
    std::string input = content;
    stream.next_in = reinterpret_cast<Bytef*>(input.data());
    stream.avail_in = static_cast<uInt>(input.size());
    stream.next_out = reinterpret_cast<Bytef*>(result.data());
    stream.avail_out = static_cast<uInt>(result.size());
    deflate(&stream, Z_FINISH);
    result.resize(stream.total_out);
    deflateEnd(&stream);
    return result;
}

std::string sqliteHeader(const std::string& applicationId) {
    std::string header("SQLite format 3\0", 16);
    header.resize(68, '\0');
    return header + applicationId + std::string(28, '\0');
}

std::string readFile(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

} // namespace

void TestRecognise::magics_data() {
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<QString>("kind");
    QTest::addColumn<QString>("name");
    const auto row = [](const char* tag, const std::string& content, const char* kind,
                        const char* name) {
        QTest::newRow(tag) << QByteArray::fromStdString(content) << kind << name;
    };
    const auto unsupported = [&](const char* name, const std::string& content) {
        row(name, content, "unsupported", name);
    };
    row("GGUF", std::string("GGUF\3\0\0\0", 8) + std::string(16, '\0'), "gguf", "GGUF");
    unsupported("MLIR bytecode", "ML\xEFR and more");
    unsupported("TensorFlow Lite", std::string("\x1c\0\0\0TFL3", 8) + "rest");
    unsupported("ONNX Runtime's own format", std::string("\x1c\0\0\0ORTM", 8) + "rest");
    unsupported("ExecuTorch", std::string("\x1c\0\0\0ET12", 8) + "rest");
    unsupported("HDF5", "\x89HDF\r\n\x1a\n rest");
    unsupported("an SQLite database", sqliteHeader(std::string(4, '\0')));
    row("session", sqliteHeader("SHLN"), "session", "session");
    row("pt2", "PK\3\4....model/archive_format....pt2", "torch.export", "torch.export archive");
    row("old pt2", "PK\3\4....serialized_exported_program.json", "torch.export",
        "torch.export archive (.pt2)");
    unsupported("a Keras model", "PK\3\4....metadata.json....model.weights.h5");
    unsupported("a TorchScript archive", "PK\3\4....m/data.pkl....m/code/__torch__.py");
    unsupported("a PyTorch checkpoint", "PK\3\4....archive/data.pkl....");
    unsupported("a ZIP archive", "PK\3\4....readme.txt");
    row("HLO text", "HloModule jit_f, entry_computation_layout={}\n", "hlo", "HLO text");
    row("MLIR text", "// a comment\n\nmodule @jit_f {\n  func.func public @main() {\n", "mlir",
        "MLIR text");
    row("FX", "# File: x\nclass GraphModule(torch.nn.Module):\n    def forward", "fx",
        "FX graph text");
    unsupported("ONNX written as text", "<\n  ir_version: 7,\n  opset_import: [ \"\" : 10 ]\n>\n");
    row("index", R"({"metadata": {}, "weight_map": {"a": "b"}})", "safetensors index",
        "safetensors index");
    unsupported("a Kineto", R"({"traceEvents": []})");
    row("execution trace", R"({"schema": "1.0.1", "nodes": [{"name": "x", "op_schema": ""}]})",
        "execution trace", "PyTorch execution trace");
    row("explorer", R"( {"label": "a", "graphs": [{"nodes": [{"incomingEdges": []}]}]})",
        "model explorer", "Model Explorer graph");
    row("explorer, a list", R"([{"id": "a", "graphs": [{"nodes": [{"incomingEdges": []}]}]}])",
        "model explorer", "Model Explorer graph");
    unsupported("a sharding plan in JSON", R"({"w": {"partition_spec": [], "shape": []}})");
    unsupported("a Keras or TensorFlow.js model", R"({"modelTopology": {}, "format": "x"})");
    unsupported("a Python pickle", "\x80\x02}q\x01.");
    unsupported("a NumPy array", "\x93NUMPY\x01");
    unsupported("a TensorFlow graph written as text",
                "node {\n  name: \"a\"\n  op: \"Const\"\n}\n");
    unsupported("OpenVINO IR", "<?xml version=\"1.0\"?>\n<net name=\"a\">\n<layers>\n");
    row("MLIR text after an alias", "!t = tensor<4xf32>\nmodule {\n}\n", "mlir", "MLIR text");
    row("MLIR text after locations", "#loc1 = loc(\"x\")\nmodule @jit_f {\n}\n", "mlir",
        "MLIR text");
    unsupported("JSON of an unknown kind", R"({"hello": 1})");
    unsupported("a file of an unknown kind", "hello");
    unsupported("a file of an unknown kind (nothing)", "");
    row("config", R"({"model_type": "llama", "hidden_size": 8})", "config", "Hugging Face config");
    row("config after a mark", "\xEF\xBB\xBF {\"architectures\": [\"GPT2LMHeadModel\"]}", "config",
        "Hugging Face config");
    std::string weights = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    std::string length(8, '\0');
    length[0] = static_cast<char>(weights.size());
    row("weights", length + weights + "abcd", "safetensors", "safetensors");
    row("model", smallOnnx(), "onnx", "ONNX");
}

void TestRecognise::magics() {
    QFETCH(QByteArray, content);
    QFETCH(QString, kind);
    QFETCH(QString, name);
    const std::string file = content.toStdString();
    const Recognised recognised = recognise(bytesOf(file), file.size());
    QCOMPARE(kindName(recognised.kind), kind);
    const QString got = QString::fromStdString(recognised.name);
    QVERIFY2(got.contains(name.section(" (nothing)", 0, 0)), got.toUtf8());
    QCOMPARE(recognised.hint.empty(), kind != "unsupported");
}

void TestRecognise::onnxInAnyFieldOrder() {
    GraphParts parts;
    parts.nodes = {node("Neg", {"x"}, {"y"})};
    // Initializers before the nodes, the graph before the version, and cut off in the weights.
    Message graph;
    graph.message(5, tensor("w", kF32, {4})).raw(parts.message().bytes());
    Message model;
    model.message(8, opset(17)).message(7, graph).integer(1, 8);
    QCOMPARE(recognise(bytesOf(model.bytes()), model.bytes().size()).kind, FileKind::Onnx);
    const std::string file = smallOnnx();
    const std::string head = file.substr(0, file.size() / 2);
    QCOMPARE(recognise(bytesOf(head), file.size()).kind, FileKind::Onnx);
}

void TestRecognise::otherProtobufs() {
    // TensorFlow: GraphDef {node {name, op}}, SavedModel {version, meta_graph}.
    const Message nodeDef = Message().text(1, "x").text(2, "Placeholder");
    const std::string graphDef = Message().message(1, nodeDef).bytes();
    const auto nameOf = [](const std::string& file) {
        const Recognised recognised = recognise(bytesOf(file), file.size());
        return recognised.kind == FileKind::Unsupported ? recognised.name : "a model";
    };
    QCOMPARE(nameOf(graphDef), std::string("a TensorFlow GraphDef"));
    const std::string saved =
        Message().integer(1, 1).message(2, Message().text(2, graphDef)).bytes();
    QCOMPARE(nameOf(saved), std::string("a TensorFlow SavedModel"));
    const std::string coreMl =
        Message().integer(1, 7).message(2, Message().text(1, "x")).text(502, "program").bytes();
    QCOMPARE(nameOf(coreMl), std::string("a Core ML model"));
    const Message caffeOp = Message().text(1, "x").text(2, "y").text(4, "Relu");
    QCOMPARE(nameOf(Message().text(1, "net").message(2, caffeOp).bytes()),
             std::string("a Caffe2 model"));
    // A field that ModelProto does not have.
    const std::string other = smallOnnx() + Message().text(500, "CoreML").bytes();
    QCOMPARE(recognise(bytesOf(other), other.size()).kind, FileKind::Unsupported);
}

void TestRecognise::sharedFiles_data() {
    QTest::addColumn<QString>("path");
    QTest::addColumn<QString>("name");
    const fs::path folder = fs::path(SHARDLENS_SHARED) / "data" / "models";
    if (!fs::exists(folder)) QSKIP("the shared folder of real models is not beside the checkout");
    const std::pair<const char*, const char*> names[] = {
        {"onnx", "ONNX"},        {"hlo", "HLO text"}, {"mlir", "MLIR text"},
        {"fx", "FX graph text"}, {"hf", ""},          {"plans", "a sharding plan in JSON"}};
    for (const auto& [sub, name] : names)
        for (const auto& entry : fs::directory_iterator(folder / sub)) {
            const QString path = QString::fromStdString(entry.path().string());
            if (path.endsWith(".bin")) continue;
            QString expected = name;
            if (path.endsWith(".safetensors")) expected = "safetensors";
            if (expected.isEmpty()) expected = "Hugging Face config";
            QTest::newRow(entry.path().filename().c_str()) << path << expected;
        }
    const auto single = [&](const char* path, const char* name) {
        QTest::newRow(path) << QString::fromStdString((folder / path).string()) << name;
    };
    single("other/model_explorer_test_graph_original.json", "Model Explorer graph");
    single("profiles/hta_kineto_sampled_rank-0.json.gz", "a Kineto (Chrome) trace");
    single("profiles/pytorch_et_linear.json.gz", "PyTorch execution trace");
    single("profiles/autoparallel_colls8_8.table", "a file of an unknown kind");
}

void TestRecognise::sharedFiles() {
    QFETCH(QString, path);
    QFETCH(QString, name);
    const std::string file = readFile(path.toStdString());
    std::string head = file;
    if (looksLikeGzip(bytesOf(file))) {
        const auto start = gunzipHead(bytesOf(file), 65536);
        head.assign(reinterpret_cast<const char*>(start.data()), start.size());
    }
    const Recognised recognised = recognise(bytesOf(head), file.size());
    QCOMPARE(QString::fromStdString(recognised.name), name);
    // What cannot be read says so in one sentence.
    if (recognised.kind != FileKind::Unsupported) return;
    try {
        importModel(path.toStdString());
        QFAIL("accepted");
    } catch (const InputError& error) {
        QVERIFY2(QString(error.what()).contains(name), error.what());
    }
}

void TestRecognise::messagesSayWhatToDo() {
    const QTemporaryDir folder;
    const std::string path = folder.filePath("model.tflite").toStdString();
    std::ofstream(path, std::ios::binary) << std::string("\x1c\0\0\0TFL3", 8) << "rest";
    try {
        importModel(path);
        QFAIL("accepted");
    } catch (const InputError& error) {
        const QString message = error.what();
        QVERIFY(message.contains("TensorFlow Lite") && message.contains("tf2onnx"));
        QVERIFY(message.startsWith(QString::fromStdString(path)));
    }
}

void TestRecognise::unreadablePaths() {
    const QTemporaryDir folder;
    const auto refusal = [](const std::string& path) {
        try {
            importModel(path);
        } catch (const InputError& error) {
            return QString(error.what());
        }
        return QString("accepted");
    };
    QVERIFY(refusal(folder.filePath("none").toStdString()).contains("cannot be opened"));
    QVERIFY(refusal(folder.path().toStdString()).contains("is a folder"));
    QVERIFY(refusal("/dev/null").contains("not a regular file"));
    const std::string empty = folder.filePath("empty").toStdString();
    std::ofstream(empty).flush();
    QVERIFY(refusal(empty).contains("is empty"));
}

void TestRecognise::gzipRoundTrip() {
    std::string content;
    for (int i = 0; i < 300000; ++i) content += std::to_string(i % 1000 * 7919 % 1000);
    const auto asText = [](const std::vector<std::byte>& bytes) {
        return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    const std::string zipped = gzipped(content);
    QVERIFY(asText(gunzip(bytesOf(zipped), "x")) == content);
    QVERIFY(asText(gunzipHead(bytesOf(zipped), 1000)) == content.substr(0, 1000));
    const std::string two = gzipped("first ") + gzipped("second"); // members follow each other
    QCOMPARE(QString::fromStdString(asText(gunzip(bytesOf(two), "x"))), QString("first second"));
    for (const std::size_t length :
         {std::size_t{3}, std::size_t{10}, zipped.size() / 2, zipped.size() - 1})
        QVERIFY_THROWS_EXCEPTION(InputError, gunzip(bytesOf(zipped.substr(0, length)), "x"));
    std::string damaged = zipped;
    damaged[zipped.size() / 2] = static_cast<char>(~damaged[zipped.size() / 2]);
    QVERIFY_THROWS_EXCEPTION(InputError, gunzip(bytesOf(damaged), "x"));
}

void TestRecognise::gzipBombIsRefused() {
    const std::string bomb = gzipped(std::string(std::size_t{8} << 20, '\0'));
    QVERIFY(bomb.size() < 20000);
    try {
        gunzip(bytesOf(bomb), "bomb.gz", {}, std::uint64_t{4} << 20);
        QFAIL("accepted");
    } catch (const InputError& error) {
        QVERIFY(QString(error.what()).contains("unfolds to more than 4 MiB"));
    }
}

void TestRecognise::dimensionExpressions_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<qint64>("expected"); // -1: not an expression that has a value
    const auto row = [](const char* text, qint64 expected) {
        QTest::newRow(text) << text << expected;
    };
    row("b", 6); // b = 6, s = 10
    row("12", 12);
    row("2*b", 12);
    row("s + 1", 11);
    row("s - b", 4);
    row("s-b", -1); // a name
    row("b*(s - 1)", 54);
    row("(s + b)*2 - 4*b", 8);
    row("s // 4", 2);
    row("s / 2", 5);
    row("s / 4", -1); // does not come out even
    row("b // 0", -1);
    row("", -1);
    row("b +", -1);
    row("(b", -1);
    row("b s", -1);
    row("unknown + 1", -1);
    row("floor(s/2)", -1);
    row("1099511627776 * 1099511627776", -1);
}

void TestRecognise::dimensionExpressions() {
    QFETCH(QString, text);
    QFETCH(qint64, expected);
    const auto value = evaluateDimension(text.toStdString(),
                                         [](std::string_view name) -> std::optional<std::int64_t> {
                                             if (name == "b") return 6;
                                             if (name == "s") return 10;
                                             return std::nullopt;
                                         });
    QCOMPARE(qint64{value.value_or(-1)}, expected);
}

void TestRecognise::dimensionNames() {
    using Views = std::vector<std::string_view>;
    QCOMPARE(namesInDimension("b*(s - 1) + b"), (Views{"b", "s"}));
    QCOMPARE(namesInDimension("batch-size"), (Views{"batch-size"}));
    QCOMPARE(namesInDimension("(s - 1) / 4"), (Views{"s"})); // whatever it comes to
    QVERIFY(namesInDimension("two words").empty());
    QVERIFY(namesInDimension("").empty());
    QVERIFY(namesInDimension(std::string(5000, '(')).empty());
}

void TestRecognise::wireNumbers() {
    for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128},
                                       std::uint64_t{300}, ~std::uint64_t{0}}) {
        const std::string file = Message().varint(3, number).bytes();
        wire::Reader reader(bytesOf(file));
        wire::Field field;
        QVERIFY(reader.next(field));
        QVERIFY(field.is(3, wire::Type::Varint));
        QCOMPARE(field.value, number);
        QVERIFY(!reader.next(field));
    }
    // Packed and unpacked lists read alike, up to a limit.
    const std::string lists = Message().packed(1, {1, -2, 300}).integer(1, 4).integer(1, 5).bytes();
    wire::Reader reader(bytesOf(lists));
    Ints values;
    for (wire::Field field; reader.next(field);) wire::appendIntegers(reader, field, values, 4);
    QCOMPARE(values, (Ints{1, -2, 300, 4}));
}

void TestRecognise::textIsCleaned() {
    QCOMPARE(cleaned("plain"), std::string("plain"));
    QCOMPARE(cleaned("Stra\xc3\x9f"
                     "e \xe2\x82\xac \xf0\x9f\x98\x80"),
             std::string("Stra\xc3\x9f"
                         "e \xe2\x82\xac \xf0\x9f\x98\x80"));
    QCOMPARE(cleaned("\xc0\x80"), std::string("??"));           // overlong
    QCOMPARE(cleaned("\xed\xa0\x80"), std::string("???"));      // surrogate
    QCOMPARE(cleaned("\xf4\x90\x80\x80"), std::string("????")); // beyond Unicode
    QCOMPARE(cleaned("a\xc3"), std::string("a?"));              // cut off
    QCOMPARE(cleaned(std::string("a\0b\n", 4)), std::string("a?b?"));
    QVERIFY(shardlens::inQuotes(std::string(1000, 'x')).size() < 100);
}

SHARDLENS_TEST(TestRecognise)

} // namespace tst_recognise

#include "tst_recognise.moc"
