// SPDX-License-Identifier: Apache-2.0
// Runs schedules and makes their pictures in the background, and writes them to files. A newer wish
// supersedes an older one; what is ready arrives on the owner's thread. Writing has a lane of its
// own, so that a large file is finished while other schedules are tried.
#pragma once

#include "core/plan/background_lane.h"
#include "ui/jobs/file_writer.h"
#include "ui/views/timeline_export.h"
#include "ui/views/timeline_picture.h"

#include <QObject>

#include <map>

namespace shardlens {

/// A schedule, and the stages whose times differ from the rest's.
struct TimelineWish {
    schedule::ScheduleSpec spec;
    std::map<std::uint32_t, schedule::StageTimes> stages;
};

/// Times of single stages written into a spec: one entry for each stage of the schedule.
/// Stages that the schedule has not are left out.
schedule::ScheduleSpec specWithStages(const TimelineWish& wish);

class TimelineJob : public QObject {
    Q_OBJECT

public:
    explicit TimelineJob(QObject* parent = nullptr);
    ~TimelineJob() override;

    void request(TimelineWish wish, TimelineStyle style);
    void restyle(TimelineStyle style); ///< of what is shown, or being made
    void write(std::shared_ptr<const TimelinePicture> picture, const QString& file,
               const TimelineExport& options);
    bool busy() const { return m_busy; }
    bool writing() const { return m_writer.busy(); }

signals:
    void ready(std::shared_ptr<const shardlens::TimelinePicture> picture);
    void failed(const QString& text);
    void written(const QString& file, const QString& error); ///< error is empty if it went well

private:
    void submit();

    std::optional<TimelineWish> m_wish; ///< not answered yet
    TimelineStyle m_style;
    std::shared_ptr<const schedule::Schedule> m_schedule;
    std::uint64_t m_generation = 0;
    bool m_busy = false;
    FileWriter m_writer;
    std::unique_ptr<BackgroundLane> m_lane; // last: joined first
};

} // namespace shardlens
