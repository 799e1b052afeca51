// SPDX-License-Identifier: Apache-2.0
// Weights are never read: a model of 600 MB opens in little memory. How long it takes is measured
// by bench_import.
#include "core/import/importer.h"
#include "tests/core/import/large_onnx.h"
#include "tests/test_program.h"

#include <QTemporaryDir>
#include <QTest>

namespace tst_large_file {

using namespace shardlens;

class TestLargeFile : public QObject {
    Q_OBJECT
private slots:
    void weightsAreNotRead();
};

void TestLargeFile::weightsAreNotRead() {
    QTemporaryDir folder;
    const std::filesystem::path path = folder.filePath("large.onnx").toStdString();
    constexpr int kLayers = 150;
    constexpr std::int64_t kWidth = 1024;
    QVERIFY(test::writeLargeOnnx(path, kLayers, kWidth) > 600'000'000);
    const double before = test::privateBytes();
    const Graph graph = importModel(path);
    const double grown = test::privateBytes() - before;
    QCOMPARE(graph.parameterCount(), double{kLayers} * kWidth * kWidth);
    QVERIFY(before > 0);
    QVERIFY2(grown < 150e6, qPrintable(QString("%1 MB").arg(grown / 1e6)));
}

SHARDLENS_TEST(TestLargeFile)

} // namespace tst_large_file

#include "tst_large_file.moc"
