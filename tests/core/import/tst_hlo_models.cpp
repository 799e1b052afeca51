// SPDX-License-Identifier: Apache-2.0
// Published HLO dumps: the facts of the data's README, and what follows from the models' sizes.
#include "core/error.h"
#include "core/fold/folding.h"
#include "core/import/importer.h"
#include "core/model/canonical.h"
#include "core/model/catalogue.h"
#include "tests/test_program.h"

#include <QTest>

#include <filesystem>
#include <fstream>
#include <map>

namespace tst_hlo_models {

using namespace shardlens;

namespace {

std::filesystem::path modelPath(const char* name) {
    return std::filesystem::path(SHARDLENS_SHARED) / "data" / "models" / "hlo" / name;
}

constexpr const char* kMaxText = "nv_maxtext_1n1g_jit_train_step_before_optimization.hlo";
constexpr const char* kLlama = "hlo_llama31_405b_bf16_64x8.hlo";
constexpr const char* kMixtral = "hlo_mixtral_8x7b_bf16_1x8.hlo.gz";
constexpr const char* kCutOff = "reference_hlo_deepseek3.txt";

std::string fact(const Graph& graph, const std::string& name) {
    const auto found = graph.facts.find(name);
    return found == graph.facts.end() ? "none" : found->second;
}

/// Runs of that many blocks that hold a matrix product.
std::size_t layerRuns(const Graph& graph, const Folding& folding, std::size_t count) {
    std::size_t found = 0;
    for (const FoldRun& run : folding.runs) {
        bool product = false;
        for (std::size_t local = 0; local < run.period; ++local)
            product =
                product || graph.op(folding.order[run.position(0, local)]).kind == OpKind::Einsum;
        if (product && run.count == count) ++found;
    }
    return found;
}

double flopsOf(const Graph& graph, OpKind kind) {
    double flops = 0;
    for (OpId id = 0; id < graph.ops().size(); ++id) {
        if (graph.op(id).kind != kind) continue;
        const OpView view = viewOf(graph, id);
        flops += forwardWork(view, factorRule(view)).flops;
    }
    return flops;
}

std::size_t linesWith(const std::filesystem::path& path, std::string_view part,
                      std::string_view without = {}) {
    std::ifstream file(path);
    std::size_t count = 0;
    for (std::string line; std::getline(file, line);)
        if (line.find(part) != std::string::npos &&
            (without.empty() || line.find(without) == std::string::npos))
            ++count;
    return count;
}

} // namespace

class TestHloModels : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        if (!std::filesystem::exists(modelPath(kMaxText)))
            QSKIP("the shared model files are not there");
    }

    void facts_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("value");
        const auto row = [](const char* file, const char* name, const char* value) {
            QTest::addRow("%.12s %s", file, name) << file << name << value;
        };
        row(kMaxText, "instructions", "1947");
        row(kMaxText, "computations", "87");
        row(kMaxText, "entry parameters", "38");
        row(kMaxText, "entry parameter elements", "2007600643");
        row(kMaxText, "entry parameter bytes", "8030402572"); // all are f32 or s32
        row(kMaxText, "while loops", "2");
        row(kMaxText, "trip counts", "8, 8");
        row(kMaxText, "dots", "32");
        row(kMaxText, "sharding annotations", "111");
        row(kLlama, "instructions", "1814");
        row(kLlama, "computations", "125");
        row(kLlama, "entry parameters", "44");
        row(kLlama, "entry parameter elements", "2390499331");
        row(kLlama, "entry parameter bytes", "9561997324");
        row(kLlama, "trip counts", "126, 126");
        row(kLlama, "all-gather", "16");
        row(kLlama, "all-reduce", "50");
        row(kLlama, "devices", "512");
        row(kMixtral, "instructions", "41881");
        row(kMixtral, "computations", "3714");
        row(kMixtral, "entry parameters", "977");
        row(kMixtral, "all-gather", "322");
        row(kMixtral, "all-reduce", "1261");
        row(kMixtral, "all-to-all", "192");
        row(kMixtral, "while loops", "0");
        row(kMixtral, "devices", "8");
    }
    void facts() {
        QFETCH(QString, file);
        QFETCH(QString, name);
        QFETCH(QString, value);
        static std::map<QString, Graph> read;
        if (!read.contains(file))
            read.emplace(file, importModel(modelPath(file.toUtf8().constData())));
        QCOMPARE(QString::fromStdString(fact(read.at(file), name.toStdString())), value);
    }

    /// Counted again line by line.
    void phases() {
        const Graph graph = importModel(modelPath(kMaxText));
        const auto path = modelPath(kMaxText);
        const auto count = [](std::size_t n) { return std::to_string(n); };
        QCOMPARE(fact(graph, "recompute instructions"),
                 count(linesWith(path, "rematted_computation")));
        QCOMPARE(fact(graph, "backward instructions"),
                 count(linesWith(path, "transpose(jvp(", "rematted_computation")));
        QVERIFY(graph.backwardIncluded);
    }

    /// Megatron-sized arithmetic of Llama 3.1 405B: 126 layers, h = 16384, 128 heads of 128, 8 of
    /// them for keys, f = 53248, V = 128256; 8192 tokens a device. Forward 7 products a layer, the
    /// backward pass computes 6 of them again (all but the last) and two for each of the 7; the
    /// head takes three, the embedding (a product with one-hot rows) two.
    void llamaProducts() {
        const Graph graph = importModel(modelPath(kLlama));
        const double h = 16384, heads = 128 * 128, kv = 8 * 128, f = 53248, v = 128256;
        const double layer = h * heads + 2 * h * kv + heads * h + 3 * h * f;
        const double products = 126 * (layer + (layer - f * h) + 2 * layer) + 5 * v * h;
        QCOMPARE(flopsOf(graph, OpKind::Einsum), 2 * 8192 * products);
        // Attention, causal: QK^T and PV, forward and again in the backward pass.
        QCOMPARE(flopsOf(graph, OpKind::Attention),
                 126.0 * 2 * (2 * 2 * 8192.0 * 8192.0 * 128 * 128) / 2);
        // Flash attention backward: five products of that size.
        double backward = 0;
        for (const Op& op : graph.ops())
            if (op.type == "te_fused_attn_backward_ffi")
                backward += op.attributes.number("flops", 0);
        QCOMPARE(backward, 126.0 * 5 * (2 * 8192.0 * 8192.0 * 128 * 128) / 2);
    }

    /// fp32 weights and Adam state of 408 G parameters over 512 devices: 9.56 GB each.
    void llamaMemory() {
        const Graph graph = importModel(modelPath(kLlama));
        QCOMPARE(graph.parameterCount(), 796819456.0);
        QCOMPARE(fact(graph, "weight elements"), std::string("796819456"));
        QCOMPARE(fact(graph, "optimizer state elements"), std::string("1593638912"));
        const double bytes = std::stod(fact(graph, "weight and optimizer bytes"));
        QCOMPARE(bytes, 12.0 * 796819456); // three fp32 numbers a weight
        QCOMPARE(std::round(bytes / 1e7), 956.0);
        QCOMPARE(std::round(graph.parameterCount() * 512 / 1e9), 408.0);
        QVERIFY(graph.backwardIncluded);
        QVERIFY(graph.partition && graph.partition->local);
        QCOMPARE(graph.partition->madeBy, std::string("XLA SPMD"));
        QCOMPARE(graph.partition->devices, std::int64_t{512});
        QCOMPARE(graph.partition->mesh.size(), std::size_t{1});
        for (const Op& op : graph.ops())
            if (op.kind == OpKind::Collective) {
                QCOMPARE(op.attributes.integer("group_size", 0), std::int64_t{512});
                QCOMPARE(op.attributes.integers("mesh_axes"), std::vector<std::int64_t>{0});
            }
    }
    void llamaFolds() {
        const Graph graph = canonicalise(importModel(modelPath(kLlama)));
        const Folding folding = fold(graph);
        QCOMPARE(layerRuns(graph, folding, 126), std::size_t{2}); // forward and backward
        QVERIFY(folding.classes.size() < 1500);
    }

    void mixtral() {
        const Graph source = importModel(modelPath(kMixtral));
        QVERIFY(source.partition && source.partition->local);
        const Graph graph = canonicalise(source);
        // One op a collective: none is lost and none is dead.
        std::map<std::string, int> collectives;
        for (const Op& op : graph.ops())
            if (op.kind == OpKind::Collective) ++collectives[op.attributes.text("function")];
        QCOMPARE(collectives["all-gather"], 322);
        QCOMPARE(collectives["all-reduce"], 1261);
        QCOMPARE(collectives["all-to-all"], 192);
        const Folding folding = fold(graph);
        QVERIFY(layerRuns(graph, folding, 32) >= 1);
        QVERIFY(folding.classes.size() < 2000); // of 27,709 ops
        for (const FoldRun& run : folding.runs)
            if (run.count == 32)
                for (std::size_t local = 0; local < run.period; ++local)
                    QCOMPARE(graph.op(folding.order[run.position(0, local)]).kind,
                             graph.op(folding.order[run.position(31, local)]).kind);
    }

    void maxText() {
        const Graph source = importModel(modelPath(kMaxText));
        QVERIFY(source.partition && !source.partition->local);
        QCOMPARE(source.partition->devices, std::int64_t{8});
        QCOMPARE(source.partition->madeBy, std::string("XLA sharding annotations"));
        // Weights, then mu and nu of the same size.
        QCOMPARE(fact(source, "weight elements"), std::string("669145600"));
        QCOMPARE(fact(source, "optimizer state elements"), std::string("1338291200"));
        // The batch of 16 is cut in 8.
        const auto tokens = source.findOp("data['inputs']");
        QVERIFY(tokens.has_value());
        const TensorId input = source.op(*tokens).outputs[0];
        QCOMPARE(source.partition->shardings.at(input).dims,
                 (std::vector<std::vector<std::uint8_t>>{{0}, {}}));
        QVERIFY(source.warnings.empty());
        const Graph graph = canonicalise(source);
        const Folding folding = fold(graph);
        QCOMPARE(layerRuns(graph, folding, 8), std::size_t{2});
    }

    void cutOff() {
        try {
            importModel(modelPath(kCutOff));
            QFAIL("a truncated file was read");
        } catch (const InputError& error) {
            QVERIFY(QString::fromStdString(error.problem()).contains("truncated"));
        }
    }
};

SHARDLENS_TEST(TestHloModels)

} // namespace tst_hlo_models

#include "tst_hlo_models.moc"
