// SPDX-License-Identifier: Apache-2.0
// The solver at work: best answer and bound over time, the gap, what was eliminated, widths and
// classes, how it was proven. Of the plan that is solved, or of a benchmark problem, whichever was
// begun last.
#pragma once

#include "ui/document.h"
#include "ui/jobs/benchmark_job.h"

#include <QWidget>

class QLabel;
class QPushButton;

namespace shardlens {

class SolverChart;

class SolverPanel : public QWidget {
    Q_OBJECT

public:
    SolverPanel(Document& document, BenchmarkJob& benchmark, QWidget* parent = nullptr);
    bool showsBenchmark() const { return m_ofBenchmark; }

protected:
    void changeEvent(QEvent* event) override;

private:
    void noteProgress();
    void notePlan();
    void refresh();
    void showPlan();
    void showBenchmark();
    void setBadge(bool proven, const QString& text);
    void setFacts(const QStringList& lines);

    Document& m_document;
    BenchmarkJob& m_benchmark;
    bool m_ofBenchmark = false;
    std::vector<solve::Progress> m_course; ///< of the plan's solve
    bool m_solving = false;                ///< the course is of one that still runs
    QLabel* m_title;
    QLabel* m_badge;
    QLabel* m_stage;
    SolverChart* m_chart;
    QLabel* m_facts;
    QPushButton* m_stop;
};

} // namespace shardlens
