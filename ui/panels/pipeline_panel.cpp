// SPDX-License-Identifier: Apache-2.0
// See pipeline_panel.h.
#include "ui/panels/pipeline_panel.h"

#include "ui/format.h"
#include "ui/panels/table_style.h"
#include "ui/theme.h"

#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QFormLayout>
#include <QGridLayout>
#include <QLabel>
#include <QPushButton>
#include <QSpinBox>
#include <QTableView>

#include <algorithm>
#include <array>

namespace shardlens {

namespace {

constexpr std::array<const char*, 3> kPlanners = {"optimum", "megatron", "alpa"};
constexpr std::array<const char*, 4> kSchedules = {"1f1b", "interleaved", "zb-h1", "gpipe"};

std::optional<int> pinOf(const QSpinBox* box) {
    return box->value() > 0 ? std::optional(box->value()) : std::nullopt;
}

} // namespace

PipelinePanel::PipelinePanel(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document),
      m_on(new QCheckBox(tr("Divide the model into &stages"), this)), m_fields(new QWidget(this)),
      m_cuts(new QLabel(this)), m_state(new QLabel(this)),
      m_free(new QPushButton(tr("Free"), this)), m_model(new StagesModel(this)),
      m_table(new QTableView(this)) {
    setObjectName(QStringLiteral("pipelinePanel"));
    m_on->setObjectName(QStringLiteral("pipelineOn"));
    m_on->setToolTip(tr("Plan the whole job: stages, their devices, micro-batches and schedule"));
    m_cuts->setObjectName(QStringLiteral("pipelineCuts"));
    m_cuts->setWordWrap(true);
    m_free->setObjectName(QStringLiteral("pipelineFree"));
    m_free->setToolTip(tr("Free stage boundaries and what else is pinned"));
    m_state->setObjectName(QStringLiteral("pipelineState"));
    m_state->setWordWrap(true);
    m_table->setObjectName(QStringLiteral("stagesTable"));
    m_table->setAccessibleName(tr("Stages"));
    setUpTable(m_table, m_model);
    m_table->setMinimumHeight(5 * (fontMetrics().height() + 6));
    auto* form = new QFormLayout(m_fields);
    form->setContentsMargins(0, 0, 0, 0);
    form->setVerticalSpacing(3);
    m_planner = addChoice(form, QStringLiteral("pipelinePlanner"), tr("Planner"),
                          {tr("optimum"), tr("equal stages (Megatron)"), tr("Alpa")},
                          tr("Who divides the model"));
    form->addRow(tr("Schedules"), makeSchedules());
    m_transfers = addChoice(form, QStringLiteral("pipelineTransfers"), tr("Transfers"),
                            {tr("overlapped"), tr("blocking")},
                            tr("Whether a device computes while it sends to another stage"));
    m_insideAxes =
        addChoice(form, QStringLiteral("pipelineInsideAxes"), tr("Mesh in a stage"),
                  {tr("one axis"), tr("up to two axes")},
                  tr("What the planner may cut a stage's tensors over; two take longer"));
    m_stages = addPin(form, QStringLiteral("pipelineStages"), tr("Stages"),
                      tr("Only this number of stages"));
    m_microBatches = addPin(form, QStringLiteral("pipelineMicroBatches"), tr("Micro-batches"),
                            tr("Only this number of micro-batches of a step"));
    m_tensor = addPin(form, QStringLiteral("pipelineTensor"), tr("Tensor"),
                      tr("Only this many devices that share a micro-batch"));
    m_data = addPin(form, QStringLiteral("pipelineData"), tr("Data"),
                    tr("Only this many replicas of each stage"));
    m_zero = addChoice(form, QStringLiteral("pipelineZero"), tr("ZeRO"),
                       {tr("any"), QStringLiteral("0"), QStringLiteral("1"), QStringLiteral("2"),
                        QStringLiteral("3")},
                       tr("What replicas shard: optimizer state, gradients, parameters"));
    m_recompute = addChoice(form, QStringLiteral("pipelineRecompute"), tr("Recompute"),
                            {tr("any"), tr("nothing"), tr("memory-bound ops"), tr("everything")},
                            tr("What the backward pass computes again"));
    auto* cuts = new QHBoxLayout;
    cuts->addWidget(m_cuts, 1);
    cuts->addWidget(m_free);
    form->addRow(tr("Also pinned"), cuts);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 6, 8, 8);
    layout->setSpacing(4);
    layout->addWidget(m_on);
    layout->addWidget(m_fields);
    layout->addWidget(m_state);
    layout->addWidget(m_table, 1);
    connect(m_on, &QCheckBox::clicked, this, [this](bool on) {
        m_document.changePipeline(on ? std::optional(PipelineSetup{}) : std::nullopt,
                                  on ? tr("Divide into stages") : tr("No stages"));
    });
    connect(m_free, &QPushButton::clicked, this, [this] {
        PipelineSetup setup = edited();
        setup.cuts.clear();
        setup.chunks.reset();
        setup.pins.inside.reset();
        m_document.changePipeline(setup, tr("Free all stage boundaries"));
    });
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex& index) {
                if (!m_refreshing && index.isValid()) m_document.selectStage(index.row());
            });
    connect(&m_document, &Document::requestChanged, this, &PipelinePanel::refresh);
    connect(&m_document, &Document::loaded, this, &PipelinePanel::refresh);
    connect(&m_document, &Document::pipelineChanged, this, &PipelinePanel::refreshState);
    connect(&m_document, &Document::selectionChanged, this, &PipelinePanel::showSelection);
    refresh();
}

QSpinBox* PipelinePanel::addPin(QFormLayout* form, const QString& object, const QString& label,
                                const QString& tip) {
    auto* box = new QSpinBox(m_fields);
    box->setObjectName(object);
    box->setAccessibleName(label);
    box->setToolTip(tip);
    box->setRange(0, 1 << 20);
    box->setSpecialValueText(tr("any"));
    box->setKeyboardTracking(false);
    form->addRow(label, box);
    connect(box, &QSpinBox::valueChanged, this, &PipelinePanel::apply);
    return box;
}

QComboBox* PipelinePanel::addChoice(QFormLayout* form, const QString& object, const QString& label,
                                    const QStringList& words, const QString& tip) {
    auto* box = new QComboBox(m_fields);
    box->setObjectName(object);
    box->setAccessibleName(label);
    box->setToolTip(tip);
    box->addItems(words);
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(8);
    form->addRow(label, box);
    connect(box, &QComboBox::activated, this, &PipelinePanel::apply);
    return box;
}

QWidget* PipelinePanel::makeSchedules() {
    auto* place = new QWidget(m_fields);
    auto* grid = new QGridLayout(place);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setSpacing(2);
    for (std::size_t i = 0; i < kSchedules.size(); ++i) {
        const QString name = QLatin1String(kSchedules[i]);
        auto* box = new QCheckBox(name, place);
        box->setObjectName(QStringLiteral("pipelineSchedule.") + name);
        box->setAccessibleName(tr("Schedule %1").arg(name));
        box->setToolTip(tr("The planner may choose this schedule"));
        grid->addWidget(box, static_cast<int>(i / 2), static_cast<int>(i % 2));
        connect(box, &QCheckBox::clicked, this, &PipelinePanel::apply);
        m_schedules.push_back(box);
    }
    return place;
}

void PipelinePanel::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange) refreshState();
}

void PipelinePanel::refresh() {
    m_refreshing = true;
    const auto& request = m_document.request();
    const PipelineSetup setup = request.pipeline.value_or(PipelineSetup{});
    m_on->setChecked(request.pipeline.has_value());
    m_on->setEnabled(m_document.isOpen() && !m_document.isReadOnly());
    m_fields->setEnabled(m_on->isEnabled() && request.pipeline);
    const auto planner = std::ranges::find(kPlanners, setup.planner) - kPlanners.begin();
    m_planner->setCurrentIndex(static_cast<int>(planner));
    const std::vector<std::string> allowed =
        setup.schedules.empty() ? PipelineRequest{}.schedules : setup.schedules;
    for (std::size_t i = 0; i < kSchedules.size(); ++i)
        m_schedules[i]->setChecked(std::ranges::find(allowed, kSchedules[i]) != allowed.end());
    m_transfers->setCurrentIndex(setup.blockingTransfers ? 1 : 0);
    m_insideAxes->setCurrentIndex(setup.insideAxes - 1);
    m_stages->setValue(setup.stages.value_or(0));
    m_microBatches->setValue(setup.microBatches.value_or(0));
    m_tensor->setValue(setup.pins.tensor.value_or(0));
    m_data->setValue(setup.pins.data.value_or(0));
    m_zero->setCurrentIndex(setup.pins.zero ? *setup.pins.zero + 1 : 0);
    m_recompute->setCurrentIndex(setup.pins.recompute ? static_cast<int>(*setup.pins.recompute) + 1
                                                      : 0);
    m_free->setEnabled(!setup.cuts.empty() || setup.chunks || setup.pins.inside);
    m_refreshing = false;
    refreshState();
}

QString PipelinePanel::cutText(int cut) const {
    const auto& plan = m_document.pipeline();
    if (!plan || cut >= static_cast<int>(plan->units.units.size())) return QString::number(cut);
    const auto& stages = plan->answer.stages;
    const auto stage = std::ranges::find(stages, cut, &PlannedStage::first);
    if (plan->answer.schedule.chunks > 1 && stage != stages.end())
        return tr("where stage %1 begins").arg(stage - stages.begin());
    return shortName(plan->nameOf(cut));
}

void PipelinePanel::refreshState() {
    const auto& plan = m_document.pipeline();
    const auto& setup = m_document.request().pipeline;
    QStringList cuts;
    if (setup)
        for (const int cut : setup->cuts) cuts << cutText(cut);
    if (setup && setup->chunks) cuts << tr("%1 chunks").arg(*setup->chunks);
    if (setup && setup->pins.inside) cuts << tr("choices inside %1").arg(*setup->pins.inside);
    m_cuts->setText(cuts.isEmpty() ? tr("nothing else") : cuts.join(QStringLiteral(", ")));
    QString state;
    if (!m_document.pipelineError().isEmpty())
        state = m_document.pipelineError();
    else if (m_document.isPlanningPipeline())
        state = tr("Planning stages…");
    const Palette& palette = Palette::of(this);
    m_state->setText(state);
    m_state->setVisible(!state.isEmpty());
    m_state->setStyleSheet(
        QStringLiteral("color: %1")
            .arg((m_document.pipelineError().isEmpty() ? palette.muted : palette.bad).name()));
    m_refreshing = true;
    m_model->setPlan(plan);
    m_refreshing = false;
    m_table->setEnabled(plan && !m_document.isPipelineStale());
    showSelection();
}

void PipelinePanel::showSelection() {
    m_refreshing = true;
    const int stage = m_document.selectedStage();
    if (stage >= 0 && stage < m_model->rowCount())
        m_table->selectRow(stage);
    else
        m_table->setCurrentIndex({});
    m_refreshing = false;
}

PipelineSetup PipelinePanel::edited() const {
    PipelineSetup setup = m_document.request().pipeline.value_or(PipelineSetup{});
    setup.planner = kPlanners[static_cast<std::size_t>(std::max(0, m_planner->currentIndex()))];
    std::vector<std::string> allowed;
    for (std::size_t i = 0; i < kSchedules.size(); ++i)
        if (m_schedules[i]->isChecked()) allowed.emplace_back(kSchedules[i]);
    setup.schedules = allowed == PipelineRequest{}.schedules ? std::vector<std::string>() : allowed;
    setup.blockingTransfers = m_transfers->currentIndex() == 1;
    setup.insideAxes = m_insideAxes->currentIndex() + 1;
    setup.stages = pinOf(m_stages);
    setup.microBatches = pinOf(m_microBatches);
    setup.pins.tensor = pinOf(m_tensor);
    setup.pins.data = pinOf(m_data);
    setup.pins.zero.reset();
    if (m_zero->currentIndex() > 0) setup.pins.zero = m_zero->currentIndex() - 1;
    setup.pins.recompute.reset();
    if (m_recompute->currentIndex() > 0)
        setup.pins.recompute = static_cast<Recompute>(m_recompute->currentIndex() - 1);
    return setup;
}

QString PipelinePanel::stepLabel(const PipelineSetup& setup) const {
    const PipelineSetup& before = *m_document.request().pipeline;
    const auto pin = [](const QString& what, const std::optional<int>& value) {
        return value ? tr("%1: %2").arg(what).arg(*value) : tr("%1: any").arg(what);
    };
    if (setup.planner != before.planner) return tr("Planner %1").arg(text(setup.planner));
    if (setup.schedules != before.schedules) return tr("Schedules of the pipeline");
    if (setup.blockingTransfers != before.blockingTransfers)
        return setup.blockingTransfers ? tr("Blocking transfers") : tr("Overlapped transfers");
    if (setup.insideAxes != before.insideAxes)
        return setup.insideAxes == 1 ? tr("One axis in a stage") : tr("Two axes in a stage");
    if (setup.stages != before.stages) return pin(tr("Stages"), setup.stages);
    if (setup.microBatches != before.microBatches)
        return pin(tr("Micro-batches"), setup.microBatches);
    if (setup.pins.tensor != before.pins.tensor) return pin(tr("Tensor degree"), setup.pins.tensor);
    if (setup.pins.data != before.pins.data) return pin(tr("Data degree"), setup.pins.data);
    if (setup.pins.zero != before.pins.zero) return pin(tr("ZeRO stage"), setup.pins.zero);
    return tr("Recomputation");
}

void PipelinePanel::apply() {
    if (m_refreshing || !m_document.request().pipeline) return;
    const PipelineSetup setup = edited();
    m_document.changePipeline(setup, stepLabel(setup));
    refresh(); // an impossible wish, such as no schedule at all, is taken back
}

} // namespace shardlens
