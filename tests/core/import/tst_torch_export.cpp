// SPDX-License-Identifier: Apache-2.0
// torch.export programs: JSON written after the published schema (both its current form and its
// first version), in archives of both layouts that are put together here byte by byte.
#include "core/error.h"
#include "core/import/torch_export.h"
#include "core/import/zip_archive.h"
#include "core/model/canonical.h"
#include "tests/core/import/zip_writer.h"
#include "tests/test_program.h"

#include <nlohmann/json.hpp>

#include <QTemporaryDir>
#include <QTest>

#include <fstream>

namespace tst_torch_export {

using namespace shardlens;
using namespace shardlens::test;
using Json = nlohmann::json;

namespace {

Json tensorMeta(int dtype, const Json& sizes) {
    Json dims = Json::array();
    for (const Json& size : sizes) dims.push_back(size.is_number() ? Json{{"as_int", size}} : size);
    return {{"dtype", dtype},
            {"sizes", dims},
            {"requires_grad", false},
            {"device", {{"type", "cpu"}, {"index", nullptr}}},
            {"strides", Json::array()},
            {"storage_offset", {{"as_int", 0}}},
            {"layout", 7}};
}

Json named(const char* name, const Json& argument, int kind = 1) {
    return {{"name", name}, {"arg", argument}, {"kind", kind}};
}

Json tensor(const char* name) {
    return {{"as_tensor", {{"name", name}}}};
}

/// Embedding-like batch of s0 rows through a linear layer, a split, and a product of its halves.
Json program() {
    const Json rows{{"as_expr", {{"expr_str", "s0"}, {"hint", {{"as_int", 6}}}}}};
    Json graph;
    graph["inputs"] = {tensor("p_up_weight"), tensor("p_up_bias"), tensor("b_scale"), tensor("x")};
    graph["outputs"] = {tensor("mul")};
    graph["nodes"] = Json::array(
        {{{"target", "torch.ops.aten.sym_size.int"},
          {"inputs", {named("self", tensor("x")), named("dim", {{"as_int", 0}})}},
          {"outputs", {{{"as_sym_int", {{"as_name", "sym_size_int"}}}}}},
          {"metadata", Json::object()}},
         {{"target", "torch.ops.aten.linear.default"},
          {"inputs",
           {named("input", tensor("x")), named("weight", tensor("p_up_weight")),
            named("bias", tensor("p_up_bias"))}},
          {"outputs", {tensor("linear")}},
          {"metadata",
           {{"nn_module_stack",
             "L__self__,,model.Mlp;L__self___up,layers.0.up,torch.nn.modules.linear.Linear"}}}},
         {{"target", "torch.ops.aten.view.default"},
          {"inputs",
           {named("self", tensor("linear")),
            named("size", {{"as_sym_ints",
                            {{{"as_name", "sym_size_int"}}, {{"as_int", 2}}, {{"as_int", 16}}}}})}},
          {"outputs", {tensor("view")}},
          {"metadata", Json::object()}},
         {{"target", "torch.ops.aten.split.Tensor"},
          {"inputs",
           {named("self", tensor("view")), named("split_size", {{"as_int", 8}}),
            named("dim", {{"as_int", -1}})}},
          {"outputs", {{{"as_tensors", {{{"name", "getitem"}}, {{"name", "getitem_1"}}}}}}},
          {"metadata", Json::object()}},
         {{"target", "torch.ops.aten.softmax.int"},
          {"inputs",
           {named("self", tensor("getitem")), named("dim", {{"as_int", -1}}),
            named("dtype", {{"as_scalar_type", 7}})}},
          {"outputs", {tensor("softmax")}},
          {"metadata", Json::object()}},
         {{"target", "torch.ops.aten.mul.Tensor"},
          {"inputs", {named("self", tensor("softmax")), named("other", tensor("getitem_1"))}},
          {"outputs", {tensor("mul")}},
          {"metadata", Json::object()}}});
    graph["tensor_values"] = {
        {"p_up_weight", tensorMeta(7, {32, 4})},  {"p_up_bias", tensorMeta(7, {32})},
        {"b_scale", tensorMeta(13, {32})},        {"x", tensorMeta(7, {rows, 4})},
        {"linear", tensorMeta(7, {rows, 32})},    {"view", tensorMeta(7, {rows, 2, 16})},
        {"getitem", tensorMeta(7, {rows, 2, 8})}, {"getitem_1", tensorMeta(7, {rows, 2, 8})},
        {"softmax", tensorMeta(7, {rows, 2, 8})}, {"mul", tensorMeta(7, {rows, 2, 8})}};
    graph["sym_int_values"] = {{"sym_size_int", rows}};
    const auto parameter = [](const char* arg, const char* name) {
        return Json{{"parameter", {{"arg", {{"name", arg}}}, {"parameter_name", name}}}};
    };
    const Json signature{
        {"input_specs",
         {parameter("p_up_weight", "up.weight"),
          parameter("p_up_bias", "up.bias"),
          {{"buffer",
            {{"arg", {{"name", "b_scale"}}}, {"buffer_name", "scale"}, {"persistent", true}}}},
          {{"user_input", {{"arg", tensor("x")}}}}}},
        {"output_specs", {{{"user_output", {{"arg", tensor("mul")}}}}}}};
    return {{"graph_module",
             {{"graph", graph}, {"signature", signature}, {"module_call_graph", Json::array()}}},
            {"opset_version", {{"aten", 10}}},
            {"range_constraints", {{"s0", {{"min_val", 2}, {"max_val", 1024}}}}},
            {"schema_version", {{"major", 8}, {"minor", 6}}},
            {"torch_version", "2.8.0"}};
}

std::span<const std::byte> bytesOf(const std::string& text) {
    return std::as_bytes(std::span(text));
}

std::string newArchive(const std::string& json, bool zip64 = false, bool deflated = false) {
    return ZipWriter(zip64)
        .add({"mlp/archive_format", "pt2"})
        .add({"mlp/version", "0"})
        .add({"mlp/byteorder", "little"})
        .add({"mlp/models/model.json", json, deflated})
        .add({"mlp/data/weights/weight_0", std::string(512, '\1')})
        .finish("a comment");
}

template <typename Read>
std::string message(Read read) {
    try {
        read();
    } catch (const InputError& error) {
        return error.what();
    }
    return "no error";
}

} // namespace

class TestTorchExport : public QObject {
    Q_OBJECT

private slots:
    void programIsRead();
    void symbolsAreBound();
    void firstSchemaIsRead();
    void archives_data();
    void archives();
    void filesAreRecognised();
    void unknownOpsKeepTheirTypes();
    void outOfOrderArguments();
    void wrongPrograms_data();
    void wrongPrograms();
    void hostileArchives_data();
    void hostileArchives();
    void cutOffAnywhere();
    void changedAnywhere();
};

void TestTorchExport::programIsRead() {
    const Graph graph = importTorchExport(program().dump(), "test.json", {});
    QCOMPARE(graph.format, std::string("torch.export"));
    QCOMPARE(graph.parameterCount(), 32.0 * 4 + 32);
    const auto kind = [&](const char* name) {
        const auto id = graph.findOp(name);
        return id ? std::string(nameOf(graph.op(*id).kind)) : std::string("none");
    };
    QCOMPARE(kind("layers.0.up/linear"), std::string("MatMul"));
    QCOMPARE(kind("getitem"), std::string("Split"));
    QCOMPARE(kind("softmax"), std::string("Softmax"));
    QCOMPARE(kind("b_scale"), std::string("Constant"));
    QCOMPARE(kind("x"), std::string("Input"));
    QCOMPARE(graph.tensor(graph.outputs()[0]).spec, (TensorSpec{DType::F32, {6, 2, 8}}));
    QCOMPARE(graph.tensor(graph.outputs()[0]).name, std::string("mul"));
    QCOMPARE(graph.facts.at("nodes"), std::string("6"));
    QCOMPARE(graph.facts.at("schema_version"), std::string("8.6"));
    QCOMPARE(graph.facts.at("torch_version"), std::string("2.8.0"));
    QVERIFY2(graph.warnings.empty(), graph.warnings.empty() ? "" : graph.warnings[0].c_str());
}

/// Traced with six rows; the user may say another number.
void TestTorchExport::symbolsAreBound() {
    ImportOptions options;
    options.batch = 100; // a guess would take this
    QCOMPARE(importTorchExport(program().dump(), "t", options).bindings.at("s0"), std::int64_t{6});
    options.bindings["s0"] = 12;
    const Graph graph = importTorchExport(program().dump(), "t", options);
    QCOMPARE(graph.tensor(graph.outputs()[0]).spec.shape, (Shape{12, 2, 8}));
    options.bindings = {{"s9", 1}};
    QVERIFY(message([&] { importTorchExport(program().dump(), "t", options); }).find("'s9'") !=
            std::string::npos);
}

/// PyTorch 2.1: types under "meta", names as plain texts, roles as maps, sizes with bare hints.
void TestTorchExport::firstSchemaIsRead() {
    Json root = program();
    Json& graph = root["graph_module"]["graph"];
    for (auto& [name, value] : graph["tensor_values"].items()) {
        for (Json& size : value["sizes"])
            if (size.contains("as_expr")) size["as_expr"]["hint"] = 6;
        value = Json{{"meta", value}};
    }
    for (Json& node : graph["nodes"])
        for (Json& input : node["inputs"]) input.erase("kind");
    root["graph_module"]["signature"] = {
        {"inputs_to_parameters", {{"p_up_weight", "up.weight"}, {"p_up_bias", "up.bias"}}},
        {"inputs_to_buffers", {{"b_scale", "scale"}}},
        {"user_inputs", {"x"}},
        {"user_outputs", {"mul"}},
        {"buffers_to_mutate", Json::object()},
        {"backward_signature", nullptr}};
    root["schema_version"] = 1;
    const Graph old = importTorchExport(root.dump(), "t", {});
    const Graph current = importTorchExport(program().dump(), "t", {});
    QCOMPARE(old.parameterCount(), current.parameterCount());
    QCOMPARE(old.ops().size(), current.ops().size());
    QCOMPARE(old.tensor(old.outputs()[0]).spec, current.tensor(current.outputs()[0]).spec);
}

void TestTorchExport::archives_data() {
    QTest::addColumn<QByteArray>("file");
    const auto row = [](const char* name, const std::string& file) {
        QTest::newRow(name) << QByteArray::fromStdString(file);
    };
    const std::string json = program().dump();
    row("stored", newArchive(json));
    row("deflated", newArchive(json, false, true));
    row("zip64", newArchive(json, true));
    row("zip64 deflated", newArchive(json, true, true));
    row("old layout", ZipWriter()
                          .add({"serialized_exported_program.json", json, true})
                          .add({"serialized_state_dict.json", std::string(99, 'x')})
                          .add({"version", "1.3"})
                          .finish());
}

void TestTorchExport::archives() {
    QFETCH(QByteArray, file);
    const Graph graph = importTorchArchive(bytesOf(file.toStdString()), "test.pt2", {});
    QCOMPARE(graph.parameterCount(), 160.0);
    QCOMPARE(graph.tensor(graph.outputs()[0]).spec.shape, (Shape{6, 2, 8}));
}

void TestTorchExport::filesAreRecognised() {
    const QTemporaryDir folder;
    const auto written = [&](const char* name, const std::string& content) {
        const std::string path = folder.filePath(name).toStdString();
        std::ofstream(path, std::ios::binary) << content;
        return path;
    };
    const Graph archive = importModel(written("m.pt2", newArchive(program().dump(), false, true)));
    QCOMPARE(archive.name, std::string("m"));
    QCOMPARE(importModel(written("m.json", program().dump(2))).ops().size(), archive.ops().size());
}

void TestTorchExport::unknownOpsKeepTheirTypes() {
    Json root = program();
    root["graph_module"]["graph"]["nodes"][4]["target"] = "torch.ops.mylib.attend.default";
    const Graph graph = importTorchExport(root.dump(), "t", {});
    const auto id = graph.findOp("softmax");
    QVERIFY(id.has_value());
    QCOMPARE(graph.op(*id).kind, OpKind::Opaque);
    QCOMPARE(graph.tensor(graph.op(*id).outputs[0]).spec.shape, (Shape{6, 2, 8}));
    QCOMPARE(graph.warnings.size(), std::size_t{1});
}

/// Arguments that equal their default are left out, so that names count and places do not.
void TestTorchExport::outOfOrderArguments() {
    Json root = program();
    Json& inputs = root["graph_module"]["graph"]["nodes"][3]["inputs"];
    std::swap(inputs[1], inputs[2]);
    QCOMPARE(importTorchExport(root.dump(), "t", {}).warnings.size(), std::size_t{0});
}

void TestTorchExport::wrongPrograms_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("mentions");
    const auto row = [](const char* name, const std::string& text, const char* mentions) {
        QTest::newRow(name) << QByteArray::fromStdString(text) << mentions;
    };
    const auto changed = [](auto change) {
        Json root = program();
        change(root["graph_module"]["graph"]);
        return root.dump();
    };
    row("no graph", "{}", "no graph of torch.export");
    row("no JSON", "{\"graph_module\": ", "not valid JSON");
    row("brackets", std::string(200'000, '['), "nested");
    row("undefined", changed([](Json& graph) { graph["nodes"].erase(1); }), "'linear'");
    row("defined twice", changed([](Json& graph) { graph["nodes"].push_back(graph["nodes"][1]); }),
        "twice");
    row("no target", changed([](Json& graph) { graph["nodes"][0].erase("target"); }), "target");
    row("impossible size", changed([](Json& graph) {
            for (const char* name : {"softmax", "mul"})
                graph["tensor_values"][name]["sizes"][1] = Json{{"as_int", -5}};
            graph["nodes"][4]["target"] = "torch.ops.a.b.default";
        }),
        "node 4");
    row("huge number", "{\"graph_module\": 1e99999}", "number");
}

void TestTorchExport::wrongPrograms() {
    QFETCH(QByteArray, text);
    QFETCH(QString, mentions);
    const std::string error =
        message([&] { importTorchExport(text.toStdString(), "test.json", {}); });
    QVERIFY2(error.find(mentions.toStdString()) != std::string::npos, error.c_str());
    QVERIFY2(error.find("test.json") != std::string::npos, error.c_str());
}

void TestTorchExport::hostileArchives_data() {
    QTest::addColumn<QByteArray>("file");
    QTest::addColumn<QString>("mentions");
    const auto row = [](const char* name, const std::string& file, const char* mentions) {
        QTest::newRow(name) << QByteArray::fromStdString(file) << mentions;
    };
    const auto single = [](const char* name) { return ZipWriter().add({name, "x"}).finish(); };
    row("empty", "", "no directory");
    row("no directory", "PK\3\4 and nothing", "no directory");
    row("leads up", single("a/../../etc/passwd"), "leads out");
    row("absolute", single("/models/model.json"), "leads out");
    row("drive", single("c:/models/model.json"), "leads out");
    row("backslash", single("models\\model.json"), "leads out");
    row("no name", single(""), "leads out");
    row("no program", single("m/models/readme.txt"), "no exported program");
    row("deeper folder", single("m/models/a/b.json"), "no exported program");
    row("twice", ZipWriter().add({"m/models/a.json", "1"}).add({"m/models/a.json", "2"}).finish(),
        "twice");
    // Fields of the one directory entry, from its end: the end record is 22 bytes.
    const std::string name = "models/model.json";
    const auto patched = [&](std::size_t at, const std::string& bytes, bool deflated = false) {
        std::string file = ZipWriter().add({name, program().dump(), deflated}).finish();
        return file.replace(file.size() - 22 - 46 - name.size() + at, bytes.size(), bytes);
    };
    const std::string most = "\xfe\xff\xff\xff";
    row("bomb", patched(24, most, true), "more than can be read");
    row("packed past the end", patched(20, most), "ends in the middle");
    row("offset past the end", patched(42, most), "ends in the middle");
    row("two sizes", patched(24, std::string("\1\0\0\0", 4)), "two sizes");
    row("checksum", patched(16, "\1\2\3\4"), "checksum");
    row("encrypted", patched(8, std::string("\1\0", 2)), "encrypted");
    row("method", patched(10, std::string("\16\0", 2)), "unusual");
    row("damaged", patched(10, std::string("\10\0", 2)), "damaged");
    row("smaller than it says", patched(24, std::string("\1\0\0\0", 4), true), "damaged");
    row("entry", patched(0, "XXXX"), "damaged");
    row("zip64 size missing", patched(24, "\xff\xff\xff\xff"), "more than can be read");
    std::string many = single("a");
    many.replace(many.size() - 22 + 10, 2, "\xfe\xff");
    row("more entries than bytes", many, "longer than the file");
}

void TestTorchExport::hostileArchives() {
    QFETCH(QByteArray, file);
    QFETCH(QString, mentions);
    const std::string bytes = file.toStdString();
    const std::string error = message([&] { importTorchArchive(bytesOf(bytes), "test.pt2", {}); });
    QVERIFY2(error.find(mentions.toStdString()) != std::string::npos, error.c_str());
    QVERIFY2(error.find("test.pt2") != std::string::npos, error.c_str());
}

void TestTorchExport::cutOffAnywhere() {
    const std::string whole = newArchive(program().dump(), true, true);
    const std::size_t comment = std::string("a comment").size();
    for (std::size_t length = 0; length < whole.size() - comment; ++length) {
        const std::string part = whole.substr(0, length);
        QVERIFY(message([&] { importTorchArchive(bytesOf(part), "t", {}); }) != "no error");
    }
}

void TestTorchExport::changedAnywhere() {
    const std::string archive = newArchive(R"({"graph_module": 1})", true, true);
    for (std::size_t at = 0; at < archive.size(); ++at)
        for (const char c : {'\0', '\xff', 'P'}) {
            std::string file = archive;
            file[at] = c;
            QVERIFY(message([&] { importTorchArchive(bytesOf(file), "t", {}); }) != "no error");
        }
    const std::string json = program().dump();
    for (std::size_t at = 0; at < json.size(); at += kSanitized ? 37 : 3)
        for (const char c : {'0', '"', '}'}) {
            std::string text = json;
            text[at] = c;
            message([&] { importTorchExport(text, "t", {}); }); // an error or a graph
        }
}

SHARDLENS_TEST(TestTorchExport)

} // namespace tst_torch_export

#include "tst_torch_export.moc"
