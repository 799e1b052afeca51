// SPDX-License-Identifier: Apache-2.0
// Real ONNX files: every shape that ONNX Runtime gave (golden_shapes), the facts their publishers
// and torchvision state, and the declarations a training graph carries itself.
#include "core/fold/folding.h"
#include "core/import/onnx_model.h"
#include "core/import/onnx_symbols.h"
#include "core/model/canonical.h"
#include "core/model/catalogue.h"
#include "tests/core/import/onnx_writer.h"
#include "tests/test_program.h"

#include <nlohmann/json.hpp>
#include <zlib.h>

#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace tst_onnx {

using namespace shardlens;
namespace fs = std::filesystem;

class TestOnnx : public QObject {
    Q_OBJECT

private slots:
    void initTestCase();
    void goldenShapes_data();
    void goldenShapes();
    void facts_data();
    void facts();
    void everyFileIsReadWithoutBindings_data();
    void everyFileIsReadWithoutBindings();
    void sideFileIsRefused();
    void resNetHasTheParametersOfTorchvision();
    void denseNetHasTheParametersOfItsLayers();
    void runningStatisticsAreConstants();
    void trainingGraphAgreesWithItsDeclarations();
    void trainingGraphHasItsParameters();
    void layersRepeat_data();
    void layersRepeat();
    void bertReportsItsConcat();
    void tooLongASequenceIsShortened();
    void unknownBindingsAreRefused();
    void gzippedFileIsTheSame();
    void importsAreDeterministic();
    void sourcesStandBeforeTheirFirstReader();
};

namespace {

fs::path folder() {
    return fs::path(SHARDLENS_SHARED) / "data" / "models";
}

fs::path model(const std::string& name) {
    return folder() / "onnx" / (name + ".onnx");
}

std::string bytesOf(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

bool mentions(const Graph& graph, const std::string& text) {
    return std::ranges::any_of(graph.warnings, [&](const std::string& warning) {
        return warning.find(text) != std::string::npos;
    });
}

ImportOptions bound(const nlohmann::json& bindings) {
    ImportOptions options;
    for (const auto& [name, value] : bindings.items())
        options.bindings[name] = value.get<std::int64_t>();
    return options;
}

/// ONNX Runtime's names of element types.
std::string_view ours(const std::string& dtype) {
    if (dtype == "float32") return "f32";
    if (dtype == "float16") return "f16";
    if (dtype == "int64") return "i64";
    if (dtype == "uint8") return "u8";
    return dtype;
}

const char* const kModels[] = {"3layer_bloom_optimized_training",
                               "BertForQuestionAnswering_1",
                               "GPT2Model",
                               "conv_qdq_external_ini",
                               "light_densenet121",
                               "light_resnet50",
                               "qdq_with_multi_consumer_dq_nodes",
                               "scan_1",
                               "transform_nested_ifs_toplogical_sorted_nodes"};

} // namespace

void TestOnnx::initTestCase() {
    if (!fs::exists(folder())) QSKIP("the shared folder of real models is not beside the checkout");
}

void TestOnnx::goldenShapes_data() {
    QTest::addColumn<QString>("file");
    for (const auto& entry : fs::directory_iterator(folder() / "golden_shapes"))
        QTest::newRow(entry.path().filename().c_str()) << QString(entry.path().c_str());
}

void TestOnnx::goldenShapes() {
    QFETCH(QString, file);
    const auto golden = nlohmann::json::parse(bytesOf(file.toStdString()));
    const Graph graph = importModel(folder() / "onnx" / golden["model"].get<std::string>(),
                                    bound(golden["bindings"]));
    std::map<std::string, TensorSpec> specs;
    for (const Tensor& tensor : graph.tensors()) {
        QVERIFY2(!specs.contains(tensor.name), tensor.name.c_str());
        specs[tensor.name] = tensor.spec;
    }
    for (const auto& [name, expected] : golden["values"].items()) {
        QVERIFY2(specs.contains(name), name.c_str());
        const std::string got =
            std::string(nameOf(specs[name].dtype)) + toString(specs[name].shape);
        const std::string want =
            std::string(ours(expected[0].get<std::string>())) + toString(expected[1].get<Shape>());
        QVERIFY2(got == want, (name + ": " + got + ", not " + want).c_str());
    }
    for (const auto& [name, expected] : golden["inputs"].items())
        QVERIFY2(specs[name].shape == expected[1].get<Shape>(), name.c_str());
}

void TestOnnx::facts_data() {
    QTest::addColumn<QString>("fact");
    QTest::addColumn<QString>("value");
    const auto row = [](const char* file, const char* fact, const char* value) {
        QTest::newRow(file) << fact << value;
    };
    row("light_resnet50", "ir_version", "3");
    row("light_resnet50", "opset", "9");
    row("light_resnet50", "nodes", "415");
    row("light_resnet50", "initializers", "269");
    row("light_resnet50", "inputs_listed", "270");
    row("light_resnet50", "inputs", "1");
    row("light_densenet121", "nodes", "1746");
    row("light_densenet121", "inputs_listed", "849");
    row("GPT2Model", "nodes", "2848");
    row("GPT2Model", "opset", "11");
    row("BertForQuestionAnswering_1", "nodes", "1171");
    row("3layer_bloom_optimized_training", "nodes", "500");
    row("scan_1", "nodes", "4");
    row("transform_nested_ifs_toplogical_sorted_nodes", "functions", "3");
    row("transform_nested_ifs_toplogical_sorted_nodes", "opset", "18");
}

void TestOnnx::facts() {
    QFETCH(QString, fact);
    QFETCH(QString, value);
    const Graph graph = importModel(model(QTest::currentDataTag()));
    QCOMPARE(QString::fromStdString(graph.facts.at(fact.toStdString())), value);
    QCOMPARE(QString::fromStdString(graph.format), QString("ONNX"));
    QCOMPARE(graph.name, std::string(QTest::currentDataTag()));
}

void TestOnnx::everyFileIsReadWithoutBindings_data() {
    QTest::addColumn<int>("unused");
    for (const char* name : kModels) QTest::newRow(name) << 0;
}

void TestOnnx::everyFileIsReadWithoutBindings() {
    const Graph graph = importModel(model(QTest::currentDataTag()));
    for (const Tensor& tensor : graph.tensors())
        QVERIFY2(tensor.spec.dtype != DType::Unknown, tensor.name.c_str());
    // Every later stage can read what is left.
    const Graph canonical = canonicalise(graph);
    QVERIFY(!canonical.outputs().empty());
    for (OpId id = 0; id < canonical.ops().size(); ++id) {
        const OpView view = viewOf(canonical, id);
        const FactorRule rule = factorRule(view);
        QVERIFY(forwardWork(view, rule).bytes >= 0);
    }
}

void TestOnnx::sideFileIsRefused() {
    QVERIFY_THROWS_EXCEPTION(InputError,
                             importModel(folder() / "onnx" / "conv_qdq_external_ini.bin"));
}

void TestOnnx::resNetHasTheParametersOfTorchvision() {
    // torchvision.models.resnet50: 25,557,032 parameters, running statistics not among them.
    QCOMPARE(importModel(model("light_resnet50")).parameterCount(), 25557032.0);
}

void TestOnnx::denseNetHasTheParametersOfItsLayers() {
    // DenseNet-121 (Huang et al. 2017, table 1): growth 32, blocks of 6, 12, 24, 16, bottlenecks of
    // 128, transitions halve. This file, from Caffe, has scale and bias twice behind every
    // convolution's input (in the normalisation and after it), and a biased classifier.
    double weights = 64 * 3 * 49, channels = 64;
    double normalised = 64;
    const int blocks[] = {6, 12, 24, 16};
    for (int b = 0; b < 4; ++b) {
        for (int layer = 0; layer < blocks[b]; ++layer) {
            weights += channels * 128 + 128 * 32 * 9;
            normalised += channels + 128;
            channels += 32;
        }
        normalised += channels; // before the transition, or after the last block
        if (b < 3) {
            weights += channels * channels / 2;
            channels /= 2;
        }
    }
    QCOMPARE(channels, 1024.0);
    const double classifier = 1024 * 1000 + 1000;
    // torchvision's densenet121, with one scale and bias each, has 7,978,856.
    QCOMPARE(weights + 2 * normalised + classifier, 7978856.0);
    QCOMPARE(importModel(model("light_densenet121")).parameterCount(),
             weights + 4 * normalised + classifier);
}

void TestOnnx::runningStatisticsAreConstants() {
    const Graph graph = importModel(model("light_resnet50"));
    int norms = 0;
    for (const Op& op : graph.ops()) {
        if (op.kind != OpKind::Norm) continue;
        ++norms;
        const auto kind = [&](std::size_t i) {
            return graph.op(graph.tensor(op.inputs[i]).producer).kind;
        };
        QCOMPARE(kind(1), OpKind::Parameter);
        QCOMPARE(kind(2), OpKind::Parameter);
        QCOMPARE(kind(3), OpKind::Constant);
        QCOMPARE(kind(4), OpKind::Constant);
    }
    QCOMPARE(norms, 53);
}

void TestOnnx::trainingGraphAgreesWithItsDeclarations() {
    const std::string file = bytesOf(model("3layer_bloom_optimized_training"));
    ImportOptions options;
    options.bindings = {{"inputs_input_ids_dim0", 3},
                        {"inputs_attention_mask_dim0", 3},
                        {"inputs_attention_mask_dim1", 7},
                        {"inputs_labels_dim0", 3},
                        {"inputs_labels_dim1", 7}};
    const Graph graph = test::importBytes(file, options);
    const onnx::Model parsed = onnx::parseModel(std::as_bytes(std::span(file)), "bloom");
    QCOMPARE(parsed.graph.values.size(), std::size_t{411});
    std::vector<const onnx::ValueInfo*> inputs;
    for (const onnx::ValueInfo& input : parsed.graph.inputs) inputs.push_back(&input);
    const onnx::Symbols symbols(inputs, options, "bloom");
    int compared = 0;
    for (const auto* list : {&parsed.graph.values, &parsed.graph.outputs})
        for (const onnx::ValueInfo& value : *list) {
            const auto declared = symbols.declared(value);
            if (!declared) continue;
            const Tensor* tensor = test::findTensor(graph, std::string(value.name));
            QVERIFY2(tensor != nullptr, std::string(value.name).c_str());
            QVERIFY2(tensor->spec == *declared, std::string(value.name).c_str());
            ++compared;
        }
    QVERIFY2(compared >= 440, QByteArray::number(compared));
    // Declared as dim0*(dim1 - 1) rows: 3 * (7 - 1).
    QCOMPARE(
        test::specText(
            graph, "/_original_module/_original_model/SoftmaxCrossEntropyLossInternal_output_1"),
        QString("f16[18,250880]"));
}

void TestOnnx::trainingGraphHasItsParameters() {
    const Graph graph = importModel(model("3layer_bloom_optimized_training"));
    // BLOOM with 3 layers of width 1024: embedding, its norm, 12 h^2 + 13 h a layer, final norm.
    const double h = 1024;
    const double expected = 250880 * h + 2 * h + 3 * (12 * h * h + 13 * h) + 2 * h;
    QCOMPARE(graph.parameterCount(), expected); // ALiBi's 16 slopes are an initializer, not trained
    QVERIFY(mentions(graph, "holds its own backward pass"));
}

void TestOnnx::layersRepeat_data() {
    QTest::addColumn<int>("layers");
    QTest::newRow("GPT2Model") << 12;
    QTest::newRow("BertForQuestionAnswering_1") << 12;
}

void TestOnnx::layersRepeat() {
    QFETCH(int, layers);
    const Graph canonical = canonicalise(importModel(model(QTest::currentDataTag())));
    const Folding folding = fold(canonical);
    QCOMPARE(folding.runs.size(), std::size_t{1});
    QCOMPARE(folding.runs[0].count, static_cast<std::size_t>(layers));
    // Nothing but compute is left of a layer: no shape arithmetic, nothing opaque.
    for (const Op& op : canonical.ops()) QVERIFY2(op.kind != OpKind::Opaque, op.name.c_str());
    QVERIFY(folding.runs[0].period > 50 && folding.runs[0].period < 100);
}

void TestOnnx::bertReportsItsConcat() {
    const Graph graph = importModel(model("BertForQuestionAnswering_1"));
    QVERIFY(mentions(graph, "Concat joins tensors of rank 1 and rank 0"));
    QVERIFY(mentions(graph, "52")); // the first of them in the file
    ImportOptions options;
    options.bindings["batch_size"] = 5;
    QCOMPARE(test::specText(importModel(model("BertForQuestionAnswering_1"), options), "start"),
             QString("f32[5,10]"));
}

void TestOnnx::tooLongASequenceIsShortened() {
    const Graph graph = importModel(model("GPT2Model")); // it has eight positions
    QCOMPARE(graph.bindings.at("seq_len"), std::int64_t{8});
    QCOMPARE(graph.bindings.at("batch_size"), std::int64_t{8});
    QVERIFY(mentions(graph, "does not take a sequence of 2048"));
    ImportOptions options;
    options.bindings["seq_len"] = 9;
    QVERIFY_THROWS_EXCEPTION(InputError, importModel(model("GPT2Model"), options));
    // Declared as [batch, seq, 768]; the file's own weights give 4.
    QVERIFY(mentions(graph, "is declared as f32[8,8,768] but the graph gives f32[8,8,4]"));
}

void TestOnnx::unknownBindingsAreRefused() {
    ImportOptions options;
    options.bindings["bogus"] = 4;
    try {
        importModel(model("GPT2Model"), options);
        QFAIL("accepted");
    } catch (const InputError& error) {
        QVERIFY(QString(error.what()).contains("batch_size, seq_len"));
    }
    options.bindings = {{"batch_size", -1}};
    QVERIFY_THROWS_EXCEPTION(InputError, importModel(model("GPT2Model"), options));
}

void TestOnnx::gzippedFileIsTheSame() {
    const QTemporaryDir folder;
    const std::string path = folder.filePath("light.bin").toStdString();
    const std::string content = bytesOf(model("light_resnet50"));
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
    gzclose(file);
    const Graph graph = importModel(path);
    QCOMPARE(graph.parameterCount(), 25557032.0);
    // Cut off, it is refused.
    std::ofstream(path, std::ios::binary) << bytesOf(path).substr(0, 5000);
    QVERIFY_THROWS_EXCEPTION(InputError, importModel(path));
}

void TestOnnx::importsAreDeterministic() {
    const Graph a = importModel(model("GPT2Model")), b = importModel(model("GPT2Model"));
    QCOMPARE(a.ops().size(), b.ops().size());
    for (OpId id = 0; id < a.ops().size(); ++id) {
        QVERIFY(a.op(id).name == b.op(id).name && a.op(id).inputs == b.op(id).inputs);
        QVERIFY(a.op(id).attributes == b.op(id).attributes);
    }
    QVERIFY(a.warnings == b.warnings);
}

void TestOnnx::sourcesStandBeforeTheirFirstReader() {
    const Graph graph = importModel(model("light_resnet50"));
    for (OpId id = 0; id < graph.ops().size(); ++id) {
        const Op& op = graph.op(id);
        if (op.type != "initializer" || graph.uses(op.outputs[0]).empty()) continue;
        const OpId reader = graph.uses(op.outputs[0]).front().op;
        for (OpId between = id + 1; between < reader; ++between)
            QVERIFY(graph.op(between).inputs.empty()); // only further operands of that reader
    }
}

SHARDLENS_TEST(TestOnnx)

} // namespace tst_onnx

#include "tst_onnx.moc"
