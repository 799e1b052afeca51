// SPDX-License-Identifier: Apache-2.0
// See timeline_job.h.
#include "ui/jobs/timeline_job.h"

#include "core/error.h"
#include "core/schedule/validate.h"
#include "ui/format.h"

#include <algorithm>

namespace shardlens {

using namespace schedule;

ScheduleSpec specWithStages(const TimelineWish& wish) {
    ScheduleSpec spec = wish.spec;
    if (wish.stages.empty()) return spec;
    const std::uint32_t stages = makeOrders(spec).stages;
    const double part = static_cast<double>(spec.devices) / std::max(spec.devices, stages);
    if (spec.times.size() != stages) {
        StageTimes usual = spec.times.front();
        for (double* time : {&usual.forward, &usual.input, &usual.weight, &usual.recompute,
                             &usual.update, &usual.allReduce}) {
            *time *= part;
        }
        spec.times.assign(stages, usual);
    }
    for (const auto& [stage, times] : wish.stages) {
        if (stage < stages) spec.times[stage] = times;
    }
    return spec;
}

TimelineJob::TimelineJob(QObject* parent)
    : QObject(parent), m_lane(std::make_unique<BackgroundLane>()) {
    connect(&m_writer, &FileWriter::written, this, &TimelineJob::written);
}

TimelineJob::~TimelineJob() = default;

void TimelineJob::request(TimelineWish wish, TimelineStyle style) {
    m_wish = std::move(wish);
    m_style = style;
    submit();
}

void TimelineJob::restyle(TimelineStyle style) {
    m_style = style;
    if (m_wish || m_schedule) submit();
}

void TimelineJob::submit() {
    m_busy = true;
    const std::uint64_t generation = ++m_generation;
    m_lane->submit([this, generation, wish = m_wish, style = m_style,
                    known = m_schedule](const std::stop_token& stop) {
        std::shared_ptr<const TimelinePicture> picture;
        QString error;
        try {
            std::shared_ptr<const Schedule> schedule = known;
            if (wish)
                schedule = std::make_shared<const Schedule>(makeSchedule(specWithStages(*wish)));
            if (stop.stop_requested()) return;
            picture = std::make_shared<const TimelinePicture>(std::move(schedule), style, stop);
        } catch (const Cancelled&) {
            return; // a newer wish is on its way
        } catch (const std::exception& failure) {
            error = text(failure.what());
        }
        QMetaObject::invokeMethod(this, [this, generation, picture, error] {
            if (generation != m_generation) return;
            m_busy = false;
            m_wish.reset();
            if (!picture) return emit failed(error);
            m_schedule = picture->shared();
            emit ready(picture);
        });
    });
}

void TimelineJob::write(std::shared_ptr<const TimelinePicture> picture, const QString& file,
                        const TimelineExport& options) {
    m_writer.write(file, [picture = std::move(picture), options](const QString& name) {
        writeTimeline(*picture, name, options);
    });
}

} // namespace shardlens
