// SPDX-License-Identifier: Apache-2.0
// Bad configs get one sentence that names the key; damaged text never does worse.
#include "tests/core/import/hf_testing.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_hf_config_errors {

using namespace shardlens;
using namespace shardlens::test;

class TestHfConfigErrors : public QObject {
    Q_OBJECT

private slots:
    void sentences_data();
    void sentences();
    void malformedJson();
    void workloadSizes();
    void everyRequiredKeyIsNamed_data();
    void everyRequiredKeyIsNamed();
    void everyKeyMayHoldNonsense_data();
    void everyKeyMayHoldNonsense();
    void everyCutIsRefused();
};

void TestHfConfigErrors::sentences_data() {
    QTest::addColumn<QString>("sample");
    QTest::addColumn<QString>("patch");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* tag, const char* sample, const char* patch, const char* says) {
        QTest::newRow(tag) << QString(sample) << QString(patch) << QString(says);
    };
    row("unknown", "llama3-8b", R"({"architectures":["FooForCausalLM"],"model_type":"foo"})",
        "model.json: the model type 'foo' (class 'FooForCausalLM') is not known; known model types "
        "are bert, deepseek_v2, deepseek_v3, gemma, gpt2, gpt_neox, llama, mistral, mixtral, mt5, "
        "phi3, qwen2, qwen2_moe, qwen3, qwen3_moe, resnet, t5, vit");
    row("nameless", "llama3-8b", R"({"architectures":null,"model_type":null})",
        "neither \"architectures\" nor \"model_type\"");
    row("nested", "llama3-8b",
        R"({"architectures":["LlavaForConditionalGeneration"],"model_type":"llava",
            "text_config":{"model_type":"llama"}})",
        "save \"text_config\" as a file of its own");
    row("head", "llama3-8b", R"({"architectures":["LlamaForSequenceClassification"]})",
        "the head 'ForSequenceClassification' of model type llama is not known; known heads are "
        "ForCausalLM, Model");
    row("residual stages", "resnet50", R"({"depths":[3,4,6]})",
        "\"hidden_sizes\" and \"depths\" must have an entry for each stage");
    row("residual width", "resnet50", R"({"hidden_sizes":[256,510,1024,2048]})",
        "510 of \"hidden_sizes\" is not a multiple of 4");
    row("residual depth", "resnet50", R"({"depths":[3,4,10001,3]})",
        "a stage of 10001 layers is more than 10000");
    row("missing", "llama3-8b", R"({"hidden_size":null})", "the key \"hidden_size\" is missing");
    row("zero", "llama3-8b", R"({"num_attention_heads":0})",
        "\"num_attention_heads\" is 0, but must");
    row("negative", "llama3-8b", R"({"vocab_size":-5})", "\"vocab_size\" is -5, but must be 1 to");
    row("huge", "llama3-8b", R"({"intermediate_size":99999999999})",
        "\"intermediate_size\" is 99999999999, but must be 1 to 1073741824");
    row("beyond 64 bits", "llama3-8b", R"({"hidden_size":18446744073709551615})",
        "\"hidden_size\" is 18446744073709551615, but must be");
    row("fraction", "llama3-8b", R"({"hidden_size":4096.5})",
        "\"hidden_size\" must be a whole number");
    row("text", "llama3-8b", R"({"hidden_size":"4096"})", "\"hidden_size\" must be a whole number");
    row("alias", "gpt2", R"({"n_embd":-1})", "\"n_embd\" is -1");
    row("layers", "llama3-8b", R"({"num_hidden_layers":10001})",
        "\"num_hidden_layers\" is 10001, but at most 10000 layers can be built");
    row("heads", "llama3-8b", R"({"num_attention_heads":33,"num_key_value_heads":33})",
        "\"hidden_size\" is 4096, which is not a multiple of \"num_attention_heads\", 33");
    row("groups", "llama3-8b", R"({"num_key_value_heads":7})",
        "\"num_attention_heads\" is 32, which is not a multiple of \"num_key_value_heads\", 7");
    row("aliased heads", "gpt2", R"({"n_head":7})",
        "\"n_embd\" is 768, which is not a multiple of \"n_head\", 7");
    row("act", "llama3-8b", R"({"hidden_act":"magic"})",
        "the activation 'magic' is not known; known ones are gelu");
    row("dtype", "llama3-8b", R"({"torch_dtype":"int4"})", "the element type 'int4' is not known");
    row("flag", "llama3-8b", R"({"tie_word_embeddings":1})",
        "\"tie_word_embeddings\" must be true or false");
    row("architectures", "llama3-8b", R"({"architectures":"LlamaForCausalLM"})",
        "\"architectures\" must be a list of texts");
    row("too few experts", "mixtral-8x7b", R"({"num_experts_per_tok":9})",
        "\"num_experts_per_tok\" is 9, but there are 8 experts");
    row("capacity", "mixtral-8x7b", R"({"capacity_factor":-1})",
        "\"capacity_factor\" must be a positive number");
    row("dropout", "gpt2", R"({"resid_pdrop":1.5})", "must be a probability below 1");
    row("patch", "vit-b16", R"({"patch_size":15})",
        "\"image_size\" is 224, which is not a multiple of \"patch_size\", 15");
    row("feed forward", "t5-small", R"({"feed_forward_proj":"gated-tanh"})",
        "\"feed_forward_proj\" is 'gated-tanh', which is not known");
    row("rotary", "gpt-neox-20b", R"({"rotary_pct":2})", "\"rotary_pct\" must be a share");
    row("mlp list", "qwen3-30b-a3b", R"({"mlp_only_layers":3})",
        "\"mlp_only_layers\" must be a list of whole numbers");
    row("control characters", "llama3-8b", R"({"hidden_act":"a\nb\u0007"})", "the activation 'a");
}

void TestHfConfigErrors::sentences() {
    QFETCH(QString, sample);
    QFETCH(QString, patch);
    QFETCH(QString, says);
    const QString message = refusal(patched(sample.toStdString(), patch.toStdString()));
    QVERIFY2(message.contains(says), qPrintable(message));
    QVERIFY(!message.contains('\n') && !message.contains('\a'));
}

void TestHfConfigErrors::malformedJson() {
    QVERIFY(refusal(R"({"model_type": llama})").contains("model.json: not valid JSON at byte 16"));
    QVERIFY(refusal("").contains("not valid JSON at byte 1"));
    QVERIFY(refusal("[1]").contains("a model config is a JSON object"));
    QVERIFY(refusal(R"({"model_type":"llama","rope_theta":1e999})").contains("not valid JSON"));
    QVERIFY(refusal(std::string(1'000'000, '[')).contains("not valid JSON at byte"));
    QVERIFY(refusal("{\"model_type\":\"\xff\"}").contains("not valid JSON at byte"));
}

void TestHfConfigErrors::workloadSizes() {
    const std::string json = patched("gpt2", "{}");
    ImportOptions options;
    options.batch = 0;
    QVERIFY(refusal(json, options).contains("the batch size is 0"));
    options = {};
    options.sequence = std::numeric_limits<std::int64_t>::max();
    QVERIFY(refusal(json, options).contains("the sequence size is 9223372036854775807"));
    options = {};
    options.bindings["batch"] = -1;
    QVERIFY(refusal(json, options).contains("the batch size is -1"));
}

void TestHfConfigErrors::everyRequiredKeyIsNamed_data() {
    QTest::addColumn<QString>("sample");
    QTest::addColumn<QStringList>("keys");
    QTest::newRow("decoder") << "llama3-8b"
                             << QStringList{"hidden_size", "intermediate_size", "vocab_size",
                                            "num_hidden_layers", "num_attention_heads"};
    QTest::newRow("mixture") << "qwen3-30b-a3b"
                             << QStringList{"num_experts", "num_experts_per_tok",
                                            "moe_intermediate_size"};
    QTest::newRow("latent") << "deepseek-v3"
                            << QStringList{"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
                                           "v_head_dim"};
    QTest::newRow("t5") << "t5-small" << QStringList{"d_kv"};
    QTest::newRow("bert") << "bert-base" << QStringList{"max_position_embeddings"};
}

void TestHfConfigErrors::everyRequiredKeyIsNamed() {
    QFETCH(QString, sample);
    QFETCH(QStringList, keys);
    for (const QString& key : keys) {
        const QString message =
            refusal(patched(sample.toStdString(), QString("{\"%1\":null}").arg(key).toStdString()));
        QVERIFY2(message.contains(QString("the key \"%1\" is missing").arg(key)),
                 qPrintable(message));
    }
}

void TestHfConfigErrors::everyKeyMayHoldNonsense_data() {
    QTest::addColumn<QString>("nonsense");
    for (const char* text : {"null", "true", "-1", "0", "1", "2", "3.5", "1073741824", "\"x\"",
                             "[]", "[1]", "{}", "{\"quant_method\":\"fp8\"}"})
        QTest::newRow(text) << QString(text);
}

/// Whatever stands in one key: a graph or an InputError, nothing else.
void TestHfConfigErrors::everyKeyMayHoldNonsense() {
    QFETCH(QString, nonsense);
    for (const char* sample : {"llama3-8b", "qwen3-30b-a3b", "deepseek-v3", "gpt2", "gpt-neox-20b",
                               "bert-base", "t5-small", "vit-b16"}) {
        nlohmann::json json = nlohmann::json::parse(patched(sample, "{}"));
        for (const char* key : {"num_hidden_layers", "n_layer", "num_layers"})
            if (json.contains(key)) json[key] = 4; // quick
        for (const auto& [key, value] : json.items()) {
            if (nonsense == "1073741824" && key == "mlp_only_layers") continue;
            nlohmann::json copy = json;
            copy[key] = nlohmann::json::parse(nonsense.toStdString());
            refusal(copy.dump()); // any other exception fails the test
        }
    }
}

void TestHfConfigErrors::everyCutIsRefused() {
    const std::string json = readFile(samplePath("llama3-8b"));
    const std::size_t end = json.rfind('}');
    for (std::size_t length = 0; length <= end; ++length) {
        QVERIFY(refusal(json.substr(0, length)).contains("not valid JSON at byte"));
        looksLikeHfConfig(json.substr(0, length));
    }
}

SHARDLENS_TEST(TestHfConfigErrors)

} // namespace tst_hf_config_errors

#include "tst_hf_config_errors.moc"
