// SPDX-License-Identifier: Apache-2.0
// The whole window, driven as a user does: clicks, keys, drops. A small model in a scratch folder;
// slow planners stand in where something must still be running.
#include "core/error.h"
#include "tests/test_program.h"
#include "ui/main_window.h"
#include "ui/panels/inspector_panel.h"
#include "ui/panels/totals_panel.h"
#include "ui/screenshot.h"
#include "ui/views/graph_view.h"

#include <QAccessible>
#include <QComboBox>
#include <QDir>
#include <QDropEvent>
#include <QElapsedTimer>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <QPushButton>
#include <QSpinBox>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <QUrl>

#include <atomic>
#include <thread>

namespace tst_window {

using namespace shardlens;

namespace {

constexpr int kWait = 20'000;
constexpr auto kModel = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
 "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 5, "num_attention_heads": 8,
 "num_key_value_heads": 8, "vocab_size": 1024, "max_position_embeddings": 4096,
 "rms_norm_eps": 1e-05, "hidden_act": "silu", "tie_word_embeddings": false})";

Plan slowly(std::shared_ptr<const PlanContext> context, const PlannerOptions& options) {
    for (int i = 0; i < 10'000 && !options.stop.stop_requested(); ++i) {
        if (i % 20 == 0 && options.progress) options.progress({2.0, 1.0, 0.001 * i, "waiting"});
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (options.stop.stop_requested()) throw Cancelled();
    return optimise(std::move(context), options);
}

} // namespace

class TestWindow : public QObject {
    Q_OBJECT

    QTemporaryDir m_scratch;

    QString file(const QString& name) const { return m_scratch.filePath(name); }

    MainWindowOptions options() const {
        MainWindowOptions wish;
        wish.settingsFile = file(QStringLiteral("settings.ini"));
        wish.document.temporaryFolder = file(QStringLiteral("unsaved")).toStdString();
        return wish;
    }

    std::unique_ptr<MainWindow> window(const QString& open, const MainWindowOptions& wish) const {
        auto made = std::make_unique<MainWindow>(open, wish);
        made->resize(1300, 850);
        made->show();
        return made;
    }

    std::unique_ptr<MainWindow> ready(const QString& name = QStringLiteral("model.json")) const {
        auto made = window(file(name), options());
        if (!made->waitForIdle(kWait)) qWarning() << "not idle";
        return made;
    }

    static OpId opNamed(MainWindow& main, const QString& end) {
        const auto ops = main.document().graph()->ops();
        for (OpId id = 0; id < ops.size(); ++id)
            if (QString::fromStdString(ops[id].name).endsWith(end)) return id;
        return kNoOp;
    }

    static OpId firstMatMulOfRun(MainWindow& main, std::size_t repeat) {
        const Folding& folding = *main.document().folding();
        for (OpId id = 0; id < main.document().graph()->ops().size(); ++id)
            if (main.document().graph()->op(id).kind == OpKind::MatMul &&
                folding.classes[folding.classOf[id]].run >= 0 && folding.instanceOf[id] == repeat)
                return id;
        return kNoOp;
    }

    static void openBlock(MainWindow& main) {
        GraphView& view = main.graphView();
        const int block = view.itemOfRun(0);
        QVERIFY(block >= 0);
        QTest::mouseDClick(&view, Qt::LeftButton, {}, view.itemRect(block).center().toPoint());
        QVERIFY(main.waitForIdle(kWait));
        QVERIFY(main.graph().isOpen(0));
    }

    static void click(MainWindow& main, OpId op) {
        GraphView& view = main.graphView();
        const int item = view.itemOfOp(op);
        QVERIFY(item >= 0);
        view.ensureVisible(item);
        const QRectF rect = view.itemRect(item);
        QTest::mouseClick(&view, Qt::LeftButton, {},
                          QPointF(rect.center().x(), rect.top() + 4).toPoint());
        QVERIFY(main.waitForIdle(kWait));
    }

    /// A row of the alternatives that is legal, possible and not chosen.
    static int otherRow(MainWindow& main) {
        AlternativesModel* model = main.inspector().model();
        for (int r = 0; r < model->rowCount(); ++r)
            if (model->at(r).legal && !model->at(r).current && std::isfinite(model->at(r).time))
                return r;
        return -1;
    }

    template <typename Widget>
    static Widget* child(MainWindow& main, const char* name) {
        auto* found = main.findChild<Widget*>(QLatin1String(name));
        if (!found) qFatal("no widget %s", name);
        return found;
    }

private slots:
    void initTestCase() {
        QVERIFY(m_scratch.isValid());
        installGraphAccessibility();
        QFile model(file(QStringLiteral("model.json")));
        QVERIFY(model.open(QIODevice::WriteOnly));
        model.write(kModel);
    }

    void opensAndSolves() {
        const auto main = ready();
        QVERIFY2(main->document().isOpen(), qPrintable(main->lastError()));
        QVERIFY(main->document().plan());
        QCOMPARE(main->totals().badgeText(), QStringLiteral("✓ proven optimal"));
        QVERIFY(main->graphView().itemOfRun(0) >= 0);
        QVERIFY(main->windowTitle().contains(QStringLiteral("model")));
        // The whole model is in sight, nothing is clipped.
        const QRectF seen(main->graphView().rect());
        for (int i = 0; i < main->graphView().itemCount(); ++i)
            QVERIFY(seen.contains(main->graphView().itemRect(i)));
    }

    void refusesWhatIsNoModel() {
        QFile junk(file(QStringLiteral("junk.bin")));
        QVERIFY(junk.open(QIODevice::WriteOnly));
        junk.write("\x00\x01 nothing of the kind");
        junk.close();
        const auto main = ready(QStringLiteral("junk.bin"));
        QVERIFY(!main->document().isOpen());
        QVERIFY(main->messageBar().isVisible());
        QCOMPARE(main->messageBar().kind(), MessageKind::Error);
        QVERIFY(!main->messageBar().text().isEmpty());
        QTest::mouseClick(child<QToolButton>(*main, "messageClose"), Qt::LeftButton);
        QVERIFY(!main->messageBar().isVisible());
    }

    void expandsABlockAndSelects() {
        const auto main = ready();
        openBlock(*main);
        const OpId op = firstMatMulOfRun(*main, 0);
        click(*main, op);
        QCOMPARE(main->document().selectedOp(), op);
        QVERIFY(main->inspector().model()->rowCount() > 1);
        QVERIFY(main->inspector().factsText().contains(QStringLiteral("modelled")));
        // The next repeat by the frame's button: the selection moves along.
        GraphView& view = main->graphView();
        const FrameControls controls = view.frameControls(view.itemOfRun(0));
        view.ensureVisible(view.itemOfRun(0));
        QTest::mouseClick(&view, Qt::LeftButton, {},
                          view.frameControls(view.itemOfRun(0)).next.center().toPoint());
        QVERIFY(main->waitForIdle(kWait));
        QCOMPARE(main->graph().repeatOf(0), std::size_t{1});
        QCOMPARE(main->document().selectedOp(),
                 main->document().folding()->member(main->document().folding()->classOf[op], 1));
        Q_UNUSED(controls);
        // Folded again by Enter: the block is selected.
        view.setFocus();
        QTest::keyClick(&view, Qt::Key_Return);
        QVERIFY(main->waitForIdle(kWait));
        QVERIFY(!main->graph().isOpen(0));
        QCOMPARE(main->document().selectedRun(), 0);
    }

    void walksByKeys() {
        const auto main = ready();
        GraphView& view = main->graphView();
        view.setFocus();
        QTest::keyClick(&view, Qt::Key_Home);
        const int first = view.selectedItem();
        QVERIFY(first >= 0);
        for (int i = 0; i < 3; ++i) QTest::keyClick(&view, Qt::Key_Down);
        QVERIFY(view.selectedItem() != first);
        QTest::keyClick(&view, Qt::Key_Up);
        const double before = view.zoom();
        QTest::keyClick(&view, Qt::Key_Plus);
        QVERIFY(view.zoom() > before);
        QTest::keyClick(&view, Qt::Key_0);
        QTest::keyClick(&view, Qt::Key_F);
        QVERIFY(QRectF(view.rect()).contains(view.itemRect(view.selectedItem())));
    }

    void dragsAndZooms() {
        const auto main = ready();
        GraphView& view = main->graphView();
        const QPointF before = view.sceneCentre();
        QTest::mousePress(&view, Qt::LeftButton, {}, QPoint(30, 30));
        QTest::mouseMove(&view, QPoint(60, 70));
        QTest::mouseMove(&view, QPoint(130, 90));
        QTest::mouseRelease(&view, Qt::LeftButton, {}, QPoint(130, 90));
        QVERIFY(view.sceneCentre() != before);
        const double zoom = view.zoom();
        const QPointF spot(200, 150);
        QWheelEvent wheel(spot, view.mapToGlobal(spot), {}, QPoint(0, 120), Qt::NoButton, {},
                          Qt::NoScrollPhase, false);
        QApplication::sendEvent(&view, &wheel);
        QVERIFY(view.zoom() > zoom);
    }

    void pinsFromInspectorUndoRedo() {
        const auto main = ready();
        Document& document = main->document();
        const double best = document.plan()->totals.time;
        openBlock(*main);
        click(*main, firstMatMulOfRun(*main, 2 % 5));
        const int row = otherRow(*main);
        QVERIFY(row >= 0);
        auto* table = child<QTableView>(*main, "alternatives");
        const double promised = main->inspector().model()->at(row).time;
        table->setCurrentIndex(main->inspector().model()->index(row, 0));
        QTest::mouseClick(child<QPushButton>(*main, "pinButton"), Qt::LeftButton);
        QVERIFY(main->waitForIdle(kWait));
        QCOMPARE(document.request().pins.size(), std::size_t{1});
        QVERIFY(document.plan()->totals.time >= best * (1 - 1e-12));
        QVERIFY(std::abs(document.plan()->totals.time - promised) <= 1e-6 * promised);
        QVERIFY(document.plan()->pinned[document.selectedOp()]);

        main->commands().action("edit.undo")->trigger();
        QVERIFY(main->waitForIdle(kWait));
        QVERIFY(document.request().pins.empty());
        QCOMPARE(document.plan()->totals.time, best);

        main->commands().action("edit.redo")->trigger();
        QVERIFY(main->waitForIdle(kWait));
        QCOMPARE(document.request().pins.size(), std::size_t{1});

        QTest::mouseClick(child<QPushButton>(*main, "unpinButton"), Qt::LeftButton);
        QVERIFY(main->waitForIdle(kWait));
        QVERIFY(document.request().pins.empty());
        QCOMPARE(document.plan()->totals.time, best);
    }

    void pinsByKeyAndByMenu() {
        const auto main = ready();
        openBlock(*main);
        const OpId op = firstMatMulOfRun(*main, 0);
        click(*main, op);
        GraphView& view = main->graphView();
        view.setFocus();
        QTest::keyClick(&view, Qt::Key_P);
        QVERIFY(main->waitForIdle(kWait));
        QCOMPARE(main->document().pinsOf(op).size(), std::size_t{1});
        QTest::keyClick(&view, Qt::Key_Delete);
        QVERIFY(main->waitForIdle(kWait));
        QVERIFY(main->document().pinsOf(op).empty());

        const std::unique_ptr<QMenu> menu(main->graph().makeMenu(op, -1));
        auto* choices = menu->findChild<QMenu*>(QStringLiteral("pinMenu"));
        QVERIFY(choices);
        QVERIFY(choices->actions().size() > 1);
        QAction* last = choices->actions().last();
        last->trigger();
        QVERIFY(main->waitForIdle(kWait));
        QCOMPARE(main->document().pinsOf(op).size(), std::size_t{1});
        QCOMPARE(QString::fromStdString(main->document().request().pins[0].choice), last->text());
    }

    void pinsAllBlocks() {
        const auto main = ready();
        openBlock(*main);
        const OpId op = firstMatMulOfRun(*main, 0);
        click(*main, op);
        auto* scope = child<QComboBox>(*main, "pinScope");
        QCOMPARE(scope->count(), 2);
        scope->setCurrentIndex(1);
        auto* table = child<QTableView>(*main, "alternatives");
        const int row = otherRow(*main);
        table->setCurrentIndex(main->inspector().model()->index(row, 0));
        table->setFocus();
        QTest::keyClick(table, Qt::Key_P);
        QVERIFY(main->waitForIdle(kWait));
        const Document& document = main->document();
        QCOMPARE(document.request().pins.size(), std::size_t{1});
        QVERIFY(document.request().pins[0].target.starts_with("class:"));
        QVERIFY(document.plan()->pinned[firstMatMulOfRun(*main, 3)]);
    }

    void clashingPinsAreNamed() {
        const auto main = ready();
        Document& document = main->document();
        const OpId op = firstMatMulOfRun(*main, 1);
        PlanRequest request = document.request();
        const std::string name = document.graph()->op(op).name;
        request.pins = {{name, "replicated"}, {name.substr(0, name.size() - 1) + "*", "b@dp"}};
        // Two pins on one op that cannot both hold, set as a whole.
        document.changeSetup(request, QStringLiteral("clash"));
        QVERIFY(main->waitForIdle(kWait));
        if (document.planError().isEmpty()) QSKIP("the two pins agree on this model");
        QVERIFY(document.isStale());
        QVERIFY(document.plan()); // the old answer stays
        QVERIFY(main->messageBar().isVisible());
        main->commands().action("edit.undo")->trigger();
        QVERIFY(main->waitForIdle(kWait));
        QVERIFY(document.planError().isEmpty());
        QVERIFY(!document.isStale());
    }

    void searches() {
        const auto main = ready();
        auto* search = child<QLineEdit>(*main, "search");
        search->setFocus();
        QTest::keyClicks(search, QStringLiteral("matmul"));
        QVERIFY(main->waitForIdle(kWait));
        auto* count = child<QLabel>(*main, "matchCount");
        QVERIFY2(count->text().contains(QStringLiteral("found")), qPrintable(count->text()));
        QTest::keyClick(search, Qt::Key_Return);
        QVERIFY(main->waitForIdle(kWait));
        QVERIFY(count->text().contains(QStringLiteral("1 of ")));
        const OpId first = main->document().selectedOp();
        QVERIFY(first != kNoOp);
        QTest::keyClick(search, Qt::Key_Return);
        QVERIFY(main->waitForIdle(kWait));
        const OpId second = main->document().selectedOp();
        QVERIFY(second != first);
        QVERIFY(main->graphView().itemOfOp(second) >= 0);
        QVERIFY(QRectF(main->graphView().rect())
                    .intersects(main->graphView().itemRect(main->graphView().itemOfOp(second))));
        // Back to what was selected before.
        main->commands().action("view.back")->trigger();
        QVERIFY(main->waitForIdle(kWait));
        QCOMPARE(main->document().selectedOp(), first);
        search->clear();
        QVERIFY(main->waitForIdle(kWait));
        QVERIFY(count->text().isEmpty());
    }

    void changesTheSetup() {
        const auto main = ready();
        auto* mesh = child<QLineEdit>(*main, "setupMesh");
        mesh->setFocus();
        mesh->selectAll();
        QTest::keyClicks(mesh, QStringLiteral("dp=4,tp=2"));
        QTest::keyClick(mesh, Qt::Key_Return);
        QVERIFY(main->waitForIdle(kWait));
        QCOMPARE(QString::fromStdString(main->document().plan()->context->mesh.toString()),
                 QStringLiteral("dp=4,tp=2"));
        mesh->selectAll();
        QTest::keyClicks(mesh, QStringLiteral("dp=1000"));
        QTest::keyClick(mesh, Qt::Key_Return);
        auto* problem = child<QLabel>(*main, "setupProblem");
        QVERIFY(problem->isVisible());
        QCOMPARE(main->document().undoStack()->count(), 1);
        // Another batch sizes the graph anew; undo brings the old one back.
        const auto graph = main->document().graph();
        PlanRequest request = main->document().request();
        request.batch = 32;
        main->document().changeSetup(request, QStringLiteral("Batch 32"));
        QVERIFY(main->waitForIdle(kWait));
        QCOMPARE(main->document().request().batch, 32);
        QVERIFY(main->document().graph() != graph);
        QVERIFY(main->document().plan());
        main->commands().action("edit.undo")->trigger();
        QVERIFY(main->waitForIdle(kWait));
        QVERIFY(main->document().graph() == graph);
    }

    void savesAndReopensTheSameView() {
        const QString path = file(QStringLiteral("kept.shardlens"));
        OpId op = kNoOp;
        QPointF centre;
        double zoom = 0, time = 0;
        {
            const auto main = ready();
            openBlock(*main);
            op = firstMatMulOfRun(*main, 3);
            main->graph().showOp(op);
            QVERIFY(main->waitForIdle(kWait));
            main->graph().pinSelected();
            QVERIFY(main->waitForIdle(kWait));
            child<QComboBox>(*main, "colourMode")->setCurrentIndex(1);
            main->graphView().setView(main->graphView().sceneCentre() + QPointF(40, 25), 0.83);
            QVERIFY(main->saveTo(path));
            QVERIFY(!main->document().isTemporary());
            centre = main->graphView().sceneCentre();
            zoom = main->graphView().zoom();
            time = main->document().plan()->totals.time;
            main->close();
        }
        const auto main = ready(QStringLiteral("kept.shardlens"));
        QVERIFY2(main->document().isOpen(), qPrintable(main->lastError()));
        QCOMPARE(main->document().selectedOp(), op);
        QVERIFY(main->graph().isOpen(0));
        QCOMPARE(main->graph().repeatOf(0), std::size_t{3});
        QCOMPARE(main->graphView().colourMode(), ColourMode::Time);
        QCOMPARE(main->graphView().zoom(), zoom);
        QVERIFY((main->graphView().sceneCentre() - centre).manhattanLength() < 1.5);
        QCOMPARE(main->document().request().pins.size(), std::size_t{1});
        QCOMPARE(main->document().plan()->totals.time, time);
        // The history came along.
        QVERIFY(main->document().undoStack()->canUndo());
        main->commands().action("edit.undo")->trigger();
        QVERIFY(main->waitForIdle(kWait));
        QVERIFY(main->document().request().pins.empty());

        // A second window on the file only reads, and says why.
        const auto second = ready(QStringLiteral("kept.shardlens"));
        QVERIFY(second->document().isReadOnly());
        QVERIFY(second->messageBar().isVisible());
        QVERIFY(second->messageBar().text().contains(second->document().readOnlyReason()));
        QVERIFY(!second->commands().action("plan.pin")->isEnabled());
    }

    void untouchedSessionsLeaveNothing() {
        {
            const auto main = ready();
            QVERIFY(main->document().isTemporary());
            QVERIFY(QFile::exists(main->document().path()));
        }
        QVERIFY(QDir(file(QStringLiteral("unsaved")))
                    .entryList({QStringLiteral("*.shardlens")})
                    .size() <= 8);
    }

    void cancelsASolve() {
        MainWindowOptions wish = options();
        wish.document.functions.optimise = slowly;
        const auto main = window(file(QStringLiteral("model.json")), wish);
        QTRY_VERIFY_WITH_TIMEOUT(main->document().isSolving() && main->document().progress(),
                                 kWait);
        auto* cancel = child<QToolButton>(*main, "jobCancel");
        QVERIFY(cancel->isVisible());
        QVERIFY(child<QLabel>(*main, "jobText")->text().contains(QStringLiteral("gap 50 %")));
        QTest::mouseClick(cancel, Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(!main->document().isSolving(), kWait);
        QVERIFY(!main->document().plan());
        QVERIFY(main->messageBar().text().contains(QStringLiteral("cancelled")));
        QVERIFY(!cancel->isVisible());
    }

    void closesWhileSolving() {
        MainWindowOptions wish = options();
        wish.document.functions.optimise = slowly;
        auto main = window(file(QStringLiteral("model.json")), wish);
        QTRY_VERIFY_WITH_TIMEOUT(main->document().isSolving(), kWait);
        QElapsedTimer clock;
        clock.start();
        main->close();
        main.reset();
        QVERIFY(clock.elapsed() < 5000); // it does not wait for the ten seconds of the planner
    }

    void closesWhileLoading() {
        auto main = window(file(QStringLiteral("model.json")), options());
        main.reset();
    }

    void staleWhileSolvingAgain() {
        std::atomic<int> calls = 0;
        MainWindowOptions wish = options();
        wish.document.functions.optimise = [&](auto context, const PlannerOptions& planner) {
            return ++calls == 1 ? optimise(context, planner) : slowly(context, planner);
        };
        const auto main = window(file(QStringLiteral("model.json")), wish);
        QVERIFY(main->waitForIdle(kWait));
        const auto before = main->document().plan();
        main->document().selectOp(firstMatMulOfRun(*main, 0));
        main->graph().pinSelected();
        QVERIFY(main->document().isStale());
        QVERIFY(main->document().plan() == before); // still readable
        QCOMPARE(main->totals().badgeText(), QStringLiteral("stale"));
    }

    void takesDroppedFiles() {
        const auto main = window({}, options());
        QMimeData mime;
        mime.setUrls({QUrl::fromLocalFile(file(QStringLiteral("model.json")))});
        QDragEnterEvent enter(QPoint(50, 50), Qt::CopyAction, &mime, Qt::LeftButton, {});
        QApplication::sendEvent(main.get(), &enter);
        QVERIFY(enter.isAccepted());
        QDropEvent drop(QPointF(50, 50), Qt::CopyAction, &mime, Qt::LeftButton, {});
        QApplication::sendEvent(main.get(), &drop);
        QVERIFY(main->waitForIdle(kWait));
        QVERIFY(main->document().plan());
    }

    void darkAndLight() {
        const auto main = ready();
        auto* dark = main->findChild<QAction*>(QStringLiteral("theme.2"));
        dark->trigger(); // the new palette reaches the widgets through the event loop
        QTRY_VERIFY(Palette::of(&main->graphView()).dark_);
        const QImage night = main->graphView().grab().toImage();
        main->findChild<QAction*>(QStringLiteral("theme.1"))->trigger();
        QTRY_VERIFY(!Palette::of(&main->graphView()).dark_);
        const QImage day = main->graphView().grab().toImage();
        QVERIFY(night.pixelColor(3, 3).lightness() < 80);
        QVERIFY(day.pixelColor(3, 3).lightness() > 180);
        main->findChild<QAction*>(QStringLiteral("theme.0"))->trigger();
    }

    void everythingHasAName() {
        const auto main = ready();
        for (QWidget* widget : main->findChildren<QWidget*>()) {
            const bool interactive =
                qobject_cast<QAbstractButton*>(widget) || qobject_cast<QComboBox*>(widget) ||
                qobject_cast<QLineEdit*>(widget) || qobject_cast<QAbstractSpinBox*>(widget) ||
                qobject_cast<QTableView*>(widget) || qobject_cast<GraphView*>(widget);
            const QString owner = QString::fromLatin1(widget->parent()->metaObject()->className());
            if (!interactive || widget->objectName().startsWith(QLatin1String("qt_")) ||
                !owner.startsWith(QLatin1String("shardlens")))
                continue;
            QVERIFY2(!widget->objectName().isEmpty(), widget->metaObject()->className());
            QAccessibleInterface* spoken = QAccessible::queryAccessibleInterface(widget);
            QVERIFY2(spoken && !spoken->text(QAccessible::Name).isEmpty(),
                     qPrintable(widget->objectName()));
        }
    }

    void graphIsAccessible() {
        const auto main = ready();
        QAccessibleInterface* tree = QAccessible::queryAccessibleInterface(&main->graphView());
        QVERIFY(tree);
        QCOMPARE(tree->childCount(), main->graphView().itemCount());
        for (int i = 0; i < tree->childCount(); ++i) {
            QVERIFY(!tree->child(i)->text(QAccessible::Name).isEmpty());
            QVERIFY(!tree->child(i)->rect().isEmpty());
        }
    }

    void paletteRunsCommands() {
        const auto main = ready();
        main->commands().action("help.palette")->trigger();
        auto* input = main->findChild<QLineEdit*>(QStringLiteral("paletteInput"));
        QVERIFY(input);
        QTest::keyClicks(input, QStringLiteral("parameters"));
        QTest::keyClick(input, Qt::Key_Return);
        QVERIFY(main->waitForIdle(kWait));
        QVERIFY(!main->graph().parametersShown());
    }

    void makesAPicture() {
        const QString out = file(QStringLiteral("picture.png"));
        renderScreenshot(file(QStringLiteral("model.json")), out, {QSize(1200, 800), true});
        const QImage image(out);
        QCOMPARE(image.size(), QSize(1200, 800));
        QVERIFY_THROWS_EXCEPTION(
            Error, renderScreenshot(file(QStringLiteral("none.json")), out, {QSize(600, 400)}));
    }
};

SHARDLENS_TEST(TestWindow)

} // namespace tst_window

#include "tst_window.moc"
