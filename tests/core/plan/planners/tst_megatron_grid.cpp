// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's degrees: which go together, one row a documented rule; what tensor, sequence,
// context and expert parallelism send and keep, against closed forms (reference planners.md
// sections 1 and 4, costs.md sections 3 and 4); the points of the grid, and their plans.
#include "core/error.h"
#include "core/plan/planners/megatron_grid.h"
#include "core/plan/planners/megatron_rules.h"
#include "core/plan/planners/pipeline_document.h"
#include "tests/core/support/models.h"
#include "tests/test_program.h"

#include <nlohmann/json.hpp>

#include <QTest>

#include <map>
#include <set>

namespace tst_megatron_grid {

using namespace shardlens;
using namespace shardlens::test;

namespace {

constexpr double kBandwidth = 100e9;
constexpr double kEfficiency = CostConstants{}.scaleUpEfficiency;

/// Eight devices a node without latency; `slow` links have kBandwidth, others cost nothing.
Cluster cluster(bool slow) {
    Cluster result = clusterByName("dgx-a100", 1);
    result.scaleUp.latency = result.scaleOut.latency = 0;
    result.scaleUp.bandwidth = slow ? kBandwidth : 1e30;
    return result;
}

StagePricer pricer(const std::string& name, std::vector<Cluster> pools, int layers,
                   std::int64_t sequence) {
    return {std::move(pools), [=](std::int64_t samples) {
                const ModelBundle bundle =
                    sample(name, onCluster("dgx-a100", 1, "tp=8", samples, sequence), layers);
                return stagedModel(bundle.graph, bundle.folding);
            }};
}

/// What one more inner layer adds to a stage.
StageFigures layerFigures(const std::string& name, const GridPoint& point, bool slow,
                          std::int64_t sequence) {
    StagePricer p = pricer(name, {cluster(slow)}, 8, sequence);
    StageTable& table = p.replica(optionOf(point).replica).table();
    const auto& units = table.model().units.units;
    std::size_t first = 0;
    while (units[first].run < 0) ++first;
    StageFigures more = table.figures(first + 1, first + 5);
    const StageFigures less = table.figures(first + 1, first + 4);
    more.forward -= less.forward;
    more.inputGrad -= less.inputGrad;
    more.weightGrad -= less.weightGrad;
    more.sync -= less.sync;
    more.kept -= less.kept;
    more.parameters -= less.parameters;
    more.experts.parameters -= less.experts.parameters;
    return more;
}

/// Seconds that a layer's collectives take: forward, backward.
std::pair<double, double> traffic(const std::string& name, const GridPoint& point,
                                  std::int64_t sequence) {
    const StageFigures slow = layerFigures(name, point, true, sequence);
    const StageFigures fast = layerFigures(name, point, false, sequence);
    return {slow.forward - fast.forward,
            slow.inputGrad + slow.weightGrad - fast.inputGrad - fast.weightGrad};
}

/// Ring formulas for n bytes of the whole tensor, and their share of a link's bandwidth.
double gather(int k, double n) {
    return (k - 1.0) / k * n / (kBandwidth * kEfficiency);
}
double allReduce(int k, double n) {
    return 2 * gather(k, n);
}

void compareSeconds(double actual, double expected) {
    QVERIFY2(std::abs(actual - expected) <= 1e-6 * expected + 2e-8,
             qPrintable(QStringLiteral("%1 s, expected %2 s").arg(actual).arg(expected)));
}

} // namespace

class TestMegatronGrid : public QObject {
    Q_OBJECT

private slots:
    void rules_data();
    void rules();
    void modelFacts();
    void tensorTraffic();
    void sequenceTraffic();
    void contextTraffic();
    void expertTraffic();
    void expertParameters();
    void keptActivations();
    void copiesOverContext();
    void points();
    void expertPoints();
    void documents();
    void stopping();
};

void TestMegatronGrid::rules_data() {
    QTest::addColumn<MegatronDegrees>("degrees");
    QTest::addColumn<QString>("broken");
    const MegatronDegrees good{.devices = 64,
                               .tensor = 4,
                               .context = 2,
                               .pipeline = 2,
                               .expert = 4,
                               .expertTensor = 4,
                               .chunks = 2,
                               .sequenceParallel = true,
                               .samples = 1,
                               .batch = 32};
    const auto row = [&](const char* name, const char* broken, auto change) {
        MegatronDegrees degrees = good;
        change(degrees);
        QTest::newRow(name) << degrees << QString::fromLatin1(broken);
    };
    using D = MegatronDegrees;
    row("valid", "", [](D&) {});
    row("world size", "does not divide the devices", [](D& d) { d.pipeline = 3; });
    row("heads", "attention heads", [](D& d) {
        d.tensor = d.expertTensor = 64;
        d.context = d.pipeline = d.chunks = d.expert = 1;
    });
    row("sequence parallel alone", "needs a tensor degree",
        [](D& d) { d.tensor = d.expertTensor = 1; });
    row("experts and tensor", "need sequence parallelism",
        [](D& d) { d.sequenceParallel = false; });
    row("context", "twice the context degree", [](D& d) {
        d.devices = 4096;
        d.tensor = d.expertTensor = 1;
        d.sequenceParallel = false;
        d.context = 128;
    });
    row("experts divide", "does not divide the experts", [](D& d) { d.expert = 16; });
    row("expert group", "expert tensor degree", [](D& d) {
        d.pipeline = 8;
        d.chunks = 1;
        d.expert = 4;
        d.expertTensor = 8;
    });
    row("one expert rank", "", [](D& d) { d.expert = d.expertTensor = 1; });
    row("expert tensor 1", "", [](D& d) {
        d.expertTensor = 1;
        d.expert = 8;
    });
    row("batch", "does not divide the batch", [](D& d) { d.batch = 30; });
    row("layers", "does not divide the layers", [](D& d) {
        d.devices = 48;
        d.pipeline = 6;
        d.batch = 60;
        d.expert = 1;
    });
    row("chunks without stages", "needs a pipeline degree", [](D& d) { d.pipeline = 1; });
    row("chunks", "pipeline degree x chunks", [](D& d) { d.chunks = 3; });
    row("interleaving", "micro-batches divisible", [](D& d) {
        d.pipeline = 4;
        d.batch = 6;
        d.expert = 1;
    });
}

/// 32 layers, 32 heads over 8 key heads, 8 experts, 192 tokens.
void TestMegatronGrid::rules() {
    QFETCH(MegatronDegrees, degrees);
    QFETCH(QString, broken);
    const std::string_view found = brokenRule(
        degrees, {.layers = 32, .heads = 32, .keyHeads = 8, .sequence = 192, .experts = 8});
    const QString text = QString::fromUtf8(found.data(), static_cast<qsizetype>(found.size()));
    QVERIFY2(broken.isEmpty() ? text.isEmpty() : text.contains(broken), qPrintable(text));
}

void TestMegatronGrid::modelFacts() {
    StagePricer dense = pricer("gpt3-175b", {cluster(true)}, 8, 1024);
    const MegatronModel gpt = megatronModel(*dense.model(2));
    QCOMPARE(gpt.layers, 8);
    QCOMPARE(gpt.heads, 96);
    QCOMPARE(gpt.keyHeads, 96);
    QCOMPARE(gpt.sequence, 1024);
    QCOMPARE(gpt.experts, 0);
    StagePricer sparse = pricer("mixtral-8x7b", {cluster(true)}, 8, 1024);
    const MegatronModel mixtral = megatronModel(*sparse.model(2));
    QCOMPARE(mixtral.heads, 32);
    QCOMPARE(mixtral.keyHeads, 8);
    QCOMPARE(mixtral.experts, 8);
    QVERIFY(!brokenRule({.devices = 8, .expert = 8, .batch = 8}, gpt).empty());
    QVERIFY(brokenRule({.devices = 8, .expert = 8, .batch = 8}, mixtral).empty());
}

/// f and g: two all-reduces of b*s*h forward, two backward.
void TestMegatronGrid::tensorTraffic() {
    for (const int t : {2, 4, 8}) {
        const double bytes = 2.0 * 2 * 1024 * 12288;
        const auto [forward, backward] = traffic("gpt3-175b", {.tensor = t, .samples = 2}, 1024);
        compareSeconds(forward, 2 * allReduce(t, bytes));
        compareSeconds(backward, 2 * allReduce(t, bytes));
    }
}

/// The same volume as reduce-scatters and all-gathers; the backward pass gathers the inputs of
/// both products again (costs.md section 3: x 1.25 of the whole).
void TestMegatronGrid::sequenceTraffic() {
    for (const int t : {2, 8}) {
        const double bytes = 2.0 * 2 * 1024 * 12288;
        const auto [forward, backward] =
            traffic("gpt3-175b", {.tensor = t, .sequenceParallel = true, .samples = 2}, 1024);
        compareSeconds(forward, 4 * gather(t, bytes));
        compareSeconds(backward, 6 * gather(t, bytes));
    }
}

/// Keys and values are gathered, in the backward pass again, and their gradients scattered.
void TestMegatronGrid::contextTraffic() {
    for (const int c : {2, 4}) {
        const double bytes = 2.0 * 2 * 1024 * 12288 / 2; // of K, or of V, cut by heads over tp=2
        GridPoint point{.tensor = 2, .context = c, .samples = 2};
        const auto [forward, backward] = traffic("gpt3-175b", point, 1024);
        const double tensor = 2 * allReduce(2, 2.0 * 2 * 1024 * 12288 / c);
        compareSeconds(forward, tensor + 2 * gather(c, bytes));
        compareSeconds(backward, tensor + 4 * gather(c, bytes));
    }
    // Grouped queries: 8 key heads of 128.
    const auto [forward, backward] = traffic("llama3-8b", {.context = 8, .samples = 1}, 2048);
    compareSeconds(forward, 2 * gather(8, 2.0 * 2048 * 1024));
    compareSeconds(backward, 4 * gather(8, 2.0 * 2048 * 1024));
}

/// Dispatch and combine, and their gradients: rows of 2 experts a token.
void TestMegatronGrid::expertTraffic() {
    for (const int e : {2, 8}) {
        const double local = 2.0 * 1 * 1024 * 2 * 4096; // bytes of a rank's rows: one sample
        const auto [forward, backward] =
            traffic("mixtral-8x7b", {.data = e, .expert = e, .samples = 1}, 1024);
        compareSeconds(forward, 2 * gather(e, local));
        compareSeconds(backward, 2 * gather(e, local));
    }
    // Over context-parallel ranks: each has a part of the rows.
    const double local = 2.0 * 1024 / 4 * 2 * 4096;
    const double keys = 2 * gather(4, 2.0 * 1024 * 1024);
    const auto [forward, backward] =
        traffic("mixtral-8x7b", {.context = 4, .expert = 4, .samples = 1}, 1024);
    compareSeconds(forward, 2 * gather(4, local) + keys);
    compareSeconds(backward, 2 * gather(4, local) + 2 * keys);
}

void TestMegatronGrid::expertParameters() {
    const double experts = 2.0 * 8 * 3 * 4096 * 14336; // bytes of a layer
    for (const int e : {1, 2, 8}) {
        const StageFigures f =
            layerFigures("mixtral-8x7b", {.data = e, .expert = e, .samples = 1}, true, 1024);
        QCOMPARE(f.experts.parameters, experts / e);
        const StageFigures both = layerFigures("mixtral-8x7b",
                                               {.tensor = 2,
                                                .data = e,
                                                .expert = std::min(e, 4),
                                                .sequenceParallel = true,
                                                .samples = 1},
                                               true, 1024);
        QCOMPARE(both.experts.parameters, experts / std::min(e, 4) / 2);
    }
    // Nothing of data-parallel ranks is synced inside the mesh.
    QCOMPARE(layerFigures("mixtral-8x7b", {.data = 8, .expert = 8, .samples = 1}, true, 1024).sync,
             0.0);
    QCOMPARE(layerFigures("llama3-8b", {.context = 8, .samples = 1}, true, 2048).sync, 0.0);
}

/// Korthikanti 2022, table 2, without what flash attention does not keep: 10 + 24/t without
/// sequence parallelism, 34/t with it, in units of s*b*h. What depends on t is equal in both.
void TestMegatronGrid::keptActivations() {
    const double unit = 2.0 * 1024 * 12288;
    const auto kept = [&](int t, bool sequence) {
        return layerFigures("gpt3-175b", {.tensor = t, .sequenceParallel = sequence, .samples = 2},
                            true, 1024)
                   .kept /
               unit;
    };
    const double whole = kept(1, false);
    for (const int t : {2, 4, 8}) {
        const double off = kept(t, false), on = kept(t, true);
        QVERIFY2(std::abs(off - (10 + (whole - 10) / t)) < 0.02, qPrintable(QString::number(off)));
        QVERIFY2(std::abs(on - whole / t) < 0.02, qPrintable(QString::number(on)));
    }
    // Context parallelism cuts everything.
    const double context =
        layerFigures("gpt3-175b", {.context = 4, .samples = 2}, true, 1024).kept / unit;
    QVERIFY2(std::abs(context - whole / 4) < 0.02, qPrintable(QString::number(context)));
}

/// ZeRO-1 shards the optimizer over data x context ranks, and syncs over all of them.
void TestMegatronGrid::copiesOverContext() {
    StagePricer p = pricer("llama3-8b", {cluster(true)}, 8, 2048);
    const auto priceOf = [&](int context, int data, int zero) {
        const StageOptionInfo option = optionOf({.data = data, .context = context, .samples = 1});
        return p.replica(option.replica).price(2, 5, option.replicas, {zero, false, 0});
    };
    for (const int zero : {0, 1, 2, 3}) {
        const StagePrice data = priceOf(1, 8, zero), context = priceOf(4, 2, zero);
        QCOMPARE(context.resident, data.resident);
        QVERIFY(std::abs(context.step / data.step - 1) < 1e-9);
    }
}

void TestMegatronGrid::points() {
    StagePricer p = pricer("llama3-8b", {clusterByName("dgx-a100", 2)}, 8, 1024);
    PipelineRequest request;
    request.batch = 32;
    const std::vector<GridPoint> grid = megatronGrid(p, request);
    std::set<std::tuple<int, bool, int>> kinds;
    const MegatronModel model = megatronModel(*p.model(1));
    for (const GridPoint& g : grid) {
        kinds.insert({g.tensor, g.sequenceParallel, g.context});
        QCOMPARE(g.tensor * g.context * g.pipeline * g.data, 16);
        QCOMPARE(g.samples * g.data * g.microBatches, 32);
        QCOMPARE(g.expert, 1);
        QVERIFY(brokenRule({16, g.tensor, g.context, g.pipeline, g.expert, g.tensor,
                            g.schedule.chunks, g.sequenceParallel, g.samples, 32},
                           model)
                    .empty());
    }
    for (const int tp : {1, 2, 4, 8})
        for (const bool sp : {false, true})
            for (const int cp : {1, 2, 4, 8})
                QCOMPARE(kinds.contains({tp, sp, cp}), tp * cp <= 16 && (tp > 1 || !sp));
    const auto json = nlohmann::json::parse(gridJson(grid));
    QCOMPARE(json.size(), grid.size());
    for (const char* key : {"tp", "sp", "cp", "pp", "vpp", "ep", "dp", "zero", "recompute"})
        QVERIFY(json[0].contains(key));
    QVERIFY(gridText(grid).find("  sp  cp  pp vpp  ep") != std::string::npos);
    // Sequence parallelism never keeps more, and is as quick but for the second gather.
    const auto find = [&](GridPoint wanted, bool sequence) {
        wanted.sequenceParallel = sequence;
        return std::ranges::find_if(grid, [&](const GridPoint& g) {
            return g.tensor == wanted.tensor && g.sequenceParallel == wanted.sequenceParallel &&
                   g.context == wanted.context && g.pipeline == wanted.pipeline &&
                   g.schedule.chunks == wanted.schedule.chunks && g.samples == wanted.samples &&
                   g.schedule == wanted.schedule && g.policy == wanted.policy;
        });
    };
    for (const GridPoint& g : grid) {
        if (!g.sequenceParallel) continue;
        const auto without = find(g, false);
        QVERIFY(without != grid.end());
        QVERIFY2(g.memory <= without->memory * (1 + 1e-9),
                 qPrintable(QStringLiteral("tp %1 cp %2 pp %3 samples %4 zero %5 %6: %7 > %8")
                                .arg(g.tensor)
                                .arg(g.context)
                                .arg(g.pipeline)
                                .arg(g.samples)
                                .arg(g.policy.zero)
                                .arg(QString::fromLatin1(recomputeText(g.policy).data()))
                                .arg(g.memory)
                                .arg(without->memory)));
    }
}

void TestMegatronGrid::expertPoints() {
    StagePricer p = pricer("mixtral-8x7b", {clusterByName("dgx-h100", 2)}, 4, 1024);
    PipelineRequest request;
    request.batch = 16;
    request.largestSamples = 2;
    const std::vector<GridPoint> grid = megatronGrid(p, request);
    std::set<int> degrees;
    for (const GridPoint& g : grid) {
        degrees.insert(g.expert);
        QVERIFY(g.tensor == 1 || g.sequenceParallel);
        QCOMPARE(g.data * g.context % g.expert, 0);
        QCOMPARE(8 % g.expert, 0);
    }
    QCOMPARE(degrees, (std::set{1, 2, 4, 8}));
    // The optimizer of experts is spread as widely, so that memory falls only without ZeRO.
    std::map<int, double> least; // memory, by expert degree
    for (const GridPoint& g : grid) {
        if (g.policy.zero != 0 || g.tensor > 1 || g.context > 1 || g.pipeline > 1) continue;
        const auto [at, isNew] = least.try_emplace(g.expert, g.memory);
        at->second = std::min(at->second, g.memory);
    }
    // 18 bytes of 4 layers' experts, and what else there is.
    const double experts = 18.0 * 4 * 8 * 3 * 4096 * 14336;
    QVERIFY(std::abs((least[1] - least[8]) / (experts * 7 / 8) - 1) < 0.05);
}

/// The document of a point is priced as the point is.
void TestMegatronGrid::documents() {
    StagePricer p = pricer("mixtral-8x7b", {clusterByName("dgx-h100", 2)}, 4, 1024);
    PipelineRequest request;
    request.batch = 16;
    request.largestSamples = 1;
    const std::vector<GridPoint> grid = megatronGrid(p, request);
    for (std::size_t i = 0; i < grid.size(); i += 7) {
        const PipelineAnswer answer = answerOf(p, request, grid[i]);
        const PipelineDocument d = documentOf(answer, p, request, "m", "megatron");
        const PipelineAnswer again = evaluatePipeline(pipelineFromJson(toJson(d)), p, request);
        QVERIFY(std::abs(again.seconds / grid[i].seconds - 1) < 1e-9);
        QVERIFY(std::abs(again.peakMemory / grid[i].memory - 1) < 1e-9);
    }
}

void TestMegatronGrid::stopping() {
    StagePricer p = pricer("gpt3-175b", {clusterByName("dgx-a100", 2)}, 8, 1024);
    PipelineRequest request;
    request.batch = 32;
    std::stop_source source;
    source.request_stop();
    QVERIFY_THROWS_EXCEPTION(Cancelled, megatronGrid(p, request, source.get_token()));
}

SHARDLENS_TEST(TestMegatronGrid)

} // namespace tst_megatron_grid

#include "tst_megatron_grid.moc"
