// SPDX-License-Identifier: Apache-2.0
// One writer a session: windows of one process and of several, writers that die, saving under
// another name, and unsaved sessions that a crash leaves.
#include "core/store/session_folder.h"
#include "core/store/session_lock.h"
#include "session_fixture.h"
#include "session_script.h"
#include "tests/test_program.h"

#include <unistd.h>

#include <QDateTime>
#include <QFile>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

#include <chrono>
#include <thread>

namespace tst_session_sharing {

using namespace shardlens;
using namespace shardlens::test;

namespace {

/// A process that works on a session and then keeps it open.
class Writer {
public:
    Writer(const std::filesystem::path& path, std::size_t operations) {
        m_process.start(SESSION_WRITER,
                        {path.c_str(), "1", "0", QString::number(qulonglong(operations))});
    }
    /// Waits for a line; returns what came before it.
    bool waitFor(const QByteArray& line) {
        while (!m_said.contains(line + "\n")) {
            if (!m_process.waitForReadyRead()) return false;
            m_said += m_process.readAllStandardOutput();
        }
        return true;
    }
    /// Operations it has said it did.
    std::size_t acknowledged() {
        m_process.waitForReadyRead(0);
        m_said += m_process.readAllStandardOutput();
        return static_cast<std::size_t>(m_said.count('\n')) - 1; // "ready"
    }
    std::string said() const { return m_said.toStdString(); }
    qint64 pid() const { return m_process.processId(); }
    void kill() {
        m_process.kill();
        m_process.waitForFinished();
    }
    int finish() {
        m_process.closeWriteChannel();
        m_process.waitForFinished();
        return m_process.exitCode();
    }

private:
    QProcess m_process;
    QByteArray m_said;
};

void makeSession(const std::filesystem::path& path) {
    const Session session = Session::create(path, sampleSession());
}

PlanRequest withBatch(const Session& session, std::int64_t batch) {
    PlanRequest request = session.content().request;
    request.batch = batch;
    return request;
}

} // namespace

class TestSessionSharing : public QObject {
    Q_OBJECT

private slots:
    void secondWindowOfAProcessIsReadOnly();
    void secondProcessIsReadOnlyAndNamesTheFirst();
    void lockOfAKilledProcessVanishes();
    void readersSeeWholeStepsWhileAWriterWrites();
    void readersDoNotHinderEachOther();
    void sessionOpenOnAnotherComputer();
    void symbolicLinksLeadToTheSameLock();
    void saveAsMakesACompleteCopy();
    void saveAsReplacesAFileAndItsLog();
    void saveAsRefusesAFileThatIsOpen();
    void readOnlySessionCanBeSaved();
    void discardLeavesNothing();
    void temporarySessionsAreFoundAfterACrash();
    void remainsAreSweptUp();
    void folderOfUnsavedSessions();
};

void TestSessionSharing::secondWindowOfAProcessIsReadOnly() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    makeSession(path);
    Session first = Session::open(path);
    first.applyStep({"one", "batch"}, withBatch(first, 77));
    {
        Session second = Session::open(path);
        QVERIFY(second.readOnly());
        VERIFY_SAYS(second.readOnlyReason(),
                    fmt::format("it is open in another window (process {} on host ", getpid()));
        QCOMPARE(second.content().request.batch, std::int64_t{77});
        VERIFY_SAYS(refusal([&] { second.applyStep({"x", "batch"}, withBatch(second, 1)); }),
                    "the session is read-only: it is open in another window");
        VERIFY_SAYS(refusal([&] { second.setViewState("a", "1"); }), "read-only");
    }
    // The second one's closing must not have taken the first one's locks.
    const Session third = Session::open(path);
    QVERIFY(third.readOnly());
    QVERIFY(first.undo());
    QCOMPARE(third.content().request.batch, std::int64_t{77}); // a copy of that moment
}

void TestSessionSharing::secondProcessIsReadOnlyAndNamesTheFirst() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    Writer writer(path, 40);
    QVERIFY(writer.waitFor("done"));
    {
        const Session session = Session::open(path);
        QVERIFY(session.readOnly());
        char host[256] = {};
        gethostname(host, sizeof host - 1);
        VERIFY_SAYS(session.readOnlyReason(),
                    fmt::format("it is open in another window (process {} on host {} since 20",
                                writer.pid(), host));
        ScriptModel model(sampleSession());
        for (std::size_t i = 0; i < 40; ++i) model.play(operationAt(1, i));
        QCOMPARE(difference(session, model), std::string());
        QVERIFY(Session::open(path, OpenMode::ReadOnly).readOnly());
    }
    QCOMPARE(writer.finish(), 0);
    QCOMPARE(QStringList(filesOf(folder.path()).keys()), QStringList("x.shardlens"));
    QVERIFY(!Session::open(path).readOnly());

    // And the other way round: the window here, the second opener there.
    const Session session = Session::open(path);
    Writer second(path, 0);
    QVERIFY(second.waitFor("done"));
    VERIFY_SAYS(second.said(), fmt::format("open in another window (process {} on", getpid()));
    QCOMPARE(second.finish(), 0);
}

void TestSessionSharing::lockOfAKilledProcessVanishes() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    Writer writer(path, 40);
    QVERIFY(writer.waitFor("done"));
    QVERIFY(Session::open(path).readOnly());
    writer.kill();
    QVERIFY(filesOf(folder.path()).contains("x.shardlens.lock")); // the file is there, the lock not
    {
        const Session session = Session::open(path);
        QVERIFY2(!session.readOnly(), session.readOnlyReason().c_str());
    }
    QCOMPARE(QStringList(filesOf(folder.path()).keys()), QStringList("x.shardlens"));
}

void TestSessionSharing::readersSeeWholeStepsWhileAWriterWrites() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    Writer writer(path, 1'000'000);
    QVERIFY(writer.waitFor("3"));
    ScriptModel model(sampleSession());
    std::size_t played = 0;
    for (int round = 0; round < 12; ++round) {
        const std::size_t said = writer.acknowledged();
        const Session session = Session::open(path, OpenMode::ReadOnly);
        while (played < said) model.play(operationAt(1, played++));
        // It may hold more than was said before it was opened, but only whole operations.
        std::string what = difference(session, model);
        for (int ahead = 0; !what.empty() && ahead < 500; ++ahead) {
            model.play(operationAt(1, played++));
            what = difference(session, model);
        }
        QVERIFY2(what.empty(), what.c_str());
    }
    writer.kill();
}

void TestSessionSharing::readersDoNotHinderEachOther() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    makeSession(path);
    const auto before = filesOf(folder.path());
    {
        const Session a = Session::open(path, OpenMode::ReadOnly);
        const Session b = Session::open(path, OpenMode::ReadOnly);
        QCOMPARE(a.readOnlyReason(), std::string("it was opened for reading only"));
        QCOMPARE(b.readOnlyReason(), a.readOnlyReason());
        QCOMPARE(filesOf(folder.path()), before); // they hold no lock and no side files
        QVERIFY(!Session::open(path).readOnly());
    }
    // A writer waits out a reader that is at it just now.
    auto reader = SessionLock::tryShared(path);
    QVERIFY(std::holds_alternative<SessionLock>(reader));
    std::thread releasing([&reader] {
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
        reader = SessionLock::Impossible{};
    });
    const Session session = Session::open(path);
    releasing.join();
    QVERIFY2(!session.readOnly(), session.readOnlyReason().c_str());
}

void TestSessionSharing::sessionOpenOnAnotherComputer() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    const Session session = Session::create(path, sampleSession());
    QFile lock(SessionLock::fileFor(path).c_str());
    QVERIFY(lock.open(QIODevice::WriteOnly | QIODevice::Truncate));
    lock.write(R"({"process":12,"host":"elsewhere.example","since":"2024-05-01T10:00:00Z"})");
    lock.close();
    VERIFY_SAYS(refusal([&] { Session::open(path); }),
                "open on another computer (process 12 on host elsewhere.example since "
                "2024-05-01T10:00:00Z); close it there");
}

void TestSessionSharing::symbolicLinksLeadToTheSameLock() {
    const QTemporaryDir folder, other;
    const auto path = pathIn(folder, "x.shardlens");
    makeSession(path);
    std::filesystem::create_symlink(path, pathIn(other, "link.shardlens"));
    const Session session = Session::open(path);
    QVERIFY(Session::open(pathIn(other, "link.shardlens")).readOnly());
}

void TestSessionSharing::saveAsMakesACompleteCopy() {
    const QTemporaryDir folder;
    Session session = Session::create(pathIn(folder, "x.shardlens"), sampleSession());
    ScriptModel model(sampleSession());
    for (std::size_t i = 0; i < 60; ++i) {
        play(session, operationAt(3, i));
        model.play(operationAt(3, i));
    }
    Session copy = session.saveAs(pathIn(folder, "y.shardlens"));
    QVERIFY(!copy.readOnly());
    QCOMPARE(difference(copy, model), std::string());
    QCOMPARE(copy.graph(), session.graph());
    copy.applyStep({"only there", "batch"}, withBatch(copy, 4321));
    QCOMPARE(difference(session, model), std::string());
    VERIFY_SAYS(refusal([&] { copy.saveAs(copy.path()); }), "this is the session's own file");
    copy = copy.saveAs(pathIn(folder, "z.shardlens")); // as the window does
    QVERIFY(!Session::open(pathIn(folder, "y.shardlens")).readOnly());
    QCOMPARE(copy.content().request.batch, std::int64_t{4321});
}

void TestSessionSharing::saveAsReplacesAFileAndItsLog() {
    const QTemporaryDir folder;
    const auto target = pathIn(folder, "y.shardlens");
    Writer writer(target, 20);
    QVERIFY(writer.waitFor("done"));
    writer.kill(); // leaves a log that belongs to the old file
    QVERIFY(filesOf(folder.path()).contains("y.shardlens-wal"));
    Session session = Session::create(pathIn(folder, "x.shardlens"), sampleSession());
    session.applyStep({"mine", "batch"}, withBatch(session, 55));
    { const Session saved = session.saveAs(target); }
    const Session again = Session::open(target);
    QCOMPARE(again.content().steps.size(), std::size_t{1});
    QCOMPARE(again.content().request.batch, std::int64_t{55});
}

void TestSessionSharing::saveAsRefusesAFileThatIsOpen() {
    const QTemporaryDir folder;
    const auto target = pathIn(folder, "y.shardlens");
    Writer writer(target, 5);
    QVERIFY(writer.waitFor("done"));
    const Session session = Session::create(pathIn(folder, "x.shardlens"), sampleSession());
    const auto before = filesOf(folder.path());
    VERIFY_SAYS(refusal([&] { session.saveAs(target); }),
                fmt::format("the session is open in another window (process {}", writer.pid()));
    QCOMPARE(filesOf(folder.path()), before);
    QCOMPARE(writer.finish(), 0);
}

void TestSessionSharing::readOnlySessionCanBeSaved() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    const Session first = Session::create(path, sampleSession());
    const Session second = Session::open(path);
    QVERIFY(second.readOnly());
    VERIFY_SAYS(refusal([&] { second.saveAs(path); }), "open in another window");
    Session saved = second.saveAs(pathIn(folder, "y.shardlens"));
    QVERIFY(!saved.readOnly());
    QVERIFY(saved.applyStep({"one", "batch"}, withBatch(saved, 3)));
}

void TestSessionSharing::discardLeavesNothing() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "x.shardlens");
    Session session = Session::create(path, sampleSession());
    session.applyStep({"one", "batch"}, withBatch(session, 3));
    Session::discard(Session::open(path)); // read-only: only closed
    QVERIFY(std::filesystem::exists(path));
    Session::discard(std::move(session));
    QVERIFY(filesOf(folder.path()).isEmpty());
}

void TestSessionSharing::temporarySessionsAreFoundAfterACrash() {
    const QTemporaryDir folder;
    const auto sessions = pathIn(folder, "state/shardlens/sessions");
    QVERIFY(recoverableSessions(sessions).empty()); // no folder
    Session first = Session::createTemporary(sessions, sampleSession());
    const Session second = Session::createTemporary(sessions, sampleSession());
    QVERIFY(first.path() != second.path());
    QVERIFY(!first.readOnly() && !second.readOnly());
    QVERIFY(recoverableSessions(sessions).empty()); // both are open
    const auto permissions = std::filesystem::status(sessions).permissions();
    QVERIFY(permissions == std::filesystem::perms::owner_all);

    Writer writer(sessions / "killed.shardlens", 30);
    QVERIFY(writer.waitFor("done"));
    QVERIFY(recoverableSessions(sessions).empty());
    writer.kill();
    QFile broken(QString::fromStdString((sessions / "broken.shardlens").string()));
    QVERIFY(broken.open(QIODevice::WriteOnly));
    broken.write("SQLite format 3");
    broken.close();
    std::filesystem::last_write_time(sessions / "broken.shardlens",
                                     std::filesystem::file_time_type::clock::now() -
                                         std::chrono::hours(24));

    ScriptModel model(sampleSession());
    for (std::size_t i = 0; i < 30; ++i) model.play(operationAt(1, i));
    const auto found = recoverableSessions(sessions);
    QCOMPARE(found.size(), std::size_t{2});
    QCOMPARE(found[0].path.filename().string(), std::string("killed.shardlens"));
    QCOMPARE(found[0].steps, model.now);
    QCOMPARE(found[0].model, std::string("models/tiny.onnx"));
    QCOMPARE(found[0].problem, std::string());
    QVERIFY(std::abs(found[0].modified - QDateTime::currentSecsSinceEpoch()) < 60);
    QCOMPARE(found[1].path.filename().string(), std::string("broken.shardlens"));
    VERIFY_SAYS(found[1].problem, "damaged (cut off after 15 bytes)");

    const Session recovered = Session::open(found[0].path);
    QVERIFY(!recovered.readOnly());
    QCOMPARE(difference(recovered, model), std::string());
    Session::discard(std::move(first));
}

void TestSessionSharing::remainsAreSweptUp() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "kept.shardlens");
    makeSession(path);
    for (const char* name : {"a.shardlens.new", "a.shardlens.new-journal", "b.shardlens.lock",
                             "other.txt", "other.lock"}) {
        QFile file(folder.filePath(name));
        QVERIFY(file.open(QIODevice::WriteOnly));
    }
    QCOMPARE(recoverableSessions(folder.path().toStdString()).size(), std::size_t{1});
    QCOMPARE(QStringList(filesOf(folder.path()).keys()),
             QStringList({"kept.shardlens", "other.lock", "other.txt"}));
}

void TestSessionSharing::folderOfUnsavedSessions() {
    const QByteArray home = qgetenv("HOME"), state = qgetenv("XDG_STATE_HOME");
    qputenv("HOME", "/home/ada");
    qunsetenv("XDG_STATE_HOME");
    QCOMPARE(unsavedSessionsFolder().string(),
             std::string("/home/ada/.local/state/shardlens/sessions"));
    qputenv("XDG_STATE_HOME", "relative"); // to be ignored, says the specification
    QCOMPARE(unsavedSessionsFolder().string(),
             std::string("/home/ada/.local/state/shardlens/sessions"));
    qputenv("XDG_STATE_HOME", "/var/state");
    QCOMPARE(unsavedSessionsFolder().string(), std::string("/var/state/shardlens/sessions"));
    qunsetenv("HOME");
    qunsetenv("XDG_STATE_HOME");
    VERIFY_SAYS(refusal([] { unsavedSessionsFolder(); }), "no home folder for unsaved sessions");
    qputenv("HOME", home);
    if (!state.isEmpty()) qputenv("XDG_STATE_HOME", state);
}

SHARDLENS_TEST(TestSessionSharing)

} // namespace tst_session_sharing

#include "tst_session_sharing.moc"
