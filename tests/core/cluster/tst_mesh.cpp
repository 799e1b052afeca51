// SPDX-License-Identifier: Apache-2.0
// Meshes: their text, device coordinates, and the link of each axis, worked out by hand from which
// devices share a node.
#include "core/cluster/cluster.h"
#include "core/error.h"
#include "tests/test_program.h"

#include <QTest>

#include <set>

namespace tst_mesh {

using namespace shardlens;

class TestMesh : public QObject {
    Q_OBJECT

private slots:
    void text();
    void textMistakes_data();
    void textMistakes();
    void coordinates();
    void placement_data();
    void placement();
    void placementKeepsLatency();
    void sizesMustFit();
    void suggestions();
};

void TestMesh::text() {
    const std::vector<AxisSize> axes = parseMesh(" dp = 8 ,tp=4 ");
    QCOMPARE(axes.size(), std::size_t{2});
    QCOMPARE(axes[0].name, "dp");
    QCOMPARE(axes[0].size, 8);
    QCOMPARE(axes[1].name, "tp");
    QCOMPARE(axes[1].size, 4);
    const Mesh mesh = layMesh(clusterByName("dgx-h100", 4), axes);
    QCOMPARE(mesh.toString(), "dp=8,tp=4");
    QCOMPARE(mesh.axisIndex("tp"), 1);
    QCOMPARE(mesh.axisIndex("pp"), -1);
    QCOMPARE(mesh.devices(), 32);
}

void TestMesh::textMistakes_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("says");
    QTest::newRow("empty") << "" << "name=size";
    QTest::newRow("no size") << "dp" << "name=size";
    QTest::newRow("no number") << "dp=x" << "dp=x";
    QTest::newRow("trailing") << "dp=8x" << "dp=8x";
    QTest::newRow("comma") << "dp=8," << "name=size";
    QTest::newRow("no name") << "=8" << "name of a mesh axis";
    QTest::newRow("bad name") << "d@p=8" << "d@p";
    QTest::newRow("zero") << "dp=0" << "at least 1";
    QTest::newRow("negative") << "dp=-2" << "at least 1";
    QTest::newRow("huge") << "dp=99999999999" << "dp=99999999999";
    QTest::newRow("twice") << "dp=2,dp=4" << "given twice";
    QTest::newRow("too many") << "a=1,b=1,c=1,d=1,e=1" << "at most 4";
}

void TestMesh::textMistakes() {
    QFETCH(QString, text);
    QFETCH(QString, says);
    try {
        parseMesh(text.toStdString());
        QFAIL("accepted");
    } catch (const PlanError& error) {
        QVERIFY2(QString(error.what()).contains(says), error.what());
    }
}

void TestMesh::coordinates() {
    const Mesh mesh = layMesh(clusterByName("dgx-h100", 3), parseMesh("pp=3,dp=2,tp=4"));
    QCOMPARE(mesh.coordinates(0), (std::vector<int>{0, 0, 0}));
    QCOMPARE(mesh.coordinates(3), (std::vector<int>{0, 0, 3}));
    QCOMPARE(mesh.coordinates(4), (std::vector<int>{0, 1, 0}));
    QCOMPARE(mesh.coordinates(23), (std::vector<int>{2, 1, 3}));
    std::set<std::vector<int>> all;
    for (int d = 0; d < 24; ++d) all.insert(mesh.coordinates(d));
    QCOMPARE(all.size(), std::size_t{24});
}

void TestMesh::placement_data() {
    QTest::addColumn<QString>("cluster");
    QTest::addColumn<int>("nodes");
    QTest::addColumn<QString>("text");
    QTest::addColumn<QList<double>>("gigabytes"); // per axis
    QTest::addColumn<QList<bool>>("crosses");
    using G = QList<double>;
    using C = QList<bool>;
    // 450 GB/s inside a node of 8, 50 GB/s per adapter.
    QTest::newRow("a node a replica")
        << "dgx-h100" << 2 << "dp=2,tp=8" << G{50, 450} << C{true, false};
    QTest::newRow("devices 0 4 8 12: two a node")
        << "dgx-h100" << 2 << "dp=4,tp=4" << G{100, 450} << C{true, false};
    QTest::newRow("all devices: eight a node") << "dgx-h100" << 2 << "dp=16" << G{400} << C{true};
    QTest::newRow("scale-up is the narrower") // 8 x 50 > 200
        << "h800" << 2 << "dp=16" << G{200} << C{true};
    QTest::newRow("three levels") << "dgx-a100" << 4 << "pp=2,dp=4,tp=4" << G{25, 50, 300}
                                  << C{true, true, false};
    QTest::newRow("one node") << "dgx-a100" << 1 << "dp=2,tp=4" << G{300, 300} << C{false, false};
    QTest::newRow("size one") << "dgx-a100" << 2 << "pp=1,dp=2,tp=8" << G{300, 25, 300}
                              << C{false, true, false};
    // Groups of 6: devices 6-11 have two members in the first node.
    QTest::newRow("groups across a node border")
        << "dgx-h100" << 3 << "dp=4,tp=6" << G{50, 100} << C{true, true};
    QTest::newRow("one adapter for a node")
        << "p3.16xlarge" << 8 << "dp=8,tp=8" << G{0.390625, 150} << C{true, false};
    QTest::newRow("one adapter, flat") << "p3.16xlarge" << 8 << "dp=64" << G{3.125} << C{true};
    QTest::newRow("a rack is a node")
        << "gb200-nvl72" << 2 << "dp=18,tp=8" << G{450, 900} << C{true, false};
    QTest::newRow("a TPU slice is one domain")
        << "tpu-v5p" << 4 << "dp=4,tp=4" << G{600, 600} << C{false, false};
}

void TestMesh::placement() {
    QFETCH(QString, cluster);
    QFETCH(int, nodes);
    QFETCH(QString, text);
    QFETCH(QList<double>, gigabytes);
    QFETCH(QList<bool>, crosses);
    const Mesh mesh =
        layMesh(clusterByName(cluster.toStdString(), nodes), parseMesh(text.toStdString()));
    QCOMPARE(mesh.axes.size(), static_cast<std::size_t>(gigabytes.size()));
    for (qsizetype a = 0; a < gigabytes.size(); ++a) {
        const MeshAxis& axis = mesh.axes[static_cast<std::size_t>(a)];
        QCOMPARE(axis.link.bandwidth, gigabytes[a] * 1e9);
        QCOMPARE(axis.crossesNodes, crosses[a]);
    }
}

void TestMesh::placementKeepsLatency() {
    const Cluster cluster = clusterByName("dgx-a100", 2);
    const Mesh mesh = layMesh(cluster, parseMesh("dp=2,tp=8"));
    QCOMPARE(mesh.axes[0].link.latency, cluster.scaleOut.latency);
    QCOMPARE(mesh.axes[0].link.name, cluster.scaleOut.name);
    QCOMPARE(mesh.axes[1].link.latency, cluster.scaleUp.latency);
    QCOMPARE(mesh.axes[1].link.name, cluster.scaleUp.name);
}

void TestMesh::sizesMustFit() {
    const Cluster cluster = clusterByName("dgx-h100", 2);
    try {
        layMesh(cluster, parseMesh("dp=3,tp=8"));
        QFAIL("accepted");
    } catch (const PlanError& error) {
        QVERIFY2(QByteArray(error.what()).contains("24"), error.what());
        QVERIFY2(QByteArray(error.what()).contains("16"), error.what());
    }
    // A product that wraps around to 16 in 32 bits.
    const std::vector<AxisSize> huge{{"a", 65536}, {"b", 65536}, {"c", 16}};
    QVERIFY_THROWS_EXCEPTION(PlanError, layMesh(cluster, huge));
    QVERIFY_THROWS_EXCEPTION(PlanError, layMesh(cluster, {}));
}

void TestMesh::suggestions() {
    for (const ClusterInfo& info : knownClusters()) {
        for (const int nodes : {1, 2, 16}) {
            const Cluster cluster = clusterByName(info.name, nodes);
            const Mesh mesh = layMesh(cluster, defaultMesh(cluster));
            QCOMPARE(mesh.devices(), cluster.devices());
            QVERIFY(!mesh.axes.back().crossesNodes);
        }
    }
    QCOMPARE(
        layMesh(clusterByName("dgx-h100", 8), defaultMesh(clusterByName("dgx-h100", 8))).toString(),
        "dp=8,tp=8");
    QCOMPARE(
        layMesh(clusterByName("v100-32g", 8), defaultMesh(clusterByName("v100-32g", 8))).toString(),
        "dp=8,tp=4");
    QCOMPARE(layMesh(clusterByName("gb200-nvl72", 1), defaultMesh(clusterByName("gb200-nvl72", 1)))
                 .toString(),
             "dp=9,tp=8");
}

SHARDLENS_TEST(TestMesh)

} // namespace tst_mesh

#include "tst_mesh.moc"
