// SPDX-License-Identifier: Apache-2.0
// See solver_panel.h.
#include "ui/panels/solver_panel.h"

#include "ui/format.h"
#include "ui/theme.h"
#include "ui/views/solver_chart.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QLocale>
#include <QPushButton>
#include <QVBoxLayout>

#include <cmath>

namespace shardlens {

namespace {

double gapOf(double cost, double bound) {
    return cost <= bound ? 0 : (cost - bound) / std::abs(cost);
}

/// Thousands parted, since costs of benchmark problems have ten digits and more.
QString whole(double value) {
    return QLocale(QLocale::English).toString(value, 'f', 0);
}

QString count(std::size_t value) {
    return whole(double(value));
}

} // namespace

SolverPanel::SolverPanel(Document& document, BenchmarkJob& benchmark, QWidget* parent)
    : QWidget(parent), m_document(document), m_benchmark(benchmark), m_title(new QLabel(this)),
      m_badge(new QLabel(this)), m_stage(new QLabel(this)), m_chart(new SolverChart(this)),
      m_facts(new QLabel(this)), m_stop(new QPushButton(tr("Stop"), this)) {
    setObjectName(QStringLiteral("solver"));
    m_title->setObjectName(QStringLiteral("solverTitle"));
    m_badge->setObjectName(QStringLiteral("solverBadge"));
    m_badge->setAccessibleName(tr("Certificate"));
    m_stage->setObjectName(QStringLiteral("solverStage"));
    m_facts->setObjectName(QStringLiteral("solverFacts"));
    m_facts->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_stop->setObjectName(QStringLiteral("solverStop"));
    m_stop->setToolTip(tr("End the search; what was found stays"));
    QFont bold = font();
    bold.setBold(true);
    m_title->setFont(bold);
    for (QLabel* label : {m_title, m_stage, m_facts}) label->setWordWrap(true);
    auto* head = new QHBoxLayout;
    head->addWidget(m_title, 1);
    head->addWidget(m_badge, 0, Qt::AlignVCenter);
    head->addWidget(m_stop);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 6, 8, 8);
    layout->addLayout(head);
    layout->addWidget(m_stage);
    layout->addWidget(m_chart, 1);
    layout->addWidget(m_facts);
    connect(m_stop, &QPushButton::clicked, this, [this] {
        if (m_ofBenchmark)
            m_benchmark.stop();
        else
            m_document.cancel();
    });
    connect(&m_benchmark, &BenchmarkJob::changed, this, [this] {
        m_ofBenchmark = true;
        refresh();
    });
    connect(&m_document, &Document::loaded, this, [this] {
        m_ofBenchmark = false;
        m_course.clear();
        refresh();
    });
    connect(&m_document, &Document::progressChanged, this, &SolverPanel::noteProgress);
    connect(&m_document, &Document::planChanged, this, &SolverPanel::notePlan);
    refresh();
}

void SolverPanel::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange) refresh();
}

void SolverPanel::noteProgress() {
    const auto& progress = m_document.progress();
    if (!progress) return;
    if (!m_solving) m_course.clear();
    m_solving = true;
    m_ofBenchmark = m_ofBenchmark && m_benchmark.running();
    m_course.push_back({progress->incumbent, progress->bound, progress->elapsed, progress->stage});
    refresh();
}

void SolverPanel::notePlan() {
    const auto& plan = m_document.plan();
    if (plan && !m_document.isStale() && !m_document.isSolving()) {
        if (!m_solving) m_course.clear();
        double end = plan->solveMilliseconds / 1000;
        if (!m_course.empty()) end = std::max(end, m_course.back().seconds);
        m_course.push_back({plan->totals.time, plan->bound, end, {}});
        m_ofBenchmark = m_ofBenchmark && m_benchmark.running();
    }
    m_solving = false;
    refresh();
}

void SolverPanel::setBadge(bool proven, const QString& text) {
    const Palette& palette = Palette::of(this);
    const QColor colour = proven ? palette.good : palette.warning;
    m_badge->setVisible(!text.isEmpty());
    m_badge->setText(text);
    m_badge->setStyleSheet(
        QStringLiteral("QLabel { color: %1; border: 1px solid %1; background: %2; "
                       "border-radius: 8px; padding: 1px 8px; }")
            .arg(colour.name(), Palette::mix(palette.surface, colour, 0.1).name()));
}

void SolverPanel::setFacts(const QStringList& lines) {
    m_facts->setText(lines.join(QLatin1Char('\n')));
    m_facts->setVisible(!lines.isEmpty());
}

void SolverPanel::refresh() {
    m_ofBenchmark ? showBenchmark() : showPlan();
}

void SolverPanel::showPlan() {
    const auto& plan = m_document.plan();
    const std::string unit = m_document.costUnit();
    m_title->setText(m_document.isOpen() ? m_document.title() : tr("No problem"));
    m_stop->setVisible(m_document.isSolving());
    m_chart->setPoints(m_course, [unit](double cost) { return formatCost(cost, unit); });
    if (m_document.isSolving()) {
        const auto& progress = m_document.progress();
        m_stage->setText(progress ? text(progress->stage) : tr("Solving"));
        setBadge(false, progress && std::isfinite(progress->gap)
                            ? tr("gap %1").arg(formatPercent(progress->gap))
                            : QString());
    } else {
        m_stage->clear();
        setBadge(plan && plan->optimal, !plan ? QString()
                                        : plan->optimal
                                            ? tr("✓ proven optimal")
                                            : tr("gap %1").arg(formatPercent(plan->gap)));
    }
    m_stage->setVisible(!m_stage->text().isEmpty());
    if (!plan || m_document.isSolving()) return setFacts({});
    const Folding& folding = *plan->context->folding;
    const solve::Statistics& effort = plan->effort;
    QStringList lines;
    lines << tr("Folded: %1 ops in %2 classes, %3 runs")
                 .arg(count(folding.order.size()), count(folding.classes.size()),
                      count(folding.runs.size()));
    lines << tr("Eliminated: %1 of %2 variables, width %3, largest table %4 entries")
                 .arg(count(effort.eliminated), count(effort.variables))
                 .arg(effort.width)
                 .arg(count(effort.largestTable));
    if (effort.pricesTried > 0) lines << tr("Prices of memory tried: %1").arg(effort.pricesTried);
    lines << tr("Built in %1, solved in %2")
                 .arg(formatTime(plan->buildMilliseconds / 1000),
                      formatTime(plan->solveMilliseconds / 1000));
    lines << tr("Proof: %1").arg(text(plan->method));
    setFacts(lines);
}

void SolverPanel::showBenchmark() {
    const BenchmarkState& state = m_benchmark.state();
    const solve::IntervalStatistics& s = state.statistics;
    const bool proven = !state.running && state.status == solve::Status::Optimal;
    m_title->setText(state.name);
    m_stop->setVisible(state.running);
    m_chart->setPoints(state.progress, whole);
    if (!state.error.isEmpty())
        m_stage->setText(state.error);
    else if (!state.explanation.empty())
        m_stage->setText(tr("Infeasible: %1").arg(text(state.explanation)));
    else if (state.running)
        m_stage->setText(state.progress.empty() ? tr("Reading and reducing")
                                                : text(state.progress.back().stage));
    else
        m_stage->setText(proven ? QString() : tr("Stopped"));
    m_stage->setVisible(!m_stage->text().isEmpty());
    const bool answered = std::isfinite(state.cost);
    setBadge(proven, proven     ? tr("✓ proven optimal")
                     : answered ? tr("gap %1").arg(formatPercent(gapOf(state.cost, state.bound)))
                                : QString());
    QStringList lines;
    if (state.reduced || s.nodes > 0) {
        lines << tr("Given: %1 nodes, %2 choices, %3 pairs")
                     .arg(count(s.nodes), count(s.choices), count(s.pairs));
        lines << tr("Reduced: %1 nodes, %2 pairs, %3 times at which the limit can bind")
                     .arg(count(s.coreNodes), count(s.corePairs), count(s.moments));
        lines << tr("Merged %1, eliminated %2, separable %3, choices beaten %4, impossible %5")
                     .arg(count(s.merged), count(s.eliminated), count(s.separable),
                          count(s.dominated), count(s.forbidden));
    }
    if (!state.running && s.seconds > 0) {
        lines << tr("%1 levels, %2 nodes left; %3 passes, %4 windows, %5 branches in %6")
                     .arg(s.levels)
                     .arg(count(s.lastNodes), count(s.passes), count(s.windows), count(s.branches),
                          formatTime(s.seconds));
        if (answered && std::isfinite(state.limit))
            lines << tr("Peak %1 of %2").arg(whole(state.peak), whole(state.limit));
        if (!s.method.empty()) lines << tr("Proof: %1").arg(text(s.method));
    }
    setFacts(lines);
}

} // namespace shardlens
