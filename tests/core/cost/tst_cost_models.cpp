// SPDX-License-Identifier: Apache-2.0
// Costs against closed forms, measured all-reduces (nccl-tests on A100 and V100 nodes by vTrain;
// H200 and B200 by stas00/ml-engineering network/benchmarks) and Alpa's published objectives.
#include "core/cost/cost_model.h"
#include "core/error.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_cost_models {

using namespace shardlens;

namespace {

constexpr double kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

bool near(double value, double expected, double relative) {
    const bool result = std::abs(value - expected) <= relative * std::abs(expected);
    if (!result) qWarning("%.9g, expected %.9g", value, expected);
    return result;
}

Mesh meshOf(const std::vector<int>& sizes) {
    Mesh mesh;
    for (const int size : sizes)
        mesh.axes.push_back(
            {std::string(1, static_cast<char>('a' + mesh.axes.size())), size, {}, false});
    return mesh;
}

/// Seconds of an all-reduce over all devices of a cluster, roofline model.
double allReduceSeconds(std::string_view cluster, int nodes, int devices, double bytes) {
    const Cluster c = clusterByName(cluster, nodes);
    const Mesh mesh = layMesh(c, {{"rest", c.devices() / devices}, {"all", devices}});
    return rooflineModel(c)->collective({CollectiveKind::AllReduce, 1, bytes}, mesh);
}

/// Seconds of a measured all-reduce from its bus bandwidth, as nccl-tests defines it.
double measuredSeconds(int devices, double bytes, double busBandwidth) {
    return 2.0 * (devices - 1) / devices * bytes / busBandwidth;
}

double alpaCost(CollectiveKind kind, std::uint8_t axis, double bytes, const std::vector<int>& mesh,
                std::vector<double> beta) {
    return alpaModel({1, 1}, std::move(beta))->collective({kind, axis, bytes}, meshOf(mesh));
}

double alpaAllReduce(std::uint8_t axis, double bytes, const std::vector<int>& mesh,
                     std::vector<double> beta = {1, 1}) {
    return alpaCost(CollectiveKind::AllReduce, axis, bytes, mesh, std::move(beta));
}

} // namespace

class TestCostModels : public QObject {
    Q_OBJECT

private slots:
    void ringClosedForms();
    void ringOfOne();
    void measuredA100();
    void measuredOthers();
    void efficiencyByLink();
    void contraction();
    void contractionBackward();
    void attentionAndVector();
    void rooflineFacts();
    void alpaPrimitives();
    void alpaMlpTable();
    void alpaTransformerAndMoe();
    void alpaFacts();
    void alpaMissingAxis();
};

void TestCostModels::ringClosedForms() {
    const Link link{"l", 1e11, 1e-6, {}};
    QVERIFY(near(ringAllReduceSeconds(4, 1e9, link), 6e-6 + 15e-3, 1e-12));
    QVERIFY(near(ringAllGatherSeconds(4, 1e9, link), 3e-6 + 7.5e-3, 1e-12));
    QVERIFY(near(ringReduceScatterSeconds(4, 1e9, link), 3e-6 + 7.5e-3, 1e-12));
    // Each rank keeps a quarter of its 250 MB and sends the rest.
    QVERIFY(near(ringAllToAllSeconds(4, 1e9, link), 3e-6 + 0.1875e9 / 1e11, 1e-12));
    QVERIFY(near(ringAllReduceSeconds(3, 0, link), 4e-6, 1e-12));
}

void TestCostModels::ringOfOne() {
    const Link link{"l", 1e11, 1e-6, {}};
    QCOMPARE(ringAllReduceSeconds(1, 1e9, link), 0.0);
    QCOMPARE(ringAllGatherSeconds(1, 1e9, link), 0.0);
    QCOMPARE(ringReduceScatterSeconds(1, 1e9, link), 0.0);
    QCOMPARE(ringAllToAllSeconds(1, 1e9, link), 0.0);
}

void TestCostModels::measuredA100() {
    // 8 GPUs: 92 us at 1 MiB, 231 us at 16, 580 at 64, 2158 at 256, 8196 at 1024 MiB.
    QVERIFY(near(allReduceSeconds("dgx-a100", 1, 8, 1 * kMiB), 92e-6, 0.10));
    QVERIFY(near(allReduceSeconds("dgx-a100", 1, 8, 16 * kMiB), 231e-6, 0.10));
    QVERIFY(near(allReduceSeconds("dgx-a100", 1, 8, 64 * kMiB), 580e-6, 0.10));
    QVERIFY(near(allReduceSeconds("dgx-a100", 1, 8, 256 * kMiB), 2158e-6, 0.10));
    QVERIFY(near(allReduceSeconds("dgx-a100", 1, 8, kGiB), 8196e-6, 0.10));
    // 4 GPUs reach a bus bandwidth of 221 GB/s, 2 GPUs 197.
    QVERIFY(near(allReduceSeconds("dgx-a100", 1, 4, kGiB), measuredSeconds(4, kGiB, 221e9), 0.10));
    QVERIFY(near(allReduceSeconds("dgx-a100", 1, 2, kGiB), measuredSeconds(2, kGiB, 197e9), 0.15));
}

void TestCostModels::measuredOthers() {
    QVERIFY(near(allReduceSeconds("dgx-h200", 1, 8, 32 * kKiB),
                 measuredSeconds(8, 32 * kKiB, 3.15e9), 0.10));
    QVERIFY(near(allReduceSeconds("dgx-b200", 1, 8, 32 * kKiB),
                 measuredSeconds(8, 32 * kKiB, 2.17e9), 0.10));
    QVERIFY(near(allReduceSeconds("dgx-b200", 4, 32, 32 * kKiB),
                 measuredSeconds(32, 32 * kKiB, 0.65e9), 0.10));
    // V100 nodes reach 90 % of their links, the common constant says 76 %.
    QVERIFY(
        near(allReduceSeconds("p3.16xlarge", 1, 8, kGiB), measuredSeconds(8, kGiB, 134e9), 0.20));
}

void TestCostModels::efficiencyByLink() {
    const Cluster cluster = clusterByName("dgx-h100", 2);
    const Mesh mesh = layMesh(cluster, parseMesh("dp=2,tp=8"));
    CostConstants constants;
    constants.scaleUpEfficiency = 0.5;
    constants.scaleOutEfficiency = 0.25;
    const auto model = rooflineModel(cluster, constants);
    const double up = 7 * cluster.scaleUp.latency + 7.0 / 8 * 1e9 / (0.5 * 450e9);
    const double out = cluster.scaleOut.latency + 0.5 * 1e9 / (0.25 * 50e9);
    QVERIFY(near(model->collective({CollectiveKind::AllGather, 1, 1e9}, mesh), up, 1e-12));
    QVERIFY(near(model->collective({CollectiveKind::ReduceScatter, 0, 1e9}, mesh), out, 1e-12));
}

void TestCostModels::contraction() {
    const auto model = rooflineModel(clusterByName("dgx-h100", 1));
    // 8192 cubed in bf16: 2 * 8192^3 FLOPs at 0.67 of 989.4 TFLOP/s, K0 / K = 105 / 8192.
    const double flops = 2.0 * 8192 * 8192 * 8192;
    const OpWork work{ComputeClass::Contraction, flops, 3.0 * 8192 * 8192 * 2, 8192, 0};
    QVERIFY(near(model->compute(work, DType::BF16, 1, 1, 0).forward, 1.680004e-3, 1e-4));
    // Cut 8 ways along the contraction the short K costs (1 + 105/1024) instead.
    QVERIFY(near(model->compute(work, DType::BF16, 8, 8, 0).forward,
                 flops / 8 / (989.4e12 * 0.67) * (1 + 105.0 / 1024), 1e-12));
    QVERIFY(near(model->compute(work, DType::BF16, 8, 1, 0).forward, 1.680004e-3 / 8, 1e-4));
    QVERIFY(near(model->compute(work, DType::F8E4M3, 1, 1, 0).forward,
                 flops / (1979e12 * 0.60) * (1 + 105.0 / 8192), 1e-12));
    // One row: the 16384 x 16384 matrix is read at 0.8 of 3.35 TB/s.
    const OpWork row{ComputeClass::Contraction, 2.0 * 16384 * 16384, 2.0 * 16384 * 16384, 16384, 0};
    QVERIFY(near(model->compute(row, DType::BF16, 1, 1, 0).forward,
                 2.0 * 16384 * 16384 / (0.8 * 3.35e12), 1e-12));
}

void TestCostModels::contractionBackward() {
    const auto model = rooflineModel(clusterByName("dgx-a100", 1));
    const OpWork work{ComputeClass::Contraction, 1e12, 1e6, 4096, 0};
    const double forward = model->compute(work, DType::BF16, 1, 1, 0).forward;
    QCOMPARE(model->compute(work, DType::BF16, 1, 1, 0).backward, 0.0);
    QCOMPARE(model->compute(work, DType::BF16, 1, 1, 1).backward, forward);
    QCOMPARE(model->compute(work, DType::BF16, 1, 1, 2).backward, 2 * forward);
    // The gradient of a bias is no product.
    QCOMPARE(model->compute(work, DType::BF16, 1, 1, 3).backward, 2 * forward);
}

void TestCostModels::attentionAndVector() {
    const auto model = rooflineModel(clusterByName("dgx-h100", 1));
    const OpWork attention{ComputeClass::Attention, 1e12, 1e6, 128, -1};
    const OpTime a = model->compute(attention, DType::F8E4M3, 4, 1, 3); // never in 8 bits
    QVERIFY(near(a.forward, 0.25e12 / (989.4e12 * 0.38), 1e-12));
    QVERIFY(near(a.backward, 2.5 * a.forward, 1e-12));
    const OpWork vector{ComputeClass::Vector, 1, 1e9, 1, -1};
    const OpTime v = model->compute(vector, DType::BF16, 8, 1, 1);
    QVERIFY(near(v.forward, 0.125e9 / (0.8 * 3.35e12), 1e-12));
    QVERIFY(near(v.backward, 1.8 * v.forward, 1e-12));
    QCOMPARE(model->compute(vector, DType::BF16, 8, 1, 0).backward, 0.0);
    const OpWork none{ComputeClass::None, 1e12, 1e12, 1, -1};
    QCOMPARE(model->compute(none, DType::BF16, 1, 1, 1).forward, 0.0);
    QCOMPARE(model->compute(none, DType::BF16, 1, 1, 1).backward, 0.0);
}

void TestCostModels::rooflineFacts() {
    const auto model = rooflineModel(clusterByName("dgx-h100", 1));
    QCOMPARE(model->name(), "roofline");
    QCOMPARE(model->unit(), "s");
    QVERIFY(model->divisibility() == Divisibility::Even);
    QVERIFY(model->conversionRules(meshOf({2, 4})).reduceScatter);
    QVERIFY(model->conversionRules(meshOf({2, 4})).allToAll);
    // 18 bytes a parameter: bf16 with fp32 gradients, no sharding.
    const ParameterBytes bytes = model->parameterBytes();
    QCOMPARE(bytes.value + bytes.gradient + bytes.optimizer, 18.0);
}

void TestCostModels::alpaPrimitives() {
    const std::vector<double> beta{1, 0.1};
    QVERIFY(near(alpaAllReduce(0, 524288, {4}), 786433.01, 1e-12));
    QVERIFY(near(alpaCost(CollectiveKind::AllGather, 1, 1000, {2, 4}, beta), 1 + 75 + 0.1, 1e-12));
    QVERIFY(near(alpaCost(CollectiveKind::ReduceScatter, 1, 1000, {2, 4}, beta), 1 + 75 + 0.001,
                 1e-12));
    // 3/16 of the bytes, twice.
    QVERIFY(
        near(alpaCost(CollectiveKind::AllToAll, 1, 1000, {1, 4}, beta), 1 + 37.5 + 0.001, 1e-12));
    QCOMPARE(alpaAllReduce(0, 524288, {1, 4}), 0.0);
}

void TestCostModels::alpaMlpTable() {
    // MLPs of batch B and width H: objectives published for Alpa's playground solver.
    const auto weight = [](double h) { return h * h * 4; };
    const auto activation = [](double b, double h) { return b * h * 4; };
    QVERIFY(near(2 * alpaAllReduce(0, weight(128), {4, 1}), 196610.02, 1e-6));
    QVERIFY(near(alpaAllReduce(1, activation(128, 1024), {1, 4}), 786433.01, 1e-6));
    QVERIFY(near(12 * alpaAllReduce(0, weight(128), {4, 1}), 1179660.12, 1e-6));
    QVERIFY(near(11 * alpaAllReduce(1, activation(128, 1024), {1, 4}), 8650763.11, 1e-6));
    const auto hybrid = [&](int n0, int n1, int layers) {
        const std::vector<double> beta{1, 0.01};
        return layers * alpaAllReduce(0, weight(128) / n1, {n0, n1}, beta) +
               (layers - 1) * alpaAllReduce(1, activation(1024, 128) / n0, {n0, n1}, beta);
    };
    QVERIFY(near(hybrid(4, 8, 2), 26872.03, 1e-4));
    QVERIFY(near(hybrid(8, 4, 2), 58330.03, 1e-4));
    QVERIFY(near(hybrid(3, 4, 2), 46314.03, 1e-4));
    QVERIFY(near(hybrid(4, 8, 6), 85204.11, 1e-4));
}

void TestCostModels::alpaTransformerAndMoe() {
    QVERIFY(near(5 * alpaAllReduce(0, 32768, {4, 1}), 245765.05, 1e-6));
    QVERIFY(near(7 * alpaAllReduce(0, 32768, {4, 1}), 344071.07, 1e-6));
    // MoE layer: 4 all-to-alls and 9 all-reduces of 17,920 fp32 weights together.
    const double moe = 4 * alpaCost(CollectiveKind::AllToAll, 0, 524288, {4, 1}, {1, 1}) +
                       alpaAllReduce(0, 17920 * 4, {4, 1}) + 8 * alpaAllReduce(0, 0, {4, 1});
    QVERIFY(near(moe, 893965.09, 1e-6));
}

void TestCostModels::alpaFacts() {
    const auto model = alpaModel({1, 1}, {1, 0.1});
    QCOMPARE(model->name(), "alpa");
    QVERIFY(model->divisibility() == Divisibility::AtLeast);
    QVERIFY(!model->conversionRules(meshOf({4, 1})).reduceScatter);
    QVERIFY(model->conversionRules(meshOf({4, 1})).allToAll);
    QVERIFY(!model->conversionRules(meshOf({2, 2})).allToAll);
    QVERIFY(!model->parameterStates());
    QVERIFY(!model->regather());
    QCOMPARE(model->workspaceBytes(), 0.0);
    const OpWork work{ComputeClass::Contraction, 1e12, 1e12, 4096, 0};
    QCOMPARE(model->compute(work, DType::F32, 1, 1, 2).forward, 0.0);
    QCOMPARE(model->compute(work, DType::F32, 1, 1, 2).backward, 0.0);
}

void TestCostModels::alpaMissingAxis() {
    const auto model = alpaModel({1}, {1});
    try {
        model->collective({CollectiveKind::AllReduce, 1, 1}, meshOf({2, 2}));
        QFAIL("accepted");
    } catch (const PlanError& error) {
        QVERIFY2(QByteArray(error.what()).contains("axis b"), error.what());
    }
}

SHARDLENS_TEST(TestCostModels)

} // namespace tst_cost_models

#include "tst_cost_models.moc"
