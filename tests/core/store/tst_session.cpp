// SPDX-License-Identifier: Apache-2.0
// What a session keeps: everything put in comes out again, after each step and after reopening;
// undo and redo across reopening; against a plain model of a session over long random scripts.
#include "core/store/compression.h"
#include "core/store/request_change.h"
#include "core/store/sqlite_database.h"
#include "session_fixture.h"
#include "session_script.h"
#include "tests/test_program.h"

#include <QDateTime>
#include <QFile>
#include <QFileInfo>
#include <QTemporaryDir>
#include <QTest>

namespace tst_session {

using namespace shardlens;
using namespace shardlens::test;

namespace {

PlanRequest withBatch(const Session& session, std::int64_t batch) {
    PlanRequest request = session.content().request;
    request.batch = batch;
    return request;
}

/// Closes and opens again.
void reopen(Session& session) {
    const std::filesystem::path path = session.path();
    { const Session closing = std::move(session); }
    session = Session::open(path);
    QVERIFY2(!session.readOnly(), session.readOnlyReason().c_str());
}

} // namespace

class TestSession : public QObject {
    Q_OBJECT

private slots:
    void newSessionHoldsWhatItWasGiven();
    void everythingSurvivesReopening();
    void closedSessionIsOneFile();
    void stepKeepsOnlyWhatChanged();
    void stepThatChangesNothingIsNone();
    void undoAndRedoSurviveReopening();
    void newStepForgetsTheUndone();
    void mergedStepsUndoTogether();
    void keptPlansFollowUndo();
    void plansThatNobodyCanReachAreForgotten();
    void planNamesAreUnique();
    void viewStateIsNotUndone();
    void modelCanBeReadAnew();
    void agreesWithAPlainModel();
    void requestChangesAreExact();
    void modelFileIsRecognised();
    void packedTextsAreChecked();
};

void TestSession::newSessionHoldsWhatItWasGiven() {
    const QTemporaryDir folder;
    const NewSession given = sampleSession();
    const Session session = Session::create(pathIn(folder, "a.shardlens"), given);
    const SessionContent& content = session.content();
    QVERIFY(content.model == given.model);
    QCOMPARE(session.graph(), given.graph);
    QCOMPARE(toJson(content.request), toJson(given.request));
    QVERIFY(content.viewState == given.viewState);
    QVERIFY(content.plans.empty() && content.steps.empty());
    QCOMPARE(content.done, std::size_t{0});
    QCOMPARE(content.writtenBy, std::string(SHARDLENS_VERSION));
    QVERIFY(std::abs(content.created - QDateTime::currentSecsSinceEpoch()) < 60);
    QVERIFY(!session.readOnly() && session.readOnlyReason().empty());
}

void TestSession::everythingSurvivesReopening() {
    const QTemporaryDir folder;
    Session session = Session::create(pathIn(folder, "a.shardlens"), sampleSession());
    session.applyStep({"Batch of 64", "batch"}, withBatch(session, 64));
    const std::string text = "{\"plan\":\"" + std::string(100'000, 'x') + "\"}";
    const PlanId plan = session.savePlan({"Keep", "keep"}, {"mine", "optimum", "modelled", text});
    session.setViewState("open", R"(["layers.0"])");
    const SessionContent before = session.content();
    reopen(session);
    const SessionContent& after = session.content();
    QVERIFY(after.model == before.model);
    QCOMPARE(toJson(after.request), toJson(before.request));
    QVERIFY(after.plans == before.plans);
    QVERIFY(after.steps == before.steps);
    QCOMPARE(after.done, std::size_t{2});
    QVERIFY(after.viewState == before.viewState);
    QCOMPARE(after.viewState.at("open"), std::string(R"(["layers.0"])"));
    QCOMPARE(after.created, before.created);
    QCOMPARE(session.planText(plan), text);
    QCOMPARE(session.graph(), sampleSession().graph);
    QCOMPARE(after.plans.front().madeBy, std::string("optimum"));
    QCOMPARE(after.plans.front().provenance, std::string("modelled"));
}

void TestSession::closedSessionIsOneFile() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "a.shardlens");
    { const Session session = Session::create(path, sampleSession()); }
    QCOMPARE(QStringList(filesOf(folder.path()).keys()), QStringList("a.shardlens"));
    QFile file(folder.filePath("a.shardlens"));
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray head = file.read(100);
    QCOMPARE(head.mid(68, 4),
             QByteArray("SHLN")); // application_id: bytes 68-71, SQLite file format
    QCOMPARE(head.mid(60, 4), QByteArray("\0\0\0\1", 4)); // user_version
    const auto before = filesOf(folder.path());
    { const Session session = Session::open(path); }
    QCOMPARE(filesOf(folder.path()), before); // opening alone changes nothing
}

void TestSession::stepKeepsOnlyWhatChanged() {
    const QTemporaryDir folder;
    Session session = Session::create(pathIn(folder, "a.shardlens"), sampleSession());
    PlanRequest request = withBatch(session, 64);
    request.memoryLimitBytes.reset();
    QVERIFY(session.applyStep({"Batch of 64", "batch"}, request));
    const Step& step = session.content().steps.at(0);
    QCOMPARE(step.label, std::string("Batch of 64"));
    QCOMPARE(step.kind, std::string("batch"));
    QCOMPARE(step.before, std::string(R"({"batch":8,"memory_limit_bytes":0.1})"));
    QCOMPARE(step.after, std::string(R"({"batch":64,"memory_limit_bytes":null})"));
}

void TestSession::stepThatChangesNothingIsNone() {
    const QTemporaryDir folder;
    Session session = Session::create(pathIn(folder, "a.shardlens"), sampleSession());
    session.applyStep({"one", "batch"}, withBatch(session, 1));
    session.undo();
    QVERIFY(!session.applyStep({"none", "batch"}, session.content().request));
    QCOMPARE(session.content().steps.size(), std::size_t{1});
    QVERIFY(session.redo()); // and it did not cost the step that can be redone
}

void TestSession::undoAndRedoSurviveReopening() {
    const QTemporaryDir folder;
    Session session = Session::create(pathIn(folder, "a.shardlens"), sampleSession());
    QVERIFY(!session.undo());
    std::vector<std::string> requests{toJson(session.content().request)};
    for (int i = 1; i <= 5; ++i) {
        session.applyStep({"step", "batch"}, withBatch(session, 100 + i));
        requests.push_back(toJson(session.content().request));
    }
    QVERIFY(!session.redo());
    for (const std::size_t at : {4U, 3U, 2U, 1U, 0U}) {
        QVERIFY(session.undo());
        reopen(session);
        QCOMPARE(session.content().done, at);
        QCOMPARE(toJson(session.content().request), requests[at]);
    }
    QVERIFY(!session.undo());
    for (const std::size_t at : {1U, 2U, 3U}) {
        QVERIFY(session.redo());
        reopen(session);
        QCOMPARE(session.content().done, at);
        QCOMPARE(session.content().steps.size(), std::size_t{5});
        QCOMPARE(toJson(session.content().request), requests[at]);
    }
}

void TestSession::newStepForgetsTheUndone() {
    const QTemporaryDir folder;
    Session session = Session::create(pathIn(folder, "a.shardlens"), sampleSession());
    session.applyStep({"one", "batch"}, withBatch(session, 1));
    session.applyStep({"two", "batch"}, withBatch(session, 2));
    session.undo();
    session.applyStep({"three", "batch"}, withBatch(session, 3));
    reopen(session);
    QVERIFY(!session.redo());
    QCOMPARE(session.content().steps.size(), std::size_t{2});
    QCOMPARE(session.content().steps[1].label, std::string("three"));
    session.undo();
    QCOMPARE(session.content().request.batch, std::int64_t{1});
}

void TestSession::mergedStepsUndoTogether() {
    const QTemporaryDir folder;
    Session session = Session::create(pathIn(folder, "a.shardlens"), sampleSession());
    const auto drag = [&session](std::int64_t batch) {
        return session.applyStep({"drag", "batch"}, withBatch(session, batch),
                                 Session::Merge::WithLast);
    };
    for (const std::int64_t batch : {9, 10, 11}) QVERIFY(drag(batch));
    QCOMPARE(session.content().steps.size(), std::size_t{1});
    QCOMPARE(session.content().steps[0].before, std::string(R"({"batch":8})"));
    reopen(session);
    session.undo();
    QCOMPARE(session.content().request.batch, std::int64_t{8});
    session.redo();
    QCOMPARE(session.content().request.batch, std::int64_t{11});
    QVERIFY(drag(8)); // back where it began: no step is left
    reopen(session);
    QVERIFY(session.content().steps.empty());
    QCOMPARE(session.content().request.batch, std::int64_t{8});
}

void TestSession::keptPlansFollowUndo() {
    const QTemporaryDir folder;
    Session session = Session::create(pathIn(folder, "a.shardlens"), sampleSession());
    const PlanId plan = session.savePlan({"Keep", "keep"}, {"a", "optimum", "modelled", "{1}"});
    session.renamePlan({"Rename", "rename"}, plan, "b");
    session.removePlan({"Remove", "remove"}, plan);
    const auto names = [&session] {
        std::string text;
        for (const KeptPlan& kept : session.content().plans) text += kept.name;
        return text;
    };
    QCOMPARE(names(), std::string());
    VERIFY_SAYS(refusal([&] { session.planText(plan); }), "holds no such text");
    for (const char* expected : {"b", "a", ""}) {
        session.undo();
        QCOMPARE(names(), std::string(expected));
        reopen(session);
        QCOMPARE(names(), std::string(expected));
    }
    for (const char* expected : {"a", "b", ""}) {
        session.redo();
        QCOMPARE(names(), std::string(expected));
    }
    session.undo();
    QCOMPARE(session.planText(plan), std::string("{1}"));
}

void TestSession::plansThatNobodyCanReachAreForgotten() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "a.shardlens");
    {
        Session session = Session::create(path, sampleSession());
        session.savePlan({"Keep", "keep"}, {"undone", "", "", "{}"});
        session.undo();
        const PlanId away = session.savePlan({"Keep", "keep"}, {"put away", "", "", "{}"});
        session.removePlan({"Remove", "remove"}, away);
        session.savePlan({"Keep", "keep"}, {"kept", "", "", "{}"});
    }
    // Undo can still bring "put away" back, but not "undone".
    const SqliteDatabase database = SqliteDatabase::open(path, SqliteDatabase::Access::Immutable);
    QCOMPARE(database.integer("SELECT count(*) FROM plan"), std::int64_t{2});
}

void TestSession::planNamesAreUnique() {
    const QTemporaryDir folder;
    Session session = Session::create(pathIn(folder, "a.shardlens"), sampleSession());
    session.savePlan({"Keep", "keep"}, {"a", "", "", "{}"});
    const PlanId b = session.savePlan({"Keep", "keep"}, {"b", "", "", "{}"});
    VERIFY_SAYS(refusal([&] { session.savePlan({"Keep", "keep"}, {"a", "", "", "{}"}); }),
                "a plan named 'a' is kept already; choose another name");
    VERIFY_SAYS(refusal([&] { session.renamePlan({"Rename", "rename"}, b, "a"); }), "named 'a'");
    VERIFY_SAYS(refusal([&] { session.savePlan({"Keep", "keep"}, {"", "", "", "{}"}); }), "name");
    VERIFY_SAYS(refusal([&] { session.removePlan({"Remove", "remove"}, 99); }), "no plan 99");
    QCOMPARE(session.content().steps.size(), std::size_t{2});
}

void TestSession::viewStateIsNotUndone() {
    const QTemporaryDir folder;
    Session session = Session::create(pathIn(folder, "a.shardlens"), sampleSession());
    session.applyStep({"one", "batch"}, withBatch(session, 1));
    session.setViewState({{"zoom", ""}, {"dock", "\"BBBB\""}, {"selection", "3"}});
    session.undo();
    reopen(session);
    const std::map<std::string, std::string> expected{{"dock", "\"BBBB\""}, {"selection", "3"}};
    QVERIFY(session.content().viewState == expected);
    QVERIFY(session.redo()); // view state does not end what can be redone
}

void TestSession::modelCanBeReadAnew() {
    const QTemporaryDir folder;
    Session session = Session::create(pathIn(folder, "a.shardlens"), sampleSession());
    ModelReference model = session.content().model;
    model.hash = "sha1:changed";
    session.setModel(model, "{}");
    reopen(session);
    QVERIFY(session.content().model == model);
    QCOMPARE(session.graph(), std::string("{}"));
    QVERIFY(session.content().steps.empty());
}

void TestSession::agreesWithAPlainModel() {
    for (unsigned seed = 1; seed <= 4; ++seed) {
        const QTemporaryDir folder;
        Session session = Session::create(pathIn(folder, "a.shardlens"), sampleSession());
        ScriptModel model(sampleSession());
        for (std::size_t number = 0; number < 150; ++number) {
            play(session, operationAt(seed, number));
            model.play(operationAt(seed, number));
            if (number % 25 == 24) reopen(session);
            const std::string what = difference(session, model);
            QVERIFY2(what.empty(), fmt::format("seed {}, {}: {}", seed, number, what).c_str());
        }
    }
}

void TestSession::requestChangesAreExact() {
    const PlanRequest before = sampleSession().request;
    PlanRequest after = before;
    after.pins.clear();
    after.mode = Mode::Infer;
    after.bindings["len"] = 7;
    const RequestChange change = changeBetween(before, after);
    QCOMPARE(toJson(withFields(before, change.after)), toJson(after));
    QCOMPARE(toJson(withFields(after, change.before)), toJson(before));
    QVERIFY(changeBetween(before, before).empty());
    QVERIFY(isChange(change));
    QVERIFY(!isChange({"{}", R"({"batch":1})"}));
    QVERIFY(!isChange({R"({"batch":1})", R"({"batch":0})"}));
    QVERIFY(!isChange({R"({"colour":1})", R"({"colour":2})"}));
    QVERIFY(!isChange({R"({"version":1})", R"({"version":1})"}));
    QVERIFY(!isChange({"", ""}));
}

void TestSession::modelFileIsRecognised() {
    const QTemporaryDir folder;
    const auto path = pathIn(folder, "model.bin");
    const auto write = [&path](const QByteArray& bytes) {
        QFile file(path.c_str());
        return file.open(QIODevice::WriteOnly) && file.write(bytes) == bytes.size();
    };
    QVERIFY(write("abc"));
    const ModelReference reference = describeModelFile(path, "ONNX");
    // FIPS 180-4, the SHA-1 example of one block.
    QCOMPARE(reference.hash, std::string("sha1:a9993e364706816aba3e25717850c26c9cd0d89d"));
    QCOMPARE(reference.bytes, std::uint64_t{3});
    QCOMPARE(reference.modified / 1'000'000,
             QFileInfo(path.c_str()).lastModified().toMSecsSinceEpoch());
    QVERIFY(checkModelFile(reference) == ModelFileState::Same);

    ModelReference touched = reference;
    touched.modified -= 1'000'000'000;
    QVERIFY(checkModelFile(touched) == ModelFileState::Same); // told from its bytes
    QVERIFY(write("abd"));
    QVERIFY(checkModelFile(touched) == ModelFileState::Changed);
    QVERIFY(write("abcd"));
    QVERIFY(checkModelFile(reference) == ModelFileState::Changed);
    QVERIFY(QFile::remove(path.c_str()));
    QVERIFY(checkModelFile(reference) == ModelFileState::Missing);
    VERIFY_SAYS(refusal([&] { describeModelFile(path, "ONNX"); }), "model file cannot be read");

    // Of a long file the head is hashed; QCryptographicHash is the independent opinion.
    const QByteArray head(64 << 20, 'h');
    QVERIFY(write(head + "tail"));
    QCOMPARE(describeModelFile(path, "ONNX").hash,
             "sha1-head:" +
                 QCryptographicHash::hash(head, QCryptographicHash::Sha1).toHex().toStdString());
}

void TestSession::packedTextsAreChecked() {
    const std::string text = "a text " + std::string(10'000, 'x');
    std::vector<std::byte> packed = compress(text);
    QVERIFY(packed.size() < 200);
    QCOMPARE(decompress(packed, text.size()), text);
    QCOMPARE(decompress(compress(""), 0), std::string());
    QVERIFY_THROWS_EXCEPTION(StoreError, decompress(packed, text.size() - 1));
    QVERIFY_THROWS_EXCEPTION(StoreError, decompress(packed, text.size() + 1));
    QVERIFY_THROWS_EXCEPTION(StoreError, decompress(packed, std::uint64_t{1} << 40));
    packed[packed.size() / 2] ^= std::byte{0x10};
    QVERIFY_THROWS_EXCEPTION(StoreError, decompress(packed, text.size()));
}

SHARDLENS_TEST(TestSession)

} // namespace tst_session

#include "tst_session.moc"
