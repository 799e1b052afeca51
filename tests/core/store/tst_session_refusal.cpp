// SPDX-License-Identifier: Apache-2.0
// Files that are damaged, foreign, newer or out of reach, and disks that are full: each is refused
// in one clear sentence, and not a byte of the folder changes.
#include "core/store/session_schema.h"
#include "session_fixture.h"
#include "tests/test_program.h"

#include <sys/resource.h>
#include <unistd.h>

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <csignal>
#include <random>

namespace tst_session_refusal {

using namespace shardlens;
using namespace shardlens::test;

namespace {

/// A session with some history.
void makeSession(const std::filesystem::path& path) {
    Session session = Session::create(path, sampleSession());
    for (int i = 1; i <= 30; ++i) {
        PlanRequest request = session.content().request;
        request.pins.push_back({"layer " + std::to_string(i), "n@tp"});
        session.applyStep({"pin", "pin"}, request);
    }
    session.savePlan({"Keep", "keep"}, {"a", "optimum", "modelled", std::string(20'000, '7')});
    session.undo();
}

QByteArray bytesOf(const std::filesystem::path& path) {
    QFile file(path.c_str());
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

void writeBytes(const std::filesystem::path& path, const QByteArray& bytes) {
    QFile file(path.c_str());
    QVERIFY(file.open(QIODevice::WriteOnly));
    QCOMPARE(file.write(bytes), bytes.size());
}

/// Changes a session behind its back. Triggers and the like stay as they are.
void tamper(const std::filesystem::path& path, const std::string& sql) {
    SqliteDatabase::open(path, SqliteDatabase::Access::ReadWrite).execute(sql);
}

/// Opens for writing and for reading: both must refuse, in the same words, and change nothing.
std::string refusalOf(const std::filesystem::path& path) {
    const QString folder = QString::fromStdString(path.parent_path().string());
    const auto before = filesOf(folder);
    const std::string sentence = refusal([&] { Session::open(path); });
    const std::string reading = refusal([&] { Session::open(path, OpenMode::ReadOnly); });
    if (sentence != reading) return "different words: " + sentence + " / " + reading;
    if (filesOf(folder) != before) return "the folder changed";
    return sentence;
}

/// Runs a call as a user for whom permissions count.
template <typename Call>
void asOrdinaryUser(Call call) {
    const bool root = geteuid() == 0;
    if (root && seteuid(65534) != 0) QSKIP("cannot become an ordinary user");
    call();
    if (root) QCOMPARE(seteuid(0), 0);
}

} // namespace

class TestSessionRefusal : public QObject {
    Q_OBJECT

private slots:
    void fileThatIsNoSession_data();
    void fileThatIsNoSession();
    void foreignDatabase();
    void newerSession();
    void newerSessionWhoseVersionIsInTheLog();
    void truncatedSession();
    void tamperedSession_data();
    void tamperedSession();
    void damagedBytesNeverCrash();
    void damagedTextIsToldWhenItIsRead();
    void fileBeyondTheLimit();
    void fileOrFolderThatIsNotThere();
    void protectedFileOpensForReading();
    void protectedFolderOpensForReading();
    void protectedFolderAfterACrash();
    void noSessionIsMadeWhereNoneCanBe();
    void fullDisk();
    void failingDisk();
    void fileTakenAway();
};

void TestSessionRefusal::fileThatIsNoSession_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QByteArray>("says");
    QTest::newRow("empty") << QByteArray() << QByteArray("the file is empty");
    QTest::newRow("text") << QByteArray("{\"model_type\": \"llama\"}\n")
                          << QByteArray("the file is not a Shardlens session; choose");
    QTest::newRow("cut in the head")
        << QByteArray("SQLite for") << QByteArray("damaged (cut off after 10 bytes)");
    QTest::newRow("head alone") << QByteArray("SQLite format 3\0", 16)
                                << QByteArray("damaged (cut off after 16 bytes)");
    QTest::newRow("head and noise")
        << QByteArray("SQLite format 3\0", 16) + QByteArray(5000, '\0')
        << QByteArray("damaged (its pages do not fit together); go back to a copy of it");
}

void TestSessionRefusal::fileThatIsNoSession() {
    QFETCH(QByteArray, bytes);
    QFETCH(QByteArray, says);
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    writeBytes(path, bytes);
    VERIFY_SAYS(refusalOf(path), says.toStdString());
    VERIFY_SAYS(refusalOf(path), path.string() + ": ");
}

void TestSessionRefusal::foreignDatabase() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    SqliteDatabase::open(path, SqliteDatabase::Access::Create)
        .execute("CREATE TABLE t (x); PRAGMA application_id = 0x0f055112; PRAGMA user_version = 1");
    VERIFY_SAYS(refusalOf(path), "a database of another program (application id 0x0f055112)");
}

void TestSessionRefusal::newerSession() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    makeSession(path);
    tamper(path, "PRAGMA user_version = 7; CREATE TABLE of_the_future (x)");
    VERIFY_SAYS(refusalOf(path), "written by a newer Shardlens (session version 7, this program "
                                 "reads up to 1); update Shardlens to open it");
}

void TestSessionRefusal::newerSessionWhoseVersionIsInTheLog() {
    const QTemporaryDir folder, crashed;
    makeSession(pathIn(folder, "x.shardlens"));
    const auto path = pathIn(crashed, "x.shardlens");
    {
        const SqliteDatabase newer =
            SqliteDatabase::open(pathIn(folder, "x.shardlens"), SqliteDatabase::Access::ReadWrite);
        newer.execute("PRAGMA user_version = 7");
        for (const char* name : {"x.shardlens", "x.shardlens-wal"}) // as a kill leaves them
            std::filesystem::copy_file(pathIn(folder, name), pathIn(crashed, name));
    }
    QCOMPARE(filesOf(crashed.path()).size(), 2);
    VERIFY_SAYS(refusalOf(path), "session version 7");
}

void TestSessionRefusal::truncatedSession() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    makeSession(path);
    const QByteArray whole = bytesOf(path);
    QVERIFY(whole.size() > 8 * 4096);
    for (const qsizetype size :
         {qsizetype{17}, qsizetype{99}, qsizetype{100}, qsizetype{4096}, qsizetype{5000},
          whole.size() / 2, whole.size() - 4096, whole.size() - 1}) {
        writeBytes(path, whole.first(size));
        VERIFY_SAYS(refusalOf(path), "the session is damaged (");
    }
}

void TestSessionRefusal::tamperedSession_data() {
    QTest::addColumn<QByteArray>("sql");
    QTest::addColumn<QByteArray>("says");
    const auto row = [](const char* name, const char* sql, const char* says) {
        QTest::newRow(name) << QByteArray(sql) << QByteArray(says);
    };
    row("trigger", "CREATE TRIGGER t AFTER INSERT ON step BEGIN DELETE FROM plan; END",
        "tables are not as they were made");
    row("view", "CREATE VIEW v AS SELECT 1", "tables are not as they were made");
    row("table gone", "DROP TABLE view_state", "tables are not as they were made");
    row("column more", "ALTER TABLE step ADD COLUMN x TEXT", "tables are not as they were made");
    row("version 0", "PRAGMA user_version = 0", "damaged (version 0)");
    row("version -1", "PRAGMA user_version = -1", "damaged (version -1)");
    row("no session row", "DELETE FROM session", "it is empty");
    row("no model", "DELETE FROM model", "it has no model");
    row("request", "UPDATE session SET request = '{\"version\":1,\"nodes\":0}'", "'nodes' must be");
    row("newer request", "UPDATE session SET request = '{\"version\":9}'", "reads up to 2");
    row("pointer", "UPDATE session SET done = 99", "the length of its history");
    row("step gap", "DELETE FROM step WHERE number = 3", "step 4 of its history");
    row("step fields", "UPDATE step SET before = '{}' WHERE number = 5", "step 5 of its history");
    row("step text", "UPDATE step SET after = '[' WHERE number = 6", "step 6 of its history");
    row("reference", "PRAGMA foreign_keys = OFF; DELETE FROM plan", "a reference leads nowhere");
}

void TestSessionRefusal::tamperedSession() {
    QFETCH(QByteArray, sql);
    QFETCH(QByteArray, says);
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    makeSession(path);
    tamper(path, sql.toStdString());
    VERIFY_SAYS(refusalOf(path), says.toStdString());
}

void TestSessionRefusal::damagedBytesNeverCrash() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    makeSession(path);
    const QByteArray whole = bytesOf(path);
    std::mt19937 random(5);
    int refused = 0;
    for (int round = 0; round < 200; ++round) {
        QByteArray bytes = whole;
        // The head of the file is where a byte matters most.
        const auto end = static_cast<unsigned>(round % 3 == 0 ? 100 : bytes.size());
        for (unsigned i = 0; i <= random() % 4; ++i)
            bytes[static_cast<qsizetype>(random() % end)] = static_cast<char>(random());
        writeBytes(path, bytes);
        const std::string sentence = refusal([&] { Session::open(path, OpenMode::ReadOnly); });
        QCOMPARE(bytesOf(path), bytes);
        refused += sentence.empty() ? 0 : 1;
    }
    QCOMPARE(filesOf(folder.path()).size(), 1);
    QVERIFY2(refused > 100, std::to_string(refused).c_str());
}

void TestSessionRefusal::damagedTextIsToldWhenItIsRead() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    makeSession(path);
    tamper(path, "UPDATE model SET graph_bytes = graph_bytes + 1");
    const Session session = Session::open(path);
    VERIFY_SAYS(refusal([&] { session.graph(); }), "the session is damaged (a packed text");
}

void TestSessionRefusal::fileBeyondTheLimit() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    makeSession(path);
    VERIFY_SAYS(refusal([&] { Session::open(path, OpenMode::ReadWrite, {10'000}); }),
                "too large (");
}

void TestSessionRefusal::fileOrFolderThatIsNotThere() {
    const QTemporaryDir folder;
    VERIFY_SAYS(refusalOf(pathIn(folder, "none.shardlens")), "No such file or directory");
    VERIFY_SAYS(refusalOf(pathIn(folder, "none/x.shardlens")), "No such file or directory");
    VERIFY_SAYS(refusal([&] { Session::open(folder.path().toStdString()); }), "not a file");
}

void TestSessionRefusal::protectedFileOpensForReading() {
    const QTemporaryDir folder;
    QFile::setPermissions(folder.path(), QFile::Permissions(0x7777));
    const auto path = pathIn(folder, "x.shardlens");
    makeSession(path);
    const auto before = filesOf(folder.path());
    asOrdinaryUser([&] {
        QFile::setPermissions(path.c_str(), QFile::ReadOwner | QFile::ReadOther);
        Session session = Session::open(path);
        QVERIFY(session.readOnly());
        VERIFY_SAYS(session.readOnlyReason(), "the file cannot be written (Permission denied)");
        QCOMPARE(session.content().done, std::size_t{30});
        VERIFY_SAYS(refusal([&] { session.undo(); }),
                    "the session is read-only: the file cannot be written (Permission denied); "
                    "save it under another name to change it");
        QCOMPARE(session.content().done, std::size_t{30});
    });
    QCOMPARE(filesOf(folder.path()), before);
}

void TestSessionRefusal::protectedFolderOpensForReading() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    makeSession(path);
    QFile::setPermissions(folder.path(), QFile::Permissions(0x5555));
    const auto before = filesOf(folder.path());
    asOrdinaryUser([&] {
        const Session session = Session::open(path);
        QVERIFY(session.readOnly());
        VERIFY_SAYS(session.readOnlyReason(), "its lock file cannot be made (Permission denied)");
        QCOMPARE(session.content().steps.size(), std::size_t{31});
        QCOMPARE(session.graph(), sampleSession().graph);
    });
    QCOMPARE(filesOf(folder.path()), before);
    QFile::setPermissions(folder.path(), QFile::Permissions(0x7777));
}

void TestSessionRefusal::protectedFolderAfterACrash() {
    const QTemporaryDir folder, crashed;
    const auto path = pathIn(crashed, "x.shardlens");
    {
        Session session = Session::create(pathIn(folder, "x.shardlens"), sampleSession());
        session.setViewState("key", "\"in the log\"");
        for (const char* name : {"x.shardlens", "x.shardlens-wal"})
            std::filesystem::copy_file(pathIn(folder, name), pathIn(crashed, name));
    }
    QFile::setPermissions(crashed.path(), QFile::Permissions(0x5555));
    const auto before = filesOf(crashed.path());
    asOrdinaryUser([&] {
        const Session session = Session::open(path);
        QVERIFY(session.readOnly());
        QCOMPARE(session.content().viewState.at("key"), std::string("\"in the log\""));
    });
    QCOMPARE(filesOf(crashed.path()), before);
    QFile::setPermissions(crashed.path(), QFile::Permissions(0x7777));
}

void TestSessionRefusal::noSessionIsMadeWhereNoneCanBe() {
    const QTemporaryDir folder;
    const auto make = [](const std::filesystem::path& path) {
        return refusal([&] { Session::create(path, sampleSession()); });
    };
    VERIFY_SAYS(make(pathIn(folder, "none/x.shardlens")), "no such folder; choose an existing");
    const auto path = pathIn(folder, "x.shardlens");
    makeSession(path);
    const auto before = filesOf(folder.path());
    VERIFY_SAYS(make(path), "there is a file of that name already; choose another name");
    QCOMPARE(filesOf(folder.path()), before);

    QFile::setPermissions(folder.path(), QFile::Permissions(0x5555));
    asOrdinaryUser([&] {
        const auto other = pathIn(folder, "y.shardlens");
        VERIFY_SAYS(make(other), "choose a folder you may write");
        const Session session = Session::open(path, OpenMode::ReadOnly);
        VERIFY_SAYS(refusal([&] { session.saveAs(other); }), "choose a folder you may write");
        VERIFY_SAYS(
            refusal([&] { Session::createTemporary(pathIn(folder, "s"), sampleSession()); }),
            "the folder for unsaved sessions cannot be made (Permission denied)");
    });
    QCOMPARE(filesOf(folder.path()), before);
    QFile::setPermissions(folder.path(), QFile::Permissions(0x7777));
}

void TestSessionRefusal::fullDisk() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    makeSession(path);
    Session session = Session::open(path, OpenMode::ReadWrite, {200'000});
    const SessionContent before = session.content();
    std::string noise;
    std::mt19937 random(1);
    for (int i = 0; i < 200'000; ++i) noise += static_cast<char>('!' + random() % 90);
    VERIFY_SAYS(refusal([&] { session.savePlan({"Keep", "keep"}, {"large", "", "", noise}); }),
                "there is no room left to write; free disk space, then repeat; nothing changed");
    VERIFY_SAYS(refusal([&] { session.setViewState("large", noise); }), "no room left");
    QVERIFY(session.content().plans == before.plans);
    QVERIFY(session.content().steps == before.steps); // the step that can be redone is still there
    QVERIFY(session.content().viewState == before.viewState);
    QVERIFY(session.redo()); // and what fits, works
    { const Session closing = std::move(session); }

    const Session again = Session::open(path);
    QVERIFY(again.content().steps == before.steps);
    QCOMPARE(again.content().done, before.done + 1);
}

void TestSessionRefusal::failingDisk() {
    // A quota on file sizes makes write() itself fail, in the log, in the middle of a commit.
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    makeSession(path);
    Session session = Session::open(path);
    const SessionContent before = session.content();
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit old{};
    QCOMPARE(getrlimit(RLIMIT_FSIZE, &old), 0);
    const rlimit low{60'000, old.rlim_max};
    QCOMPARE(setrlimit(RLIMIT_FSIZE, &low), 0);
    std::string sentence;
    int done = 0;
    while (sentence.empty() && done < 1000) {
        sentence = refusal([&] {
            session.setViewState("key", std::to_string(done) + std::string(5000, '0'));
            ++done;
        });
    }
    const std::string saving = refusal([&] { session.saveAs(pathIn(folder, "y.shardlens")); });
    QCOMPARE(setrlimit(RLIMIT_FSIZE, &old), 0);
    VERIFY_SAYS(sentence, "the disk reports an error");
    QVERIFY(!saving.empty());
    QVERIFY(!filesOf(folder.path()).contains("y.shardlens"));
    QVERIFY(!filesOf(folder.path()).contains("y.shardlens.new"));

    const std::string last = std::to_string(done - 1) + std::string(5000, '0');
    QCOMPARE(session.content().viewState.at("key"), last);
    QVERIFY(session.undo()); // with room again the session goes on
    { const Session closing = std::move(session); }
    const Session again = Session::open(path);
    QCOMPARE(again.content().viewState.at("key"), last);
    QCOMPARE(again.content().done, before.done - 1);
}

void TestSessionRefusal::fileTakenAway() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    makeSession(path);
    Session session = Session::open(path);
    std::filesystem::rename(path, pathIn(folder, "moved.shardlens"));
    VERIFY_SAYS(refusal([&] { session.undo(); }),
                "the session's file was moved, replaced or deleted by another program; save it "
                "under another name");
    const Session saved = session.saveAs(pathIn(folder, "y.shardlens"));
    QVERIFY(saved.content().steps == session.content().steps);
    writeBytes(path, "not ours");
    Session::discard(std::move(session));
    QCOMPARE(bytesOf(path), QByteArray("not ours")); // what is there now is somebody else's
}

SHARDLENS_TEST(TestSessionRefusal)

} // namespace tst_session_refusal

#include "tst_session_refusal.moc"
