// SPDX-License-Identifier: Apache-2.0
// See job_bar.h.
#include "ui/panels/job_bar.h"

#include "ui/format.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QToolButton>

#include <cmath>

namespace shardlens {

JobBar::JobBar(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_label(new QLabel(this)),
      m_bar(new QProgressBar(this)), m_cancel(new QToolButton(this)) {
    setObjectName(QStringLiteral("jobBar"));
    m_label->setObjectName(QStringLiteral("jobText"));
    m_bar->setObjectName(QStringLiteral("jobProgress"));
    m_bar->setAccessibleName(tr("Work in progress"));
    m_bar->setRange(0, 0);
    m_bar->setTextVisible(false);
    m_bar->setFixedSize(90, 12);
    m_cancel->setObjectName(QStringLiteral("jobCancel"));
    m_cancel->setAccessibleName(tr("Cancel"));
    m_cancel->setText(tr("Cancel"));
    m_cancel->setToolTip(tr("Stop what runs in the background (Esc)"));
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 4, 0);
    layout->addWidget(m_label);
    layout->addWidget(m_bar);
    layout->addWidget(m_cancel);
    m_tick.setInterval(250);
    connect(&m_tick, &QTimer::timeout, this, &JobBar::refresh);
    connect(m_cancel, &QToolButton::clicked, &m_document, &Document::cancel);
    connect(&m_document, &Document::loadingChanged, this, &JobBar::refresh);
    connect(&m_document, &Document::planChanged, this, &JobBar::refresh);
    connect(&m_document, &Document::progressChanged, this, &JobBar::refresh);
    connect(&m_document, &Document::pipelineChanged, this, &JobBar::refresh);
    refresh();
}

void JobBar::setLayoutBusy(bool busy) {
    m_layoutBusy = busy;
    refresh();
}

QString JobBar::text() const {
    return m_label->text();
}

void JobBar::refresh() {
    const bool stoppable =
        m_document.isLoading() || m_document.isSolving() || m_document.isPlanningPipeline();
    const bool busy = stoppable || m_layoutBusy;
    if (busy && !m_wasBusy) {
        m_since.start();
        m_tick.start();
    }
    if (!busy) m_tick.stop();
    m_wasBusy = busy;
    m_bar->setVisible(busy);
    m_cancel->setVisible(stoppable);
    if (!busy) {
        const auto& plan = m_document.plan();
        if (!plan || m_document.isStale())
            m_label->setText({});
        else
            m_label->setText(tr("Solved in %1").arg(formatTime(plan->solveMilliseconds / 1000)));
        return;
    }
    QString label = m_document.isLoading()            ? tr("Reading the model")
                    : m_document.isSolving()          ? tr("Solving")
                    : m_document.isPlanningPipeline() ? tr("Planning stages")
                                                      : tr("Laying out");
    if (const auto& progress = m_document.progress(); progress && m_document.isSolving()) {
        label = progress->stage.empty() ? label
                                        : tr("Solving: %1").arg(shardlens::text(progress->stage));
        if (std::isfinite(progress->incumbent))
            label += tr(" · best %1").arg(formatCost(progress->incumbent, m_document.costUnit()));
        if (std::isfinite(progress->bound))
            label += tr(" · bound %1").arg(formatCost(progress->bound, m_document.costUnit()));
        if (std::isfinite(progress->gap))
            label += tr(" · gap %1").arg(formatPercent(progress->gap));
    }
    if (m_since.elapsed() > 900) label += tr(" · %1 s").arg(m_since.elapsed() / 1000);
    m_label->setText(label);
}

} // namespace shardlens
