// SPDX-License-Identifier: Apache-2.0
// See totals_panel.h.
#include "ui/panels/totals_panel.h"

#include "ui/format.h"
#include "ui/theme.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QHelpEvent>
#include <QLabel>
#include <QPainter>
#include <QToolTip>
#include <QVBoxLayout>

#include <cmath>

namespace shardlens {

namespace {

constexpr int kBarHeight = 16;

} // namespace

StackedBar::StackedBar(QWidget* parent) : QWidget(parent) {
    QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
}

void StackedBar::setParts(std::vector<Part> parts, double limit, const QString& limitText) {
    m_parts = std::move(parts);
    m_limit = std::isfinite(limit) ? limit : 0;
    m_limitText = limitText;
    QStringList spoken;
    for (const Part& part : m_parts) spoken << part.name + QLatin1Char(' ') + part.value;
    if (m_limit > 0) spoken << m_limitText;
    setAccessibleDescription(spoken.join(QStringLiteral(", ")));
    setMinimumHeight(heightForWidth(std::max(width(), 120)));
    updateGeometry();
    update();
}

void StackedBar::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    const int wanted = heightForWidth(width());
    if (wanted != minimumHeight()) setMinimumHeight(wanted);
}

std::vector<StackedBar::Key> StackedBar::keys(int width) const {
    const QFontMetricsF metrics(font());
    std::vector<Key> list;
    double x = 0, y = kBarHeight + 7;
    for (std::size_t i = 0; i < m_parts.size(); ++i) {
        if (m_parts[i].amount <= 0) continue;
        const double wide =
            metrics.horizontalAdvance(m_parts[i].name + QLatin1Char(' ') + m_parts[i].value) + 4;
        if (x > 0 && x + wide + 14 > width) {
            x = 0;
            y += metrics.height() + 2;
        }
        list.push_back({QRectF(x, y + metrics.height() / 2 - 4.5, 9, 9),
                        QRectF(x + 14, y, wide, metrics.height()), i});
        x += wide + 24;
    }
    return list;
}

int StackedBar::heightForWidth(int width) const {
    const auto list = keys(width);
    return list.empty() ? kBarHeight + 4
                        : static_cast<int>(std::ceil(list.back().text.bottom())) + 3;
}

QSize StackedBar::sizeHint() const {
    return {220, heightForWidth(std::max(width(), 220))};
}

void StackedBar::paintEvent(QPaintEvent*) {
    const Palette& palette = Palette::of(this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    double sum = 0;
    for (const Part& part : m_parts) sum += part.amount;
    const double full = std::max(sum, m_limit);
    const QRectF bar(0.5, 1.5, width() - 1, kBarHeight);
    painter.setPen(QPen(palette.border, 1));
    painter.setBrush(palette.canvas);
    painter.drawRoundedRect(bar, 3, 3);
    if (full <= 0) return;
    double x = bar.left() + 1;
    const double scale = (bar.width() - 2) / full;
    for (const Part& part : m_parts) {
        const QRectF piece(x, bar.top() + 1, part.amount * scale, bar.height() - 2);
        painter.fillRect(piece, palette.category(static_cast<std::size_t>(part.colour)));
        x += part.amount * scale;
        if (piece.width() > 3) // a hairline parts neighbours for those who see no hue
            painter.fillRect(QRectF(x - 1, piece.top(), 1, piece.height()), palette.canvas);
    }
    if (m_limit > 0 && sum > m_limit) {
        const double at = bar.left() + 1 + m_limit * scale;
        painter.setPen(QPen(palette.bad, 2));
        painter.drawLine(QPointF(at, bar.top() - 1), QPointF(at, bar.bottom() + 1));
    }
    for (const Key& key : keys(width())) {
        const Part& part = m_parts[key.part];
        painter.setPen(Qt::NoPen);
        painter.setBrush(palette.category(static_cast<std::size_t>(part.colour)));
        painter.drawRoundedRect(key.swatch, 2, 2);
        painter.setPen(palette.text);
        painter.drawText(key.text, Qt::AlignLeft | Qt::AlignVCenter,
                         part.name + QLatin1Char(' ') + part.value);
    }
}

bool StackedBar::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        QToolTip::showText(static_cast<QHelpEvent*>(event)->globalPos(), accessibleDescription(),
                           this);
        return true;
    }
    return QWidget::event(event);
}

TotalsPanel::TotalsPanel(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_time(new QLabel(this)), m_badge(new QLabel(this)),
      m_state(new QLabel(this)), m_certificate(new QLabel(this)), m_timeBar(new StackedBar(this)),
      m_memory(new QLabel(this)), m_memoryBar(new StackedBar(this)), m_source(new QLabel(this)),
      m_job(new QLabel(this)) {
    setObjectName(QStringLiteral("totals"));
    m_time->setObjectName(QStringLiteral("totalTime"));
    m_time->setAccessibleName(tr("Time of a step"));
    m_badge->setObjectName(QStringLiteral("optimalBadge"));
    m_badge->setAccessibleName(tr("Certificate"));
    m_state->setObjectName(QStringLiteral("totalState"));
    m_certificate->setObjectName(QStringLiteral("certificate"));
    m_timeBar->setObjectName(QStringLiteral("timeBar"));
    m_timeBar->setAccessibleName(tr("Parts of the step time"));
    m_memory->setObjectName(QStringLiteral("totalMemory"));
    m_memoryBar->setObjectName(QStringLiteral("memoryBar"));
    m_memoryBar->setAccessibleName(tr("Memory of a device"));
    m_source->setObjectName(QStringLiteral("totalSource"));
    QFont large = font();
    large.setPointSizeF(large.pointSizeF() * 1.7);
    large.setBold(true);
    m_time->setFont(large);
    m_job->setObjectName(QStringLiteral("totalJob"));
    m_job->setAccessibleName(tr("Whole job"));
    m_job->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    for (QLabel* label : {m_certificate, m_source, m_state, m_job}) label->setWordWrap(true);
    auto* head = new QHBoxLayout;
    head->addWidget(m_time);
    head->addWidget(m_badge, 0, Qt::AlignVCenter);
    head->addStretch(1);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 6, 8, 8);
    layout->addWidget(m_job);
    layout->addLayout(head);
    layout->addWidget(m_state);
    layout->addWidget(m_certificate);
    layout->addWidget(m_timeBar);
    layout->addSpacing(4);
    layout->addWidget(m_memory);
    layout->addWidget(m_memoryBar);
    layout->addWidget(m_source);
    layout->addStretch(1);
    connect(&m_document, &Document::planChanged, this, &TotalsPanel::refresh);
    connect(&m_document, &Document::pipelineChanged, this, &TotalsPanel::refreshJob);
    connect(&m_document, &Document::loaded, this, &TotalsPanel::refresh);
    connect(&m_document, &Document::modelChanged, this, &TotalsPanel::refresh);
    refresh();
}

QString TotalsPanel::badgeText() const {
    return m_badge->text();
}

void TotalsPanel::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange) refresh();
}

void TotalsPanel::setBadge(const QString& text, const QColor& colour) {
    const Palette& palette = Palette::of(this);
    m_badge->setVisible(!text.isEmpty());
    m_badge->setText(text);
    m_badge->setStyleSheet(
        QStringLiteral("QLabel { color: %1; border: 1px solid %1; background: %2; "
                       "border-radius: 8px; padding: 1px 8px; }")
            .arg(colour.name(), Palette::mix(palette.surface, colour, 0.1).name()));
}

void TotalsPanel::refreshJob() {
    const auto& job = m_document.pipeline();
    m_job->setVisible(job != nullptr);
    if (!job) return;
    const PipelineAnswer& answer = job->answer;
    QString schedule =
        answer.schedule.chunks > 1
            ? tr("%1 ×%2").arg(text(answer.schedule.name())).arg(answer.schedule.chunks)
            : text(answer.schedule.name());
    if (answer.schedule.blocking) schedule = tr("%1 with blocking transfers").arg(schedule);
    const QString certificate =
        answer.bound > 0
            ? tr("bound %1, gap %2").arg(formatTime(answer.bound), formatPercent(answer.gap()))
            : tr("no bound");
    m_job->setText(
        tr("<b>Whole job in %1 stages: %2</b> a step · %3<br>%4, %5 micro-batches, %6 devices · "
           "bubble %7 · fullest device %8%9")
            .arg(job->stages())
            .arg(formatTime(answer.seconds), certificate, schedule)
            .arg(answer.microBatches)
            .arg(answer.devices())
            .arg(formatPercent(job->bubble()), formatBytes(answer.peakMemory),
                 m_document.isPipelineStale() ? tr(" · <i>stale</i>") : QString()));
    m_job->setToolTip(
        tr("Closed form; the event engine says %1. Planned in %2.")
            .arg(formatTime(answer.simulated), formatTime(answer.milliseconds / 1e3)));
}

void TotalsPanel::refresh() {
    refreshJob();
    const Palette& palette = Palette::of(this);
    const auto& plan = m_document.plan();
    QString state;
    if (!m_document.planError().isEmpty())
        state = plan ? tr("No new plan; the figures are of the previous one.") : tr("No plan.");
    else if (m_document.isSolving() && plan)
        state = tr("Stale: solving again");
    else if (m_document.isSolving())
        state = tr("Solving…");
    m_state->setText(state);
    m_state->setVisible(!state.isEmpty());
    m_state->setStyleSheet(QStringLiteral("color: %1").arg(palette.warning.name()));
    for (QWidget* part : std::initializer_list<QWidget*>{m_time, m_certificate, m_timeBar, m_memory,
                                                         m_memoryBar, m_source})
        part->setVisible(plan != nullptr);
    if (!plan) return setBadge({}, palette.muted);
    const std::string unit = m_document.costUnit();
    const PlanTotals& totals = plan->totals;
    m_time->setText(formatCost(totals.time, unit));
    m_time->setEnabled(!m_document.isStale());
    if (m_document.isStale())
        setBadge(tr("stale"), palette.warning);
    else if (plan->optimal)
        setBadge(tr("✓ proven optimal"), palette.good);
    else
        setBadge(tr("gap %1").arg(formatPercent(plan->gap)), palette.warning);
    m_certificate->setText(tr("a step · bound %1 · gap %2 · solved in %3")
                               .arg(formatCost(plan->bound, unit), formatPercent(plan->gap),
                                    formatTime(plan->solveMilliseconds / 1000)));
    m_certificate->setToolTip(text(plan->method));
    m_timeBar->setParts(
        {{tr("compute"), formatCost(totals.compute, unit), totals.compute, 0},
         {tr("communication"), formatCost(totals.communication, unit), totals.communication, 1}});
    const MemorySplit& memory = totals.memory;
    const double limit = plan->context->memoryLimitBytes;
    m_memory->setText(
        std::isfinite(limit) && limit > 0
            ? tr("%1 of %2 a device").arg(formatBytes(memory.total()), formatBytes(limit))
            : tr("%1 a device, no limit").arg(formatBytes(memory.total())));
    m_memoryBar->setParts(
        {{tr("parameters"), formatBytes(memory.parameters), memory.parameters, 0},
         {tr("gradients"), formatBytes(memory.gradients), memory.gradients, 1},
         {tr("optimizer"), formatBytes(memory.optimizer), memory.optimizer, 2},
         {tr("activations"), formatBytes(memory.activations), memory.activations, 3},
         {tr("workspace"), formatBytes(memory.workspace), memory.workspace, 7}},
        limit, tr("limit %1").arg(formatBytes(limit)));
    m_source->setText(tr("Cost model %1, %2 figures · %3")
                          .arg(text(plan->context->cost->name()), text(nameOf(plan->provenance)),
                               text(plan->context->cluster.device.name)));
    m_source->setToolTip(text(plan->context->cluster.device.source));
    m_source->setStyleSheet(QStringLiteral("color: %1").arg(palette.muted.name()));
}

} // namespace shardlens
