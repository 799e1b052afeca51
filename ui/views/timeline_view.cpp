// SPDX-License-Identifier: Apache-2.0
// What the timeline view shows and says; mouse and keys are in timeline_interaction.cpp.
#include "ui/views/timeline_view.h"

#include "ui/format.h"
#include "ui/theme.h"

#include <QHelpEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace shardlens {

using namespace schedule;

namespace {

constexpr double kMostTimeZoom = 1e9; ///< makespan / visible time
constexpr double kPlaySeconds = 12;   ///< for the whole step
constexpr int kFrameMilliseconds = 16;

} // namespace

TimelineView::TimelineView(QWidget* parent)
    : QWidget(parent), m_rows(new QScrollBar(Qt::Vertical, this)) {
    setObjectName(QStringLiteral("timelineView"));
    setAccessibleName(tr("Timeline"));
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setMinimumSize(240, 110);
    setAttribute(Qt::WA_OpaquePaintEvent);
    m_rows->setObjectName(QStringLiteral("timelineRows"));
    m_rows->setAccessibleName(tr("Scroll devices"));
    m_rows->hide();
    connect(m_rows, &QScrollBar::valueChanged, this, [this](int value) {
        m_window.scroll = value;
        update();
    });
    m_play.setInterval(kFrameMilliseconds);
    connect(&m_play, &QTimer::timeout, this, &TimelineView::advance);
    m_staleDelay.setSingleShot(true);
    m_staleDelay.setInterval(kStaleDelayMilliseconds);
    connect(&m_staleDelay, &QTimer::timeout, this, [this] {
        m_staleShown = m_stale;
        update();
    });
}

void TimelineView::setPicture(std::shared_ptr<const TimelinePicture> picture) {
    const bool fitted = !m_picture || isFitted();
    const auto same = [&](TaskId id) {
        return m_picture && picture && id < picture->schedule().program.tasks.size() &&
               m_picture->task(id) == picture->task(id);
    };
    if (m_state.selected != kNoTask && !same(m_state.selected)) {
        m_state.selected = kNoTask;
        emit taskSelected(kNoTask);
    }
    m_state.hovered = kNoTask;
    m_picture = std::move(picture);
    if (!m_picture) {
        setPlaying(false);
        m_state.time.reset();
    } else {
        if (m_state.device >= m_picture->devices()) m_state.device = -1;
        if (m_state.time) m_state.time = std::min(*m_state.time, m_picture->makespan());
        if (fitted) {
            fitAll();
        } else {
            setRange(m_window.begin, m_window.end);
        }
    }
    updateScrollBar();
    update();
}

void TimelineView::setStale(bool stale) {
    m_stale = stale;
    if (stale) {
        if (!m_staleDelay.isActive()) m_staleDelay.start();
        return;
    }
    m_staleDelay.stop();
    m_staleShown = false;
    update();
}

void TimelineView::setPlaceholder(const QString& text) {
    m_placeholder = text;
    setAccessibleDescription(text);
    update();
}

void TimelineView::setRange(double begin, double end) {
    if (!m_picture || !(m_picture->makespan() > 0) || !(end > begin)) return;
    const double whole = m_picture->makespan();
    const double span = std::clamp(end - begin, whole / kMostTimeZoom, whole);
    m_window.begin = std::clamp((begin + end - span) / 2, 0.0, whole - span);
    m_window.end = m_window.begin + span;
    update();
    emit viewChanged();
}

bool TimelineView::isFitted() const {
    return m_picture && m_window.begin <= 0 && m_window.end >= m_picture->makespan() * (1 - 1e-12);
}

void TimelineView::fitAll() {
    if (m_picture) setRange(0, m_picture->makespan());
}

void TimelineView::fitSelection() {
    if (m_state.selected == kNoTask) return fitAll();
    const double length = m_picture->end(m_state.selected) - m_picture->start(m_state.selected);
    setRange(m_picture->start(m_state.selected) - 3 * length,
             m_picture->end(m_state.selected) + 3 * length);
    ensureVisible(m_state.selected);
}

void TimelineView::zoomAt(double time, double factor) {
    const double span = (m_window.end - m_window.begin) / factor;
    const double place = (time - m_window.begin) / (m_window.end - m_window.begin);
    setRange(time - place * span, time + (1 - place) * span);
}

void TimelineView::zoomBy(double factor) {
    if (!m_picture) return;
    const auto inSight = [this](double time) {
        return time >= m_window.begin && time <= m_window.end;
    };
    double around = (m_window.begin + m_window.end) / 2;
    if (m_state.time && inSight(*m_state.time)) around = *m_state.time;
    if (m_state.selected != kNoTask && inSight(m_picture->start(m_state.selected))) {
        around = m_picture->start(m_state.selected);
    }
    zoomAt(around, factor);
}

void TimelineView::panBy(double pixels) {
    if (!m_picture) return;
    const double by = pixels * geometryNow().perPixel;
    setRange(m_window.begin + by, m_window.end + by);
}

void TimelineView::ensureVisible(TaskId id) {
    const int lane = m_picture ? m_picture->laneOf(id) : -1;
    if (lane < 0) return;
    const double start = m_picture->start(id), finish = m_picture->end(id);
    const double span = m_window.end - m_window.begin, margin = span * 0.05;
    if (start < m_window.begin || std::min(finish, start + span / 2) > m_window.end) {
        const double begin = start < m_window.begin ? start - margin : finish + margin - span;
        setRange(begin, begin + span);
    }
    const TimelineGeometry g = geometryNow();
    const QRectF row = g.row(m_picture->lanes()[static_cast<std::size_t>(lane)].row);
    if (row.top() < g.plot.top())
        m_rows->setValue(m_rows->value() - qRound(g.plot.top() - row.top()));
    if (row.bottom() > g.plot.bottom()) {
        m_rows->setValue(m_rows->value() + qRound(row.bottom() - g.plot.bottom()));
    }
}

void TimelineView::setTime(std::optional<double> time) {
    if (time && m_picture) time = std::clamp(*time, 0.0, m_picture->makespan());
    if (time == m_state.time) return;
    m_state.time = time;
    update();
    emit timeChanged();
}

void TimelineView::stepTime(bool forward) {
    if (!m_picture) return;
    const double now = m_state.time.value_or(forward ? -1.0 : m_picture->makespan());
    setTime(now < 0 ? 0 : forward ? m_picture->nextEvent(now) : m_picture->previousEvent(now));
    const double span = m_window.end - m_window.begin;
    if (*m_state.time < m_window.begin || *m_state.time > m_window.end) {
        setRange(*m_state.time - span / 2, *m_state.time + span / 2);
    }
}

void TimelineView::setPlaying(bool playing) {
    playing = playing && m_picture;
    if (playing == m_play.isActive()) return;
    if (playing) {
        if (!m_state.time || *m_state.time >= m_picture->makespan()) setTime(0);
        m_sinceFrame.start();
        m_play.start();
    } else {
        m_play.stop();
    }
    emit playingChanged(playing);
}

void TimelineView::advance() {
    const double elapsed = static_cast<double>(m_sinceFrame.restart()) / 1000;
    const double span = m_window.end - m_window.begin;
    setTime(*m_state.time + elapsed * span / kPlaySeconds);
    if (*m_state.time > m_window.end) setRange(*m_state.time, *m_state.time + span);
    if (*m_state.time >= m_picture->makespan()) setPlaying(false);
}

void TimelineView::selectTask(TaskId id) {
    if (id == m_state.selected) return;
    m_state.selected = id;
    if (id != kNoTask) {
        const Task& task = m_picture->task(id);
        const int row = m_picture->laneOf(id);
        if (row >= 0) {
            const auto its = m_picture->lanes()[static_cast<std::size_t>(row)].row;
            selectDevice(m_picture->rows()[its].device >= 0 ? task.device : -1);
        }
    }
    update();
    emit taskSelected(id);
}

void TimelineView::selectDevice(int device) {
    if (device == m_state.device) return;
    m_state.device = device;
    update();
    emit deviceSelected(device);
}

void TimelineView::ensureDeviceVisible(int device) {
    if (!m_picture || device < 0) return;
    const auto& rows = m_picture->rows();
    const auto found = std::ranges::find(rows, device, &TimelineRow::device);
    if (found == rows.end()) return;
    const TimelineGeometry g = geometryNow();
    const QRectF row = g.row(static_cast<std::size_t>(found - rows.begin()));
    if (row.top() < g.plot.top())
        m_rows->setValue(m_rows->value() - qRound(g.plot.top() - row.top()));
    else if (row.bottom() > g.plot.bottom())
        m_rows->setValue(m_rows->value() + qRound(row.bottom() - g.plot.bottom()));
}

TimelineGeometry TimelineView::geometryNow() const {
    if (!m_picture) return {};
    QSizeF page = size();
    if (!m_rows->isHidden()) page.rwidth() -= m_rows->width();
    return layOutTimeline(*m_picture, page, QFontMetricsF(font()), m_window);
}

void TimelineView::updateScrollBar() {
    if (!m_picture) return m_rows->hide();
    const TimelineGeometry g = geometryNow();
    const double hidden = g.contentHeight() - g.plot.height();
    m_rows->setVisible(hidden > 1);
    m_rows->setRange(0, std::max(0, static_cast<int>(std::ceil(hidden))));
    m_rows->setPageStep(static_cast<int>(g.plot.height()));
    m_rows->setSingleStep(static_cast<int>(g.rowHeight));
    m_rows->setGeometry(width() - m_rows->sizeHint().width(), static_cast<int>(g.plot.top()),
                        m_rows->sizeHint().width(), static_cast<int>(g.plot.height()));
}

QRectF TimelineView::taskRect(TaskId id) const {
    const int lane = m_picture ? m_picture->laneOf(id) : -1;
    return lane < 0 ? QRectF() : geometryNow().bar(*m_picture, static_cast<std::size_t>(lane), id);
}

TaskId TimelineView::taskAt(QPointF point) const {
    if (!m_picture) return kNoTask;
    const TimelineGeometry g = geometryNow();
    const int row = g.plot.contains(point) ? g.rowAt(point.y()) : -1;
    if (row < 0) return kNoTask;
    const TimelineRow& its = m_picture->rows()[static_cast<std::size_t>(row)];
    for (std::uint32_t l = its.firstLane; l < its.firstLane + its.lanes; ++l) {
        const QRectF place = g.lane(*m_picture, l);
        if (point.y() < place.top() || point.y() > place.bottom()) continue;
        const bool lower = point.y() >= place.top() + std::floor(place.height() / 2);
        return m_picture->taskAt(m_picture->lanes()[l], g.timeAt(point.x()), lower);
    }
    return kNoTask;
}

int TimelineView::deviceAt(QPointF point) const {
    const int row = m_picture ? geometryNow().rowAt(point.y()) : -1;
    return row < 0 ? -1 : m_picture->rows()[static_cast<std::size_t>(row)].device;
}

QString TimelineView::describe(TaskId id) const {
    const Task& task = m_picture->task(id);
    const double unit = m_picture->style().secondsPerUnit;
    const auto number = [unit](double value) { return timelineNumber(value, unit); };
    QStringList parts{tr("%1: %2 of micro-batch %3 in stage %4, device %5")
                          .arg(text(taskName(task)), passName(task.pass))
                          .arg(task.microBatch)
                          .arg(task.stage)
                          .arg(task.device)};
    parts << tr("starts %1").arg(number(m_picture->start(id)));
    parts << tr("ends %1").arg(number(m_picture->end(id)));
    parts << tr("lasts %1").arg(number(m_picture->end(id) - m_picture->start(id)));
    for (const Idle& wait : m_picture->waitBefore(id)) {
        parts << tr("waited %1 (%2)").arg(number(wait.end - wait.begin), causeName(wait.cause));
    }
    return parts.join(QStringLiteral(", "));
}

QString TimelineView::describeRow(std::size_t row) const {
    const TimelineRow& its = m_picture->rows()[row];
    if (its.device < 0) return its.name;
    const DeviceUse& use =
        m_picture->schedule().account.devices[static_cast<std::size_t>(its.device)];
    const double unit = m_picture->style().secondsPerUnit;
    QStringList parts{its.name, tr("busy %1").arg(timelineNumber(use.busy, unit))};
    for (std::size_t c = 0; c < kCauses; ++c) {
        if (!(use.idle[c] > 0)) continue;
        parts << tr("idle %1 (%2)")
                     .arg(timelineNumber(use.idle[c], unit), causeName(static_cast<Cause>(c)));
    }
    parts << tr("peak memory %1").arg(timelineNumber(use.peakMemory, 0));
    return parts.join(QStringLiteral(", "));
}

void TimelineView::paintEvent(QPaintEvent* event) {
    QPainter painter(this);
    const Palette& palette = m_picture ? m_picture->palette() : Palette::of(this);
    painter.fillRect(event->rect(), palette.canvas);
    if (!m_picture) {
        painter.setPen(palette.muted);
        painter.drawText(rect().adjusted(24, 24, -24, -24), Qt::AlignCenter | Qt::TextWordWrap,
                         m_placeholder);
        return;
    }
    TimelinePaintState state = m_state;
    state.focused = hasFocus();
    if (m_staleShown) painter.setOpacity(0.6);
    const TimelineGeometry geometry = geometryNow();
    TimelinePainter(*m_picture, geometry, state, painter).paint();
    painter.setOpacity(1);
    if (m_staleShown) drawBadge(painter);
    if (hasFocus()) {
        painter.setPen(palette.accent);
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(rect().adjusted(0, 0, -1, -1));
    }
}

void TimelineView::drawBadge(QPainter& painter) const {
    const Palette& palette = m_picture->palette();
    const QString words = tr("being run…");
    const QFontMetrics metrics(font());
    const QRect badge(width() / 2 - metrics.horizontalAdvance(words) / 2 - 10, height() / 2 - 14,
                      metrics.horizontalAdvance(words) + 20, 28);
    painter.setBrush(palette.surface);
    painter.setPen(palette.border);
    painter.drawRoundedRect(badge, 6, 6);
    painter.setPen(palette.text);
    painter.drawText(badge, Qt::AlignCenter, words);
}

void TimelineView::showTip(QPoint globalPosition, QPointF point) {
    QString words;
    if (const TaskId id = taskAt(point); id != kNoTask) {
        words = describe(id).replace(QStringLiteral(", "), QStringLiteral("\n"));
    } else if (const TimelineGeometry g = geometryNow(); m_picture && deviceAt(point) >= 0) {
        if (!g.plot.contains(point)) {
            words = describeRow(static_cast<std::size_t>(g.rowAt(point.y())));
        } else {
            const double at = g.timeAt(point.x());
            const auto gaps = m_picture->idle(deviceAt(point));
            const auto gap = std::ranges::upper_bound(gaps, at, {}, &Idle::end);
            if (gap != gaps.end() && gap->begin <= at) {
                const double unit = m_picture->style().secondsPerUnit;
                words = tr("idle from %1 to %2: %3")
                            .arg(timelineNumber(gap->begin, unit), timelineNumber(gap->end, unit),
                                 causeName(gap->cause));
            }
        }
    }
    if (words.isEmpty()) {
        QToolTip::hideText();
    } else {
        QToolTip::showText(globalPosition, words, this);
    }
}

} // namespace shardlens
