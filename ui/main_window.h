// SPDX-License-Identifier: Apache-2.0
// The window: graph in the middle, panels around it, messages above, notation below. It only wires
// parts together; what they show and do is theirs.
#pragma once

#include "ui/commands/command_registry.h"
#include "ui/document.h"
#include "ui/jobs/benchmark_job.h"
#include "ui/panels/message_bar.h"
#include "ui/theme.h"
#include "ui/views/graph_controller.h"

#include <QMainWindow>
#include <QSettings>

class QComboBox;
class QLabel;
class QLineEdit;

namespace shardlens {

class InspectorPanel;
class IssuesPanel;
class JobBar;
class Legend;
class MeshPanel;
class PinsPanel;
class PipelinePanel;
class SetupPanel;
class SolverPanel;
class SweepPanel;
class TimelinePanel;
class TotalsPanel;

struct MainWindowOptions {
    DocumentOptions document;
    QString settingsFile;     ///< empty: the user's settings
    std::string layoutHelper; ///< program that serves as the layout helper; empty: none
    bool keepSettings = true; ///< read and write window settings and recent files
};

class MainWindow : public QMainWindow {
    Q_OBJECT

public:
    /// @param file opened at once, if not empty
    explicit MainWindow(const QString& file = {}, MainWindowOptions options = {},
                        QWidget* parent = nullptr);
    ~MainWindow() override;

    /// A model, a session, or a benchmark problem, which is solved in the background.
    void openFile(const QString& file);
    bool saveTo(const QString& file);

    Document& document() { return m_document; }
    GraphView& graphView() { return *m_view; }
    GraphController& graph() { return *m_controller; }
    InspectorPanel& inspector() { return *m_inspector; }
    TimelinePanel& timeline() { return *m_timeline; }
    SweepPanel& sweep() { return *m_sweep; }
    TotalsPanel& totals() { return *m_totals; }
    PipelinePanel& pipelinePanel() { return *m_pipeline; }
    MeshPanel& mesh() { return *m_mesh; }
    void showTimeline();
    BenchmarkJob& benchmark() { return m_benchmark; }
    MessageBar& messageBar() { return *m_messages; }
    CommandRegistry& commands() { return *m_commands; }
    QString lastError() const { return m_lastError; }

    /// Runs the event loop until loading, solving, pricing and drawing are done.
    /// @return false when the time is over
    bool waitForIdle(int milliseconds);

protected:
    bool event(QEvent* event) override;
    void closeEvent(QCloseEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

private:
    void buildCentre();
    void buildPanels();
    void placePanels();
    QDockWidget* addPanel(const QString& name, const QString& title, QWidget* panel,
                          Qt::DockWidgetArea area);
    void buildToolBar();
    void buildMenus();
    void buildThemeMenu(QMenu* view);
    void connectCommands();
    void connectPipeline();
    void connectDock(const char* command, QDockWidget* dock, QWidget* panel);
    void connectDocument();
    void updateTitle();
    void updateCommands();
    void showMessage(MessageKind kind, const QString& text);
    void rememberRecent(const QString& file);
    void refillRecent();
    void setTheme(ThemeMode mode);
    void saveState();
    void restoreDocks();
    void chooseFileToOpen();
    void chooseFileToSave();

    MainWindowOptions m_options;
    std::unique_ptr<QSettings> m_settings;
    ThemeMode m_theme = ThemeMode::System;
    Document m_document;
    BenchmarkJob m_benchmark;
    QWidget* m_centre = nullptr;
    MessageBar* m_messages = nullptr;
    GraphView* m_view = nullptr;
    Legend* m_legend = nullptr;
    GraphController* m_controller = nullptr;
    InspectorPanel* m_inspector = nullptr;
    TotalsPanel* m_totals = nullptr;
    SetupPanel* m_setup = nullptr;
    MeshPanel* m_mesh = nullptr;
    PinsPanel* m_pins = nullptr;
    IssuesPanel* m_issues = nullptr;
    PipelinePanel* m_pipeline = nullptr;
    QDockWidget* m_pipelineDock = nullptr;
    SolverPanel* m_solver = nullptr;
    QDockWidget* m_solverDock = nullptr;
    TimelinePanel* m_timeline = nullptr;
    QDockWidget* m_timelineDock = nullptr;
    SweepPanel* m_sweep = nullptr;
    QDockWidget* m_sweepDock = nullptr;
    JobBar* m_jobs = nullptr;
    QLineEdit* m_search = nullptr;
    QLabel* m_matches = nullptr;
    QComboBox* m_colour = nullptr;
    QMenu* m_recent = nullptr;
    QMenu* m_panelsMenu = nullptr;
    std::vector<QDockWidget*> m_docks;
    std::unique_ptr<CommandRegistry> m_commands;
    QString m_lastError;
};

} // namespace shardlens
