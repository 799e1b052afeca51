// SPDX-License-Identifier: Apache-2.0
// A whole job in the window, driven as a user does: stages turned on in the panel, boundaries
// dragged and aimed with keys, the plan's own schedule in the timeline, one selection everywhere,
// and a session that brings all of it back. Expected stages come from the request's pins and from
// the planner called beside the window; places from the share of the layers above a boundary.
#include "tests/test_program.h"
#include "ui/format.h"
#include "ui/main_window.h"
#include "ui/panels/mesh_panel.h"
#include "ui/panels/pipeline_panel.h"
#include "ui/panels/sweep_panel.h"
#include "ui/panels/timeline_panel.h"
#include "ui/views/legend.h"

#include <QAbstractItemModelTester>
#include <QAccessible>
#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QLabel>
#include <QLineEdit>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTableView>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTest>
#include <QTextBrowser>
#include <QXmlStreamReader>

namespace tst_pipeline_window {

using namespace shardlens;

namespace {

constexpr int kWait = 60'000;
constexpr int kLayers = 16;
constexpr auto kModel = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
 "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 16,
 "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 1024,
 "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "hidden_act": "silu",
 "tie_word_embeddings": false})";

} // namespace

class TestPipelineWindow : public QObject {
    Q_OBJECT

    QTemporaryDir m_scratch;
    std::unique_ptr<MainWindow> m_window;

    QString file(const QString& name) const { return m_scratch.filePath(name); }
    Document& document() { return m_window->document(); }
    GraphView& view() { return m_window->graphView(); }
    TimelinePanel& timeline() { return m_window->timeline(); }
    const PipelinePlan& plan() { return *document().pipeline(); }

    template <typename Widget>
    Widget* child(const char* name) {
        auto* found = m_window->findChild<Widget*>(QLatin1String(name));
        if (!found) qFatal("no widget %s", name);
        return found;
    }

    void wait() { QVERIFY(m_window->waitForIdle(kWait)); }

    std::unique_ptr<MainWindow> open(const QString& name) const {
        MainWindowOptions options;
        options.settingsFile = file(QStringLiteral("settings.ini"));
        options.document.temporaryFolder = file(QStringLiteral("unsaved")).toStdString();
        auto made = std::make_unique<MainWindow>(name, options);
        made->resize(1500, 1000);
        made->show();
        return made;
    }

    /// Types a number into a field of the panel.
    void type(const char* name, int value) {
        auto* box = child<QSpinBox>(name);
        box->setFocus();
        box->selectAll();
        QTest::keyClicks(box, QString::number(value));
        QTest::keyClick(box, Qt::Key_Return);
        wait();
    }

    void move(QPoint to, Qt::MouseButtons buttons) {
        QMouseEvent event(QEvent::MouseMove, to, view().mapToGlobal(to), Qt::NoButton, buttons, {});
        QApplication::sendEvent(&view(), &event);
    }

    void drag(int boundary, int to) {
        const QPoint from = view().handleRect(boundary).center().toPoint();
        const QPoint target = view().placeOf(to).toPoint();
        QTest::mousePress(&view(), Qt::LeftButton, {}, from);
        move((from + target) / 2, Qt::LeftButton);
        move(target, Qt::LeftButton);
        QTest::mouseRelease(&view(), Qt::LeftButton, {}, target);
        wait();
    }

    std::vector<int> firsts() {
        std::vector<int> units;
        for (const PlannedStage& stage : plan().answer.stages) units.push_back(stage.first);
        return units;
    }

    bool begins(int unit) {
        const std::vector<int> units = firsts();
        return std::ranges::find(units, unit) != units.end();
    }

    /// Four stages of the small model, none in chunks, folded and all in sight.
    void fourStages() {
        PipelineSetup setup;
        setup.schedules = {"1f1b", "zb-h1"};
        setup.stages = 4;
        QVERIFY(document().changePipeline(setup, QStringLiteral("four stages")));
        wait();
        view().fitAll();
        QVERIFY(document().pipeline());
        QCOMPARE(plan().stages(), 4);
        QCOMPARE(plan().answer.schedule.chunks, 1);
    }

    /// Four stages of two chunks each.
    void interleaved() {
        PlanRequest request = document().request();
        request.batch = 32;
        request.pipeline = PipelineSetup{};
        request.pipeline->schedules = {"interleaved"};
        request.pipeline->chunks = 2;
        request.pipeline->stages = 4;
        QVERIFY(document().changeSetup(request, QStringLiteral("interleaved")));
        wait();
        QVERIFY2(document().pipelineError().isEmpty(), qPrintable(document().pipelineError()));
        view().fitAll();
        QVERIFY(document().pipeline());
        QCOMPARE(plan().stages(), 4);
        QCOMPARE(plan().answer.schedule.chunks, 2);
    }

    /// Layers of a chunk of a stage of the interleaved plan, first and one after the last: chunk
    /// for chunk each stage has half of what it holds. Unit 0 is the embedding.
    std::pair<int, int> layersOf(int stage, int chunk) {
        int next = 0;
        for (int c = 0; c < 2; ++c)
            for (std::size_t s = 0; s < 4; ++s) {
                const PlannedStage& held = plan().answer.stages[s];
                const int first = std::max(held.first, 1), last = std::min(held.last, kLayers);
                const int begin = next;
                next += (last - first + 1) / 2;
                if (c == chunk && static_cast<int>(s) == stage) return {begin, next};
            }
        return {-1, -1};
    }

    /// A layer in the middle of a stage, where none begins.
    int freeUnit() {
        for (int unit = 2; unit < kLayers; ++unit)
            if (!begins(unit)) return unit;
        return -1;
    }

private slots:
    void initTestCase();
    void init();
    void cleanup() { m_window.reset(); }
    void panelTurnsStagesOn();
    void boundariesAreWhereTheLayersAre();
    void chunksAreWhereTheirLayersAre();
    void chunksAreOneStage();
    void chunksMoveTogether();
    void dragIsAPinAndAnUndoStep();
    void keysAimAndFree();
    void boundariesAreSpoken();
    void dragTellsBeforeItIsDone();
    void dropWhereItWasChangesNothing();
    void pinsThatCannotHoldAreMarked();
    void timelineShowsThePlan();
    void selectionIsShared();
    void stageIsLookedInto();
    void editedDurationChangesTheStep();
    void exports();
    void sessionBringsThePlanBack();
    void viewsPaintEveryPixel();
    void offIsOff();
    void gpt3();
};

void TestPipelineWindow::initTestCase() {
    QVERIFY(m_scratch.isValid());
    installGraphAccessibility();
    QFile model(file(QStringLiteral("model.json")));
    QVERIFY(model.open(QIODevice::WriteOnly));
    model.write(kModel);
}

void TestPipelineWindow::init() {
    m_window = open(file(QStringLiteral("model.json")));
    wait();
    m_window->findChild<QWidget*>(QStringLiteral("pipelineDock"))->raise();
}

void TestPipelineWindow::panelTurnsStagesOn() {
    QAbstractItemModelTester tester(m_window->pipelinePanel().model(),
                                    QAbstractItemModelTester::FailureReportingMode::QtTest);
    QVERIFY(!document().pipeline());
    QCOMPARE(m_window->pipelinePanel().model()->rowCount(), 0);
    QTest::mouseClick(child<QCheckBox>("pipelineOn"), Qt::LeftButton, {}, {8, 8});
    wait();
    QTest::mouseClick(child<QCheckBox>("pipelineSchedule.interleaved"), Qt::LeftButton, {}, {8, 8});
    wait();
    type("pipelineStages", 4);
    QVERIFY(document().pipeline());
    QCOMPARE(plan().answer.schedule.chunks, 1);
    QCOMPARE(m_window->pipelinePanel().model()->rowCount(), 4);
    QVERIFY(plan().answer.bound <= plan().answer.seconds);
    // the same question asked beside the window
    StagePricer pricer = makeStagePricer(file(QStringLiteral("model.json")).toStdString(),
                                         document().bundle(), document().request());
    QCOMPARE(plan().answer.seconds, planJob(pricer, document().request()).seconds);
    type("pipelineMicroBatches", 2);
    QCOMPARE(plan().answer.microBatches, 2);
    const QString totals = child<QLabel>("totalJob")->text();
    QVERIFY2(totals.contains(QStringLiteral("4 stages")), qPrintable(totals));
    QVERIFY2(totals.contains(QStringLiteral("2 micro-batches")), qPrintable(totals));
    document().undoStack()->undo();
    wait();
    QVERIFY(!document().request().pipeline->microBatches);
    QCOMPARE(child<QSpinBox>("pipelineMicroBatches")->value(), 0);
}

void TestPipelineWindow::boundariesAreWhereTheLayersAre() {
    fourStages();
    const std::vector<int> shown = view().boundaries();
    QCOMPARE(shown.size(), std::size_t{3});
    const int block = view().itemOfRun(0);
    QVERIFY(block >= 0);
    double top = 0, bottom = 0; // of all stages inside the box
    for (int s = 0; s < 4; ++s) {
        const QRectF band = view().bandRect(block, s);
        if (band.isNull()) continue;
        if (top == 0) top = band.top();
        bottom = band.bottom();
    }
    QVERIFY(bottom > top);
    for (std::size_t i = 0; i < shown.size(); ++i) {
        QCOMPARE(shown[i], firsts()[i + 1]);
        // unit 0 is the embedding: layer l is unit l + 1
        const double share = static_cast<double>(shown[i] - 1) / kLayers;
        QVERIFY(std::abs(view().placeOf(shown[i]).y() - (top + share * (bottom - top))) < 1.5);
        QVERIFY(view().handleRect(shown[i]).height() >= 11); // can be grasped
    }
    // opened, the frame is divided the same way
    m_window->graph().openRun(0);
    wait();
    const QRectF frame = view().itemRect(view().itemOfRun(0));
    for (const int unit : shown)
        QVERIFY(std::abs(view().placeOf(unit).y() -
                         (frame.top() + frame.height() * (unit - 1) / kLayers)) < 1.5);
}

void TestPipelineWindow::chunksAreWhereTheirLayersAre() {
    interleaved();
    const int block = view().itemOfRun(0);
    const double top = view().bandRect(block, 0, 0).top();
    const double bottom = view().bandRect(block, 3, 1).bottom();
    const auto at = [&](int layer) { return top + (bottom - top) * layer / kLayers; };
    std::vector<int> starts; // chunks of all stages but the first can be moved
    for (int chunk = 0; chunk < 2; ++chunk)
        for (int stage = 0; stage < 4; ++stage) {
            const auto [first, end] = layersOf(stage, chunk);
            const QRectF band = view().bandRect(block, stage, chunk);
            QVERIFY(std::abs(band.top() - at(first)) < 1.5);
            QVERIFY(std::abs(band.bottom() - at(end)) < 1.5);
            if (stage > 0) starts.push_back(first + 1);
        }
    QCOMPARE(view().boundaries(), starts);
    for (const int unit : starts) QVERIFY(std::abs(view().placeOf(unit).y() - at(unit - 1)) < 1.5);
    QCOMPARE(view().overlay()->stages.chunkStarts(), std::vector<int>{layersOf(0, 1).first + 1});
    QCOMPARE(layersOf(3, 1).second, kLayers);
}

void TestPipelineWindow::chunksAreOneStage() {
    interleaved();
    const auto words = [&](int chunk) {
        const auto [first, end] = layersOf(1, chunk);
        return end == first + 1 ? QString::number(first)
                                : QStringLiteral("%1-%2").arg(first).arg(end - 1);
    };
    const QString layers = words(0) + QStringLiteral(", ") + words(1);
    auto* table = child<QTableView>("stagesTable");
    const QModelIndex row = table->model()->index(1, StagesModel::Begins);
    QVERIFY2(row.data().toString().endsWith(layers), qPrintable(row.data().toString()));
    QVERIFY(row.data(Qt::ToolTipRole).toString().contains(layers));
    QVERIFY(view().describeStage(1).contains(layers));
    QVERIFY(m_window->mesh().view()->describe(plan().devicesOf(1).first).contains(layers));
    // either chunk selects the stage, as a layer of it does
    const int block = view().itemOfRun(0);
    for (const int chunk : {1, 0}) {
        document().selectStage(-1);
        QTest::mouseClick(&view(), Qt::LeftButton, {},
                          view().bandRect(block, 1, chunk).center().toPoint());
        QCOMPARE(document().selectedStage(), 1);
    }
    for (int chunk = 0; chunk < 2; ++chunk)
        for (int stage = 0; stage < 4; ++stage) {
            const auto unit = static_cast<std::size_t>(layersOf(stage, chunk).first) + 1;
            document().selectOp(plan().units.units[unit].ops.back());
            QCOMPARE(document().selectedStage(), stage);
        }
}

/// A boundary that moves by a layer is one more layer in every chunk of the stage before.
void TestPipelineWindow::chunksMoveTogether() {
    interleaved();
    const int boundary = layersOf(2, 1).first + 1, cut = firsts()[2];
    QVERIFY(document().moveBoundary(boundary, boundary + 1));
    wait();
    QCOMPARE(document().request().pipeline->cuts, std::vector<int>{cut + 2});
    QVERIFY2(document().pipelineError().isEmpty(), qPrintable(document().pipelineError()));
    QVERIFY(begins(cut + 2));
    // pinned in both chunks, freed by either
    const std::vector<int> units = firsts();
    const auto stage = std::ranges::find(units, cut + 2) - units.begin();
    const int pinned = layersOf(static_cast<int>(stage), 0).first + 1;
    QVERIFY(plan().isPinned(pinned));
    QVERIFY(plan().isPinned(layersOf(static_cast<int>(stage), 1).first + 1));
    QVERIFY(view().describeBoundary(pinned).contains(QStringLiteral("pinned")));
    QVERIFY(document().freeBoundary(pinned));
    wait();
    QVERIFY(document().request().pipeline->cuts.empty());
    QVERIFY(!document().pinBoundary(layersOf(0, 1).first + 1)); // follows from the others
}

void TestPipelineWindow::dragIsAPinAndAnUndoStep() {
    fourStages();
    const std::string before = toJson(plan().document);
    const int boundary = view().boundaries()[1], to = freeUnit();
    drag(boundary, to);
    QCOMPARE(document().request().pipeline->cuts, std::vector<int>{to});
    QVERIFY(begins(to));
    QCOMPARE(plan().stages(), 4);
    QVERIFY(plan().isPinned(to));
    QVERIFY(document().undoStack()->undoText().startsWith(QStringLiteral("Move stage boundary")));
    const auto shown = view().boundaries();
    QVERIFY(std::ranges::find(shown, to) != shown.end());
    document().undoStack()->undo();
    wait();
    QVERIFY(document().request().pipeline->cuts.empty());
    QCOMPARE(toJson(plan().document), before);
    document().undoStack()->redo();
    wait();
    QVERIFY(begins(to));
}

void TestPipelineWindow::keysAimAndFree() {
    fourStages();
    view().setFocus();
    QTest::keyClick(&view(), Qt::Key_BracketRight);
    const int first = view().boundaries()[0];
    QCOMPARE(view().selectedBoundary(), first);
    QTest::keyClick(&view(), Qt::Key_Down);
    QTest::keyClick(&view(), Qt::Key_Escape); // the aim is given up, the boundary stays selected
    QVERIFY(document().request().pipeline->cuts.empty());
    QCOMPARE(view().selectedBoundary(), first);
    QTest::keyClick(&view(), Qt::Key_Down);
    QTest::keyClick(&view(), Qt::Key_Down);
    QTest::keyClick(&view(), Qt::Key_Up);
    QTest::keyClick(&view(), Qt::Key_Return);
    wait();
    QCOMPARE(document().request().pipeline->cuts, std::vector<int>{first + 1});
    const auto shown = view().boundaries();
    view().selectBoundary(first + 1);
    QVERIFY(std::ranges::find(shown, first + 1) != shown.end());
    QVERIFY(m_window->commands().action("plan.unpin")->isEnabled());
    m_window->commands().action("plan.unpin")->trigger();
    wait();
    QVERIFY(document().request().pipeline->cuts.empty());
    QTest::keyClick(&view(), Qt::Key_BracketLeft);
    const int last = view().selectedBoundary();
    QCOMPARE(last, view().boundaries().back());
    m_window->commands().action("plan.pin")->trigger();
    wait();
    QCOMPARE(document().request().pipeline->cuts, std::vector<int>{last});
    m_window->commands().action("plan.freeBoundaries")->trigger();
    wait();
    QVERIFY(document().request().pipeline->cuts.empty());
}

/// What a screen reader has: a slider a boundary, behind the boxes, that says where it is and
/// moves.
void TestPipelineWindow::boundariesAreSpoken() {
    fourStages();
    QAccessibleInterface* tree = QAccessible::queryAccessibleInterface(&view());
    QVERIFY(tree);
    const int boxes = view().itemCount();
    QCOMPARE(tree->childCount(), boxes + 3);
    for (int i = 0; i < 3; ++i) {
        QAccessibleInterface* slider = tree->child(boxes + i);
        const int unit = firsts()[static_cast<std::size_t>(i) + 1];
        QVERIFY(slider && slider->isValid());
        QCOMPARE(slider->role(), QAccessible::Slider);
        QCOMPARE(tree->indexOfChild(slider), boxes + i);
        QCOMPARE(slider->parent(), tree);
        // unit 0 is the embedding
        QCOMPARE(slider->text(QAccessible::Name),
                 QStringLiteral("boundary before layer %1").arg(unit - 1));
        QCOMPARE(slider->text(QAccessible::Value), QStringLiteral("layer %1").arg(unit - 1));
        QCOMPARE(slider->valueInterface()->currentValue().toInt(), unit);
        QCOMPARE(slider->valueInterface()->minimumValue().toInt(), 1);
        QCOMPARE(slider->valueInterface()->maximumValue().toInt(),
                 plan().answer.stages.back().last);
        const QPoint middle = slider->rect().center();
        QCOMPARE(view().boundaryAt(QPointF(view().mapFromGlobal(middle))), unit);
        QCOMPARE(tree->childAt(middle.x(), middle.y()), slider);
    }
    QAccessibleInterface* second = tree->child(boxes + 1);
    second->actionInterface()->doAction(QAccessibleActionInterface::setFocusAction());
    QCOMPARE(view().selectedBoundary(), firsts()[2]);
    QVERIFY(second->state().selected);
    QCOMPARE(tree->focusChild(), second);
    // to a place where nothing is in the way, then by steps; each is a pin in place of the last
    const int to = freeUnit();
    second->valueInterface()->setCurrentValue(to);
    QVERIFY(second->state().busy);
    wait();
    QVERIFY(!second->state().busy);
    QCOMPARE(document().request().pipeline->cuts, std::vector<int>{to});
    // the planner was free to move the others: which of the three it is now is to be looked up
    const auto sliderAt = [&](int unit) -> QAccessibleInterface* {
        for (int i = 0; i < 3; ++i)
            if (tree->child(boxes + i)->valueInterface()->currentValue().toInt() == unit)
                return tree->child(boxes + i);
        return nullptr;
    };
    QVERIFY(sliderAt(to));
    QVERIFY(sliderAt(to)->text(QAccessible::Description).contains(QStringLiteral("pinned")));
    sliderAt(to)->actionInterface()->doAction(QAccessibleActionInterface::increaseAction());
    wait();
    QCOMPARE(document().request().pipeline->cuts, std::vector<int>{to + 1});
    QVERIFY(sliderAt(to + 1));
    sliderAt(to + 1)->actionInterface()->doAction(QAccessibleActionInterface::decreaseAction());
    wait();
    QCOMPARE(document().request().pipeline->cuts, std::vector<int>{to});
    QVERIFY(begins(to));
    QCOMPARE(second->actionInterface()->actionNames().size(), 3);
    // off: nothing is left to speak of
    m_window->commands().action("plan.pipeline")->trigger();
    wait();
    QCOMPARE(tree->childCount(), view().itemCount());
    QVERIFY(!second->isValid());
}

/// While a boundary is dragged, its label says what would come of it; nothing is asked for yet.
void TestPipelineWindow::dragTellsBeforeItIsDone() {
    fourStages();
    const int boundary = view().boundaries()[1], to = freeUnit();
    QSignalSpy told(&document(), &Document::previewed);
    const QPoint target = view().placeOf(to).toPoint();
    QTest::mousePress(&view(), Qt::LeftButton, {}, view().handleRect(boundary).center().toPoint());
    move(target, Qt::LeftButton);
    QVERIFY(told.wait(kWait));
    QCOMPARE(told.back()[0].toInt(), to);
    QVERIFY(told.back()[1].toString().contains(QStringLiteral("a step")));
    QVERIFY(document().request().pipeline->cuts.empty());
    QVERIFY(!document().isPipelineStale());
    QTest::mouseRelease(&view(), Qt::LeftButton, {}, target);
    wait();
    // what was said is what came: the words begin with the step time
    QVERIFY(told.back()[1].toString().startsWith(formatTime(plan().answer.seconds)));
}

void TestPipelineWindow::dropWhereItWasChangesNothing() {
    fourStages();
    const int steps = document().undoStack()->index();
    const int boundary = view().boundaries()[0];
    drag(boundary, boundary);
    QCOMPARE(document().undoStack()->index(), steps);
    QCOMPARE(view().boundaries().size(), std::size_t{3});
}

void TestPipelineWindow::pinsThatCannotHoldAreMarked() {
    fourStages();
    const int to = freeUnit();
    drag(view().boundaries()[0], to);
    type("pipelineStages", 1);
    const QString error = document().pipelineError();
    QVERIFY2(error.contains(QStringLiteral("cannot hold")), qPrintable(error));
    QVERIFY2(error.contains(QStringLiteral("stage boundary %1").arg(to)), qPrintable(error));
    QVERIFY(document().isPipelineStale());
    QCOMPARE(plan().stages(), 4); // the old one stays, marked
    const auto shown = view().boundaries();
    QVERIFY(std::ranges::find(shown, to) != shown.end());
    QCOMPARE(child<QLabel>("pipelineState")->text(), error);
    view().selectBoundary(to);
    m_window->commands().action("plan.unpin")->trigger();
    wait();
    QVERIFY(document().pipelineError().isEmpty());
    QCOMPARE(plan().stages(), 1);
}

void TestPipelineWindow::timelineShowsThePlan() {
    fourStages();
    m_window->showTimeline();
    QVERIFY(timeline().waitForIdle(kWait));
    QVERIFY(timeline().form().showsPlan());
    const auto& picture = timeline().view().picture();
    QVERIFY(picture);
    QCOMPARE(picture->devices(), 4);
    QCOMPARE(picture->makespan(), plan().answer.simulated);
    const double first = plan().answer.stages[0].price.forward;
    auto* table = child<QTableWidget>("timelineStages");
    const double shown = table->item(0, 0)->text().toDouble();
    const int chunks = plan().answer.schedule.chunks;
    QVERIFY(std::abs(shown * chunks - first * 1e3) < 1e-5 * first * 1e3);
    QVERIFY(!child<QSpinBox>("timelineDevices")->isEnabled());
    // a moved boundary is another schedule
    drag(view().boundaries()[1], freeUnit());
    QVERIFY(timeline().waitForIdle(kWait));
    QCOMPARE(timeline().view().picture()->makespan(), plan().answer.simulated);
    // step through time: the first moment is the start, later ones ascend
    TimelineView& bars = timeline().view();
    bars.setFocus();
    QTest::keyClick(&bars, Qt::Key_Home);
    QCOMPARE(*bars.time(), 0.0);
    QTest::keyClick(&bars, Qt::Key_Right);
    const double next = *bars.time();
    QVERIFY(next > 0);
    QTest::keyClick(&bars, Qt::Key_Right);
    QVERIFY(*bars.time() > next);
}

void TestPipelineWindow::selectionIsShared() {
    fourStages();
    m_window->showTimeline();
    QVERIFY(timeline().waitForIdle(kWait));
    TimelineView& bars = timeline().view();
    MeshView* mesh = m_window->mesh().view();
    // a bar
    schedule::TaskId third = schedule::kNoTask;
    const auto& tasks = bars.picture()->schedule().program.tasks;
    for (schedule::TaskId id = 0; id < tasks.size() && third == schedule::kNoTask; ++id)
        if (tasks[id].device == 2 && tasks[id].pass == schedule::Pass::Forward) third = id;
    QTest::mouseClick(&bars, Qt::LeftButton, {}, bars.taskRect(third).center().toPoint());
    QCOMPARE(document().selectedStage(), 2);
    QCOMPARE(mesh->selectedStage(), 2);
    QCOMPARE(bars.selected(), third);
    const auto [firstDevice, end] = plan().devicesOf(2);
    QCOMPARE(mesh->stageOf(firstDevice), 2);
    QCOMPARE(mesh->stageOf(end - 1), 2);
    QCOMPARE(child<QTableView>("stagesTable")->currentIndex().row(), 2);
    // an op
    const OpId op = plan().units.units[static_cast<std::size_t>(firsts()[3])].ops.back();
    document().selectOp(op);
    QCOMPARE(document().selectedStage(), 3);
    QCOMPARE(bars.device(), 3);
    QCOMPARE(bars.selected(), schedule::kNoTask);
    QCOMPARE(document().selectedOp(), op); // showing the row did not take the op away
    // a device, with and without an op
    QTest::mouseClick(mesh, Qt::LeftButton, {},
                      mesh->deviceRect(plan().devicesOf(1).first).center().toPoint());
    QCOMPARE(bars.device(), 1);
    QCOMPARE(document().selectedOp(), op);
    document().selectOp(kNoOp);
    QTest::mouseClick(mesh, Qt::LeftButton, {}, mesh->deviceRect(0).center().toPoint());
    QCOMPARE(document().selectedStage(), 0);
    QCOMPARE(bars.device(), 0);
    // the graph
    const int block = view().itemOfRun(0);
    QTest::mouseClick(&view(), Qt::LeftButton, {}, view().bandRect(block, 1).center().toPoint());
    QCOMPARE(document().selectedStage(), 1);
    QCOMPARE(bars.device(), 1);
    QVERIFY(view().overlay()->stages.holds(static_cast<std::size_t>(block), 1));
}

/// A chosen stage shows what it does inside in place of the plan of one mesh; an op says both.
void TestPipelineWindow::stageIsLookedInto() {
    fourStages();
    const auto whole = document().plan();
    QCOMPARE(view().overlay()->plan, whole);
    child<QTableView>("stagesTable")->selectRow(1);
    wait();
    const auto inside = plan().insideOf(1);
    QVERIFY(inside);
    QCOMPARE(view().overlay()->plan, inside->plan);
    QVERIFY(child<Legend>("legend")->plainText().contains(QStringLiteral("inside stage 1")));
    const auto& axes = inside->plan->context->mesh.axes;
    QCOMPARE(view().overlay()->axisNames.size(), axes.size());
    const StageUnit& unit = plan().units.units[static_cast<std::size_t>(firsts()[1])];
    const OpId op = unit.ops.back();
    document().selectOp(op);
    wait();
    QCOMPARE(view().overlay()->plan, whole);
    const Plan& stage = *inside->plan;
    const std::string choice = toString(
        stage.decisions.op[op], factorRule(viewOf(*stage.context->graph, op)), stage.context->mesh);
    const QString facts = child<QTextBrowser>("inspectorFacts")->toPlainText();
    QVERIFY2(facts.contains(QStringLiteral("In stage 1")) && facts.contains(text(choice)),
             qPrintable(facts));
}

void TestPipelineWindow::editedDurationChangesTheStep() {
    fourStages();
    m_window->showTimeline();
    QVERIFY(timeline().waitForIdle(kWait));
    auto* table = child<QTableWidget>("timelineStages");
    const double before = timeline().view().picture()->makespan();
    const double milliseconds = table->item(1, 0)->text().toDouble();
    table->setCurrentCell(1, 0);
    table->editItem(table->item(1, 0));
    auto* editor = table->findChild<QLineEdit*>();
    QVERIFY(editor);
    editor->selectAll();
    QTest::keyClicks(editor, QString::number(milliseconds + 100));
    QTest::keyClick(editor, Qt::Key_Return);
    QVERIFY(timeline().waitForIdle(kWait));
    // every micro-batch passes the stage: at least m times the tenth of a second more
    const int m = plan().answer.microBatches;
    QVERIFY(timeline().view().picture()->makespan() >= before + 0.1);
    QVERIFY(timeline().view().picture()->makespan() >= 0.1 * m);
    table->item(1, 0)->setText({}); // taken back
    QVERIFY(timeline().waitForIdle(kWait));
    QCOMPARE(timeline().view().picture()->makespan(), before);
}

void TestPipelineWindow::exports() {
    fourStages();
    m_window->showTimeline();
    QVERIFY(timeline().waitForIdle(kWait));
    for (const char* name : {"plan.svg", "plan.csv", "plan.json"}) {
        timeline().exportTo(file(QLatin1String(name)));
        QVERIFY(timeline().waitForIdle(kWait));
    }
    QFile svg(file(QStringLiteral("plan.svg")));
    QVERIFY(svg.open(QIODevice::ReadOnly));
    QXmlStreamReader xml(&svg);
    while (!xml.atEnd()) xml.readNext();
    QVERIFY2(!xml.hasError(), qPrintable(xml.errorString()));
    QFile csv(file(QStringLiteral("plan.csv")));
    QVERIFY(csv.open(QIODevice::ReadOnly));
    QCOMPARE(csv.readAll().trimmed().count('\n') + 1, 4); // one line a stage
    QFile trace(file(QStringLiteral("plan.json")));
    QVERIFY(trace.open(QIODevice::ReadOnly));
    const QJsonObject json = QJsonDocument::fromJson(trace.readAll()).object();
    QVERIFY(json[QStringLiteral("traceEvents")].toArray().size() >=
            2 * 4 * plan().answer.microBatches);
}

void TestPipelineWindow::sessionBringsThePlanBack() {
    fourStages();
    drag(view().boundaries()[1], freeUnit());
    m_window->showTimeline();
    QVERIFY(timeline().waitForIdle(kWait));
    const std::string before = toJson(plan().document);
    const double seconds = plan().answer.seconds;
    const auto cuts = document().request().pipeline->cuts;
    const QString saved = file(QStringLiteral("job.shardlens"));
    QVERIFY(m_window->saveTo(saved));
    m_window.reset(); // a session has one writer
    m_window = open(saved);
    wait();
    QVERIFY(document().pipeline());
    QCOMPARE(toJson(plan().document), before);
    QCOMPARE(plan().answer.seconds, seconds);
    QCOMPARE(document().request().pipeline->cuts, cuts);
    QCOMPARE(view().boundaries().size(), std::size_t{3});
    QVERIFY(timeline().waitForIdle(kWait));
    QVERIFY(timeline().form().showsPlan());
    QCOMPARE(timeline().view().picture()->makespan(), plan().answer.simulated);
    document().undoStack()->undo(); // the steps came along
    wait();
    QVERIFY(document().request().pipeline->cuts.empty());
}

/// Views that say they are opaque get no ground painted for them.
void TestPipelineWindow::viewsPaintEveryPixel() {
    fourStages();
    m_window->graph().openRun(0);
    wait();
    const QRgb unpainted = qRgb(255, 0, 254);
    const auto left = [&](QWidget& widget) {
        QImage image(widget.size(), QImage::Format_RGB32);
        image.fill(unpainted);
        widget.render(&image, {}, {}, QWidget::RenderFlags());
        qsizetype count = 0;
        for (int y = 0; y < image.height(); ++y) {
            const auto* line = reinterpret_cast<const QRgb*>(image.constScanLine(y));
            count += std::count(line, line + image.width(), unpainted);
        }
        return count;
    };
    view().fitAll();
    QCOMPARE(left(view()), 0);
    const QRectF frame = view().itemRect(view().itemOfRun(0));
    const QPointF corner =
        view().sceneCentre() + (frame.topLeft() - QRectF(view().rect()).center()) / view().zoom();
    for (const double zoom :
         {0.1, 0.7, 1.0, 3.3}) { // the frame's corner in the middle, then inside
        view().setView(corner, zoom);
        QCOMPARE(left(view()), 0);
        view().setView(corner + QPointF(200, 200), zoom);
        QCOMPARE(left(view()), 0);
    }
    MeshView& mesh = *m_window->mesh().view();
    QCOMPARE(left(mesh), 0);
    mesh.zoomAt({10, 10}, 3);
    QCOMPARE(left(mesh), 0);
    QCOMPARE(left(m_window->sweep().chart()), 0);
}

void TestPipelineWindow::offIsOff() {
    fourStages();
    m_window->commands().action("plan.pipeline")->trigger();
    wait();
    QVERIFY(!document().request().pipeline);
    QVERIFY(!document().pipeline());
    QVERIFY(view().boundaries().empty());
    QCOMPARE(m_window->pipelinePanel().model()->rowCount(), 0);
    document().undoStack()->undo();
    wait();
    QCOMPARE(plan().stages(), 4);
}

/// 96 layers on 128 devices: the whole search, a dragged boundary, and back.
void TestPipelineWindow::gpt3() {
    SHARDLENS_SKIP_LARGE(true);
    m_window = open(QStringLiteral(SHARDLENS_SOURCE "/samples/gpt3-175b.json"));
    wait();
    PlanRequest request = document().request();
    request.cluster = "dgx-a100";
    request.nodes = 16;
    request.mesh = defaultMesh(clusterByName("dgx-a100", 16));
    request.batch = 96;
    request.pipeline = PipelineSetup{};
    QVERIFY(document().changeSetup(request, QStringLiteral("GPT-3")));
    wait();
    QVERIFY2(document().pipelineError().isEmpty(), qPrintable(document().pipelineError()));
    QVERIFY(plan().stages() > 1);
    QVERIFY(plan().answer.gap() <= 0.01);
    QCOMPARE(plan().answer.stages.back().last + 1, static_cast<int>(plan().units.units.size()));
    const double free = plan().answer.bound;
    view().fitAll();
    const int boundary = view().boundaries()[0]; // a layer more in every chunk of the first stage
    const int cut = firsts()[1] + plan().answer.schedule.chunks;
    drag(boundary, boundary + 1);
    QVERIFY2(document().pipelineError().isEmpty(), qPrintable(document().pipelineError()));
    QVERIFY(begins(cut));
    QVERIFY(plan().answer.seconds >= free); // a pin never makes it quicker
}

SHARDLENS_TEST(TestPipelineWindow)

} // namespace tst_pipeline_window

#include "tst_pipeline_window.moc"
