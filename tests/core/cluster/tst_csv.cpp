// SPDX-License-Identifier: Apache-2.0
// CSV against the rules and examples of RFC 4180 section 2.
#include "core/cluster/csv.h"
#include "core/error.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_csv {

using namespace shardlens;
using Fields = std::vector<std::string>;

class TestCsv : public QObject {
    Q_OBJECT

private slots:
    void plainFields();
    void quotedFields();
    void emptyFieldsAndLastLine();
    void columns();
    void errors_data();
    void errors();
};

void TestCsv::plainFields() {
    const CsvTable table = parseCsv("a,b,c\r\naaa,bbb,ccc\r\nzzz,yyy,xxx\r\n", "t.csv");
    QCOMPARE(table.header, (Fields{"a", "b", "c"}));
    QCOMPARE(table.rows.size(), std::size_t{2});
    QCOMPARE(table.rows[0].fields, (Fields{"aaa", "bbb", "ccc"}));
    QCOMPARE(table.rows[1].fields, (Fields{"zzz", "yyy", "xxx"}));
    QCOMPARE(table.rows[1].line, std::size_t{3});
}

void TestCsv::quotedFields() {
    const CsvTable table =
        parseCsv("a,b,c\n\"aaa\",\"b\r\nbb\",\"c,\"\"c\"\"\"\nx,\"\",z\n", "t.csv");
    QCOMPARE(table.rows[0].fields, (Fields{"aaa", "b\r\nbb", "c,\"c\""}));
    QCOMPARE(table.rows[1].fields, (Fields{"x", "", "z"}));
    QCOMPARE(table.rows[1].line, std::size_t{4}); // the quoted line break counts
}

void TestCsv::emptyFieldsAndLastLine() {
    const CsvTable table = parseCsv("a,b\n,\nx,", "t.csv");
    QCOMPARE(table.rows[0].fields, (Fields{"", ""}));
    QCOMPARE(table.rows[1].fields, (Fields{"x", ""}));
}

void TestCsv::columns() {
    const CsvTable table = parseCsv("a,b\n1,2\n", "t.csv");
    QCOMPARE(table.column("b"), std::size_t{1});
    QCOMPARE(table.where(table.rows[0]), "t.csv, line 2");
    QVERIFY_THROWS_EXCEPTION(InputError, table.column("c"));
}

void TestCsv::errors_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("says");
    QTest::newRow("empty") << QByteArray("") << QByteArray("empty");
    QTest::newRow("short row") << QByteArray("a,b\n1\n") << QByteArray("line 2");
    QTest::newRow("long row") << QByteArray("a,b\n1,2\n1,2,3\n") << QByteArray("line 3");
    QTest::newRow("open quote") << QByteArray("a\n\"x\ny") << QByteArray("not closed");
    QTest::newRow("text after quote") << QByteArray("a\n\"x\"y\n") << QByteArray("goes on");
    QTest::newRow("stray quote") << QByteArray("a\nx\"y\n") << QByteArray("inside");
}

void TestCsv::errors() {
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, says);
    try {
        parseCsv(text.toStdString(), "t.csv");
        QFAIL("accepted");
    } catch (const InputError& error) {
        QVERIFY2(QByteArray(error.what()).contains(says), error.what());
        QVERIFY2(QByteArray(error.what()).contains("t.csv"), error.what());
    }
}

SHARDLENS_TEST(TestCsv)

} // namespace tst_csv

#include "tst_csv.moc"
