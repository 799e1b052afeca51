// SPDX-License-Identifier: Apache-2.0
// The SQLite wrapper and schema migrations, apart from sessions.
#include "core/store/sqlite_migration.h"
#include "session_fixture.h"
#include "tests/test_program.h"

#include <QTemporaryDir>
#include <QTest>

#include <array>

namespace tst_sqlite_database {

using namespace shardlens;
using namespace shardlens::test;

namespace {

SqliteDatabase openTable(const std::filesystem::path& file) {
    SqliteDatabase database = SqliteDatabase::open(file, SqliteDatabase::Access::Create);
    database.prepareForWriting();
    database.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c BLOB) STRICT");
    return database;
}

constexpr std::array kSteps{
    SqliteMigration{1, "CREATE TABLE a (x TEXT) STRICT; INSERT INTO a VALUES ('kept')"},
    SqliteMigration{2, "ALTER TABLE a ADD COLUMN y TEXT; UPDATE a SET y = x || '!'"},
    SqliteMigration{3, "CREATE TABLE b (z INTEGER) STRICT; INSERT INTO b VALUES (3)"}};

} // namespace

class TestSqliteDatabase : public QObject {
    Q_OBJECT

private slots:
    void valuesComeBackAsTheyWere();
    void connectionIsAsTheSchemaNeedsIt();
    void transactionRollsBackUnlessCommitted();
    void fullFileLeavesNothingHalfDone();
    void errorsNameTheFile();
    void copyTakesEverything();
    void noticesThatTheFileIsGone();
    void migrationRunsTheMissingSteps();
    void failedMigrationStopsBetweenSteps();
};

void TestSqliteDatabase::valuesComeBackAsTheyWere() {
    const QTemporaryDir folder;
    const SqliteDatabase database = openTable(pathIn(folder, "a?b#c%20 ü.db"));
    const std::string text("nul \0 and \xe2\x82\xac", 13);
    const std::vector<std::byte> blob{std::byte{0}, std::byte{255}, std::byte{7}};
    SqliteStatement insert = database.prepare("INSERT INTO t VALUES (?, ?, ?)");
    insert.bind(1, std::numeric_limits<std::int64_t>::min()).bind(2, text).bind(3, blob).run();
    insert.bind(1, std::numeric_limits<std::int64_t>::max())
        .bindOptional(2, std::nullopt)
        .bind(3, std::vector<std::byte>{})
        .run();
    insert.bind(1, 0).bind(2, std::string_view()).run();

    SqliteStatement query = database.prepare("SELECT a, b, c FROM t ORDER BY a");
    QVERIFY(query.step());
    QCOMPARE(query.integer(0), std::numeric_limits<std::int64_t>::min());
    QCOMPARE(query.text(1), text);
    QVERIFY(std::ranges::equal(query.blob(2), blob));
    QVERIFY(query.step());
    QCOMPARE(query.integer(0), std::int64_t{0});
    QVERIFY(query.optionalText(1) == std::string());
    QVERIFY(query.step());
    QVERIFY(query.optionalText(1) == std::nullopt);
    QVERIFY(query.blob(2).empty());
    QVERIFY(!query.step());
}

void TestSqliteDatabase::connectionIsAsTheSchemaNeedsIt() {
    const QTemporaryDir folder;
    const SqliteDatabase database = openTable(pathIn(folder, "x.db"));
    QCOMPARE(database.text("PRAGMA journal_mode"), std::string("wal"));
    QCOMPARE(database.integer("PRAGMA synchronous"), std::int64_t{1}); // NORMAL
    QCOMPARE(database.integer("PRAGMA foreign_keys"), std::int64_t{1});
    QCOMPARE(database.integer("PRAGMA busy_timeout"), std::int64_t{2000});
    QCOMPARE(database.integer("PRAGMA trusted_schema"), std::int64_t{0});
}

void TestSqliteDatabase::transactionRollsBackUnlessCommitted() {
    const QTemporaryDir folder;
    const SqliteDatabase database = openTable(pathIn(folder, "x.db"));
    {
        SqliteTransaction transaction(database);
        database.execute("INSERT INTO t (a) VALUES (1); INSERT INTO t (a) VALUES (2)");
        QVERIFY(database.inTransaction());
    }
    QVERIFY(!database.inTransaction());
    QCOMPARE(database.integer("SELECT count(*) FROM t"), std::int64_t{0});
    {
        SqliteTransaction transaction(database);
        database.execute("INSERT INTO t (a) VALUES (1)");
        transaction.commit();
    }
    QCOMPARE(database.integer("SELECT count(*) FROM t"), std::int64_t{1});
}

void TestSqliteDatabase::fullFileLeavesNothingHalfDone() {
    const QTemporaryDir folder;
    const SqliteDatabase database = openTable(pathIn(folder, "x.db"));
    database.limitSize(64 * 1024);
    const std::string sentence = refusal([&] {
        SqliteTransaction transaction(database);
        SqliteStatement insert = database.prepare("INSERT INTO t VALUES (?, ?, NULL)");
        for (int i = 1; i <= 100; ++i) insert.bind(1, i).bind(2, std::string(4000, 'x')).run();
        transaction.commit();
    });
    VERIFY_SAYS(sentence, "no room left to write");
    QCOMPARE(database.integer("SELECT count(*) FROM t"), std::int64_t{0});
    database.execute("INSERT INTO t (a) VALUES (1)"); // a small one still fits
    QCOMPARE(database.text("PRAGMA integrity_check"), std::string("ok"));
}

void TestSqliteDatabase::errorsNameTheFile() {
    const QTemporaryDir folder;
    const auto missing = pathIn(folder, "none/x.db");
    const std::string sentence =
        refusal([&] { SqliteDatabase::open(missing, SqliteDatabase::Access::Create); });
    VERIFY_SAYS(sentence, missing.string() + ": the file cannot be opened; check that its folder");
    const SqliteDatabase database = openTable(pathIn(folder, "x.db"));
    VERIFY_SAYS(refusal([&] { database.prepare("SELECT missing"); }), "no such column: missing");
    VERIFY_SAYS(refusal([&] { database.execute("INSERT INTO t (a) VALUES (1); nonsense"); }),
                "syntax error");
}

void TestSqliteDatabase::copyTakesEverything() {
    const QTemporaryDir folder;
    const SqliteDatabase database = openTable(pathIn(folder, "x.db"));
    database.execute("INSERT INTO t VALUES (1, 'in the log', NULL)");
    const SqliteDatabase memory = SqliteDatabase::inMemory("copy");
    database.copyTo(memory);
    QCOMPARE(memory.text("SELECT b FROM t"), std::string("in the log"));
    database.execute("DELETE FROM t");
    QCOMPARE(memory.integer("SELECT count(*) FROM t"), std::int64_t{1});
}

void TestSqliteDatabase::noticesThatTheFileIsGone() {
    const QTemporaryDir folder;
    const auto file = pathIn(folder, "x.db");
    const SqliteDatabase database = openTable(file);
    QVERIFY(!database.hasMoved());
    std::filesystem::rename(file, pathIn(folder, "y.db"));
    QVERIFY(database.hasMoved());
}

void TestSqliteDatabase::migrationRunsTheMissingSteps() {
    const QTemporaryDir folder;
    const SqliteDatabase database =
        SqliteDatabase::open(pathIn(folder, "x.db"), SqliteDatabase::Access::Create);
    migrate(database, std::span(kSteps).first(1));
    QCOMPARE(schemaVersion(database), 1);
    database.execute("INSERT INTO a VALUES ('mine')");
    migrate(database, kSteps);
    QCOMPARE(schemaVersion(database), 3);
    QCOMPARE(database.text("SELECT group_concat(y) FROM a"), std::string("kept!,mine!"));
    migrate(database, kSteps); // nothing is left to do
    QCOMPARE(database.integer("SELECT count(*) FROM b"), std::int64_t{1});
}

void TestSqliteDatabase::failedMigrationStopsBetweenSteps() {
    const QTemporaryDir folder;
    const SqliteDatabase database =
        SqliteDatabase::open(pathIn(folder, "x.db"), SqliteDatabase::Access::Create);
    std::array steps = kSteps;
    steps[1].sql = "ALTER TABLE a ADD COLUMN y TEXT; UPDATE nowhere SET y = x";
    VERIFY_SAYS(refusal([&] { migrate(database, steps); }), "no such table: nowhere");
    QCOMPARE(schemaVersion(database), 1);
    QCOMPARE(database.text("SELECT sql FROM sqlite_schema"),
             std::string("CREATE TABLE a (x TEXT) STRICT"));
    migrate(database, kSteps); // repeated with sound steps, it continues where it stopped
    QCOMPARE(schemaVersion(database), 3);
    QCOMPARE(database.text("SELECT y FROM a"), std::string("kept!"));
}

SHARDLENS_TEST(TestSqliteDatabase)

} // namespace tst_sqlite_database

#include "tst_sqlite_database.moc"
