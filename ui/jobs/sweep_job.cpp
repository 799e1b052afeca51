// SPDX-License-Identifier: Apache-2.0
// See sweep_job.h.
#include "ui/jobs/sweep_job.h"

#include "core/error.h"
#include "ui/format.h"

#include <QSaveFile>

#include <chrono>
#include <stdexcept>

namespace shardlens {

namespace {

constexpr std::chrono::milliseconds kBetweenSnapshots{60};

} // namespace

SweepJob::SweepJob(QObject* parent) : QObject(parent), m_lane(std::make_unique<BackgroundLane>()) {
    connect(&m_writer, &FileWriter::written, this, &SweepJob::written);
}

SweepJob::~SweepJob() {
    m_lane->cancel();
    m_lane->waitForIdle();
}

void SweepJob::start(const SweepSource& model, const SweepRequest& request) {
    std::uint64_t generation = 0;
    {
        const std::lock_guard lock(m_mutex);
        generation = ++m_generation;
        m_mail = {};
        m_mail.data = m_state.data;
        m_mail.running = true;
        m_state = m_mail;
    }
    m_lane->submit([this, generation, model, request](const std::stop_token& stop) {
        run(generation, model, request, stop);
    });
    emit changed();
}

void SweepJob::stop() {
    m_lane->cancel();
}

void SweepJob::clear() {
    m_lane->cancel();
    {
        const std::lock_guard lock(m_mutex);
        ++m_generation;
        m_mail = {};
        m_state = {};
    }
    emit changed();
}

void SweepJob::run(std::uint64_t generation, const SweepSource& model, const SweepRequest& request,
                   const std::stop_token& stop) {
    const auto end = [&](std::shared_ptr<const SweepData> data, const QString& error,
                         bool stopped) {
        post(generation, [&](SweepState& s) {
            if (data) s.data = data;
            if (!error.isEmpty()) s.data.reset();
            s.error = error;
            s.stopped = stopped;
            s.running = false;
        });
    };
    SweepTable known; // of what is done
    const auto snapshot = [&] {
        return std::make_shared<const SweepData>(known, request.axes, std::vector<GridPoint>());
    };
    try {
        if (request.axes.empty()) {
            GridSweep grid = runGrid(model, request.base, stop);
            if (grid.points.empty())
                throw PlanError("no equal-stage plan is valid for these devices and this batch",
                                "sweep", "use another batch or another number of nodes");
            return end(std::make_shared<const SweepData>(std::move(grid.table), request.axes,
                                                         std::move(grid.points)),
                       {}, false);
        }
        for (const SweepAxis& axis : request.axes)
            known.settings.emplace_back(nameOf(axis.parameter));
        auto last = std::chrono::steady_clock::now() - kBetweenSnapshots;
        SweepTable table = runSweep(
            model, request,
            [&](const SweepRow& row, std::size_t index, std::size_t all) {
                known.rows.push_back(row);
                const auto now = std::chrono::steady_clock::now();
                if (now - last < kBetweenSnapshots) return;
                last = now;
                post(generation, [&, data = snapshot()](SweepState& s) {
                    s.data = data;
                    s.done = index + 1;
                    s.all = all;
                });
            },
            stop);
        end(std::make_shared<const SweepData>(std::move(table), request.axes,
                                              std::vector<GridPoint>()),
            {}, false);
    } catch (const Cancelled&) { // what is done stays
        end(known.rows.empty() ? nullptr : snapshot(), {}, true);
    } catch (const std::exception& error) {
        end(nullptr, text(error.what()), false);
    }
}

void SweepJob::post(std::uint64_t generation, const std::function<void(SweepState&)>& change) {
    const std::lock_guard lock(m_mutex);
    if (generation != m_generation) return;
    change(m_mail);
    if (m_awake) return;
    m_awake = true;
    QMetaObject::invokeMethod(this, &SweepJob::fetch, Qt::QueuedConnection);
}

void SweepJob::fetch() {
    {
        const std::lock_guard lock(m_mutex);
        m_awake = false;
        m_state = m_mail;
    }
    emit changed();
}

void SweepJob::write(const QString& file, std::function<QByteArray()> make) {
    m_writer.write(file, [make = std::move(make)](const QString& name) {
        const QByteArray bytes = make();
        QSaveFile out(name);
        if (!out.open(QIODevice::WriteOnly) || out.write(bytes) < 0 || !out.commit())
            throw std::runtime_error(
                tr("%1 cannot be written: %2").arg(name, out.errorString()).toStdString());
    });
}

} // namespace shardlens
