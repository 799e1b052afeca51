// SPDX-License-Identifier: Apache-2.0
// Shardings and replica groups. Expected layouts are worked out by hand from XLA's definition: tile
// assignment [a,b]<=[r,s]T(p) is iota(r*s) reshaped to [r,s], transposed by p, reshaped to [a,b];
// the tile at index (i, j) is held by the device written there.
#include "core/import/hlo_sharding.h"
#include "tests/core/import/hlo_testing.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_hlo_sharding {

using namespace shardlens;
using namespace shardlens::hlo;

namespace {

using Ints = std::vector<std::int64_t>;
using Ranges = std::vector<DeviceRange>;

} // namespace

class TestHloSharding : public QObject {
    Q_OBJECT

private slots:
    void deviceArrays_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QList<qint64>>("devices");
        QTest::addRow("iota") << "[2,4]<=[8]" << QList<qint64>{0, 1, 2, 3, 4, 5, 6, 7};
        QTest::addRow("transposed")
            << "[4,2]<=[2,4]T(1,0)" << QList<qint64>{0, 4, 1, 5, 2, 6, 3, 7};
        QTest::addRow("three") << "[2,2,2]<=[2,2,2]T(2,0,1)"
                               << QList<qint64>{0, 2, 4, 6, 1, 3, 5, 7};
        QTest::addRow("listed") << "[2,2]0,2,1,3 last_tile_dim_replicate"
                                << QList<qint64>{0, 2, 1, 3};
    }
    void deviceArrays() {
        QFETCH(QString, text);
        QFETCH(QList<qint64>, devices);
        const std::string value = text.toStdString();
        const auto array = deviceArrayIn(value);
        QVERIFY(array.has_value());
        QCOMPARE(QList<qint64>(array->devices.begin(), array->devices.end()), devices);
    }
    void badDeviceArrays() {
        for (const char* text :
             {"", "[", "[2,4]", "[2,4]<=[9]", "[2,4]<=[8", "[0]<=[0]", "[2]<=[2]T(1)",
              "[4]<=[2,2]T(0,0)", "[4]<=[2,2]T(0)", "[9223372036854775807]<=[9223372036854775807]",
              "[99999999999999999999]<=[1]", "[1048577]<=[1048577]", "[2,2]0,1,2", "[-2]<=[-2]",
              "[2]0,9223372036854775807", "[2]-1,0"})
            QVERIFY2(!deviceArrayIn(text).has_value(), text);
    }

    void replicated() {
        const auto tiling = tilingOf("{replicated}");
        QVERIFY(tiling.has_value());
        QVERIFY(tiling->dims.empty());
    }
    /// Dimension 0 in 2 (devices 4 apart), dimension 2 in 4 (neighbours).
    void tiled() {
        const auto tiling = tilingOf("{devices=[2,1,4]<=[8]}");
        QVERIFY(tiling.has_value());
        QVERIFY((tiling->dims == std::vector<Ranges>{{{4, 2}}, {}, {{1, 4}}}));
        QCOMPARE(tiling->devices, std::int64_t{8});
    }
    /// The last tile dimension holds copies: only dimension 1 is cut, by devices 1 apart.
    void partlyReplicated() {
        const auto tiling = tilingOf("{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}");
        QVERIFY(tiling.has_value());
        QVERIFY((tiling->dims == std::vector<Ranges>{{}, {{1, 4}}}));
    }
    void subgroups() {
        const auto tiling = tilingOf("{devices=[2,2,2]<=[8] last_tile_dims={manual, replicated}}");
        QVERIFY(tiling.has_value());
        QVERIFY((tiling->dims == std::vector<Ranges>{{{4, 2}}}));
    }
    /// One dimension over two axes, the minor one first in device order: device = 4*j + i for tile
    /// i*2 + j, so the major range is 1 apart and the minor one 4.
    void twoAxesOnOneDimension() {
        const auto tiling = tilingOf("{devices=[8]<=[2,4]T(1,0)}");
        QVERIFY(tiling.has_value());
        QVERIFY((tiling->dims == std::vector<Ranges>{{{1, 4}, {4, 2}}}));
    }
    void noLayouts() {
        for (const char* text :
             {"{maximal device=3}", "{manual}", "{unknown}", "{}", "", "{devices=[2,2]0,1,1,0}",
              "{devices=[3]0,1,3}", "{devices=[2]<=[2] last_tile_dims={manual, replicated}}"})
            QVERIFY2(!tilingOf(text).has_value(), text);
    }
    void tuples() {
        const auto leaves =
            leafShardings("{{replicated}, {maximal device=0}, {devices=[2,1]<=[2]}}");
        QCOMPARE(leaves.size(), std::size_t{3});
        QCOMPARE(leaves[1], std::string_view("{maximal device=0}"));
        QCOMPARE(leaves[2], std::string_view("{devices=[2,1]<=[2]}"));
        QCOMPARE(leafShardings("{devices=[2,1]<=[2]}").size(), std::size_t{1});
    }

    void meshOfTwoAxes() {
        MeshFinder finder;
        finder.atLeast(8);
        finder.add({{4, 2}});
        const auto mesh = finder.mesh();
        QCOMPARE(mesh.size(), std::size_t{2});
        QCOMPARE(mesh[0].size, std::int64_t{2});
        QCOMPARE(mesh[1].size, std::int64_t{4});
        QVERIFY((axesOf(mesh, {{4, 2}}) == std::vector<std::uint8_t>{0}));
        QVERIFY((axesOf(mesh, {{1, 4}}) == std::vector<std::uint8_t>{1}));
        QVERIFY((axesOf(mesh, {{1, 8}}) == std::vector<std::uint8_t>{0, 1}));
        QVERIFY((axesOf(mesh, {{1, 4}, {4, 2}}) == std::vector<std::uint8_t>{1, 0}));
        QVERIFY(!axesOf(mesh, {{2, 2}}).has_value());
        const auto sharding = shardingOf(mesh, *tilingOf("{devices=[4,1,2]<=[2,4]T(1,0)}"), 3);
        QVERIFY(sharding.has_value());
        QVERIFY((sharding->dims == std::vector<std::vector<std::uint8_t>>{{1}, {}, {0}}));
        QVERIFY(!shardingOf(mesh, *tilingOf("{devices=[8]<=[8]}"), 2).has_value());
    }
    void noCommonMesh() {
        MeshFinder finder;
        finder.atLeast(12);
        finder.add({{4, 3}});
        finder.add({{6, 2}});
        QVERIFY(finder.mesh().empty());
    }

    void groupsListed() {
        const auto groups = deviceGroupsIn("{{0,1,2,3},{4,5,6,7}}");
        QVERIFY(groups.has_value());
        QCOMPARE(groups->dims, (Ints{2, 4}));
        const auto ranges = rangesOf(*groups);
        QVERIFY(ranges.has_value());
        QVERIFY(((*ranges)[1] == Ranges{{1, 4}}));
    }
    void badGroups() {
        for (const char* text : {"", "{{0,9223372036854775807}}", "{{0,-1}}", "[2,2,2]<=[8]",
                                 "{{0,99999999999999999999}}"})
            QVERIFY2(!deviceGroupsIn(text).has_value(), text);
    }
    /// [2,4]<=[4,2]T(1,0): groups {0,2,4,6} and {1,3,5,7}.
    void groupsByIota() {
        const auto groups = deviceGroupsIn("[2,4]<=[4,2]T(1,0)");
        QVERIFY(groups.has_value());
        QCOMPARE(groups->devices, (Ints{0, 2, 4, 6, 1, 3, 5, 7}));
        const auto ranges = rangesOf(*groups);
        QVERIFY(ranges.has_value());
        QVERIFY(((*ranges)[1] == Ranges{{2, 4}}));
    }

    /// The annotations of a module end in its partition.
    void annotatedModule() {
        const Graph graph = test::hlo::importText(test::hlo::moduleOf(
            "  %x = f32[8,16]{1,0} parameter(0), sharding={devices=[2,1,4]<=[8] "
            "last_tile_dim_replicate}\n"
            "  %w = f32[16,32]{1,0} parameter(1), sharding={devices=[1,4,2]<=[2,4]T(1,0) "
            "last_tile_dim_replicate}\n"
            "  %m = f32[] parameter(2), sharding={maximal device=0}\n"
            "  %y = f32[8,32]{1,0} dot(%x, %w), lhs_contracting_dims={1}, "
            "rhs_contracting_dims={0}\n"
            "  ROOT %z = f32[8,32]{1,0} custom-call(%y), custom_call_target=\"Sharding\", "
            "sharding={devices=[2,4]<=[8]}\n"));
        QVERIFY(graph.partition.has_value());
        QVERIFY(!graph.partition->local);
        QCOMPARE(graph.partition->devices, std::int64_t{8});
        QCOMPARE(graph.partition->mesh.size(), std::size_t{2});
        const auto dims = [&](TensorId id) { return graph.partition->shardings.at(id).dims; };
        using Dims = std::vector<std::vector<std::uint8_t>>;
        QCOMPARE(dims(0), (Dims{{0}, {}}));
        QCOMPARE(dims(1), (Dims{{}, {1}}));
        QCOMPARE(dims(graph.outputs()[0]), (Dims{{0}, {1}})); // the marker is no op
        QVERIFY(test::hlo::outputOp(graph).kind == OpKind::Einsum);
        QVERIFY(!graph.partition->shardings.contains(2));
        QCOMPARE(graph.facts.at("sharding annotations"), std::string("4"));
        QCOMPARE(graph.warnings.size(), std::size_t{1}); // the maximal one
    }
};

SHARDLENS_TEST(TestHloSharding)

} // namespace tst_hlo_sharding

#include "tst_hlo_sharding.moc"
