// SPDX-License-Identifier: Apache-2.0
// The Sweep dock: choose what is swept, watch the points come in, look at them as a chart and as a
// table, and open one as the plan of the window. Chart and table show the same points and share
// the selection. Its settings belong to the session's view state.
#pragma once

#include "ui/document.h"
#include "ui/jobs/sweep_job.h"
#include "ui/panels/sweep_form.h"
#include "ui/views/sweep_chart.h"

#include <QTimer>

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QTableView;
class QToolButton;

namespace shardlens {

class SweepPanel : public QWidget {
    Q_OBJECT

public:
    explicit SweepPanel(Document& document, QWidget* parent = nullptr);

    SweepForm& form() { return *m_form; }
    SweepChart& chart() { return *m_chart; }
    SweepModel& model() { return *m_model; }
    SweepJob& job() { return *m_job; }
    QTableView& table() { return *m_table; }
    bool busy() const { return m_job->running() || m_job->writing(); }

    void run();
    int selected() const { return m_chart->selected(); } ///< row of the sweep, -1: none
    void select(int row);
    /// Makes a point the plan of the window: one step that can be undone.
    bool open(int row);
    /// Writes in the background; a message says how it went.
    void exportTo(const QString& file);
    void saveViewStateNow();

signals:
    void message(shardlens::MessageKind kind, const QString& text);
    void planOpened();

protected:
    void changeEvent(QEvent* event) override;

private:
    QWidget* makeSide();
    QWidget* makeBar();
    QTableView* makeTable();
    void connectParts();
    void take();
    void applyFilter();
    void showStatus();
    void showSelection();
    void chooseFile(const QString& ending, const QString& filter);
    void restoreViewState();
    void useTheme();

    Document& m_document;
    SweepForm* m_form;
    SweepModel* m_model;
    SweepChart* m_chart;
    QTableView* m_table;
    SweepJob* m_job;
    QPushButton *m_run = nullptr, *m_open = nullptr;
    QLabel *m_status = nullptr, *m_point = nullptr;
    QComboBox* m_measure = nullptr;
    QLineEdit* m_filter = nullptr;
    QCheckBox *m_fitting = nullptr, *m_front = nullptr;
    QToolButton* m_export = nullptr;
    QTimer m_saveDelay, m_filterDelay;
    PlanRequest m_base; ///< of what is shown
    bool m_selecting = false;
};

} // namespace shardlens
