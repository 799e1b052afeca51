// SPDX-License-Identifier: Apache-2.0
// The JSON form of a request: literal golden text, round trips, and every kind of refusal.
#include "core/error.h"
#include "core/plan/request.h"
#include "tests/test_program.h"

#include <QTest>

#include <cmath>
#include <limits>

namespace tst_request {

using namespace shardlens;

namespace {

PlanRequest fullRequest() {
    PlanRequest request;
    request.cluster = "gb200-nvl72";
    request.nodes = 2;
    request.devicesPerNode = 36;
    request.mesh = {{"dp", 8}, {"tp", 18}};
    request.batch = 512;
    request.sequence = 8192;
    request.bindings = {{"past_len", 0}, {"decoder_len", 9007199254740993}};
    request.mode = Mode::Infer;
    request.memoryLimitBytes = 0.1;
    request.costModel = "alpa";
    request.alpha = {1e-6, 5e-324};
    request.beta = {0.0, 1.7976931348623157e308};
    request.pins = {{"layers.57.*.q_proj", "b@dp,n@tp"}, {"class:Gemm \"ü\"\n", "replicated"}};
    PipelineSetup setup;
    setup.planner = "megatron";
    setup.schedules = {"interleaved", "1f1b"};
    setup.chunks = 4;
    setup.blockingTransfers = true;
    setup.insideAxes = 2;
    setup.microBatches = 64;
    setup.stages = 8;
    setup.cuts = {3, 97};
    setup.pins = {8, 2, 0, Recompute::Selective, 2, 4, 2, true};
    request.pipeline = setup;
    return request;
}

} // namespace

class TestRequest : public QObject {
    Q_OBJECT

private slots:
    void defaultHasTheCanonicalText();
    void fullHasTheCanonicalText();
    void roundTripKeepsEveryField();
    void absentKeysKeepTheirDefaults();
    void keyOrderAndBlanksAreFree();
    void refusesWhatItDoesNotUnderstand_data();
    void refusesWhatItDoesNotUnderstand();
    void refusesToWriteWhatItCouldNotRead();
};

void TestRequest::defaultHasTheCanonicalText() {
    QCOMPARE(toJson(PlanRequest{}),
             std::string(R"({"version":2,"cluster":"dgx-h100","nodes":1,"devices_per_node":0,)"
                         R"("mesh":[],"batch":8,)"
                         R"("sequence":2048,"bindings":{},"mode":"train",)"
                         R"("memory_limit_bytes":null,"cost_model":"roofline","alpha":[],)"
                         R"("beta":[],"pins":[],"pipeline":null})"));
}

void TestRequest::fullHasTheCanonicalText() {
    QCOMPARE(
        toJson(fullRequest()),
        std::string(R"({"version":2,"cluster":"gb200-nvl72","nodes":2,"devices_per_node":36,)"
                    R"("mesh":[{"axis":"dp","size":8},{"axis":"tp","size":18}],"batch":512,)"
                    R"("sequence":8192,"bindings":{"decoder_len":9007199254740993,"past_len":0},)"
                    R"("mode":"infer","memory_limit_bytes":0.1,"cost_model":"alpa",)"
                    R"("alpha":[1e-06,5e-324],"beta":[0.0,1.7976931348623157e+308],)"
                    R"("pins":[{"target":"layers.57.*.q_proj","choice":"b@dp,n@tp"},)"
                    R"({"target":"class:Gemm \"ü\"\n","choice":"replicated"}],)"
                    R"("pipeline":{"planner":"megatron","schedules":["interleaved","1f1b"],)"
                    R"("chunks":4,"transfers":"blocking","inside_axes":2,"micro_batches":64,)"
                    R"("stages":8,"cuts":[3,97],"tensor":8,)"
                    R"("data":2,"zero":0,"recompute":"selective","inside":2,"context":4,)"
                    R"("expert":2,"sequence_parallel":true}})"));
}

void TestRequest::roundTripKeepsEveryField() {
    const PlanRequest before = fullRequest();
    const PlanRequest after = requestFromJson(toJson(before));
    QCOMPARE(after.cluster, before.cluster);
    QCOMPARE(after.nodes, before.nodes);
    QCOMPARE(after.mesh.size(), before.mesh.size());
    for (std::size_t i = 0; i < before.mesh.size(); ++i) {
        QCOMPARE(after.mesh[i].name, before.mesh[i].name);
        QCOMPARE(after.mesh[i].size, before.mesh[i].size);
    }
    QCOMPARE(after.batch, before.batch);
    QCOMPARE(after.sequence, before.sequence);
    QVERIFY(after.bindings == before.bindings);
    QVERIFY(after.mode == before.mode);
    QVERIFY(after.memoryLimitBytes == before.memoryLimitBytes); // to the bit
    QCOMPARE(after.costModel, before.costModel);
    QVERIFY(after.alpha == before.alpha);
    QVERIFY(after.beta == before.beta);
    QVERIFY(after.pins == before.pins);
    QVERIFY(after.pipeline == before.pipeline);
}

void TestRequest::absentKeysKeepTheirDefaults() {
    const PlanRequest request = requestFromJson(R"({"version":1,"nodes":4})");
    QCOMPARE(request.nodes, 4);
    QCOMPARE(request.cluster, std::string("dgx-h100"));
    QVERIFY(!request.memoryLimitBytes);
    QVERIFY(!request.pipeline); // of the first version
    const PlanRequest pipeline = requestFromJson(R"({"version":2,"pipeline":{}})");
    QVERIFY(pipeline.pipeline == PipelineSetup{});
}

void TestRequest::keyOrderAndBlanksAreFree() {
    const PlanRequest request = requestFromJson(
        "\n{ \"pins\" : [ {\"choice\":\"c\", \"target\":\"t\"} ],\t\"version\":1 }");
    QVERIFY(request.pins == std::vector<Pin>({{"t", "c"}}));
}

void TestRequest::refusesWhatItDoesNotUnderstand_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("says");
    const auto row = [](const char* name, const char* text, const char* says) {
        QTest::newRow(name) << QByteArray(text) << QByteArray(says);
    };
    row("empty", "", "not JSON");
    row("cut off", R"({"version":1,"nodes":)", "not JSON");
    row("list", "[1]", "must be a JSON object");
    row("no version", R"({"nodes":1})", "'version' is missing");
    row("newer", R"({"version":3})", "reads up to 2");
    row("unknown key", R"({"version":1,"colour":3})", "'colour' is unknown");
    row("twice", R"({"version":1,"nodes":1,"nodes":2})", "\"nodes\" is given twice");
    row("nodes 0", R"({"version":1,"nodes":0})", "'nodes' must be a whole number from 1");
    row("nodes 2^31", R"({"version":1,"nodes":2147483648})", "to 2147483647, not 2147483648");
    row("nodes fraction", R"({"version":1,"nodes":1.5})", "'nodes' must be a whole number");
    row("batch 2^63", R"({"version":1,"batch":9223372036854775808})", "'batch' must be a whole");
    row("batch 2^64", R"({"version":1,"batch":18446744073709551616})", "'batch' must be a whole");
    row("batch text", R"({"version":1,"batch":"8"})", "'batch' must be a whole number");
    row("cluster number", R"({"version":1,"cluster":8})", "'cluster' must be a text");
    row("mesh object", R"({"version":1,"mesh":{"dp":8}})", "'mesh' must be a list");
    row("mesh entry", R"({"version":1,"mesh":[{"axis":"dp"}]})", "'axis' and 'size'");
    row("mesh size", R"({"version":1,"mesh":[{"axis":"dp","size":0}]})", "'size' must be");
    row("mesh nameless", R"({"version":1,"mesh":[{"axis":"","size":2}]})", "empty name");
    row("mesh twice", R"({"version":1,"mesh":[{"axis":"a","size":2},{"axis":"a","size":2}]})",
        "two axes named 'a'");
    row("mesh of five",
        R"({"version":1,"mesh":[{"axis":"a","size":1},{"axis":"b","size":1},)"
        R"({"axis":"c","size":1},{"axis":"d","size":1},{"axis":"e","size":1}]})",
        "5 axes, at most 4");
    row("bindings", R"({"version":1,"bindings":{"len":-1}})", "'bindings.len' must be");
    row("mode", R"({"version":1,"mode":"dream"})", R"("train" or "infer")");
    row("limit 0", R"({"version":1,"memory_limit_bytes":0})", "more than 0");
    row("limit huge", R"({"version":1,"memory_limit_bytes":1e999})", "not JSON");
    row("alpha", R"({"version":1,"alpha":[1,-2]})", "'alpha' must be finite");
    row("pin", R"({"version":1,"pins":[{"target":"a","choice":"b","why":"c"}]})",
        "'target' and 'choice'");
    row("pipeline list", R"({"version":2,"pipeline":[]})", "must be an object");
    row("pipeline key", R"({"version":2,"pipeline":{"depth":3}})", "'pipeline.depth' is unknown");
    row("planner", R"({"version":2,"pipeline":{"planner":"me"}})", "not \"me\"");
    row("schedule", R"({"version":2,"pipeline":{"schedules":["2f2b"]}})", "no schedule '2f2b'");
    row("cut 0", R"({"version":2,"pipeline":{"cuts":[0]}})", "'pipeline.cuts' must be a whole");
    row("cuts twice", R"({"version":2,"pipeline":{"cuts":[4,4]}})", "must ascend");
    row("stages 0", R"({"version":2,"pipeline":{"stages":0}})", "'pipeline.stages' must be");
    row("ZeRO 4", R"({"version":2,"pipeline":{"zero":4}})", "from 0 to 3");
    row("recompute", R"({"version":2,"pipeline":{"recompute":"some"}})", "not \"some\"");
    row("inside", R"({"version":2,"pipeline":{"inside":3}})", "from 0 to 2");
    row("context 0", R"({"version":2,"pipeline":{"context":0}})", "'pipeline.context' must be");
    row("switch", R"({"version":2,"pipeline":{"sequence_parallel":1}})", "true, false or null");
    row("bad UTF-8", "{\"version\":1,\"mode\":\"\xff\"}", "not JSON");
}

void TestRequest::refusesWhatItDoesNotUnderstand() {
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, says);
    try {
        requestFromJson(text.toStdString());
        QFAIL("was accepted");
    } catch (const InputError& error) {
        QVERIFY2(QByteArray(error.what()).contains(says), error.what());
        QVERIFY2(QByteArray(error.what()).startsWith("plan request: "), error.what());
    }
}

void TestRequest::refusesToWriteWhatItCouldNotRead() {
    PlanRequest infinite;
    infinite.memoryLimitBytes = std::numeric_limits<double>::infinity();
    QVERIFY_THROWS_EXCEPTION(InputError, toJson(infinite));
    PlanRequest nan;
    nan.alpha = {std::nan("")};
    QVERIFY_THROWS_EXCEPTION(InputError, toJson(nan));
    PlanRequest bytes;
    bytes.pins = {{"\xff\xfe", "replicated"}};
    QVERIFY_THROWS_EXCEPTION(InputError, toJson(bytes));
}

SHARDLENS_TEST(TestRequest)

} // namespace tst_request

#include "tst_request.moc"
