// SPDX-License-Identifier: Apache-2.0
// PyTorch execution traces: the real one of the shared data with the facts of its README, the same
// in the later layout, and small ones for what it does not hold.
#include "core/error.h"
#include "core/import/execution_trace.h"
#include "core/import/gunzip.h"
#include "core/import/mapped_file.h"
#include "core/model/canonical.h"
#include "core/model/graph_json.h"
#include "tests/test_program.h"

#include <nlohmann/json.hpp>

#include <QTest>

#include <filesystem>

namespace tst_execution_trace {

using namespace shardlens;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

const fs::path kTrace =
    fs::path(SHARDLENS_SHARED) / "data" / "models" / "profiles" / "pytorch_et_linear.json.gz";

std::string realTrace() {
    const MappedFile file(kTrace);
    const std::vector<std::byte> content = gunzip(file.bytes(), kTrace.string());
    return {reinterpret_cast<const char*>(content.data()), content.size()};
}

/// A node of schema 1.0.1. A tensor is {id, shape}; its storage has the same number.
struct Tensor01 {
    int id;
    Shape shape;
    const char* type = "Tensor(float)";
};

Json valueOf(const Tensor01& tensor) {
    return {tensor.id, 1000 + tensor.id, 0, elementsOf(tensor.shape), 4, "cuda:0"};
}

Json node(int id, int parent, const char* name, const char* schema,
          const std::vector<Tensor01>& inputs, const std::vector<Tensor01>& outputs,
          const std::vector<std::pair<Json, const char*>>& more = {}) {
    Json json{{"name", name},   {"id", id},           {"rf_id", id}, {"parent", parent},
              {"fw_parent", 0}, {"seq_id", -1},       {"scope", 0},  {"tid", 1},
              {"fw_tid", 0},    {"op_schema", schema}};
    for (const char* side : {"input", "output"})
        for (const char* part : {"s", "_shapes", "_types"})
            json[std::string(side) + part] = Json::array();
    const auto add = [&](const std::string& side, const Json& value, const Json& shape,
                         const char* type) {
        json[side + "s"].push_back(value);
        json[side + "_shapes"].push_back(shape);
        json[side + "_types"].push_back(type);
    };
    for (const Tensor01& t : inputs) add("input", valueOf(t), t.shape, t.type);
    for (const auto& [value, type] : more) add("input", value, Json::array(), type);
    for (const Tensor01& t : outputs) add("output", valueOf(t), t.shape, t.type);
    return json;
}

Json trace(const std::vector<Json>& nodes) {
    return {{"schema", "1.0.1"}, {"pid", 1}, {"nodes", nodes}};
}

/// The layout of schema 1.0.3 and later.
Json later(const Json& old) {
    Json result{{"schema", "1.0.3-chakra.0.0.4"}, {"pid", 1}, {"nodes", Json::array()}};
    for (const Json& node : old.at("nodes")) {
        Json changed{
            {"id", node.at("id")}, {"name", node.at("name")}, {"ctrl_deps", node.at("parent")}};
        for (const char* side : {"input", "output"}) {
            const std::string name = side;
            changed[name + "s"] = {{"values", node.at(name + "s")},
                                   {"shapes", node.at(name + "_shapes")},
                                   {"types", node.at(name + "_types")}};
        }
        changed["attrs"] = {
            {{"name", "rf_id"}, {"type", "uint64"}, {"value", node.at("rf_id")}},
            {{"name", "op_schema"}, {"type", "string"}, {"value", node.at("op_schema")}}};
        result["nodes"].push_back(changed);
    }
    return result;
}

Graph read(const Json& json) {
    return importExecutionTrace(json.dump(), "test.json", {});
}

std::size_t count(const Graph& graph, OpKind kind) {
    return static_cast<std::size_t>(std::ranges::count(graph.ops(), kind, &Op::kind));
}

constexpr const char* kLinear =
    "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor";
constexpr const char* kT = "aten::t(Tensor(a) self) -> Tensor(a)";
constexpr const char* kAddmm = "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar "
                               "beta=1, Scalar alpha=1) -> Tensor";

/// linear, which calls t and addmm; then a custom op and a split.
Json layer() {
    const Tensor01 x{1, {4, 8}}, w{2, {16, 8}}, b{3, {16}}, wt{4, {8, 16}}, y{5, {4, 16}},
        z{6, {4, 16}}, left{7, {4, 8}}, right{8, {4, 8}}, sum{9, {4, 8}};
    Json split =
        node(9, 1, "aten::split",
             "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
             {z}, {}, {{8, "Int"}, {-1, "Int"}});
    split["outputs"] = {{valueOf(left), valueOf(right)}};
    split["output_shapes"] = {{left.shape, right.shape}};
    split["output_types"] = {"GenericList[Tensor(float),Tensor(float)]"};
    return trace({node(1, 0, "[pytorch|profiler|execution_graph|thread]", "", {}, {}),
                  node(7, 2, "aten::addmm", kAddmm, {b, x, wt}, {y}, {{1, "Int"}, {1, "Int"}}),
                  node(3, 2, "aten::t", kT, {w}, {wt}),
                  node(2, 1, "aten::linear", kLinear, {x, w, b}, {y}),
                  node(8, 1, "mylib::act", "mylib::act(Tensor x, float a) -> Tensor", {y}, {z},
                       {{0.5, "Double"}}),
                  split,
                  node(10, 1, "aten::add",
                       "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                       {left, right}, {sum}, {{1, "Int"}})});
}

std::string message(const std::string& text) {
    try {
        importExecutionTrace(text, "test.json", {});
    } catch (const InputError& error) {
        return error.what();
    }
    return "no error";
}

} // namespace

class TestExecutionTrace : public QObject {
    Q_OBJECT

private slots:
    void realTraceIsRead();
    void laterLayoutIsTheSame();
    void layersAndParameters();
    void forwardAloneHasNoBackward();
    void wrappersStandForWhatTheyCall();
    void workInPlace();
    void keptTensorsShareTheirStorage();
    void errors_data();
    void errors();
    void cutOffAnywhere();
    void changedAnywhere();
    void cyclesAndStrangeParents();
};

void TestExecutionTrace::realTraceIsRead() {
    if (!fs::exists(kTrace)) QSKIP("the shared folder of real models is not beside the checkout");
    const Graph graph = importModel(kTrace);
    QCOMPARE(graph.facts.at("nodes"), std::string("931"));
    QCOMPARE(graph.facts.at("schema"), std::string("1.0.1"));
    QVERIFY(graph.backwardIncluded);
    // 21 linear layers of width 1024 with bias, forward and backward: the first layer's input
    // needs no gradient.
    QCOMPARE(graph.parameterCount(), 21.0 * (1024 * 1024 + 1024));
    QCOMPARE(count(graph, OpKind::Parameter), std::size_t{42});
    QCOMPARE(count(graph, OpKind::MatMul), std::size_t{21 + 21 + 20});
    std::size_t relu = 0, gradients = 0;
    for (const Op& op : graph.ops()) {
        relu += op.attributes.text("function") == "relu";
        gradients += op.attributes.text("function") == "relugrad";
    }
    QCOMPARE(relu, std::size_t{21});
    QCOMPARE(gradients, std::size_t{21});
    QCOMPARE(graph.outputs().size(), std::size_t{42}); // a gradient for each parameter
    const Graph canonical = canonicalise(graph);
    std::vector<Shape> inputs;
    for (const Op& op : canonical.ops())
        if (op.kind == OpKind::Input) inputs.push_back(canonical.tensor(op.outputs[0]).spec.shape);
    std::ranges::sort(inputs);
    QVERIFY2(std::ranges::find(inputs, Shape{512, 1024}) != inputs.end(), "the batch");
    QVERIFY2(std::ranges::count(inputs, Shape{512, 1024}) == 1, "kept activations are no inputs");
}

void TestExecutionTrace::laterLayoutIsTheSame() {
    if (fs::exists(kTrace)) {
        const Json old = Json::parse(realTrace());
        Graph a = read(old), b = read(later(old));
        QCOMPARE(b.facts.at("schema"), std::string("1.0.3-chakra.0.0.4"));
        a.facts.clear();
        b.facts.clear();
        QCOMPARE(graphToJson(a), graphToJson(b));
    }
    Graph a = read(layer()), b = read(later(layer()));
    a.facts.clear();
    b.facts.clear();
    QCOMPARE(graphToJson(a), graphToJson(b));
}

void TestExecutionTrace::layersAndParameters() {
    const Graph graph = read(layer());
    QCOMPARE(graph.parameterCount(), 16.0 * 8 + 16);
    QCOMPARE(count(graph, OpKind::Input), std::size_t{1});
    QCOMPARE(count(graph, OpKind::MatMul), std::size_t{1});
    QCOMPARE(count(graph, OpKind::Split), std::size_t{1});
    QCOMPARE(count(graph, OpKind::Opaque), std::size_t{1});
    QCOMPARE(graph.warnings.size(), std::size_t{1});
    QVERIFY(graph.warnings[0].find("mylib.act") != std::string::npos);
    QCOMPARE(graph.outputs().size(), std::size_t{1});
    QCOMPARE(graph.tensor(graph.outputs()[0]).spec, (TensorSpec{DType::F32, {4, 8}}));
    QVERIFY(graph.findOp("addmm_7").has_value());
    QVERIFY(!graph.findOp("linear_2").has_value()); // what it calls is taken
}

void TestExecutionTrace::forwardAloneHasNoBackward() {
    QVERIFY(!read(layer()).backwardIncluded);
    Json json = layer();
    json["nodes"].push_back(node(20, 0, "AddmmBackward0", "", {}, {}));
    QVERIFY(read(json).backwardIncluded);
}

void TestExecutionTrace::wrappersStandForWhatTheyCall() {
    const Tensor01 x{1, {4, 8}}, y{2, {4, 8}};
    const Graph graph = read(
        trace({node(2, 0, "aten::relu", "aten::relu(Tensor self) -> Tensor", {x}, {y}),
               node(3, 2, "aten::clamp_min", "aten::clamp_min(Tensor self, Scalar min) -> Tensor",
                    {x}, {y}, {{0, "Int"}})}));
    QCOMPARE(graph.ops().size(), std::size_t{2});
    QCOMPARE(graph.op(1).attributes.text("function"), std::string("relu"));
}

void TestExecutionTrace::workInPlace() {
    const Tensor01 x{1, {4}}, y{2, {4}}, z{3, {4}};
    const char* add =
        "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)";
    const Graph graph =
        read(trace({node(1, 0, "aten::add_", add, {x, y}, {x}, {{1, "Int"}}),
                    node(2, 0, "aten::mul", "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor",
                         {x, y}, {z})}));
    // The product reads the sum, not what was there before.
    const Op& product = graph.op(*graph.findOp("mul_2"));
    QCOMPARE(graph.op(graph.tensor(product.inputs[0]).producer).name, std::string("add__1"));
}

void TestExecutionTrace::keptTensorsShareTheirStorage() {
    const Tensor01 x{1, {4}}, y{2, {4}}, z{3, {4}};
    Json json = trace({node(1, 0, "aten::relu", "aten::relu(Tensor self) -> Tensor", {x}, {y}),
                       node(2, 0, "aten::neg", "aten::neg(Tensor self) -> Tensor", {y}, {z})});
    json["nodes"][1]["inputs"][0] = {77, 1002, 0, 4, 4, "cuda:0"}; // the storage of y
    const Graph graph = read(json);
    QCOMPARE(count(graph, OpKind::Input), std::size_t{1});
    json["nodes"][1]["input_shapes"][0] = {2, 2}; // another shape is another value
    json["nodes"][1]["output_shapes"][0] = {2, 2};
    QCOMPARE(count(read(json), OpKind::Input), std::size_t{2});
}

void TestExecutionTrace::errors_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("mentions");
    const auto row = [](const char* name, const std::string& text, const char* mentions) {
        QTest::newRow(name) << QByteArray::fromStdString(text) << mentions;
    };
    row("no nodes", R"({"schema": "1.0.1"})", "holds no nodes");
    row("cut off", R"({"schema": "1.0.1", "nodes": [)", "not valid JSON");
    Json twice = layer();
    twice["nodes"].push_back(twice["nodes"][1]);
    row("id twice", twice.dump(), "same id");
    const Tensor01 x{1, {4}}, y{2, {4}}, z{3, {4}};
    Json untyped = trace({node(5, 0, "a::b", "a::b(Tensor x) -> Tensor", {x}, {y}),
                          node(6, 0, "aten::neg", "aten::neg(Tensor self) -> Tensor", {y}, {z})});
    untyped["nodes"][0]["output_shapes"] = Json::array();
    row("no shape", untyped.dump(), "node 5");
    row("brackets", std::string(100'000, '['), "nested");
}

void TestExecutionTrace::errors() {
    QFETCH(QByteArray, text);
    QFETCH(QString, mentions);
    const std::string error = message(text.toStdString());
    QVERIFY2(error.find(mentions.toStdString()) != std::string::npos, error.c_str());
    QVERIFY2(error.find("test.json") != std::string::npos, error.c_str());
}

void TestExecutionTrace::cutOffAnywhere() {
    const std::string whole = layer().dump();
    for (std::size_t length = 0; length < whole.size(); length += 3)
        QVERIFY(message(whole.substr(0, length)) != "no error");
}

void TestExecutionTrace::changedAnywhere() {
    const std::string whole = layer().dump();
    for (std::size_t at = 0; at < whole.size(); ++at)
        for (const char c : {'9', '"', '-'}) {
            std::string text = whole;
            text[at] = c;
            message(text); // an error or a graph
        }
}

void TestExecutionTrace::cyclesAndStrangeParents() {
    for (const int parent : {2, 3, 7, 99, -1}) {
        Json json = layer();
        for (Json& node : json["nodes"])
            if (node["id"] == 2) node["parent"] = parent;
        QVERIFY(message(json.dump()) == "no error" || message(json.dump()).size() > 20);
    }
}

SHARDLENS_TEST(TestExecutionTrace)

} // namespace tst_execution_trace

#include "tst_execution_trace.moc"
