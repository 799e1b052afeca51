// SPDX-License-Identifier: Apache-2.0
// The Timeline dock: which schedule, how large, how long its passes take, and what comes of it as a
// picture and as figures. Every entry runs the schedule again in the background; the picture before
// stays, marked, until the new one is in. Its settings belong to the session's view state.
#pragma once

#include "ui/document.h"
#include "ui/jobs/timeline_job.h"
#include "ui/panels/timeline_form.h"
#include "ui/views/timeline_view.h"

class QComboBox;
class QLabel;
class QToolButton;

namespace shardlens {

class TimelinePanel : public QWidget {
    Q_OBJECT

public:
    explicit TimelinePanel(Document& document, QWidget* parent = nullptr);

    TimelineView& view() { return *m_view; }
    TimelineForm& form() { return *m_form; }
    QString figures() const; ///< the line of text under the picture
    bool busy() const { return m_job->busy() || m_job->writing(); }
    /// Runs the event loop until schedule and files are done. @return false when the time is over
    bool waitForIdle(int milliseconds);

    /// Marks the row of a stage of the session's plan, where that is shown.
    void showStage(int stage);
    void setColour(TimelineColour colour);
    TimelineColour colour() const;
    /// Writes in the background; a message says how it went.
    void exportTo(const QString& file);
    void saveViewStateNow();

signals:
    void message(shardlens::MessageKind kind, const QString& text);

protected:
    void changeEvent(QEvent* event) override;
    void showEvent(QShowEvent* event) override;

private:
    QWidget* makeBar();
    void connectView();
    void connectPlan();
    void takePlan();
    void run();
    TimelineStyle style() const;
    void take(const std::shared_ptr<const TimelinePicture>& picture);
    void fail(const QString& text);
    void showFigures();
    void chooseFile(const QString& ending, const QString& filter);
    void restoreViewState();

    Document& m_document;
    TimelineForm* m_form;
    TimelineView* m_view;
    QLabel* m_figures;
    QComboBox* m_colour = nullptr;
    QToolButton *m_playButton = nullptr, *m_exportButton = nullptr;
    std::shared_ptr<const PipelinePlan> m_plan; ///< that the form has
    QTimer m_saveDelay;
    std::optional<std::pair<double, double>> m_restoreRange;
    std::optional<double> m_restoreTime;
    bool m_restoring = false, m_sharing = false;
    TimelineJob* m_job;
};

} // namespace shardlens
