// SPDX-License-Identifier: Apache-2.0
// Builds the parts of the window and puts them in their places.
#include "ui/format.h"
#include "ui/main_window.h"
#include "ui/panels/inspector_panel.h"
#include "ui/panels/job_bar.h"
#include "ui/panels/list_panels.h"
#include "ui/panels/mesh_panel.h"
#include "ui/panels/panel_area.h"
#include "ui/panels/pipeline_panel.h"
#include "ui/panels/setup_panel.h"
#include "ui/panels/solver_panel.h"
#include "ui/panels/sweep_panel.h"
#include "ui/panels/timeline_panel.h"
#include "ui/panels/totals_panel.h"
#include "ui/views/legend.h"

#include <QActionGroup>
#include <QComboBox>
#include <QDockWidget>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QStatusBar>
#include <QToolBar>
#include <QVBoxLayout>

namespace shardlens {

void MainWindow::buildCentre() {
    m_centre = new QWidget(this);
    m_messages = new MessageBar(m_centre);
    m_view = new GraphView(m_centre);
    m_legend = new Legend(m_centre);
    auto* layout = new QVBoxLayout(m_centre);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(m_messages);
    layout->addWidget(m_view, 1);
    layout->addWidget(m_legend);
    setCentralWidget(m_centre);
    m_view->setPlaceholder(tr("Open a model, or drop one here"));
    m_controller = new GraphController(
        m_document, *m_view, *m_legend,
        layoutWith(m_options.layoutHelper, std::make_shared<LayoutCache>()), this);
    connect(m_view, &GraphView::menuRequested, this, [this](OpId op, int run, QPoint at) {
        QMenu* menu = m_controller->makeMenu(op, run);
        menu->setAttribute(Qt::WA_DeleteOnClose);
        if (menu->isEmpty())
            delete menu;
        else
            menu->popup(at);
    });
    connect(m_view, &GraphView::boundaryMenuRequested, this, [this](int boundary, QPoint at) {
        QMenu* menu = m_controller->makeBoundaryMenu(boundary);
        menu->setAttribute(Qt::WA_DeleteOnClose);
        menu->popup(at);
    });
}

QDockWidget* MainWindow::addPanel(const QString& name, const QString& title, QWidget* panel,
                                  Qt::DockWidgetArea area) {
    auto* dock = new QDockWidget(title, this);
    dock->setObjectName(name);
    dock->setAccessibleName(title);
    dock->setWidget(panel);
    addDockWidget(area, dock);
    m_docks.push_back(dock);
    return dock;
}

void MainWindow::buildPanels() {
    m_setup = new SetupPanel(m_document, this);
    m_mesh = new MeshPanel(m_document, this);
    m_pins = new PinsPanel(m_document, this);
    m_issues = new IssuesPanel(m_document, this);
    m_totals = new TotalsPanel(m_document, this);
    m_inspector = new InspectorPanel(m_document, this);
    m_solver = new SolverPanel(m_document, m_benchmark, this);
    addPanel(QStringLiteral("setupDock"), tr("Setup"), m_setup, Qt::LeftDockWidgetArea);
    addPanel(QStringLiteral("meshDock"), tr("Mesh"), new PanelArea(m_mesh), Qt::LeftDockWidgetArea);
    addPanel(QStringLiteral("pinsDock"), tr("Pins"), m_pins, Qt::LeftDockWidgetArea);
    QDockWidget* issues =
        addPanel(QStringLiteral("issuesDock"), tr("Issues"), m_issues, Qt::LeftDockWidgetArea);
    addPanel(QStringLiteral("totalsDock"), tr("Plan"), new PanelArea(m_totals),
             Qt::RightDockWidgetArea);
    addPanel(QStringLiteral("inspectorDock"), tr("Inspector"), m_inspector,
             Qt::RightDockWidgetArea);
    m_solverDock =
        addPanel(QStringLiteral("solverDock"), tr("Solver"), m_solver, Qt::RightDockWidgetArea);
    m_pipeline = new PipelinePanel(m_document, this);
    m_pipelineDock = addPanel(QStringLiteral("pipelineDock"), tr("Pipeline"),
                              new PanelArea(m_pipeline), Qt::LeftDockWidgetArea);
    m_timeline = new TimelinePanel(m_document, this);
    m_timelineDock = addPanel(QStringLiteral("timelineDock"), tr("Timeline"), m_timeline,
                              Qt::BottomDockWidgetArea);
    m_timelineDock->hide();
    connect(m_timeline, &TimelinePanel::message, this, &MainWindow::showMessage);
    connect(m_mesh, &MeshPanel::stagePointed, m_timeline, &TimelinePanel::showStage);
    m_sweep = new SweepPanel(m_document, this);
    m_sweepDock =
        addPanel(QStringLiteral("sweepDock"), tr("Sweep"), m_sweep, Qt::BottomDockWidgetArea);
    m_sweepDock->hide();
    connect(m_sweep, &SweepPanel::message, this, &MainWindow::showMessage);
    connect(m_sweep, &SweepPanel::planOpened, this, [this] {
        m_pipelineDock->show();
        m_pipelineDock->raise();
    });
    const auto show = [this](OpId op) { m_controller->showOp(op); };
    connect(m_inspector, &InspectorPanel::opRequested, this, show);
    connect(m_pins, &PinsPanel::opRequested, this, show);
    connect(m_issues, &IssuesPanel::opRequested, this, show);
    connect(m_issues, &IssuesPanel::countChanged, issues, [issues](int count) {
        issues->setWindowTitle(count > 0 ? tr("Issues (%1)").arg(count) : tr("Issues"));
    });
}

void MainWindow::placePanels() {
    QDockWidget *setup = m_docks[0], *mesh = m_docks[1], *pins = m_docks[2], *issues = m_docks[3],
                *totals = m_docks[4], *inspector = m_docks[5];
    for (QDockWidget* dock : m_docks) {
        dock->setFloating(false);
        dock->show();
    }
    for (QDockWidget* dock : {setup, m_pipelineDock, mesh, pins, issues}) {
        removeDockWidget(dock);
        addDockWidget(Qt::LeftDockWidgetArea, dock);
        dock->show();
    }
    for (QDockWidget* dock : {totals, inspector, m_solverDock}) {
        removeDockWidget(dock);
        addDockWidget(Qt::RightDockWidgetArea, dock);
        dock->show();
    }
    for (QDockWidget* dock : {m_timelineDock, m_sweepDock}) {
        removeDockWidget(dock);
        addDockWidget(Qt::BottomDockWidgetArea, dock);
        dock->hide(); // large, and not for every model: View > Timeline, View > Sweep
    }
    tabifyDockWidget(m_timelineDock, m_sweepDock);
    tabifyDockWidget(setup, m_pipelineDock);
    setup->raise();
    tabifyDockWidget(pins, issues);
    pins->raise();
    tabifyDockWidget(inspector, m_solverDock);
    inspector->raise();
    resizeDocks({setup, inspector}, {290, 390}, Qt::Horizontal);
    resizeDocks({setup, mesh, pins}, {270, 330, 190}, Qt::Vertical);
    resizeDocks({totals, inspector}, {270, 545}, Qt::Vertical);
    resizeDocks({m_timelineDock, m_sweepDock}, {380, 380}, Qt::Vertical);
}

void MainWindow::buildToolBar() {
    QToolBar* bar = addToolBar(tr("Tools"));
    bar->setObjectName(QStringLiteral("toolBar"));
    bar->setMovable(false);
    bar->setToolButtonStyle(Qt::ToolButtonTextOnly);
    for (const char* id : {"file.open", "file.save"}) bar->addAction(m_commands->action(id));
    bar->addSeparator();
    for (const char* id : {"edit.undo", "edit.redo"}) bar->addAction(m_commands->action(id));
    bar->addSeparator();
    for (const char* id : {"plan.pin", "plan.unpin"}) bar->addAction(m_commands->action(id));
    bar->addSeparator();
    auto* label = new QLabel(tr(" Colour by "), bar);
    m_colour = new QComboBox(bar);
    m_colour->setObjectName(QStringLiteral("colourMode"));
    m_colour->setAccessibleName(tr("Colour by"));
    m_colour->addItems({tr("nothing"), tr("compute time"), tr("communication"), tr("memory")});
    label->setBuddy(m_colour);
    bar->addWidget(label);
    bar->addWidget(m_colour);
    auto* gap = new QWidget(bar);
    gap->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    bar->addWidget(gap);
    m_search = new QLineEdit(bar);
    m_search->setObjectName(QStringLiteral("search"));
    m_search->setAccessibleName(tr("Search"));
    m_search->setPlaceholderText(tr("Search name, kind or class (Ctrl+F)"));
    m_search->setClearButtonEnabled(true);
    m_search->setFixedWidth(290);
    m_matches = new QLabel(bar);
    m_matches->setObjectName(QStringLiteral("matchCount"));
    m_matches->setMinimumWidth(fontMetrics().horizontalAdvance(QStringLiteral(" 0000 of 0000 ")));
    bar->addWidget(m_search);
    bar->addWidget(m_matches);
    connect(m_colour, &QComboBox::currentIndexChanged, m_controller,
            [this](int index) { m_controller->setColourMode(static_cast<ColourMode>(index)); });
    connect(m_controller, &GraphController::colourModeChanged, m_colour,
            [this](ColourMode mode) { m_colour->setCurrentIndex(static_cast<int>(mode)); });
    connect(m_search, &QLineEdit::textChanged, m_controller, &GraphController::search);
    connect(m_search, &QLineEdit::returnPressed, m_controller,
            [this] { m_controller->nextMatch(); });
    connect(m_controller, &GraphController::matchesChanged, m_matches, [this](int at, int count) {
        if (m_search->text().trimmed().isEmpty())
            m_matches->clear();
        else if (count == 0)
            m_matches->setText(tr(" none"));
        else
            m_matches->setText(at < 0 ? tr(" %1 found").arg(count)
                                      : tr(" %1 of %2").arg(at + 1).arg(count));
    });
    m_jobs = new JobBar(m_document, this);
    statusBar()->addPermanentWidget(m_jobs);
    statusBar()->setSizeGripEnabled(false);
}

void MainWindow::buildMenus() {
    std::map<std::string, QMenu*> menus;
    for (const CommandSpec& spec : commandTable()) {
        QMenu*& menu = menus[spec.menu];
        if (!menu) {
            menu = menuBar()->addMenu(CommandRegistry::translated(spec.menu));
            menu->setToolTipsVisible(true);
        }
        menu->addAction(m_commands->action(spec.id));
    }
    m_recent = new QMenu(tr("Open &recent"), this);
    m_recent->setObjectName(QStringLiteral("recentMenu"));
    m_recent->setToolTipsVisible(true);
    menus["&File"]->insertMenu(m_commands->action("file.save"), m_recent);
    QMenu* view = menus["&View"];
    view->addSeparator();
    m_panelsMenu = view->addMenu(tr("Pane&ls"));
    for (QDockWidget* dock : m_docks) m_panelsMenu->addAction(dock->toggleViewAction());
    buildThemeMenu(view);
}

void MainWindow::buildThemeMenu(QMenu* view) {
    QMenu* menu = view->addMenu(tr("&Theme"));
    auto* group = new QActionGroup(menu);
    const std::pair<QString, ThemeMode> modes[] = {{tr("As the &system"), ThemeMode::System},
                                                   {tr("&Light"), ThemeMode::Light},
                                                   {tr("&Dark"), ThemeMode::Dark}};
    for (const auto& [label, mode] : modes) {
        QAction* action = menu->addAction(label, this, [this, chosen = mode] { setTheme(chosen); });
        action->setObjectName(QStringLiteral("theme.%1").arg(static_cast<int>(mode)));
        action->setCheckable(true);
        action->setChecked(mode == m_theme);
        group->addAction(action);
    }
}

} // namespace shardlens
