// SPDX-License-Identifier: Apache-2.0
// Quantities as text: three digits, the right prefix at every boundary, exact grouping.
#include "core/units.h"
#include "tests/test_program.h"

#include <QTest>

#include <cmath>
#include <limits>

namespace tst_units {

using namespace shardlens;

class TestUnits : public QObject {
    Q_OBJECT

private slots:
    void texts_data();
    void texts();
};

void TestUnits::texts_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("expected");
    const auto row = [](const std::string& text, const char* expected) {
        QTest::addRow("%s", expected) << QString::fromStdString(text) << QString(expected);
    };
    row(secondsText(0.0123), "12.3 ms");
    row(secondsText(1.5), "1.50 s");
    row(secondsText(0.99996), "1.00 s"); // not "1000 ms"
    row(secondsText(0.9994), "999 ms");
    row(secondsText(2e-7), "200 ns");
    row(secondsText(-0.0123), "-12.3 ms");
    row(secondsText(0), "0 ns");
    row(secondsText(std::numeric_limits<double>::infinity()), "∞ s");
    row(secondsText(std::nan("")), "unknown");
    row(bytesText(80.0 * 1024 * 1024 * 1024), "80 GiB");
    row(bytesText(1536), "1.50 KiB");
    row(bytesText(1023), "1023 B");
    row(countText(8'030'261'248.0), "8.03 G");
    row(countText(405'853'388'800.0), "406 G");
    row(countText(12), "12");
    row(flopsText(2.5e14), "250 TFLOP");
    row(flopsText(0), "0 FLOP");
    row(groupedText(405'853'388'800.0), "405,853,388,800");
    row(groupedText(1000), "1,000");
    row(groupedText(999), "999");
    row(groupedText(-1'234'567), "-1,234,567");
}

void TestUnits::texts() {
    QFETCH(QString, text);
    QFETCH(QString, expected);
    QCOMPARE(text, expected);
}

SHARDLENS_TEST(TestUnits)

} // namespace tst_units

#include "tst_units.moc"
