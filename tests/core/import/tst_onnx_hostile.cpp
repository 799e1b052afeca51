// SPDX-License-Identifier: Apache-2.0
// ONNX files that are cut off, forged or plainly wrong: each ends in one InputError that says what
// and where, and none takes memory or time out of proportion.
#include "tests/core/import/onnx_writer.h"
#include "tests/test_program.h"

#include <QTest>

#include <fstream>
#include <random>
#include <sstream>

namespace tst_onnx_hostile {

using namespace shardlens;
using namespace shardlens::test;
namespace fs = std::filesystem;

class TestOnnxHostile : public QObject {
    Q_OBJECT

private slots:
    void truncations_data();
    void truncations();
    void flippedBytes();
    void externalPaths_data();
    void externalPaths();
    void dims_data();
    void dims();
    void inconsistent_data();
    void inconsistent();
    void overflows_data();
    void overflows();
    void deepNesting();
    void functionsThatCallThemselves();
    void functionsThatExplode();
    void knownValuesAreBounded();
    void hugeLengths();
    void brokenNumbers();
    void namesAreCleaned();
    void cancellation();
};

namespace {

Message output(const std::string& name) {
    return Message().text(1, name);
}

/// x -> the nodes -> y.
std::string fileOf(std::vector<Message> nodes, std::vector<Message> initializers = {},
                   std::vector<Message> inputs = {value("x", kF32, {"4", "6"})}) {
    GraphParts parts;
    parts.inputs = std::move(inputs);
    parts.nodes = std::move(nodes);
    parts.initializers = std::move(initializers);
    parts.outputs = {output("y")};
    return onnxFile(parts);
}

std::string readFile(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// A file that has a bit of everything.
std::string variedFile() {
    GraphParts yes, parts;
    yes.nodes = {node("Relu", {"h"}, {"out"})};
    yes.outputs = {output("out")};
    parts.inputs = {value("x", kF32, {"batch", "6"}), value("c", kBool, {})};
    parts.initializers = {tensor("w", kF32, {6, 8}), vectorOf("s", {0, 2, 4}),
                          floats("f", {2}, {1, 2})};
    parts.nodes = {node("MatMul", {"x", "w"}, {"h"}, {}, "product"),
                   node("If", {"c"}, {"i"},
                        {graphAttribute("then_branch", yes.message()),
                         graphAttribute("else_branch", yes.message())}),
                   node("Reshape", {"i", "s"}, {"r"}),
                   node("Twice", {"r"}, {"y"}, {}, "f", "local")};
    parts.values = {value("h", kF32, {"batch", "8"})};
    parts.outputs = {value("y", kF32, {"batch", "2", "4"})};
    Message twice;
    twice.text(1, "Twice").text(4, "a").text(5, "b").message(7, node("Add", {"a", "a"}, {"b"}));
    twice.text(10, "local");
    return onnxFile(parts, 17, {twice});
}

/// A graph or an InputError; anything else fails the test by escaping.
bool accepts(const std::string& file) {
    try {
        importBytes(file);
        return true;
    } catch (const InputError& error) {
        if (std::string_view(error.what()).empty()) throw;
        return false;
    }
}

} // namespace

void TestOnnxHostile::truncations_data() {
    QTest::addColumn<QByteArray>("content");
    QTest::newRow("hand-made") << QByteArray::fromStdString(variedFile());
    for (const char* name :
         {"conv_qdq_external_ini", "transform_nested_ifs_toplogical_sorted_nodes"}) {
        const fs::path path =
            fs::path(SHARDLENS_SHARED) / "data" / "models" / "onnx" / (std::string(name) + ".onnx");
        if (fs::exists(path)) QTest::newRow(name) << QByteArray::fromStdString(readFile(path));
    }
}

void TestOnnxHostile::truncations() {
    QFETCH(QByteArray, content);
    const std::string file = content.toStdString();
    QVERIFY(accepts(file));
    int refused = 0;
    for (std::size_t length = 0; length < file.size(); ++length) {
        const std::string part = file.substr(0, length);
        // Exactly as long as it claims to be: reading past the end would be seen by a sanitizer.
        const std::vector<char> tight(part.begin(), part.end());
        recognise(std::as_bytes(std::span(tight)), tight.size());
        try {
            importOnnx(std::as_bytes(std::span(tight)), "model.onnx");
        } catch (const InputError& error) {
            ++refused;
            QVERIFY2(QString(error.what()).contains("at byte"), error.what());
        }
    }
    // Only what stands after the graph may be missing: functions, opsets and metadata.
    QVERIFY(refused > static_cast<int>(file.size()) / 3);
}

void TestOnnxHostile::flippedBytes() {
    const std::string original = variedFile();
    std::mt19937 random(7);
    for (int round = 0; round < 4000; ++round) {
        std::string file = original;
        for (int flips = 1 + round % 3; flips > 0; --flips)
            file[random() % file.size()] = static_cast<char>(random());
        accepts(file);
    }
}

void TestOnnxHostile::externalPaths_data() {
    QTest::addColumn<QString>("location");
    QTest::addColumn<bool>("allowed");
    QTest::newRow("beside") << "weights.bin" << true;
    QTest::newRow("below") << "data/weights.bin" << true;
    QTest::newRow("dots in a name") << "a..b/c..bin" << true;
    QTest::newRow("absolute") << "/etc/passwd" << false;
    QTest::newRow("up") << "../secret" << false;
    QTest::newRow("up later") << "data/../../secret" << false;
    QTest::newRow("backslash") << "..\\secret" << false;
    QTest::newRow("drive") << "C:\\secret" << false;
}

void TestOnnxHostile::externalPaths() {
    QFETCH(QString, location);
    QFETCH(bool, allowed);
    Message weights = tensor("w", kF32, {6, 8});
    weights.message(13, Message().text(1, "location").text(2, location.toStdString()));
    weights.integer(14, 1);
    const QString refusal = refusalOf(fileOf({node("MatMul", {"x", "w"}, {"y"})}, {weights}));
    if (allowed) {
        QCOMPARE(refusal, QString("accepted")); // though there is no such file: it is never opened
    } else {
        QVERIFY2(refusal.contains("external data of tensor 'w'"), refusal.toUtf8());
        QVERIFY(refusal.contains("at byte"));
    }
}

void TestOnnxHostile::dims_data() {
    QTest::addColumn<QList<qint64>>("dims");
    QTest::newRow("negative") << QList<qint64>{-1, 4};
    QTest::newRow("2^63") << QList<qint64>{std::numeric_limits<qint64>::min()};
    QTest::newRow("2^63 - 1") << QList<qint64>{std::numeric_limits<qint64>::max()};
    QTest::newRow("product") << QList<qint64>{1 << 30, 1 << 30, 1 << 30};
    QTest::newRow("rank") << QList<qint64>(100, 1);
}

void TestOnnxHostile::dims() {
    QFETCH(QList<qint64>, dims);
    const Ints sizes(dims.begin(), dims.end());
    const QString weights =
        refusalOf(fileOf({node("MatMul", {"x", "w"}, {"y"})}, {tensor("w", kF32, sizes)}));
    QVERIFY2(weights.contains("at byte") && weights.contains("'w'"), weights.toUtf8());
    if (dims.front() == -1) return; // "unknown" in an input
    Names text;
    for (const std::int64_t size : sizes) text.push_back(std::to_string(size));
    const QString input =
        refusalOf(fileOf({node("Neg", {"x"}, {"y"})}, {}, {value("x", kF32, text)}));
    QVERIFY2(input != "accepted", input.toUtf8());
}

void TestOnnxHostile::inconsistent_data() {
    QTest::addColumn<QByteArray>("file");
    QTest::addColumn<QString>("part");
    const auto row = [](const char* name, const std::string& file, const char* part) {
        QTest::newRow(name) << QByteArray::fromStdString(file) << part;
    };
    const Message neg = node("Neg", {"x"}, {"y"});
    row("undefined value", fileOf({node("Add", {"x", "ghost"}, {"y"})}),
        "reads the value 'ghost', which nothing defines");
    row("undefined output", fileOf({node("Neg", {"x"}, {"z"})}), "'y'");
    row("cycle",
        fileOf(
            {node("Add", {"x", "b"}, {"a"}), node("Neg", {"a"}, {"b"}), node("Neg", {"x"}, {"y"})}),
        "depends on its own result");
    row("reads itself", fileOf({node("Add", {"x", "y"}, {"y"})}), "depends on its own result");
    row("defined twice", fileOf({neg, neg}), "defines the value 'y', which exists already");
    row("defines an input", fileOf({neg, node("Neg", {"y"}, {"x"})}), "'x', which exists already");
    row("initializer twice",
        fileOf({node("Mul", {"x", "w"}, {"y"})}, {tensor("w", kF32, {6}), tensor("w", kF32, {6})}),
        "initializer 'w' exists twice");
    row("input twice", fileOf({neg}, {}, {value("x", kF32, {"4"}), value("x", kF32, {"4"})}),
        "input 'x' exists twice");
    row("no op type", fileOf({Message().text(1, "x").text(2, "y")}), "no op type");
    row("unknown element type", fileOf({neg}, {tensor("w", 99, {2})}), "unknown type 99");
    row("too little data",
        fileOf({node("Mul", {"x", "w"}, {"y"})}, {tensor("w", kF32, {6}).text(9, "abcd")}),
        "4 bytes of data");
    row("no graph", Message().integer(1, 8).message(8, opset(17)).bytes(), "there is no graph");
    row("empty file", {}, "there is no graph");
    row("missing operand", fileOf({node("Add", {}, {"y"})}), "operand 0 is missing");
    row("absent operand", fileOf({node("MatMul", {"x", ""}, {"y"})}), "operand 1 is missing");
    row("inner dimensions",
        fileOf({node("MatMul", {"x", "w"}, {"y"})}, {tensor("w", kF32, {7, 8})}),
        "inner dimensions");
    row("axis",
        fileOf({node("Gather", {"x", "i"}, {"y"}, {intAttribute("axis", 5)})},
               {vectorOf("i", {0})}),
        "axis 5");
    row("index", fileOf({node("Gather", {"x", "i"}, {"y"})}, {vectorOf("i", {4})}), "index 4");
    row("reshape", fileOf({node("Reshape", {"x", "s"}, {"y"})}, {vectorOf("s", {5, -1})}),
        "cannot be reshaped");
    row("two open sizes", fileOf({node("Reshape", {"x", "s"}, {"y"})}, {vectorOf("s", {-1, -1})}),
        "two sizes open");
    row("slice step",
        fileOf({node("Slice", {"x", "a", "b", "c", "d"}, {"y"})},
               {vectorOf("a", {0}), vectorOf("b", {1}), vectorOf("c", {0}), vectorOf("d", {0})}),
        "step is zero");
    row("squeeze", fileOf({node("Squeeze", {"x", "a"}, {"y"})}, {vectorOf("a", {0})}), "squeezed");
    row("einsum", fileOf({node("Einsum", {"x"}, {"y"}, {textAttribute("equation", "a.b->a")})}),
        "equation");
    row("einsum operands",
        fileOf({node("Einsum", {"x"}, {"y"}, {textAttribute("equation", "ab,bc->ac")})}),
        "differ in number");
    row("perm", fileOf({node("Transpose", {"x"}, {"y"}, {intsAttribute("perm", {0, 0})})}), "perm");
    row("split", fileOf({node("Split", {"x", "s"}, {"y", "z"})}, {vectorOf("s", {3, 3})}), "parts");
    row("no branch", fileOf({node("If", {"c"}, {"y"})}, {ints("c", {}, {1}, kBool)}),
        "then_branch is missing");
    row("range step",
        fileOf({node("Range", {"a", "b", "c"}, {"y"})},
               {ints("a", {}, {0}), ints("b", {}, {9}), ints("c", {}, {0})}),
        "step of a range");
}

void TestOnnxHostile::inconsistent() {
    QFETCH(QByteArray, file);
    QFETCH(QString, part);
    const QString refusal = refusalOf(file.toStdString());
    QVERIFY2(refusal.contains(part), refusal.toUtf8());
    QVERIFY2(refusal.startsWith("model.onnx"), refusal.toUtf8());
    QVERIFY(refusal.size() < 500 && !refusal.contains('\n'));
}

void TestOnnxHostile::overflows_data() {
    QTest::addColumn<QByteArray>("file");
    constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
    const auto row = [](const char* name, const std::string& file) {
        QTest::newRow(name) << QByteArray::fromStdString(file);
    };
    const std::vector<Message> image{value("x", kF32, {"1", "3", "8", "8"})};
    const std::vector<Message> kernel{tensor("w", kF32, {4, 3, 3, 3})};
    for (const std::int64_t n : {kHuge, kLow}) {
        const auto name = [n](const char* what) {
            return QByteArray(what) + (n > 0 ? " high" : " low");
        };
        row(name("pads"),
            fileOf({node("Conv", {"x", "w"}, {"y"}, {intsAttribute("pads", {n, n, n, n})})}, kernel,
                   image));
        row(name("strides"),
            fileOf({node("Conv", {"x", "w"}, {"y"}, {intsAttribute("strides", {n, n})})}, kernel,
                   image));
        row(name("dilations"), fileOf({node("MaxPool", {"x"}, {"y"},
                                            {intsAttribute("kernel_shape", {3, 3}),
                                             intsAttribute("dilations", {n, n})})},
                                      {}, image));
        row(name("kernel"),
            fileOf({node("MaxPool", {"x"}, {"y"}, {intsAttribute("kernel_shape", {n, n})})}, {},
                   image));
        row(name("group"),
            fileOf({node("Conv", {"x", "w"}, {"y"}, {intAttribute("group", n)})}, kernel, image));
        row(name("reshape"),
            fileOf({node("Reshape", {"x", "s"}, {"y"})}, {vectorOf("s", {n, -1})}));
        row(name("expand"),
            fileOf({node("Expand", {"x", "s"}, {"y"})}, {vectorOf("s", {n, 1, 1})}));
        row(name("tile"), fileOf({node("Tile", {"x", "s"}, {"y"})}, {vectorOf("s", {n, n})}));
        row(name("pad"), fileOf({node("Pad", {"x", "s"}, {"y"})}, {vectorOf("s", {n, n, n, n})}));
        row(name("fill"), fileOf({node("ConstantOfShape", {"s"}, {"y"})}, {vectorOf("s", {n, n})}));
        row(name("range"), fileOf({node("Range", {"a", "b", "c"}, {"y"})},
                                  {ints("a", {}, {kLow}), ints("b", {}, {n}), ints("c", {}, {1})}));
        row(name("top k"), fileOf({node("TopK", {"x", "k"}, {"y", "i"})}, {vectorOf("k", {n})}));
        row(name("one hot"), fileOf({node("OneHot", {"x", "d", "v"}, {"y"})},
                                    {ints("d", {}, {n}), tensor("v", kF32, {2})}));
        row(name("split"),
            fileOf({node("Split", {"x", "s"}, {"y", "z"})}, {vectorOf("s", {n, n})}));
        row(name("axis"), fileOf({node("Flatten", {"x"}, {"y"}, {intAttribute("axis", n)})}));
        row(name("hidden"),
            fileOf({node("LSTM", {"x", "w", "w"}, {"y"}, {intAttribute("hidden_size", n)})},
                   {tensor("w", kF32, {1, 4, 3})}, {value("x", kF32, {"5", "2", "3"})}));
        row(name("block"),
            fileOf({node("DepthToSpace", {"x"}, {"y"}, {intAttribute("blocksize", n)})}, {},
                   image));
        row(name("heads"),
            fileOf({node("GroupQueryAttention", {"x"}, {"y"},
                         {intAttribute("num_heads", n), intAttribute("kv_num_heads", n)}, "",
                         "com.microsoft")},
                   {}, {value("x", kF32, {"1", "3", "8"})}));
        row(name("nbits"),
            fileOf({node("MatMulNBits", {"x", "w"}, {"y"},
                         {intAttribute("N", n), intAttribute("K", n)}, "", "com.microsoft")},
                   {tensor("w", kU8, {2, 2, 2})}));
        for (const char* type : {"Add", "Sub", "Mul", "Div", "Mod", "Pow"})
            row(name(type),
                fileOf({node(type, {"a", "b"}, {"y"})}, {vectorOf("a", {n}), vectorOf("b", {-1})}));
        row(name("neg"), fileOf({node("Neg", {"a"}, {"y"})}, {vectorOf("a", {n})}));
        row(name("abs"), fileOf({node("Abs", {"a"}, {"y"})}, {vectorOf("a", {n})}));
    }
    row("concat", fileOf({node("Concat", Names(2000, "w"), {"y"}, {intAttribute("axis", 0)})},
                         {tensor("w", kF32, {std::int64_t{1} << 40, 0})}));
    row("zero strides",
        fileOf({node("Reshape", {"w", "s"}, {"a"}), node("Slice", {"a", "b", "c"}, {"y"})},
               {ints("w", {std::int64_t{1} << 40, std::int64_t{1} << 40, 0}, {}),
                vectorOf("s", {0, 0, 0}), vectorOf("b", {1}), vectorOf("c", {9})}));
}

void TestOnnxHostile::overflows() {
    QFETCH(QByteArray, file);
    accepts(file.toStdString()); // undefined behaviour would be seen by a sanitizer
}

void TestOnnxHostile::deepNesting() {
    const auto nested = [](int depth) {
        GraphParts inner;
        inner.nodes = {node("Neg", {"x"}, {"out"})};
        inner.outputs = {output("out")};
        for (int i = 0; i < depth; ++i) {
            GraphParts around;
            around.nodes = {node("If", {"c"}, {"out"},
                                 {graphAttribute("then_branch", inner.message()),
                                  graphAttribute("else_branch", inner.message())})};
            around.outputs = {output("out")};
            if (i > 2)
                around.nodes[0] =
                    node("If", {"c"}, {"out"}, {graphAttribute("then_branch", inner.message())});
            inner = around;
        }
        GraphParts parts;
        parts.inputs = {value("x", kF32, {"4"})};
        parts.initializers = {ints("c", {}, {1}, kBool)};
        parts.nodes = {node("If", {"c"}, {"y"},
                            {graphAttribute("then_branch", inner.message()),
                             graphAttribute("else_branch", GraphParts{}.message())})};
        parts.outputs = {output("y")};
        return onnxFile(parts);
    };
    QVERIFY(refusalOf(nested(200)).contains("nested deeper than 64"));
}

void TestOnnxHostile::functionsThatCallThemselves() {
    Message again;
    again.text(1, "Again").text(4, "a").text(5, "b");
    again.message(7, node("Again", {"a"}, {"b"}, {}, "more", "local")).text(10, "local");
    GraphParts parts;
    parts.inputs = {value("x", kF32, {"4"})};
    parts.nodes = {node("Again", {"x"}, {"y"}, {}, "call", "local")};
    parts.outputs = {output("y")};
    QVERIFY(refusalOf(onnxFile(parts, 17, {again})).contains("nested deeper than 64"));
}

void TestOnnxHostile::functionsThatExplode() {
    // Each calls the next ten times: 10^30 nodes from a few kilobytes.
    std::vector<Message> functions;
    for (int i = 0; i < 30; ++i) {
        Message f;
        f.text(1, "F" + std::to_string(i)).text(4, "v0").text(5, "v10").text(10, "local");
        for (int call = 0; call < 10; ++call)
            f.message(7, node("F" + std::to_string(i + 1), {"v" + std::to_string(call)},
                              {"v" + std::to_string(call + 1)}, {}, "", "local"));
        functions.push_back(f);
    }
    Message last;
    last.text(1, "F30").text(4, "a").text(5, "b").message(7, node("Mystery", {"a"}, {"b"}));
    functions.push_back(last.text(10, "local"));
    GraphParts parts;
    parts.inputs = {value("x", kF32, {"4"})};
    parts.nodes = {node("F0", {"x"}, {"y"}, {}, "call", "local")};
    parts.outputs = {output("y")};
    QVERIFY(refusalOf(onnxFile(parts, 17, functions)).contains("unfolds to more than"));
}

void TestOnnxHostile::knownValuesAreBounded() {
    // 4,096 elements each from a handful of bytes: values are given up, memory is not.
    std::vector<Message> nodes;
    constexpr int kCount = 8000;
    for (int i = 0; i < kCount; ++i)
        nodes.push_back(node("ConstantOfShape", {"s"}, {"v" + std::to_string(i)},
                             {tensorAttribute("value", vectorOf("", {1}))}));
    nodes.push_back(node("Neg", {"x"}, {"y"}));
    const Graph graph = importBytes(fileOf(nodes, {vectorOf("s", {4096})}));
    QVERIFY(findTensor(graph, "v0")->value.has_value());
    QVERIFY(!findTensor(graph, "v" + std::to_string(kCount - 1))->value.has_value());
}

void TestOnnxHostile::hugeLengths() {
    for (const std::uint64_t length :
         {std::uint64_t{1} << 20, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
        Message number;
        std::string varint;
        for (std::uint64_t n = length; n > 0; n >>= 7)
            varint.push_back(static_cast<char>((n & 0x7f) | (n >= 0x80 ? 0x80 : 0)));
        for (const char tag : {'\x3a', '\x12', '\x42'}) { // graph, producer, opset
            const QString refusal =
                refusalOf(std::string("\x08\x08", 2) + std::string(1, tag) + varint + "rest");
            QVERIFY2(refusal.contains("cut off") && refusal.contains("at byte"), refusal.toUtf8());
        }
    }
}

void TestOnnxHostile::brokenNumbers() {
    QVERIFY(refusalOf(std::string(30, '\xff')).contains("too many digits"));
    QVERIFY(refusalOf(std::string("\x08\x80", 2)).contains("cut off in a number"));
    QVERIFY(refusalOf(std::string("\x03", 1)).contains("field number"));
    QVERIFY(refusalOf(std::string("\x0b", 1)).contains("wire type 3"));
}

void TestOnnxHostile::namesAreCleaned() {
    const std::string bad = "a\xff\x01\n"
                            "b";
    const Graph graph = importBytes(fileOf({node("Neg", {"x"}, {bad}, {}, bad),
                                            node("Mystery\xfe", {bad}, {"y"}, {}, "", "dom\xfd")}));
    QVERIFY(findTensor(graph, "a???b") != nullptr);
    QVERIFY(graph.findOp("a???b").has_value());
    for (const Op& op : graph.ops()) {
        const QByteArray text = QByteArray::fromStdString(op.name + op.type);
        QVERIFY(text.isValidUtf8());
    }
    for (const std::string& warning : graph.warnings)
        QVERIFY(QByteArray::fromStdString(warning).isValidUtf8());
    const QString refusal = refusalOf(fileOf({node("Add", {"x", std::string(5000, 'n')}, {"y"})}));
    QVERIFY(refusal.size() < 500);
}

void TestOnnxHostile::cancellation() {
    std::stop_source stop;
    stop.request_stop();
    ImportOptions options;
    options.stop = stop.get_token();
    QVERIFY_THROWS_EXCEPTION(Cancelled, importBytes(variedFile(), options));
}

SHARDLENS_TEST(TestOnnxHostile)

} // namespace tst_onnx_hostile

#include "tst_onnx_hostile.moc"
