// SPDX-License-Identifier: Apache-2.0
// The window's behaviour; how it is built is in main_window_build.cpp.
#include "ui/main_window.h"

#include "core/solve/contest_file.h"
#include "ui/commands/command_palette.h"
#include "ui/format.h"
#include "ui/panels/job_bar.h"
#include "ui/panels/sweep_panel.h"
#include "ui/panels/timeline_panel.h"

#include <QApplication>
#include <QCloseEvent>
#include <QComboBox>
#include <QDeadlineTimer>
#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMessageBox>
#include <QMimeData>
#include <QStatusBar>

namespace shardlens {

namespace {

constexpr int kStateVersion = 1;
constexpr int kMostRecent = 9;
const QString kDocksKey = QStringLiteral("docks");

} // namespace

MainWindow::MainWindow(const QString& file, MainWindowOptions options, QWidget* parent)
    : QMainWindow(parent), m_options(std::move(options)), m_document(m_options.document) {
    if (m_options.keepSettings)
        m_settings =
            m_options.settingsFile.isEmpty()
                ? std::make_unique<QSettings>()
                : std::make_unique<QSettings>(m_options.settingsFile, QSettings::IniFormat);
    setObjectName(QStringLiteral("mainWindow"));
    setAcceptDrops(true);
    setDockOptions(AnimatedDocks | AllowTabbedDocks | AllowNestedDocks);
    if (m_settings) {
        m_theme = static_cast<ThemeMode>(
            std::clamp(m_settings->value(QStringLiteral("theme"), 0).toInt(), 0, 2));
        applyTheme(m_theme);
    }
    buildCentre();
    m_commands = std::make_unique<CommandRegistry>(this, m_view);
    buildPanels();
    buildToolBar();
    buildMenus();
    connectCommands();
    connectDocument();
    resize(1440, 900);
    placePanels();
    if (m_settings) restoreGeometry(m_settings->value(QStringLiteral("geometry")).toByteArray());
    refillRecent();
    updateTitle();
    updateCommands();
    if (!file.isEmpty()) openFile(file);
}

MainWindow::~MainWindow() {
    // Views look at the document while they are alive; it is a member and goes before child
    // widgets.
    m_document.disconnect();
    m_benchmark.disconnect();
    m_document.undoStack()->disconnect();
    delete m_controller;
    qDeleteAll(m_docks);
    delete takeCentralWidget();
    delete m_jobs;
}

void MainWindow::openFile(const QString& file) {
    m_lastError.clear();
    m_messages->hide();
    if (m_document.isOpen()) saveState();
    const QString full = QFileInfo(file).absoluteFilePath();
    if (solve::isContestFile(full.toStdString())) {
        m_benchmark.open(full);
        m_solverDock->show();
        m_solverDock->raise();
        rememberRecent(full);
        return;
    }
    m_view->setPlaceholder(tr("Opening %1…").arg(QFileInfo(file).fileName()));
    m_document.open(full);
    rememberRecent(full);
}

bool MainWindow::saveTo(const QString& file) {
    m_controller->saveViewStateNow();
    m_timeline->saveViewStateNow();
    m_sweep->saveViewStateNow();
    if (!m_document.saveAs(file)) return false;
    rememberRecent(QFileInfo(file).absoluteFilePath());
    updateTitle();
    statusBar()->showMessage(tr("Saved. From now on every step is saved at once."), 5000);
    return true;
}

void MainWindow::chooseFileToOpen() {
    const QString file = QFileDialog::getOpenFileName(
        this, tr("Open a model or a session"), {},
        tr("Models, sessions and benchmark problems (*.json *.json.gz *.onnx *.safetensors *.gguf "
           "*.mlir *.shardlens);;"
           "All files (*)"));
    if (!file.isEmpty()) openFile(file);
}

void MainWindow::chooseFileToSave() {
    if (!m_document.isOpen()) return;
    QFileDialog dialog(this, tr("Save the session as"));
    dialog.setAcceptMode(QFileDialog::AcceptSave);
    dialog.setDefaultSuffix(QStringLiteral("shardlens"));
    dialog.setNameFilter(tr("Sessions (*.shardlens)"));
    dialog.selectFile(m_document.title() + QStringLiteral(".shardlens"));
    if (dialog.exec() == QDialog::Accepted) saveTo(dialog.selectedFiles().value(0));
}

void MainWindow::rememberRecent(const QString& file) {
    if (!m_settings) return;
    QStringList list = m_settings->value(QStringLiteral("recent")).toStringList();
    list.removeAll(file);
    list.prepend(file);
    m_settings->setValue(QStringLiteral("recent"), list.mid(0, kMostRecent));
    refillRecent();
}

void MainWindow::refillRecent() {
    m_recent->clear();
    const QStringList list =
        m_settings ? m_settings->value(QStringLiteral("recent")).toStringList() : QStringList();
    for (int i = 0; i < list.size(); ++i) {
        QAction* action =
            m_recent->addAction(tr("&%1  %2").arg(i + 1).arg(QFileInfo(list[i]).fileName()), this,
                                [this, file = list[i]] { openFile(file); });
        action->setToolTip(list[i]);
        action->setStatusTip(list[i]);
    }
    m_recent->setEnabled(!list.isEmpty());
}

void MainWindow::showMessage(MessageKind kind, const QString& text) {
    if (kind == MessageKind::Error) m_lastError = text;
    m_messages->showMessage(kind, text);
    if (!m_document.isOpen()) m_view->setPlaceholder(tr("Open a model, or drop one here"));
}

void MainWindow::updateTitle() {
    QString title = m_document.title();
    if (m_document.isReadOnly())
        title = tr("%1 (read-only)").arg(title);
    else if (m_document.isOpen() && m_document.isTemporary())
        title = tr("%1 (no file yet)").arg(title);
    setWindowTitle(title.isEmpty() ? QStringLiteral("Shardlens")
                                   : title + QStringLiteral(" — Shardlens"));
    setWindowFilePath(m_document.isTemporary() ? QString() : m_document.path());
}

void MainWindow::updateCommands() {
    const bool open = m_document.isOpen(), writable = open && !m_document.isReadOnly();
    const bool op = m_document.selectedOp() != kNoOp;
    const bool boundary = m_view->selectedBoundary() >= 0;
    const bool staged = m_document.request().pipeline.has_value();
    const int run = m_document.selectedRun();
    const bool inRun =
        op && m_document.folding() &&
        m_document.folding()->classes[m_document.folding()->classOf[m_document.selectedOp()]].run >=
            0;
    const QUndoStack* undo = m_document.undoStack();
    const std::pair<const char*, bool> states[] = {
        {"file.save", open},
        {"file.saveAs", open},
        {"edit.undo", writable && undo->canUndo()},
        {"edit.redo", writable && undo->canRedo()},
        {"edit.copyName", op},
        {"view.fitAll", open},
        {"view.fitSelection", open},
        {"view.toggleBlock", run >= 0 || inRun},
        {"view.producer", op},
        {"view.consumer", op},
        {"plan.pin", writable && ((op && m_document.plan()) || boundary)},
        {"plan.unpin", writable && (op || boundary)},
        {"plan.pipeline", writable},
        {"plan.freeBoundaries", writable && staged && !m_document.request().pipeline->cuts.empty()},
        {"plan.solve", open},
        {"plan.cancel",
         m_document.isLoading() || m_document.isSolving() || m_document.isPlanningPipeline()}};
    for (const auto& [id, enabled] : states) m_commands->action(id)->setEnabled(enabled);
    m_commands->action("edit.undo")
        ->setText(undo->canUndo() ? tr("&Undo: %1").arg(undo->undoText()) : tr("&Undo"));
    m_commands->action("edit.redo")
        ->setText(undo->canRedo() ? tr("&Redo: %1").arg(undo->redoText()) : tr("&Redo"));
    m_commands->action("plan.pipeline")->setChecked(staged);
    m_commands->action("edit.undo")->setIconText(tr("Undo"));
    m_commands->action("edit.redo")->setIconText(tr("Redo"));
}

void MainWindow::setTheme(ThemeMode mode) {
    m_theme = mode;
    if (m_settings) m_settings->setValue(QStringLiteral("theme"), static_cast<int>(mode));
    applyTheme(mode);
}

void MainWindow::saveState() {
    if (m_settings) m_settings->setValue(QStringLiteral("geometry"), saveGeometry());
    if (!m_document.isOpen()) return;
    m_controller->saveViewStateNow();
    m_timeline->saveViewStateNow();
    m_sweep->saveViewStateNow();
    const QByteArray docks = QMainWindow::saveState(kStateVersion).toBase64();
    m_document.setViewState(kDocksKey, QStringLiteral("\"%1\"").arg(QString::fromLatin1(docks)));
}

void MainWindow::restoreDocks() {
    const QString docks = m_document.viewState(kDocksKey);
    if (docks.size() > 2)
        restoreState(QByteArray::fromBase64(docks.mid(1, docks.size() - 2).toLatin1()),
                     kStateVersion);
}

bool MainWindow::waitForIdle(int milliseconds) {
    const QDeadlineTimer deadline(milliseconds);
    do {
        if (deadline.hasExpired()) return false;
        QApplication::processEvents(QEventLoop::AllEvents, 20);
        if (!m_document.waitForIdle(static_cast<int>(deadline.remainingTime()))) return false;
    } while (m_controller->busy() || m_timeline->busy() || m_sweep->busy());
    QApplication::processEvents();
    return true;
}

bool MainWindow::event(QEvent* event) {
    if (event->type() == QEvent::ThemeChange && m_theme == ThemeMode::System)
        QMetaObject::invokeMethod(
            this, [this] { setTheme(ThemeMode::System); }, Qt::QueuedConnection);
    return QMainWindow::event(event);
}

void MainWindow::closeEvent(QCloseEvent* event) {
    saveState();
    QMainWindow::closeEvent(event);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    const QList<QUrl> urls = event->mimeData()->urls();
    if (urls.size() == 1 && urls.front().isLocalFile()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
    const QList<QUrl> urls = event->mimeData()->urls();
    if (urls.size() != 1 || !urls.front().isLocalFile()) return;
    event->acceptProposedAction();
    openFile(urls.front().toLocalFile());
}

void MainWindow::connectDocument() {
    connect(&m_document, &Document::message, this, &MainWindow::showMessage);
    connect(&m_document, &Document::loaded, this, [this] {
        m_messages->hide();
        updateTitle();
        restoreDocks();
        m_view->setFocus();
    });
    connect(&m_document, &Document::requestChanged, this, &MainWindow::updateTitle);
    for (const auto signal :
         {&Document::loadingChanged, &Document::requestChanged, &Document::planChanged,
          &Document::pipelineChanged, &Document::selectionChanged})
        connect(&m_document, signal, this, &MainWindow::updateCommands);
    connect(m_view, &GraphView::boundarySelected, this, &MainWindow::updateCommands);
    connect(&m_document, &Document::pipelineChanged, this, [this] {
        if (!m_document.pipelineError().isEmpty())
            showMessage(MessageKind::Error, m_document.pipelineError());
        else if (m_document.planError().isEmpty() && m_messages->kind() == MessageKind::Error)
            m_messages->hide();
    });
    connect(m_document.undoStack(), &QUndoStack::indexChanged, this, &MainWindow::updateCommands);
    connect(&m_document, &Document::planChanged, this, [this] {
        if (!m_document.planError().isEmpty())
            showMessage(m_document.planError() == Document::tr("Solving was cancelled.")
                            ? MessageKind::Information
                            : MessageKind::Error,
                        m_document.planError());
        else if (!m_document.isStale() && m_document.pipelineError().isEmpty() &&
                 m_messages->kind() == MessageKind::Error)
            m_messages->hide();
    });
    connect(m_controller, &GraphController::failed, this,
            [this](const QString& text) { showMessage(MessageKind::Error, text); });
    connect(m_controller, &GraphController::busyChanged, m_jobs, &JobBar::setLayoutBusy);
}

void MainWindow::showTimeline() {
    m_timelineDock->show();
    m_timelineDock->raise();
    m_timeline->setFocus();
}

void MainWindow::connectPipeline() {
    QAction* pipeline = m_commands->action("plan.pipeline");
    connect(pipeline, &QAction::triggered, this, [this](bool on) {
        m_document.changePipeline(on ? std::optional(PipelineSetup{}) : std::nullopt,
                                  on ? tr("Divide into stages") : tr("No stages"));
        if (!on) return;
        m_pipelineDock->show();
        m_pipelineDock->raise();
    });
    m_commands->connectTo("plan.freeBoundaries", [this] { m_controller->freeBoundaries(); });
}

/// A command that shows and hides a dock which is not always there.
void MainWindow::connectDock(const char* command, QDockWidget* dock, QWidget* panel) {
    QAction* action = m_commands->action(command);
    connect(action, &QAction::triggered, this, [dock, panel](bool shown) {
        dock->setVisible(shown);
        if (!shown) return;
        dock->raise();
        panel->setFocus();
    });
    connect(dock, &QDockWidget::visibilityChanged, this,
            [dock, action] { action->setChecked(!dock->isHidden()); });
}

void MainWindow::connectCommands() {
    connectPipeline();
    auto& commands = *m_commands;
    commands.connectTo("file.open", [this] { chooseFileToOpen(); });
    commands.connectTo("file.save", [this] {
        if (m_document.isTemporary() || m_document.isReadOnly())
            chooseFileToSave();
        else
            statusBar()->showMessage(tr("Every step is saved already."), 4000);
    });
    commands.connectTo("file.saveAs", [this] { chooseFileToSave(); });
    commands.connectTo("file.quit", [this] { close(); });
    commands.connectTo("edit.undo", [this] { m_document.undoStack()->undo(); });
    commands.connectTo("edit.redo", [this] { m_document.undoStack()->redo(); });
    commands.connectTo("edit.find", [this] {
        m_search->setFocus();
        m_search->selectAll();
    });
    commands.connectTo("edit.copyName", [this] { m_controller->copyName(); });
    commands.connectTo("view.fitAll", [this] { m_view->fitAll(); });
    commands.connectTo("view.fitSelection", [this] { m_view->fitSelection(); });
    commands.connectTo("view.zoomIn", [this] { m_view->zoomBy(1.25); });
    commands.connectTo("view.zoomOut", [this] { m_view->zoomBy(0.8); });
    commands.connectTo("view.toggleBlock", [this] {
        int run = m_document.selectedRun();
        if (const OpId op = m_document.selectedOp(); op != kNoOp)
            run = m_document.folding()->classes[m_document.folding()->classOf[op]].run;
        if (run >= 0) m_controller->toggleRun(run);
    });
    commands.connectTo("view.producer", [this] { m_controller->goToProducer(); });
    commands.connectTo("view.consumer", [this] { m_controller->goToConsumer(); });
    commands.connectTo("view.back", [this] { m_controller->goBack(); });
    commands.connectTo("view.forward", [this] { m_controller->goForward(); });
    QAction* parameters = commands.action("view.parameters");
    parameters->setChecked(true);
    connect(parameters, &QAction::toggled, m_controller, &GraphController::setParametersShown);
    connect(m_controller, &GraphController::parametersShownChanged, parameters,
            &QAction::setChecked);
    QAction* timeline = commands.action("view.timeline");
    connect(timeline, &QAction::triggered, this, [this](bool shown) {
        if (shown)
            showTimeline();
        else
            m_timelineDock->hide();
    });
    connect(m_timelineDock, &QDockWidget::visibilityChanged, this,
            [this, timeline] { timeline->setChecked(!m_timelineDock->isHidden()); });
    connectDock("view.sweep", m_sweepDock, m_sweep);
    commands.connectTo("view.resetDocks", [this] { placePanels(); });
    commands.connectTo("plan.pin", [this] { m_controller->pinSelected(); });
    commands.connectTo("plan.unpin", [this] { m_controller->unpinSelected(); });
    commands.connectTo("plan.solve", [this] { m_document.solveAgain(); });
    commands.connectTo("plan.cancel", [this] { m_document.cancel(); });
    commands.connectTo("help.palette",
                       [this] { (new CommandPalette(m_commands->actions(), this))->show(); });
    commands.connectTo("help.keys", [this] { makeKeySheet(m_commands->actions(), this)->show(); });
    commands.connectTo("help.about", [this] {
        auto* box = new QMessageBox(
            QMessageBox::NoIcon, tr("About Shardlens"),
            tr("<b>Shardlens</b><p>See a model as its distinct blocks, find the sharding that is "
               "provably best under a stated cost model, and pin what you know better.</p>"
               "<p>Apache License 2.0</p>"),
            QMessageBox::Close, this);
        box->setObjectName(QStringLiteral("aboutBox"));
        box->setAttribute(Qt::WA_DeleteOnClose);
        box->open();
    });
}

} // namespace shardlens
