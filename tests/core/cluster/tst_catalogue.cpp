// SPDX-License-Identifier: Apache-2.0
// The hardware catalogue: that it holds what it should, that its figures equal the collection of
// data sheet figures beside the checkout, and that mistakes in its tables are reported.
#include "core/cluster/catalogue.h"
#include "core/cluster/csv.h"
#include "core/error.h"
#include "tests/test_program.h"

#include <QTest>

#include <fstream>
#include <sstream>

namespace tst_catalogue {

using namespace shardlens;

namespace {

constexpr auto kDevices = "item,figure,value,unit,source,sureness,note\n"
                          "X,matrix_16,100,TFLOP/s,s1,seen,\n"
                          "X,memory,2,GiB,s2,derived,\n"
                          "X,memory_bandwidth,500,GB/s,s1,seen,\n";
constexpr auto kLinks = "item,figure,value,unit,source,sureness,note\n"
                        "L,bandwidth,50,GB/s,s1,seen,\n"
                        "L,latency,2.5,us,s2,assumed,\n";
constexpr auto kClusters =
    "name,description,device,devices_per_node,scale_up,scale_out,source,sureness\n"
    "c,\"one, two\",X,4,L,L,s,seen\n";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    const std::size_t at = text.find(what);
    return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

} // namespace

class TestCatalogue : public QObject {
    Q_OBJECT

private slots:
    void smallTables();
    void knownNames();
    void figuresByHand();
    void figuresOfDataSheets();
    void everyFigureHasASource();
    void peakByType();
    void unknownCluster();
    void nodeCount();
    void mistakes_data();
    void mistakes();
};

void TestCatalogue::smallTables() {
    const Catalogue catalogue = parseCatalogue(kDevices, kLinks, kClusters);
    const Cluster& cluster = catalogue.clusters.at(0);
    QCOMPARE(cluster.description, "one, two");
    QCOMPARE(cluster.device.matrixFlops16, 1e14);
    QCOMPARE(cluster.device.matrixFlops8, 0.0);
    QCOMPARE(cluster.device.memoryBytes, 2147483648.0);
    QCOMPARE(cluster.device.memoryBandwidth, 5e11);
    QCOMPARE(cluster.device.source, "s1; s2");
    QCOMPARE(cluster.device.sureness, "seen; derived");
    QCOMPARE(cluster.devicesPerNode, 4);
    QCOMPARE(cluster.scaleUp.bandwidth, 5e10);
    QCOMPARE(cluster.scaleOut.latency, 2.5e-6);
    QCOMPARE(cluster.scaleUp.source, "s1 (seen); s2 (assumed)");
}

void TestCatalogue::knownNames() {
    const std::vector<ClusterInfo> known = knownClusters();
    for (const char* name :
         {"dgx-a100", "dgx-a100-40g", "dgx-h100", "dgx-h200", "dgx-b200", "gb200-nvl72",
          "p3.16xlarge", "p4d", "v100-32g", "mi300x", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e"}) {
        const auto found = std::ranges::find(known, name, &ClusterInfo::name);
        QVERIFY2(found != known.end(), name);
        QVERIFY(!found->description.empty());
        QCOMPARE(clusterByName(name, 3).name, name);
    }
}

void TestCatalogue::figuresByHand() {
    const Cluster h100 = clusterByName("dgx-h100", 4);
    QCOMPARE(h100.devices(), 32);
    QCOMPARE(h100.device.matrixFlops16, 989.4e12);
    QCOMPARE(h100.device.memoryBandwidth, 3.35e12);
    QCOMPARE(h100.scaleUp.bandwidth, 450e9);
    QCOMPARE(h100.scaleOut.bandwidth, 400e9 / 8);
    QCOMPARE(clusterByName("gb200-nvl72", 1).devices(), 72);
    // 25 Gb/s for the eight devices of a node.
    QCOMPARE(clusterByName("p3.16xlarge", 8).scaleOut.bandwidth, 25e9 / 8 / 8);
    QCOMPARE(clusterByName("p4d", 1).scaleOut.bandwidth, 400e9 / 8 / 8);
    // A "80 GB" A100 reports 81,920 MiB.
    QCOMPARE(clusterByName("dgx-a100", 1).device.memoryBytes, 81920.0 * 1024 * 1024);
}

void TestCatalogue::figuresOfDataSheets() {
    std::ifstream file(SHARDLENS_SHARED "/data/hardware.csv");
    if (!file) QSKIP("needs data/hardware.csv of the folder of real models and figures");
    std::stringstream text;
    text << file.rdbuf();
    const CsvTable table = parseCsv(text.str(), "hardware.csv");
    const auto number = [&](const CsvTable::Row& row, std::string_view column) {
        return QByteArray::fromStdString(row.fields[table.column(column)]).toDouble();
    };
    int compared = 0;
    for (const CsvTable::Row& row : table.rows) {
        const auto found = builtinCatalogue().devices.find(row.fields[table.column("device")]);
        if (found == builtinCatalogue().devices.end()) continue;
        const Device& device = found->second;
        const double bf16 = number(row, "peak_bf16_TFLOPS");
        QCOMPARE(device.matrixFlops16, (bf16 > 0 ? bf16 : number(row, "peak_fp16_TFLOPS")) * 1e12);
        QCOMPARE(device.matrixFlops8, number(row, "peak_fp8_TFLOPS") * 1e12);
        QCOMPARE(device.vectorFlops32, number(row, "fp32_vector_TFLOPS") * 1e12);
        QCOMPARE(device.memoryBytes, number(row, "hbm_GB") * 1073741824.0);
        QCOMPARE(device.memoryBandwidth, number(row, "hbm_GBps") * 1e9);
        ++compared;
    }
    QVERIFY2(compared >= 12, qPrintable(QString::number(compared)));
}

void TestCatalogue::everyFigureHasASource() {
    for (const auto& [name, device] : builtinCatalogue().devices) {
        QVERIFY2(!device.source.empty(), name.c_str());
        QVERIFY2(!device.sureness.empty(), name.c_str());
    }
    for (const auto& [name, link] : builtinCatalogue().links)
        QVERIFY2(!link.source.empty(), name.c_str());
}

void TestCatalogue::peakByType() {
    const Device h100 = clusterByName("dgx-h100", 1).device;
    QCOMPARE(h100.matrixFlops(DType::BF16), 989.4e12);
    QCOMPARE(h100.matrixFlops(DType::F8E4M3), 1979e12);
    QCOMPARE(h100.matrixFlops(DType::F32), 67e12);
    // No fp8 on A100: products of bytes run at the 16-bit rate.
    QCOMPARE(clusterByName("dgx-a100", 1).device.matrixFlops(DType::F8E5M2), 312e12);
    // TPUs state no fp32 rate; they multiply fp32 in bf16 passes.
    QCOMPARE(clusterByName("tpu-v5p", 1).device.matrixFlops(DType::F32), 459e12);
}

void TestCatalogue::unknownCluster() {
    try {
        clusterByName("dgx-z900", 1);
        QFAIL("accepted");
    } catch (const PlanError& error) {
        QVERIFY(QByteArray(error.what()).contains("dgx-z900"));
        QVERIFY(QByteArray(error.what()).contains("tpu-v5p"));
    }
}

void TestCatalogue::nodeCount() {
    QVERIFY_THROWS_EXCEPTION(PlanError, clusterByName("dgx-h100", 0));
    QVERIFY_THROWS_EXCEPTION(PlanError, clusterByName("dgx-h100", -1));
    QVERIFY_THROWS_EXCEPTION(PlanError, clusterByName("dgx-h100", 2147483647));
}

void TestCatalogue::mistakes_data() {
    QTest::addColumn<QString>("devices");
    QTest::addColumn<QString>("links");
    QTest::addColumn<QString>("clusters");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* name, const std::string& devices, const std::string& links,
                        const std::string& clusters, const char* says) {
        QTest::newRow(name) << QString::fromStdString(devices) << QString::fromStdString(links)
                            << QString::fromStdString(clusters) << QString(says);
    };
    row("figure", replaced(kDevices, "matrix_16", "speed"), kLinks, kClusters,
        "unknown figure \"speed\"");
    row("unit", replaced(kDevices, "GiB", "GB"), kLinks, kClusters, "devices.csv, line 3");
    row("number", kDevices, replaced(kLinks, "2.5", "fast"), kClusters, "links.csv, line 3");
    row("negative", kDevices, replaced(kLinks, "2.5", "-2.5"), kClusters, "positive");
    row("missing", kDevices, replaced(kLinks, "L,latency,2.5,us,s2,assumed,\n", ""), kClusters,
        "L has no latency");
    row("twice", kDevices, replaced(kLinks, "L,latency,2.5,us", "L,bandwidth,2.5,GB/s"), kClusters,
        "given twice");
    row("device", kDevices, kLinks, replaced(kClusters, "X", "Y"), "unknown device \"Y\"");
    row("link", kDevices, kLinks, replaced(kClusters, ",L,L", ",L,M"), "unknown link \"M\"");
    row("column", kDevices, kLinks, replaced(kClusters, "scale_up", "up"), "scale_up");
}

void TestCatalogue::mistakes() {
    QFETCH(QString, devices);
    QFETCH(QString, links);
    QFETCH(QString, clusters);
    QFETCH(QString, says);
    try {
        parseCatalogue(devices.toStdString(), links.toStdString(), clusters.toStdString());
        QFAIL("accepted");
    } catch (const InputError& error) {
        QVERIFY2(QString(error.what()).contains(says), error.what());
    }
}

SHARDLENS_TEST(TestCatalogue)

} // namespace tst_catalogue

#include "tst_catalogue.moc"
