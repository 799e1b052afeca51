// SPDX-License-Identifier: Apache-2.0
// Kills a process that works on a session with SIGKILL, at random instants, 200 times: while it
// creates the file, opens it, recovers it, writes, closes it. Reopened, the session must be the
// one after the last acknowledged operation, or after the next (done, but not yet said), in every
// part, and pass SQLite's integrity check.
#include "core/store/sqlite_database.h"
#include "session_fixture.h"
#include "session_script.h"
#include "tests/test_program.h"

#include <QElapsedTimer>
#include <QFile>
#include <QFileInfo>
#include <QProcess>
#include <QProcessEnvironment>
#include <QTemporaryDir>
#include <QTest>

#include <chrono>
#include <random>
#include <thread>

namespace tst_session_kill {

using namespace shardlens;
using namespace shardlens::test;

namespace {

constexpr unsigned kSessions = kSanitized ? 5 : 20;
constexpr unsigned kKillsEach = 10;

/// How long the writer takes here, undisturbed, in microseconds: the kills are spread over it, so
/// that they hit every part of its work on a slow machine and on a quick one.
struct Pace {
    unsigned toFirstWord = 0;
    unsigned toOperations = 0; ///< from the first word to the operations
};
constexpr qsizetype kOperations = 25;

void startWriter(QProcess& process, const QString& file, unsigned seed, std::size_t first) {
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert("TMPDIR", QFileInfo(file).path()); // what it cannot clean up is ours
    process.setProcessEnvironment(environment);
    process.start(SESSION_WRITER, {file, QString::number(seed), QString::number(first), "1000000"});
    process.waitForStarted();
}

Pace measurePace() {
    const auto microseconds = [](const QElapsedTimer& timer) {
        return static_cast<unsigned>(timer.nsecsElapsed() / 1000) + 1;
    };
    QTemporaryDir folder;
    QProcess process;
    Pace pace;
    QElapsedTimer timer;
    timer.start();
    startWriter(process, folder.filePath("work.shardlens"), 1, 0);
    process.waitForReadyRead();
    pace.toFirstWord = microseconds(timer);
    timer.start();
    QByteArray said;
    while (said.count('\n') <= kOperations) {
        process.waitForReadyRead();
        said += process.readAllStandardOutput();
    }
    pace.toOperations = microseconds(timer);
    process.kill();
    process.waitForFinished();
    return pace;
}

struct Killed {
    bool ready = false;   ///< the session was open
    std::size_t said = 0; ///< operations it said it had done
    QByteArray complaint; ///< anything else it said
};

Killed runAndKill(const QString& file, unsigned seed, std::size_t first, const Pace& pace,
                  std::mt19937& random) {
    QProcess process;
    startWriter(process, file, seed, first);
    // Half of the instants count from the start of the process, half from its first word.
    unsigned window = 2 * pace.toFirstWord;
    if (random() % 2 == 0) {
        process.waitForReadyRead();
        window = pace.toOperations;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % window));
    process.kill();
    process.waitForFinished();

    Killed killed;
    QByteArrayList lines = process.readAllStandardOutput().split('\n');
    lines.removeLast();
    for (const QByteArray& line : lines) {
        if (line == "ready")
            killed.ready = true;
        else if (line.toStdString() == std::to_string(first + killed.said))
            ++killed.said;
        else
            killed.complaint += line;
    }
    return killed;
}

} // namespace

class TestSessionKill : public QObject {
    Q_OBJECT

private slots:
    void nothingAcknowledgedIsLost();
};

void TestSessionKill::nothingAcknowledgedIsLost() {
    const Pace pace = measurePace();
    std::mt19937 random(20'240'501);
    std::size_t kills = 0, acknowledged = 0, unsaid = 0, beforeReady = 0, withLog = 0, absent = 0;
    for (unsigned seed = 1; seed <= kSessions; ++seed) {
        QTemporaryDir folder;
        const QString file = folder.filePath("work.shardlens");
        ScriptModel model(sampleSession());
        std::size_t next = 0;
        for (unsigned kill = 0; kill < kKillsEach; ++kill) {
            const Killed killed = runAndKill(file, seed, next, pace, random);
            ++kills;
            QVERIFY2(killed.complaint.isEmpty(), killed.complaint.constData());
            acknowledged += killed.said;
            beforeReady += killed.ready ? 0 : 1;
            for (std::size_t i = 0; i < killed.said; ++i) model.play(operationAt(seed, next++));
            if (!QFile::exists(file)) {
                QVERIFY2(!killed.ready && next == 0, "an acknowledged session is gone");
                ++absent;
                continue;
            }
            withLog += QFileInfo(file + "-wal").size() > 0 ? 1 : 0;
            {
                const Session session = Session::open(file.toStdString());
                QVERIFY2(!session.readOnly(), session.readOnlyReason().c_str());
                if (std::string what = difference(session, model); !what.empty()) {
                    model.play(operationAt(seed, next++));
                    ++unsaid;
                    const std::string then = difference(session, model);
                    QVERIFY2(then.empty(), (what + " / " + then).c_str());
                }
            }
            const SqliteDatabase database =
                SqliteDatabase::open(file.toStdString(), SqliteDatabase::Access::Immutable);
            QCOMPARE(database.text("PRAGMA integrity_check"), std::string("ok"));
            QVERIFY(!database.prepare("PRAGMA foreign_key_check").step());
        }
    }
    QCOMPARE(kills, std::size_t{kSessions * kKillsEach});
    qInfo("%zu kills (%zu before the session was open, %zu with a log to recover, %zu before there "
          "was a file), %zu operations acknowledged, %zu done but not yet said",
          kills, beforeReady, withLog, absent, acknowledged, unsaid);
    QVERIFY(acknowledged > kills); // the test is empty if the writer never gets anywhere
    QVERIFY(withLog > kills / 10);
}

SHARDLENS_TEST(TestSessionKill)

} // namespace tst_session_kill

#include "tst_session_kill.moc"
