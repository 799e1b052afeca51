// SPDX-License-Identifier: Apache-2.0
// From a file to a folded graph, its summary, and what is proposed for it. Counts by closed forms.
#include "core/plan/model_summary.h"
#include "core/plan/planner.h"
#include "core/plan/proposal.h"
#include "tests/test_program.h"

#include <nlohmann/json.hpp>

#include <QTest>

#include <algorithm>

namespace tst_model_bundle {

using namespace shardlens;

class TestModelBundle : public QObject {
    Q_OBJECT

private slots:
    void summaryCountsTheModel();
    void summaryAsJsonAndText();
    void sizingTellsWorkloadsApart();
    void proposalIsLargeEnough_data();
    void proposalIsLargeEnough();

private:
    static std::filesystem::path sample(const char* name) {
        return std::filesystem::path(SHARDLENS_SOURCE) / "samples" / name;
    }
};

void TestModelBundle::summaryCountsTheModel() {
    PlanRequest request;
    request.batch = 4;
    request.sequence = 1024;
    const ModelSummary summary =
        summarise(loadModel(sample("llama3-8b.json"), importOptions(request)));
    // Meta's count: 8,030,261,248, in bf16.
    QCOMPARE(summary.parameters, 8'030'261'248.0);
    QCOMPARE(summary.parameterBytes, 2 * 8'030'261'248.0);
    QCOMPARE(summary.runs.size(), std::size_t{1});
    QCOMPARE(summary.runs.front().count, std::size_t{32});
    QVERIFY(summary.opaque.empty());

    // Forward FLOPs: 2 a token and weight, without the embedding, which is looked up; attention
    // scores and values 2 * 2 * s^2 * width a layer, half of it under the causal mask. The rest,
    // norms and activations, is below a hundredth.
    const double tokens = 4.0 * 1024;
    const double weights = 8'030'261'248.0 - 128'256.0 * 4096;
    const double attention = 32.0 * 4 * (4.0 * 1024 * 1024 * 4096) / 2;
    const double expected = 2 * tokens * weights + attention;
    QVERIFY(summary.forwardFlops >= expected);
    QVERIFY(summary.forwardFlops < 1.01 * expected);

    std::size_t members = 0;
    for (const auto& entry : summary.classes) members += entry.multiplicity;
    QCOMPARE(members, summary.ops);
}

void TestModelBundle::summaryAsJsonAndText() {
    const ModelSummary summary = summarise(loadModel(sample("gpt2.json")));
    const auto json = nlohmann::json::parse(toJson(summary));
    QCOMPARE(json.at("parameters").get<double>(), 124'439'808.0); // published
    QCOMPARE(json.at("classes").size(), summary.classes.size());
    QCOMPARE(toJson(summary), toJson(summarise(loadModel(sample("gpt2.json")))));
    const std::string text = toText(summary);
    QVERIFY(text.find("124,439,808") != std::string::npos);
    QVERIFY(text.find("12 × ") != std::string::npos);
}

void TestModelBundle::sizingTellsWorkloadsApart() {
    const PlanRequest request;
    PlanRequest other = request;
    other.cluster = "dgx-a100"; // where it runs does not size the model
    other.pins = {{"*", "replicated"}};
    QCOMPARE(sizingOf(other), sizingOf(request));
    std::vector<PlanRequest> sized(4, request);
    sized[0].batch = 9;
    sized[1].sequence = 9;
    sized[2].mode = Mode::Infer;
    sized[3].bindings["height"] = 9;
    for (const PlanRequest& changed : sized) QVERIFY(sizingOf(changed) != sizingOf(request));
}

void TestModelBundle::proposalIsLargeEnough_data() {
    QTest::addColumn<QString>("file");
    QTest::addColumn<int>("nodes"); // of 8 x 80 GB, by hand: 18 bytes a parameter in half of it
    QTest::newRow("125M") << "gpt2.json" << 1;
    QTest::newRow("8B") << "llama3-8b.json" << 1;        // 145 of 344 GB
    QTest::newRow("70B") << "llama3-70b.json" << 4;      // 1.27 of 1.37 TB
    QTest::newRow("405B") << "llama3.1-405b.json" << 32; // 7.3 of 11 TB
}

void TestModelBundle::proposalIsLargeEnough() {
    QFETCH(QString, file);
    QFETCH(int, nodes);
    const ProposedModel model = loadWithProposal(sample(qPrintable(file)));
    QCOMPARE(model.request.nodes, nodes);
    // The bundle is sized for the request, and the request can be planned as it stands.
    QCOMPARE(model.bundle.graph->bindings.at("batch"), model.request.batch);
    const Plan plan =
        optimise(makeContext(model.bundle.graph, model.bundle.folding, model.request));
    QVERIFY(plan.fitsMemory);
}

SHARDLENS_TEST(TestModelBundle)

} // namespace tst_model_bundle

#include "tst_model_bundle.moc"
