// SPDX-License-Identifier: Apache-2.0
// The numbers a schedule is made from, editable in place: schedule, devices, micro-batches, chunks,
// durations for all stages or for single ones. Or the schedule of the session's own plan, with the
// times of its stages, of which single ones can be typed over. It only holds what is typed; the
// panel runs it.
#pragma once

#include "ui/jobs/timeline_job.h"

#include <QJsonObject>
#include <QWidget>

class QComboBox;
class QDoubleSpinBox;
class QFormLayout;
class QSpinBox;
class QTableWidget;

namespace shardlens {

class TimelineForm : public QWidget {
    Q_OBJECT

public:
    explicit TimelineForm(QWidget* parent = nullptr);

    bool hasSchedule() const; ///< one is chosen, and known
    /// The schedule of the session's plan, in seconds; nothing without one.
    void setPlan(std::optional<schedule::ScheduleSpec> plan);
    bool showsPlan() const; ///< it is the one that is chosen
    void choosePlan();
    TimelineWish wish() const;
    double secondsPerUnit() const; ///< 0: plain numbers
    /// The table follows a schedule that has been run: its stages with their times.
    void showStages(const schedule::Schedule& schedule);
    /// Puts the caret where the duration of a pass of a stage is typed.
    void edit(std::uint32_t stage, schedule::Pass pass);

    QJsonObject state() const;
    void setState(const QJsonObject& state); ///< what is missing keeps its default

signals:
    void changed();     ///< the schedule is another one
    void unitChanged(); ///< only the name of the numbers is

private:
    QDoubleSpinBox* addTime(QFormLayout* layout, const QString& object, const QString& label,
                            const QString& name, const QString& tip, double value);
    void takeCell(int row, int column);
    void fillTable();
    void clearStages();
    schedule::StageTimes usualTimes(std::uint32_t stage) const;
    double tableUnit() const; ///< what a number of the table is, in those of the schedule
    void enableFields();

    QComboBox *m_schedule, *m_transfers, *m_unit;
    QSpinBox *m_devices, *m_microBatches, *m_chunks;
    QDoubleSpinBox *m_forward = nullptr, *m_input = nullptr, *m_weight = nullptr,
                   *m_recompute = nullptr, *m_transfer = nullptr, *m_allReduce = nullptr,
                   *m_update = nullptr, *m_joint = nullptr;
    QTableWidget* m_table;
    std::uint32_t m_stages = 0, m_onDevice = 1;          ///< of the schedule that is shown
    std::map<std::uint32_t, schedule::StageTimes> m_own; ///< stages with times of their own
    std::optional<schedule::ScheduleSpec> m_plan;
    bool m_filling = false;
};

} // namespace shardlens
