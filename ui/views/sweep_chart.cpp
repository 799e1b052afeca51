// SPDX-License-Identifier: Apache-2.0
// See sweep_chart.h.
#include "ui/views/sweep_chart.h"

#include "ui/theme.h"

#include <QAccessible>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardlens {

namespace {

constexpr double kReach = 10; // pixels from a mark at which it is meant

} // namespace

SweepChart::SweepChart(QWidget* parent) : QWidget(parent) {
    setObjectName(QStringLiteral("sweepChart"));
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAttribute(Qt::WA_OpaquePaintEvent);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    describe();
}

void SweepChart::setSweep(std::shared_ptr<const SweepData> sweep, std::vector<int> shown) {
    const bool other = !m_data || !sweep || m_data->table().settings != sweep->table().settings;
    m_data = std::move(sweep);
    if (other || m_state.selected >= m_data->rows()) m_state.selected = -1;
    setShown(std::move(shown));
}

void SweepChart::setShown(std::vector<int> shown) {
    m_shown = std::move(shown);
    std::ranges::sort(m_shown);
    m_state.hovered = -1;
    if (!isShown(m_state.selected)) select(-1);
    forget();
}

void SweepChart::setMeasure(SweepMeasure measure) {
    m_measure = measure;
    forget();
}

void SweepChart::setPlaceholder(const QString& text) {
    m_placeholder = text;
    update();
}

void SweepChart::forget() {
    m_geometry.reset();
    m_drawn = false;
    describe();
    update();
}

void SweepChart::describe() {
    setAccessibleName(
        !m_data ? tr("Sweep")
        : shapeOf(*m_data) == SweepShape::Scatter
            ? tr("Memory over step time of %n plan(s)", nullptr, static_cast<int>(m_shown.size()))
            : tr("%1 of %n point(s)", nullptr, static_cast<int>(m_shown.size()))
                  .arg(measureName(m_measure)));
}

bool SweepChart::isShown(int row) const {
    return std::ranges::binary_search(m_shown, row);
}

void SweepChart::select(int row) {
    if (row >= 0 && !isShown(row)) row = -1;
    if (row == m_state.selected) return;
    updateMarks(m_state.selected);
    updateMarks(row);
    m_state.selected = row;
    QAccessibleEvent event(this, QAccessible::Focus);
    if (row >= 0)
        event.setChild(static_cast<int>(std::ranges::lower_bound(m_shown, row) - m_shown.begin()));
    if (hasFocus()) QAccessible::updateAccessibility(&event);
    emit selectionChanged(row);
}

const SweepGeometry& SweepChart::geometryNow() const {
    if (!m_geometry)
        m_geometry = m_data ? layOutSweep(*m_data, m_shown, m_measure, size(), fontMetrics())
                            : SweepGeometry{};
    return *m_geometry;
}

QRectF SweepChart::rectOf(int row) const {
    return m_data ? geometryNow().rectOf(*m_data, row) : QRectF();
}

int SweepChart::rowAt(QPointF point) const {
    if (!m_data) return -1;
    const SweepGeometry& g = geometryNow();
    int nearest = -1;
    double least = std::numeric_limits<double>::infinity();
    for (const int row : m_shown) {
        if (g.shape == SweepShape::Map) {
            if (g.rectOf(*m_data, row).contains(point)) return row;
            continue;
        }
        const QPointF away = g.pointOf(*m_data, row) - point;
        // Of points at one place the one that can be used, or is on the front.
        const SweepRow& r = m_data->row(row);
        const double distance = std::hypot(away.x(), away.y()) - (r.front  ? 2.0
                                                                  : r.fits ? 0.5
                                                                           : 0.0);
        if (distance >= least || distance > kReach) continue;
        least = distance;
        nearest = row;
    }
    return nearest;
}

// --- painting
// -------------------------------------------------------------------------------------

void SweepChart::paintEvent(QPaintEvent*) {
    const Palette& palette = Palette::of(this);
    QPainter painter(this);
    if (!m_data || m_shown.empty()) {
        painter.fillRect(rect(), palette.canvas);
        painter.setPen(palette.muted);
        painter.drawText(rect().adjusted(20, 10, -20, -10), Qt::AlignCenter | Qt::TextWordWrap,
                         m_data && m_data->rows() > 0 ? tr("No point passes the filter")
                                                      : m_placeholder);
        return;
    }
    const SweepGeometry& g = geometryNow();
    if (!m_drawn) drawAll(g);
    const QSizeF pixels = QSizeF(size()) * m_image.devicePixelRatio();
    painter.drawImage(QRectF(rect()), m_image, QRectF(QPointF(), pixels));
    m_state.focus = hasFocus();
    SweepPainter(*m_data, m_shown, g, palette, painter).paintMarks(m_state);
}

/// Everything but the marks, into an image that is kept: memory of the size of a screen is slow to
/// come by, so that it only grows, in steps.
void SweepChart::drawAll(const SweepGeometry& g) {
    constexpr int kStep = 256;
    const double ratio = devicePixelRatioF();
    const QSize pixels = (QSizeF(size()) * ratio).toSize();
    if (m_image.width() < pixels.width() || m_image.height() < pixels.height()) {
        const auto grown = [](int length) { return (length / kStep + 1) * kStep; };
        m_image = QImage(grown(pixels.width()), grown(pixels.height()), QImage::Format_RGB32);
    }
    m_image.setDevicePixelRatio(ratio);
    const Palette& palette = Palette::of(this);
    QPainter painter(&m_image);
    painter.fillRect(rect(), palette.canvas);
    painter.setClipRect(rect());
    painter.setFont(font());
    SweepPainter all(*m_data, m_shown, g, palette, painter);
    all.useStamps(&m_image);
    all.paint();
    m_drawn = true;
}

/// Marks are all that hovering and selecting change.
void SweepChart::updateMarks(int row) {
    constexpr int kMarkRoom = 8; // pixels: rings and the focus
    if (row >= 0 && m_data && row < m_data->rows())
        update(rectOf(row).toAlignedRect().adjusted(-kMarkRoom, -kMarkRoom, kMarkRoom, kMarkRoom));
}

void SweepChart::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    forget();
}

void SweepChart::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) forget();
}

// --- mouse
// ----------------------------------------------------------------------------------------

void SweepChart::hover(int row) {
    if (row == m_state.hovered) return;
    updateMarks(m_state.hovered);
    updateMarks(row);
    m_state.hovered = row;
    setCursor(row >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
}

bool SweepChart::event(QEvent* event) {
    if (event->type() != QEvent::ToolTip) return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const int row = rowAt(QPointF(help->pos()));
    if (row >= 0)
        QToolTip::showText(help->globalPos(), m_data->describe(row), this,
                           rectOf(row).toAlignedRect().adjusted(-2, -2, 2, 2));
    else
        QToolTip::hideText();
    return true;
}

void SweepChart::mousePressEvent(QMouseEvent* event) {
    if (event->button() == Qt::LeftButton) select(rowAt(event->position()));
}

void SweepChart::mouseMoveEvent(QMouseEvent* event) {
    hover(rowAt(event->position()));
}

void SweepChart::mouseDoubleClickEvent(QMouseEvent* event) {
    const int row = event->button() == Qt::LeftButton ? rowAt(event->position()) : -1;
    if (row < 0) return;
    select(row);
    emit openRequested(row);
}

void SweepChart::leaveEvent(QEvent*) {
    hover(-1);
}

void SweepChart::focusInEvent(QFocusEvent* event) {
    QWidget::focusInEvent(event);
    update();
}

void SweepChart::focusOutEvent(QFocusEvent* event) {
    QWidget::focusOutEvent(event);
    update();
}

// --- keys
// -----------------------------------------------------------------------------------------

int SweepChart::first() const {
    const auto better = [&](int a, int b) {
        const SweepRow &x = m_data->row(a), &y = m_data->row(b);
        return std::tuple(!x.error.empty(), !x.fits, x.seconds) <
               std::tuple(!y.error.empty(), !y.fits, y.seconds);
    };
    const auto at = std::ranges::min_element(m_shown, better);
    return at == m_shown.end() ? -1 : *at;
}

/// To the next point by a quantity; equal ones follow by row.
void SweepChart::walk(SweepMeasure along, int direction, bool frontOnly) {
    const auto key = [&](int row) { return std::pair(measureOf(m_data->row(row), along), row); };
    const auto now = key(m_state.selected);
    int next = -1;
    for (const int row : m_shown) {
        if (frontOnly && !m_data->row(row).front) continue;
        const auto other = key(row);
        if (direction > 0 ? other <= now : other >= now) continue;
        if (next < 0 || (direction > 0 ? other < key(next) : other > key(next))) next = row;
    }
    if (next >= 0) select(next);
}

void SweepChart::walkCells(int across, int down) {
    const SweepGeometry& g = geometryNow();
    int column = m_state.selected % g.columns, line = m_state.selected / g.columns;
    for (;;) { // over points that are filtered out
        column += across;
        line += down;
        if (column < 0 || column >= g.columns || line < 0 || line >= g.rows) return;
        if (isShown(line * g.columns + column)) return select(line * g.columns + column);
    }
}

void SweepChart::keyPressEvent(QKeyEvent* event) {
    const int key = event->key();
    const int across = key == Qt::Key_Right ? 1 : key == Qt::Key_Left ? -1 : 0;
    const int down = key == Qt::Key_Down ? 1 : key == Qt::Key_Up ? -1 : 0;
    const bool enter = key == Qt::Key_Return || key == Qt::Key_Enter;
    if (!m_data || m_shown.empty() ||
        (across == 0 && down == 0 && !enter && key != Qt::Key_Home && key != Qt::Key_End &&
         key != Qt::Key_Escape))
        return QWidget::keyPressEvent(event);
    if (key == Qt::Key_Escape) {
        if (m_state.selected < 0) return QWidget::keyPressEvent(event);
        return select(-1);
    }
    if (enter) {
        if (m_state.selected >= 0) emit openRequested(m_state.selected);
        return;
    }
    const bool scatter = geometryNow().shape == SweepShape::Scatter;
    if (key == Qt::Key_Home) return select(scatter ? first() : m_shown.front());
    if (key == Qt::Key_End && !scatter) return select(m_shown.back());
    if (m_state.selected < 0) return select(first());
    if (!scatter) return walkCells(across, geometryNow().rows > 1 ? down : 0);
    if (key == Qt::Key_End) return;
    const bool front = (event->modifiers() & Qt::ShiftModifier) != 0;
    if (across != 0) walk(SweepMeasure::Time, across, front);
    if (down != 0) walk(SweepMeasure::Memory, -down, front);
}

} // namespace shardlens
