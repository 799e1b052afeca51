// SPDX-License-Identifier: Apache-2.0
// See timeline_panel.h.
#include "ui/panels/timeline_panel.h"

#include "ui/format.h"

#include <QApplication>
#include <QComboBox>
#include <QDeadlineTimer>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QJsonDocument>
#include <QLabel>
#include <QMenu>
#include <QScrollArea>
#include <QToolButton>

#include <algorithm>

namespace shardlens {

using namespace schedule;

namespace {

constexpr int kTimelineSaveDelay = 1000; // milliseconds
const QString kTimelineState = QStringLiteral("timeline");
constexpr std::array<const char*, kTimelineColours> kTimelineColourNames = {"pass", "stage",
                                                                            "microBatch", "chunk"};

} // namespace

TimelinePanel::TimelinePanel(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_form(new TimelineForm),
      m_view(new TimelineView(this)), m_figures(new QLabel(this)), m_job(new TimelineJob(this)) {
    setObjectName(QStringLiteral("timelinePanel"));
    m_view->setPlaceholder(tr("Choose a schedule at the left to see who computes what when."));
    m_figures->setObjectName(QStringLiteral("timelineFigures"));
    m_figures->setWordWrap(true);
    m_figures->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_figures->setContentsMargins(8, 2, 8, 4);
    auto* scroll = new QScrollArea(this);
    scroll->setWidget(m_form);
    scroll->setWidgetResizable(true);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setFixedWidth(m_form->sizeHint().width() + 24);
    auto* right = new QVBoxLayout;
    right->setSpacing(0);
    right->addWidget(makeBar());
    right->addWidget(m_view, 1);
    right->addWidget(m_figures);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(scroll);
    layout->addLayout(right, 1);

    setFocusProxy(m_form);
    connect(m_form, &TimelineForm::changed, this, &TimelinePanel::run);
    connect(m_form, &TimelineForm::unitChanged, this, [this] { m_job->restyle(style()); });
    connect(m_job, &TimelineJob::ready, this, &TimelinePanel::take);
    connect(m_job, &TimelineJob::failed, this, &TimelinePanel::fail);
    connect(m_job, &TimelineJob::written, this, [this](const QString& file, const QString& error) {
        if (error.isEmpty()) {
            emit message(MessageKind::Information,
                         tr("The timeline is written to %1.").arg(QFileInfo(file).fileName()));
        } else {
            emit message(MessageKind::Error, error);
        }
    });
    connectView();
    m_saveDelay.setSingleShot(true);
    m_saveDelay.setInterval(kTimelineSaveDelay);
    connect(&m_saveDelay, &QTimer::timeout, this, &TimelinePanel::saveViewStateNow);
    connect(&m_document, &Document::loaded, this, &TimelinePanel::restoreViewState);
    connectPlan();
}

QWidget* TimelinePanel::makeBar() {
    auto* bar = new QWidget(this);
    auto* layout = new QHBoxLayout(bar);
    layout->setContentsMargins(6, 3, 6, 3);
    layout->setSpacing(4);
    m_colour = new QComboBox(bar);
    m_colour->setObjectName(QStringLiteral("timelineColour"));
    m_colour->setAccessibleName(tr("Colour bars by"));
    m_colour->addItems({tr("pass"), tr("stage"), tr("micro-batch"), tr("chunk")});
    auto* label = new QLabel(tr("Colour by"), bar);
    label->setBuddy(m_colour);
    layout->addWidget(label);
    layout->addWidget(m_colour);
    layout->addSpacing(10);
    const auto button = [&](const char* object, const QString& words, const QString& name,
                            const QString& tip) {
        auto* made = new QToolButton(bar);
        made->setObjectName(QLatin1String(object));
        made->setText(words);
        made->setAccessibleName(name);
        made->setToolTip(tip);
        made->setAutoRaise(true);
        layout->addWidget(made);
        return made;
    };
    connect(button("timelineFit", tr("Fit"), tr("Show the whole step"), tr("The whole step (0)")),
            &QToolButton::clicked, m_view, &TimelineView::fitAll);
    connect(button("timelineZoomOut", QStringLiteral("−"), tr("Zoom out"), tr("Zoom out (−)")),
            &QToolButton::clicked, m_view, [this] { m_view->zoomBy(0.8); });
    connect(button("timelineZoomIn", QStringLiteral("+"), tr("Zoom in"), tr("Zoom in (+)")),
            &QToolButton::clicked, m_view, [this] { m_view->zoomBy(1.25); });
    layout->addSpacing(10);
    connect(button("timelineBack", QStringLiteral("◀"), tr("Step back"),
                   tr("To the moment before (left arrow)")),
            &QToolButton::clicked, m_view, [this] { m_view->stepTime(false); });
    m_playButton = button("timelinePlay", tr("Play"), tr("Play"), tr("Let the time run (space)"));
    connect(m_playButton, &QToolButton::clicked, m_view,
            [this] { m_view->setPlaying(!m_view->isPlaying()); });
    connect(button("timelineNext", QStringLiteral("▶"), tr("Step on"),
                   tr("To the next moment (right arrow)")),
            &QToolButton::clicked, m_view, [this] { m_view->stepTime(true); });
    layout->addStretch(1);
    m_exportButton = button("timelineExport", tr("Export"), tr("Export the timeline"),
                            tr("As a picture, a trace, or a schedule for PyTorch"));
    m_exportButton->setPopupMode(QToolButton::InstantPopup);
    auto* menu = new QMenu(m_exportButton);
    const std::array<std::array<QString, 3>, 5> formats = {
        {{tr("&SVG picture…"), QStringLiteral("svg"), tr("SVG pictures (*.svg)")},
         {tr("&PNG picture…"), QStringLiteral("png"), tr("PNG pictures (*.png)")},
         {tr("P&DF…"), QStringLiteral("pdf"), tr("PDF (*.pdf)")},
         {tr("&Trace for Perfetto…"), QStringLiteral("json"), tr("Chrome traces (*.json)")},
         {tr("Schedule &CSV for PyTorch…"), QStringLiteral("csv"), tr("Schedules (*.csv)")}}};
    for (const auto& [words, ending, filter] : formats) {
        QAction* action = menu->addAction(
            words, this, [this, end = ending, files = filter] { chooseFile(end, files); });
        action->setObjectName(QStringLiteral("timeline.export.") + ending);
    }
    m_exportButton->setMenu(menu);
    m_exportButton->setEnabled(false);
    connect(m_colour, &QComboBox::currentIndexChanged, this, [this] {
        m_job->restyle(style());
        m_saveDelay.start();
    });
    return bar;
}

void TimelinePanel::connectView() {
    connect(m_view, &TimelineView::playingChanged, this, [this](bool playing) {
        m_playButton->setText(playing ? tr("Pause") : tr("Play"));
        m_playButton->setAccessibleName(playing ? tr("Pause") : tr("Play"));
    });
    connect(m_view, &TimelineView::editRequested, this, [this](TaskId id) {
        const Task& task = m_view->picture()->task(id);
        m_form->edit(task.stage, task.pass);
    });
    for (const auto signal : {&TimelineView::timeChanged, &TimelineView::viewChanged}) {
        connect(m_view, signal, this, [this] {
            if (!m_restoring && m_document.isOpen()) m_saveDelay.start();
        });
    }
    connect(m_view, &TimelineView::taskSelected, this, &TimelinePanel::showFigures);
    connect(m_view, &TimelineView::deviceSelected, this, &TimelinePanel::showFigures);
}

void TimelinePanel::connectPlan() {
    connect(&m_document, &Document::pipelineChanged, this, &TimelinePanel::takePlan);
    const auto share = [this] {
        if (m_sharing || !m_form->showsPlan() || m_view->device() < 0) return;
        m_document.selectStage(m_view->device());
    };
    connect(m_view, &TimelineView::deviceSelected, this, share);
    connect(&m_document, &Document::selectionChanged, this,
            [this] { showStage(m_document.selectedStage()); });
}

void TimelinePanel::takePlan() {
    const auto& plan = m_document.pipeline();
    if (m_document.isPlanningPipeline()) {
        if (m_form->showsPlan() && m_view->picture()) m_view->setStale(true);
        return;
    }
    if (plan && plan == m_plan) return m_view->setStale(false); // only its error is another one
    m_plan = plan;
    m_form->setPlan(plan ? std::optional(plan->schedule) : std::nullopt);
    if (plan && isVisible() && !m_form->hasSchedule()) m_form->choosePlan();
    if (m_form->showsPlan() && !plan) fail(tr("There is no plan in stages; see Pipeline."));
}

void TimelinePanel::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    if (m_document.pipeline() && !m_form->hasSchedule()) m_form->choosePlan();
}

void TimelinePanel::showStage(int stage) {
    if (!m_form->showsPlan() || !m_view->picture() || stage >= m_view->picture()->devices()) return;
    m_sharing = true;
    const schedule::TaskId task = m_view->selected();
    if (task != kNoTask && static_cast<int>(m_view->picture()->task(task).device) != stage)
        m_view->selectTask(kNoTask);
    m_view->selectDevice(stage);
    m_view->ensureDeviceVisible(stage);
    m_sharing = false;
    showFigures();
}

void TimelinePanel::setColour(TimelineColour colour) {
    m_colour->setCurrentIndex(static_cast<int>(colour));
}

TimelineColour TimelinePanel::colour() const {
    return static_cast<TimelineColour>(m_colour->currentIndex());
}

TimelineStyle TimelinePanel::style() const {
    return {colour(), Palette::isDark(palette()), m_form->secondsPerUnit()};
}

void TimelinePanel::run() {
    if (!m_form->hasSchedule()) return;
    m_view->setStale(true);
    m_view->setPlaceholder(tr("The schedule is being run…"));
    m_job->request(m_form->wish(), style());
    if (!m_restoring) m_saveDelay.start();
}

void TimelinePanel::take(const std::shared_ptr<const TimelinePicture>& picture) {
    m_form->showStages(picture->schedule());
    m_view->setPicture(picture);
    m_view->setStale(false);
    if (m_restoreRange) m_view->setRange(m_restoreRange->first, m_restoreRange->second);
    if (m_restoreTime) m_view->setTime(m_restoreTime);
    m_restoreRange.reset();
    m_restoreTime.reset();
    m_restoring = false;
    m_exportButton->setEnabled(true);
    showStage(m_document.selectedStage());
    showFigures();
}

void TimelinePanel::fail(const QString& text) {
    // A picture of something else than what is typed would mislead; the reason stands in its place.
    m_view->setStale(false);
    m_view->setPicture(nullptr);
    m_view->setPlaceholder(text);
    m_exportButton->setEnabled(false);
    m_restoreRange.reset();
    m_restoreTime.reset();
    m_restoring = false;
    showFigures();
}

QString TimelinePanel::figures() const {
    return m_figures->text();
}

void TimelinePanel::showFigures() {
    const auto& picture = m_view->picture();
    if (!picture) return m_figures->clear();
    const Account& account = picture->schedule().account;
    const double makespan = picture->makespan(), unit = picture->style().secondsPerUnit;
    std::array<double, kCauses> idle{};
    for (const DeviceUse& use : account.devices) {
        for (std::size_t c = 0; c < kCauses; ++c) idle[c] += use.idle[c];
    }
    QStringList causes;
    const double all = makespan * static_cast<double>(account.devices.size());
    for (std::size_t c = 0; c < kCauses; ++c) {
        if (idle[c] <= 1e-9 * all) continue;
        causes << tr("%1 %2").arg(causeName(static_cast<Cause>(c)), formatPercent(idle[c] / all));
    }
    QStringList parts{
        tr("Step %1").arg(timelineNumber(makespan, unit)),
        tr("bubble %1 (%2)")
            .arg(timelineNumber(account.bubble, unit), formatPercent(account.bubble / makespan)),
        tr("idle: %1").arg(causes.isEmpty() ? tr("none") : causes.join(QStringLiteral(", "))),
        tr("peak memory %1 micro-batches").arg(timelineNumber(account.peakMemory, 0)),
        tr("%1 tasks").arg(picture->schedule().program.tasks.size())};
    QString words = parts.join(QStringLiteral(" · "));
    if (m_view->selected() != kNoTask) {
        words += QLatin1Char('\n') + m_view->describe(m_view->selected());
    } else if (m_view->device() >= 0) {
        words +=
            QLatin1Char('\n') + m_view->describeRow(static_cast<std::size_t>(m_view->device()));
    }
    m_figures->setText(words);
}

void TimelinePanel::chooseFile(const QString& ending, const QString& filter) {
    QFileDialog dialog(this, tr("Export the timeline"));
    dialog.setAcceptMode(QFileDialog::AcceptSave);
    dialog.setDefaultSuffix(ending);
    dialog.setNameFilter(filter);
    dialog.selectFile(QStringLiteral("timeline.") + ending);
    if (dialog.exec() == QDialog::Accepted) exportTo(dialog.selectedFiles().value(0));
}

void TimelinePanel::exportTo(const QString& file) {
    if (!m_view->picture()) return;
    TimelineExport options;
    options.begin = m_view->begin();
    options.end = m_view->end();
    options.size = {std::max(800, m_view->width()), 0};
    options.device = m_view->device();
    options.font = m_view->font();
    m_job->write(m_view->picture(), file, options);
}

bool TimelinePanel::waitForIdle(int milliseconds) {
    const QDeadlineTimer deadline(milliseconds);
    do {
        if (deadline.hasExpired()) return false;
        QApplication::processEvents(QEventLoop::AllEvents, 10);
    } while (busy());
    QApplication::processEvents();
    return true;
}

void TimelinePanel::saveViewStateNow() {
    m_saveDelay.stop();
    if (!m_document.isOpen() || m_restoring || !m_form->hasSchedule()) return;
    QJsonObject state = m_form->state();
    state[QStringLiteral("colour")] =
        QLatin1String(kTimelineColourNames[static_cast<std::size_t>(colour())]);
    if (m_view->picture() && !m_view->isFitted()) {
        state[QStringLiteral("begin")] = m_view->begin();
        state[QStringLiteral("end")] = m_view->end();
    }
    if (m_view->time()) state[QStringLiteral("time")] = *m_view->time();
    m_document.setViewState(kTimelineState,
                            QString::fromUtf8(QJsonDocument(state).toJson(QJsonDocument::Compact)));
}

void TimelinePanel::restoreViewState() {
    const QJsonObject state =
        QJsonDocument::fromJson(m_document.viewState(kTimelineState).toUtf8()).object();
    if (state.isEmpty()) return;
    m_restoring = true;
    m_form->setState(state);
    const auto name = state[QStringLiteral("colour")].toString();
    for (int mode = 0; mode < kTimelineColours; ++mode) {
        if (name == QLatin1String(kTimelineColourNames[static_cast<std::size_t>(mode)])) {
            m_colour->setCurrentIndex(mode);
        }
    }
    const double begin = state[QStringLiteral("begin")].toDouble();
    const double end = state[QStringLiteral("end")].toDouble();
    if (end > begin) m_restoreRange = {begin, end};
    if (state.contains(QStringLiteral("time")))
        m_restoreTime = state[QStringLiteral("time")].toDouble();
    run();
    if (!m_form->hasSchedule()) m_restoring = false;
}

void TimelinePanel::changeEvent(QEvent* event) {
    if (event->type() == QEvent::PaletteChange) m_job->restyle(style());
    QWidget::changeEvent(event);
}

} // namespace shardlens
