// SPDX-License-Identifier: Apache-2.0
// Graphs built from configs: parameter counts against the published numbers, names and shapes
// against a real weights file, FLOPs against closed forms, and the structure folding relies on.
#include "core/import/hf_config.h"
#include "core/import/safetensors.h"
#include "core/model/canonical.h"
#include "core/model/catalogue.h"
#include "tests/core/import/hf_testing.h"
#include "tests/test_program.h"

#include <QRegularExpression>
#include <QTest>

#include <set>

namespace tst_hf_config {

using namespace shardlens;
using namespace shardlens::test;

class TestHfConfig : public QObject {
    Q_OBJECT

private slots:
    void parameterCounts_data();
    void parameterCounts();
    void otherParameterCounts_data();
    void otherParameterCounts();
    void sharedConfigs_data();
    void sharedConfigs();
    void deepSeekNamesAreMappedAndSaid();
    void tinyT5HasTheTensorsOfItsWeightsFile();
    void parametersStandBeforeTheirFirstReader_data();
    void parametersStandBeforeTheirFirstReader();
    void layersAreEqual_data();
    void layersAreEqual();
    void everyRuleFitsItsShapes_data();
    void everyRuleFitsItsShapes();
    void linearFlopsFollowFromTheParameters();
    void expertFlopsCountActiveTokens();
    void latentAttentionHasItsWidths();
    void partialRotaryTurnsAQuarter();
    void fusedProjectionsKeepHeadsTogether();
    void elementTypes();
    void outputsWithAndWithoutTraining();
    void bertHeads();
    void encoderDecoderLengths();
    void learnedPositionsLimitTheSequence();
    void slidingWindowIsSaid();
    void denseAndSparseLayersMix();
    void classNameGoesBeforeModelType();
    void recognition();
    void cancelling();
};

namespace {

std::vector<const Op*> opsOfKind(const Graph& graph, OpKind kind) {
    std::vector<const Op*> result;
    for (const Op& op : graph.ops())
        if (op.kind == kind) result.push_back(&op);
    return result;
}

const Shape& resultShape(const Graph& graph, std::string_view name, std::size_t port = 0) {
    return graph.tensor(graph.op(graph.findOp(name).value()).outputs.at(port)).spec.shape;
}

const Shape& operandShape(const Graph& graph, std::string_view name, std::size_t port) {
    return graph.tensor(graph.op(graph.findOp(name).value()).inputs.at(port)).spec.shape;
}

DType typeOf(const Graph& graph, std::string_view name) {
    return graph.tensor(graph.op(graph.findOp(name).value()).outputs.front()).spec.dtype;
}

double forwardFlops(const Graph& graph, OpKind kind) {
    double flops = 0;
    for (OpId id = 0; id < graph.ops().size(); ++id)
        if (graph.op(id).kind == kind) {
            const OpView view = viewOf(graph, id);
            flops += forwardWork(view, factorRule(view)).flops;
        }
    return flops;
}

bool anyWarning(const Graph& graph, std::string_view part) {
    return std::ranges::any_of(graph.warnings, [&](const std::string& warning) {
        return warning.find(part) != std::string::npos;
    });
}

void allSamples() {
    QTest::addColumn<QString>("sample");
    for (const char* name : {"llama3-8b", "mistral-7b", "qwen2-7b", "qwen3-4b", "phi3-mini",
                             "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3", "gpt2", "gpt-neox-20b",
                             "bert-base", "t5-small", "vit-b16", "resnet50"})
        QTest::newRow(name) << QString(name);
}

} // namespace

void TestHfConfig::parameterCounts_data() {
    QTest::addColumn<double>("count");
    // Published: model cards and `sum(p.numel())` of the named class of transformers.
    QTest::newRow("llama3-8b") << 8'030'261'248.0;
    QTest::newRow("llama3-70b") << 70'553'706'496.0;
    QTest::newRow("llama3.1-405b") << 405'853'388'800.0;
    QTest::newRow("mistral-7b") << 7'241'732'096.0;
    QTest::newRow("qwen2-7b") << 7'615'616'512.0;
    QTest::newRow("qwen3-4b") << 4'022'468'096.0;
    QTest::newRow("phi3-mini") << 3'821'079'552.0;
    QTest::newRow("mixtral-8x7b") << 46'702'792'704.0;
    QTest::newRow("qwen3-30b-a3b") << 30'532'122'624.0;
    QTest::newRow("deepseek-v3") << 671'026'419'200.0;
    QTest::newRow("gpt2") << 124'439'808.0;
    QTest::newRow("gpt3-175b") << 174'604'259'328.0; // 12h^2 + 13h a layer; the paper: 174,600 M
    QTest::newRow("gpt-neox-20b") << 20'554'567'680.0;
    QTest::newRow("bert-base") << 109'514'298.0;
    QTest::newRow("bert-large") << 335'174'458.0;
    QTest::newRow("t5-small") << 60'506'624.0;
    QTest::newRow("t5-11b") << 11'307'321'344.0;
    QTest::newRow("vit-b16") << 86'567'656.0;
    QTest::newRow("resnet50") << 25'557'032.0; // torchvision and He et al.
}

void TestHfConfig::parameterCounts() {
    QFETCH(double, count);
    const std::string sample = QTest::currentDataTag();
    const Graph graph = importSample(sample);
    QCOMPARE(graph.parameterCount(), count);
    QCOMPARE(canonicalise(graph).parameterCount(), count); // every parameter is used
    QCOMPARE(graph.name, sample);
    QCOMPARE(graph.format, "HF config");
}

void TestHfConfig::otherParameterCounts_data() {
    QTest::addColumn<QString>("sample");
    QTest::addColumn<QString>("patch");
    QTest::addColumn<double>("count");
    QTest::newRow("BertModel") << "bert-base" << R"({"architectures":["BertModel"]})"
                               << 109'482'240.0;
    QTest::newRow("BertForPreTraining")
        << "bert-base" << R"({"architectures":["BertForPreTraining"]})" << 110'106'428.0;
    QTest::newRow("large BertModel")
        << "bert-large" << R"({"architectures":["BertModel"]})" << 335'141'888.0;
    QTest::newRow("ViTModel") << "vit-b16" << R"({"architectures":["ViTModel"]})" << 86'389'248.0;
    QTest::newRow("resnet18") << "resnet50"
                              << R"({"layer_type":"basic","depths":[2,2,2,2],
                                     "hidden_sizes":[64,128,256,512]})"
                              << 11'689'512.0;
    QTest::newRow("resnet101") << "resnet50" << R"({"depths":[3,4,23,3]})" << 44'549'160.0;
    QTest::newRow("resnet152") << "resnet50" << R"({"depths":[3,8,36,3]})" << 60'192'808.0;
    QTest::newRow("ResNetModel") << "resnet50" << R"({"architectures":["ResNetModel"]})"
                                 << 23'508'032.0; // without 2,048 x 1,000 + 1,000
    QTest::newRow("llama2-7b") << "llama3-8b"
                               << R"({"intermediate_size":11008,"num_key_value_heads":null,
                                      "vocab_size":32000})"
                               << 6'738'415'616.0;
    QTest::newRow("gemma-2b") << "llama3-8b"
                              << R"({"architectures":["GemmaForCausalLM"],"hidden_size":2048,
                                     "intermediate_size":16384,"num_hidden_layers":18,
                                     "num_attention_heads":8,"num_key_value_heads":1,
                                     "head_dim":256,"vocab_size":256000,"hidden_act":"gelu",
                                     "tie_word_embeddings":null})"
                              << 2'506'172'416.0;
    QTest::newRow("gpt2-xl") << "gpt2" << R"({"n_embd":1600,"n_layer":48,"n_head":25})"
                             << 1'557'611'200.0;
    QTest::newRow("pythia-1.4b") << "gpt-neox-20b"
                                 << R"({"hidden_size":2048,"intermediate_size":8192,
                                        "num_hidden_layers":24,"num_attention_heads":16,
                                        "vocab_size":50304})"
                                 << 1'414'647'808.0;
    QTest::newRow("t5-base") << "t5-small"
                             << R"({"d_model":768,"d_ff":3072,"num_layers":12,
                                    "num_decoder_layers":12,"num_heads":12})"
                             << 222'903'552.0;
    QTest::newRow("t5-v1.1-base")
        << "t5-small"
        << R"({"d_model":768,"d_ff":2048,"num_layers":12,"num_decoder_layers":null,"num_heads":12,
               "feed_forward_proj":"gated-gelu","tie_word_embeddings":false})"
        << 247'577'856.0;
    QTest::newRow("qwen1.5-moe-a2.7b")
        << "qwen3-30b-a3b"
        << R"({"architectures":["Qwen2MoeForCausalLM"],"model_type":"qwen2_moe","head_dim":null,
               "num_hidden_layers":24,"num_attention_heads":16,"num_key_value_heads":16,
               "num_experts":60,"num_experts_per_tok":4,"moe_intermediate_size":1408,
               "shared_expert_intermediate_size":5632})"
        << 14'315'784'192.0;
    QTest::newRow("deepseek-v2-lite")
        << "deepseek-v3"
        << R"({"architectures":["DeepseekV2ForCausalLM"],"model_type":"deepseek_v2",
               "hidden_size":2048,"intermediate_size":10944,"moe_intermediate_size":1408,
               "num_hidden_layers":27,"num_attention_heads":16,"q_lora_rank":null,
               "n_routed_experts":64,"n_shared_experts":2,"num_experts_per_tok":6,
               "first_k_dense_replace":1,"vocab_size":102400,"scoring_func":"softmax"})"
        << 15'706'484'224.0;
}

void TestHfConfig::otherParameterCounts() {
    QFETCH(QString, sample);
    QFETCH(QString, patch);
    QFETCH(double, count);
    const Graph graph = importSample(sample.toStdString(), patch.toStdString());
    QCOMPARE(graph.parameterCount(), count);
    QCOMPARE(canonicalise(graph).parameterCount(), count);
}

void TestHfConfig::sharedConfigs_data() {
    QTest::addColumn<double>("count");
    QTest::addColumn<QString>("layers");
    QTest::newRow("llama3.1-405b") << 405'853'388'800.0 << "126";
    QTest::newRow("mixtral-8x7b") << 46'702'792'704.0 << "32";
    QTest::newRow("qwen3-4b") << 4'022'468'096.0 << "36";
}

void TestHfConfig::sharedConfigs() {
    QFETCH(double, count);
    QFETCH(QString, layers);
    const std::string name = QTest::currentDataTag();
    const auto path = sharedPath(name + "_config.json");
    if (!std::filesystem::exists(path)) QSKIP("the shared models are not beside the checkout");
    const Graph graph = importHfConfig(readFile(path), path.string(), smallWorkload());
    QCOMPARE(graph.parameterCount(), count);
    QCOMPARE(QString::fromStdString(graph.facts.at("layers")), layers);
    QCOMPARE(graph.name, name);
    QVERIFY(graph.warnings.empty());
}

void TestHfConfig::deepSeekNamesAreMappedAndSaid() {
    const auto path = sharedPath("deepseek-v3_config_671B.json");
    if (!std::filesystem::exists(path)) QSKIP("the shared models are not beside the checkout");
    const std::string json = readFile(path);
    QVERIFY(looksLikeHfConfig(json));
    const Graph graph = importHfConfig(json, path.string(), smallWorkload());
    QCOMPARE(graph.parameterCount(), 671'026'419'200.0);
    QCOMPARE(graph.warnings.size(), std::size_t{1});
    QVERIFY(anyWarning(graph, "dim as hidden_size"));
    QVERIFY(anyWarning(graph, "n_dense_layers as first_k_dense_replace"));
    QCOMPARE(typeOf(graph, "model.layers.5.mlp.experts.up_proj.weight"), DType::F8E4M3);
    // The same graph as from the Hugging Face names.
    const Graph named = importSample("deepseek-v3");
    QCOMPARE(graph.ops().size(), named.ops().size());
    for (OpId id = 0; id < graph.ops().size(); ++id) {
        QCOMPARE(graph.op(id).name, named.op(id).name);
        QVERIFY(graph.outputSpecs(id) == named.outputSpecs(id));
    }
}

void TestHfConfig::tinyT5HasTheTensorsOfItsWeightsFile() {
    const auto path = sharedPath("tiny_t5_model.safetensors");
    if (!std::filesystem::exists(path)) QSKIP("the shared models are not beside the checkout");
    const std::string bytes = readFile(path);
    const SafetensorsHeader header =
        parseSafetensorsHeader(std::as_bytes(std::span(bytes)), bytes.size(), path.string());
    const Graph graph = importSafetensors(path, smallWorkload());
    double elements = 0;
    for (const SafetensorsEntry& entry : header.tensors) {
        elements += elementsOf(entry.shape);
        const auto op = graph.findOp(entry.name);
        QVERIFY2(op.has_value(), entry.name.c_str());
        QCOMPARE(graph.op(*op).kind, OpKind::Parameter);
        QCOMPARE(graph.outputSpecs(*op).front().shape, entry.shape);
    }
    QCOMPARE(opsOfKind(graph, OpKind::Parameter).size(), header.tensors.size());
    QCOMPARE(graph.parameterCount(), elements);
    QVERIFY(graph.warnings.empty());
}

void TestHfConfig::parametersStandBeforeTheirFirstReader_data() {
    allSamples();
}

void TestHfConfig::parametersStandBeforeTheirFirstReader() {
    QFETCH(QString, sample);
    const Graph graph = importSample(sample.toStdString());
    for (const Op* op : opsOfKind(graph, OpKind::Parameter)) {
        const TensorId tensor = op->outputs.front();
        const OpId id = graph.tensor(tensor).producer;
        QVERIFY2(!graph.uses(tensor).empty(), op->name.c_str());
        const OpId reader = graph.uses(tensor).front().op;
        for (OpId between = id + 1; between < reader; ++between)
            QVERIFY2(graph.op(between).kind == OpKind::Parameter, op->name.c_str());
    }
}

void TestHfConfig::layersAreEqual_data() {
    allSamples();
}

/// The ops of layers 1, 2, … (of the last third, where dense layers come first) have the same
/// kinds and shapes in the same order.
void TestHfConfig::layersAreEqual() {
    QFETCH(QString, sample);
    const Graph graph = importSample(sample.toStdString());
    static const QRegularExpression layer(R"(^(.*?(?:layers?|h|block))\.(\d+)\.)");
    std::map<QString, std::map<int, std::vector<std::string>>> stacks;
    for (OpId id = 0; id < graph.ops().size(); ++id) {
        const auto match = layer.match(QString::fromStdString(graph.op(id).name));
        if (!match.hasMatch()) continue;
        std::string line(nameOf(graph.op(id).kind));
        for (const TensorSpec& spec : graph.outputSpecs(id)) line += toString(spec.shape);
        stacks[match.captured(1)][match.captured(2).toInt()].push_back(line);
    }
    QVERIFY(!stacks.empty());
    for (const auto& [path, layers] : stacks) {
        QVERIFY(layers.size() >= (sample == "resnet50" ? 3 : 6)); // stages of 3 to 6 layers
        const int last = static_cast<int>(layers.size()) - 1;
        for (int i = last * 2 / 3; i < last; ++i) QCOMPARE(layers.at(i), layers.at(last));
    }
}

void TestHfConfig::everyRuleFitsItsShapes_data() {
    allSamples();
}

void TestHfConfig::everyRuleFitsItsShapes() {
    QFETCH(QString, sample);
    const Graph graph = importSample(sample.toStdString());
    const auto fits = [](const FactorRule& rule, const std::vector<DimFactors>& dims,
                         const Shape& shape) {
        if (dims.size() != shape.size()) return false;
        for (std::size_t d = 0; d < dims.size(); ++d) {
            std::int64_t product = 1;
            for (const int f : dims[d]) product *= rule.factors[static_cast<std::size_t>(f)].size;
            if (!dims[d].empty() && product != shape[d]) return false;
        }
        return true;
    };
    for (OpId id = 0; id < graph.ops().size(); ++id) {
        const OpView view = viewOf(graph, id);
        const FactorRule rule = factorRule(view);
        for (std::size_t i = 0; i < view.inputs.size(); ++i)
            QVERIFY2(fits(rule, rule.operands[i], view.inputs[i].shape), view.op.name.c_str());
        for (std::size_t i = 0; i < view.outputs.size(); ++i)
            QVERIFY2(fits(rule, rule.results[i], view.outputs[i].shape), view.op.name.c_str());
        savedForBackward(view);
    }
}

void TestHfConfig::linearFlopsFollowFromTheParameters() {
    const Graph graph = importSample("llama3-8b");
    const double tokens = 2 * 64;
    const double norms = (2 * 32 + 1) * 4096.0;
    const double table = 128'256.0 * 4096;
    QCOMPARE(forwardFlops(graph, OpKind::MatMul),
             2 * tokens * (graph.parameterCount() - norms - table));
    // Causal: half of 2 * 2 * b * s^2 * heads * width a layer.
    QCOMPARE(forwardFlops(graph, OpKind::Attention), 32 * 2.0 * 2 * 64 * 64 * 4096);
}

void TestHfConfig::expertFlopsCountActiveTokens() {
    const Graph graph = importSample("mixtral-8x7b");
    // Each token passes through 2 of 8 experts: 3 products of 4096 x 14336 each.
    const double tokens = 2 * 64;
    QCOMPARE(forwardFlops(graph, OpKind::Einsum), 32 * tokens * 2 * 3 * 2 * 4096.0 * 14336);
    const Graph padded = importSample("mixtral-8x7b", R"({"capacity_factor":1.25})");
    QCOMPARE(resultShape(padded, "model.layers.0.block_sparse_moe.dispatch"),
             (Shape{8, 2, 20, 4096}));
}

void TestHfConfig::latentAttentionHasItsWidths() {
    const Graph graph = importSample("deepseek-v3");
    const std::string attention = "model.layers.0.self_attn.attention";
    QCOMPARE(operandShape(graph, attention, 0), (Shape{2, 64, 128, 192}));
    QCOMPARE(operandShape(graph, attention, 1), (Shape{2, 64, 128, 192}));
    QCOMPARE(operandShape(graph, attention, 2), (Shape{2, 64, 128, 128}));
    QCOMPARE(resultShape(graph, "model.layers.0.self_attn.k_rotary"), (Shape{2, 64, 1, 64}));
    QVERIFY(graph.findOp("model.layers.2.mlp.gate_proj").has_value());
    QVERIFY(!graph.findOp("model.layers.2.mlp.dispatch").has_value());
    QVERIFY(graph.findOp("model.layers.3.mlp.dispatch").has_value());
    QVERIFY(graph.findOp("model.layers.3.mlp.shared_experts.up_proj").has_value());
}

void TestHfConfig::partialRotaryTurnsAQuarter() {
    const Graph graph = importSample("gpt-neox-20b");
    QCOMPARE(resultShape(graph, "gpt_neox.layers.0.attention.q_rotary"), (Shape{2, 64, 64, 24}));
    QCOMPARE(operandShape(graph, "gpt_neox.layers.0.attention.attention", 0),
             (Shape{2, 64, 64, 96}));
    // Parallel residual: both norms of a layer read the same tensor.
    const Op& first = graph.op(*graph.findOp("gpt_neox.layers.3.input_layernorm"));
    const Op& second = graph.op(*graph.findOp("gpt_neox.layers.3.post_attention_layernorm"));
    QCOMPARE(first.inputs.front(), second.inputs.front());
    const Graph serial = importSample("gpt-neox-20b", R"({"use_parallel_residual":false})");
    const Op& third = serial.op(*serial.findOp("gpt_neox.layers.3.input_layernorm"));
    const Op& fourth = serial.op(*serial.findOp("gpt_neox.layers.3.post_attention_layernorm"));
    QVERIFY(third.inputs.front() != fourth.inputs.front());
}

void TestHfConfig::fusedProjectionsKeepHeadsTogether() {
    const Graph gpt2 = importSample("gpt2");
    QCOMPARE(resultShape(gpt2, "transformer.h.0.attn.c_attn"), (Shape{2, 64, 2304}));
    QCOMPARE(resultShape(gpt2, "transformer.h.0.attn.c_attn.heads"), (Shape{2, 64, 12, 192}));
    QCOMPARE(resultShape(gpt2, "transformer.h.0.attn.c_attn.split", 2), (Shape{2, 64, 12, 64}));
    const Graph phi3 = importSample("phi3-mini");
    QVERIFY(phi3.findOp("model.layers.0.self_attn.qkv_proj.k.weight").has_value());
    QVERIFY(phi3.facts.contains("fused weights"));
}

void TestHfConfig::elementTypes() {
    const Graph half = importSample("llama3-8b");
    QCOMPARE(typeOf(half, "model.layers.0.mlp.up_proj"), DType::BF16);
    const Graph full = importSample("llama3-8b", R"({"torch_dtype":"float32"})");
    QCOMPARE(typeOf(full, "model.layers.0.mlp.up_proj.weight"), DType::F32);
    const Graph assumed = importSample("llama3-8b", R"({"torch_dtype":null})");
    QCOMPARE(typeOf(assumed, "model.norm"), DType::BF16);
    QVERIFY(assumed.facts.at("element type").find("assumed") != std::string::npos);
    const Graph eight = importSample("deepseek-v3");
    QCOMPARE(typeOf(eight, "model.layers.0.self_attn.kv_b_proj.weight"), DType::F8E4M3);
    QCOMPARE(typeOf(eight, "model.layers.0.self_attn.kv_b_proj"), DType::BF16);
    QCOMPARE(typeOf(eight, "model.embed_tokens.weight"), DType::BF16);
    QCOMPARE(typeOf(eight, "model.layers.9.mlp.gate.weight"), DType::BF16);
    QCOMPARE(typeOf(eight, "lm_head.weight"), DType::BF16);
}

void TestHfConfig::outputsWithAndWithoutTraining() {
    const Graph training = importSample("qwen3-4b");
    QCOMPARE(training.outputs().size(), std::size_t{1});
    QCOMPARE(training.op(training.tensor(training.outputs().front()).producer).kind,
             OpKind::CrossEntropy);
    // Tied: one table is read by the embedding and by the head.
    const Op& head = training.op(*training.findOp("lm_head"));
    QCOMPARE(head.inputs[1], training.op(*training.findOp("model.embed_tokens")).inputs[0]);

    ImportOptions options = smallWorkload();
    options.training = false;
    const Graph inference = importSample("qwen3-4b", "{}", options);
    QCOMPARE(inference.tensor(inference.outputs().front()).spec.shape, (Shape{2, 64, 151'936}));
    QVERIFY(!inference.findOp("labels").has_value());
    const Graph gpt2 = importSample("gpt2", "{}", options);
    QVERIFY(opsOfKind(gpt2, OpKind::Dropout).empty());
    QCOMPARE(opsOfKind(importSample("gpt2"), OpKind::Dropout).size(), std::size_t{25});
    const Graph bare = importSample("llama3-8b", R"({"architectures":["LlamaModel"]})");
    QVERIFY(anyWarning(bare, "has no loss"));
    QVERIFY(bare.findOp("layers.0.input_layernorm").has_value());
    QCOMPARE(bare.tensor(bare.outputs().front()).spec.shape, (Shape{2, 64, 4096}));
}

void TestHfConfig::bertHeads() {
    const auto head = [](const char* name) {
        return importSample("bert-base", std::string(R"({"id2label":{"0":"a","1":"b","2":"c"},)") +
                                             R"("architectures":["Bert)" + name + "\"]}");
    };
    const Graph answering = head("ForQuestionAnswering");
    QCOMPARE(resultShape(answering, "start_logits"), (Shape{2, 64}));
    QCOMPARE(opsOfKind(answering, OpKind::CrossEntropy).size(), std::size_t{2});
    QCOMPARE(answering.parameterCount(), 108'893'186.0);
    const Graph sequence = head("ForSequenceClassification");
    QCOMPARE(resultShape(sequence, "classifier"), (Shape{2, 3}));
    QCOMPARE(sequence.parameterCount(), 109'482'240.0 + 3 * 768 + 3);
    const Graph token = head("ForTokenClassification");
    QCOMPARE(resultShape(token, "classifier"), (Shape{2, 64, 3}));
    QCOMPARE(head("ForPreTraining").outputs().size(), std::size_t{1});
    QCOMPARE(head("Model").outputs().size(), std::size_t{2});
}

void TestHfConfig::encoderDecoderLengths() {
    ImportOptions options = smallWorkload();
    options.bindings["target_sequence"] = 16;
    const Graph graph = importSample("t5-small", "{}", options);
    const std::string cross = "decoder.block.5.layer.1.EncDecAttention.attention";
    QCOMPARE(operandShape(graph, cross, 0), (Shape{2, 16, 8, 64}));
    QCOMPARE(operandShape(graph, cross, 1), (Shape{2, 64, 8, 64}));
    QCOMPARE(resultShape(graph, "lm_head"), (Shape{2, 16, 32'128}));
    // One bias a stack, read by all six layers.
    const TensorId bias =
        graph.op(*graph.findOp("encoder.block.0.layer.0.SelfAttention.attention")).inputs[3];
    QCOMPARE(graph.tensor(bias).spec.shape, (Shape{8, 64, 64}));
    QCOMPARE(graph.uses(bias).size(), std::size_t{6});
    QVERIFY(importSample("t5-small", R"({"architectures":["T5EncoderModel"]})").parameterCount() <
            60'506'624.0);
}

void TestHfConfig::learnedPositionsLimitTheSequence() {
    ImportOptions options;
    options.sequence = 4096;
    const Graph gpt2 = importSample("gpt2", "{}", options);
    QCOMPARE(resultShape(gpt2, "tokens"), (Shape{8, 1024}));
    QCOMPARE(gpt2.bindings.at("sequence"), std::int64_t{1024});
    QVERIFY(anyWarning(gpt2, "a sequence of 1024 is used instead of 4096"));
    options.bindings["sequence"] = 128;
    const Graph bound = importSample("gpt2", "{}", options);
    QCOMPARE(resultShape(bound, "tokens"), (Shape{8, 128}));
    QVERIFY(bound.warnings.empty());
}

void TestHfConfig::slidingWindowIsSaid() {
    ImportOptions options;
    options.sequence = 8192;
    QVERIFY(anyWarning(importSample("mistral-7b", "{}", options), "window of 4096"));
    QVERIFY(importSample("mistral-7b").warnings.empty());
    QVERIFY(importSample("qwen2-7b", R"({"sliding_window":16})").warnings.empty());
}

void TestHfConfig::denseAndSparseLayersMix() {
    const Graph graph =
        importSample("qwen3-30b-a3b",
                     R"({"num_hidden_layers":8,"decoder_sparse_step":2,"mlp_only_layers":[3]})");
    for (int layer = 0; layer < 8; ++layer) {
        const bool sparse = layer % 2 == 1 && layer != 3; // transformers: (layer + 1) % step == 0
        const std::string path = "model.layers." + QString::number(layer).toStdString() + ".mlp.";
        QCOMPARE(graph.findOp(path + "dispatch").has_value(), sparse);
        QCOMPARE(graph.findOp(path + "down_proj").has_value(), !sparse);
    }
}

void TestHfConfig::classNameGoesBeforeModelType() {
    const Graph phi4 = importSample("phi3-mini", R"({"model_type":"phi4"})");
    QCOMPARE(phi4.facts.at("model type"), "phi3");
    const Graph bare = importSample("llama3-8b", R"({"architectures":null})");
    QCOMPARE(bare.facts.at("architecture"), "LlamaForCausalLM");
    const Graph own = importSample("gpt2", R"({"architectures":["GPT2DoubleHeadsModel"]})");
    QVERIFY(anyWarning(own, "read as GPT2LMHeadModel"));
}

void TestHfConfig::recognition() {
    QVERIFY(looksLikeHfConfig(R"({"model_type":"llama"})"));
    QVERIFY(looksLikeHfConfig("\xEF\xBB\xBF \n{\"a\":[1,{\"b\":2}],\"architectures\":[\"X"));
    QVERIFY(looksLikeHfConfig(R"({"model_type":"new","x":)"));
    QVERIFY(!looksLikeHfConfig(R"({"text_config":{"model_type":"llama"}})"));
    QVERIFY(!looksLikeHfConfig(R"(["model_type"])"));
    QVERIFY(!looksLikeHfConfig(R"("model_type")"));
    QVERIFY(!looksLikeHfConfig(R"({"weight_map":{"a":"b"}})"));
    QVERIFY(!looksLikeHfConfig(""));
    QVERIFY(!looksLikeHfConfig(std::string(1000, '{')));
    QVERIFY(!looksLikeHfConfig(std::string_view("\0\xff{\"model_type\"", 15)));
    const std::filesystem::path models = std::filesystem::path(SHARDLENS_SHARED) / "data/models";
    if (!std::filesystem::exists(models)) QSKIP("the shared models are not beside the checkout");
    for (const auto& file : std::filesystem::recursive_directory_iterator(models)) {
        if (!file.is_regular_file()) continue;
        const std::string head = readFile(file.path()).substr(0, 65'536);
        const bool config = file.path().filename().string().find("_config") != std::string::npos;
        QVERIFY2(looksLikeHfConfig(head) == config, file.path().c_str());
    }
}

void TestHfConfig::cancelling() {
    std::stop_source source;
    ImportOptions options = smallWorkload();
    options.stop = source.get_token();
    source.request_stop();
    QVERIFY_EXCEPTION_THROWN(importSample("llama3-8b", "{}", options), Cancelled);
}

SHARDLENS_TEST(TestHfConfig)

} // namespace tst_hf_config

#include "tst_hf_config.moc"
