// SPDX-License-Identifier: Apache-2.0
// See timeline_form.h. Durations without a row of their own in the table are those of a device's
// whole share, which its stages share equally.
#include "ui/panels/timeline_form.h"

#include "ui/format.h"
#include "ui/panels/fields.h"
#include "ui/views/timeline_geometry.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QHeaderView>
#include <QJsonArray>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QStandardItemModel>
#include <QTableWidget>

#include <array>
#include <charconv>
#include <cmath>

namespace shardlens {

using namespace schedule;

namespace {

constexpr int kColumns = 3;
constexpr std::uint32_t kMostRows = 256; ///< of the table; more stages share their times
constexpr std::uint32_t kTeraPipeSlices = 4;
constexpr int kPlanRow = 0;    ///< among the schedules
constexpr int kSecondsRow = 1; ///< among the units
const QString kPlan = QStringLiteral("plan");

/// Shows no more digits than there are: "1", "0.25".
class TimeBox : public QDoubleSpinBox {
public:
    using QDoubleSpinBox::QDoubleSpinBox;
    QString textFromValue(double value) const override { return timelineNumber(value, 0); }
};

QSpinBox* sizeBox(QWidget* parent, const QString& object, const QString& name, const QString& tip,
                  int value, int most) {
    auto* box = named(new QSpinBox(parent), object, name, tip);
    box->setRange(1, most);
    box->setValue(value);
    box->setKeyboardTracking(false);
    return box;
}

double& timeOf(StageTimes& times, int column) {
    return column == 0 ? times.forward : column == 1 ? times.input : times.weight;
}

std::optional<double> parseTime(const QString& typed) {
    const std::string word = typed.trimmed().toStdString();
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    return std::isfinite(value) && value >= 0 ? std::optional(value) : std::nullopt;
}

const std::array<std::pair<const char*, double>, 4> kUnits = {
    {{QT_TRANSLATE_NOOP("TimelineForm", "plain numbers"), 0},
     {QT_TRANSLATE_NOOP("TimelineForm", "seconds"), 1},
     {QT_TRANSLATE_NOOP("TimelineForm", "milliseconds"), 1e-3},
     {QT_TRANSLATE_NOOP("TimelineForm", "microseconds"), 1e-6}}};

} // namespace

TimelineForm::TimelineForm(QWidget* parent)
    : QWidget(parent), m_schedule(named(new QComboBox(this), QStringLiteral("timelineSchedule"),
                                        tr("Schedule"), tr("Who computes what in which order"))),
      m_transfers(named(new QComboBox(this), QStringLiteral("timelineTransfers"), tr("Transfers"),
                        tr("How activations and gradients get from stage to stage"))),
      m_unit(named(new QComboBox(this), QStringLiteral("timelineUnit"), tr("Unit of times"),
                   tr("What the numbers of this form are"))),
      m_devices(sizeBox(this, QStringLiteral("timelineDevices"), tr("Devices p"),
                        tr("Devices in the pipeline"), 4, 4096)),
      m_microBatches(sizeBox(this, QStringLiteral("timelineMicroBatches"), tr("Micro-batches m"),
                             tr("Micro-batches of a step"), 8, 1 << 24)),
      m_chunks(sizeBox(this, QStringLiteral("timelineChunks"), tr("Chunks v"),
                       tr("Stages on a device (interleaved); schedules in a V have two"), 2, 64)),
      m_table(
          named(new QTableWidget(0, kColumns, this), QStringLiteral("timelineStages"),
                tr("Times by stage"),
                tr("Type a number to give a stage a time of its own; clear it to take it back"))) {
    setObjectName(QStringLiteral("timelineForm"));
    setFocusProxy(m_schedule);
    m_schedule->addItem(tr("this session's plan"), kPlan);
    m_schedule->setItemData(kPlanRow, tr("Stages and times of the whole job; see Pipeline"),
                            Qt::ToolTipRole);
    for (const Generator& generator : generators()) {
        m_schedule->addItem(text(generator.title), text(generator.name));
        m_schedule->setItemData(m_schedule->count() - 1, text(generator.rule), Qt::ToolTipRole);
    }
    m_schedule->setPlaceholderText(tr("choose a schedule"));
    m_schedule->setCurrentIndex(-1);
    m_transfers->addItems({tr("as a delay"), tr("on a stream"), tr("blocking")});
    for (const auto& [name, seconds] : kUnits) m_unit->addItem(tr(name), seconds);
    auto* layout = new QFormLayout(this);
    layout->setContentsMargins(8, 6, 8, 6);
    layout->setVerticalSpacing(3);
    layout->addRow(tr("Schedule"), m_schedule);
    layout->addRow(tr("Devices &p"), m_devices);
    layout->addRow(tr("Micro-batches &m"), m_microBatches);
    layout->addRow(tr("Chunks &v"), m_chunks);
    m_forward = addTime(layout, QStringLiteral("timelineForward"), tr("&Forward F"), tr("Forward"),
                        tr("Of a micro-batch, on one device's whole share"), 1);
    m_input = addTime(layout, QStringLiteral("timelineInput"), tr("&Input grad. B"),
                      tr("Input gradient"), tr("The whole backward is B + W"), 1);
    m_weight = addTime(layout, QStringLiteral("timelineWeight"), tr("&Weight grad. W"),
                       tr("Weight gradient"), tr("The whole backward is B + W"), 1);
    m_recompute = addTime(layout, QStringLiteral("timelineRecompute"), tr("&Recompute"),
                          tr("Recomputation"), tr("The forward again, before the backward"), 0);
    m_transfer = addTime(layout, QStringLiteral("timelineTransfer"), tr("&Transfer"),
                         tr("Transfer"), tr("From stage to stage"), 0);
    layout->addRow(QString(), m_transfers);
    m_allReduce = addTime(layout, QStringLiteral("timelineAllReduce"), tr("&All-reduce"),
                          tr("All-reduce"), tr("Of gradients between replicas"), 0);
    m_update = addTime(layout, QStringLiteral("timelineUpdate"), tr("&Update"), tr("Update"),
                       tr("Optimizer step"), 0);
    m_joint = addTime(layout, QStringLiteral("timelineJoint"), tr("&Joint F&&B"),
                      tr("Joint forward and backward"),
                      tr("Its time as a share of both one after the other (DualPipe)"), 1);
    m_joint->setRange(0.01, 1);
    layout->addRow(tr("Unit"), m_unit);
    layout->addRow(m_table);
    m_table->setHorizontalHeaderLabels(
        {QStringLiteral("F"), QStringLiteral("B"), QStringLiteral("W")});
    m_table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
    m_table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
    m_table->setMinimumHeight(6 * (fontMetrics().height() + 6));
    m_table->setTabKeyNavigation(false);

    connect(m_table, &QTableWidget::cellChanged, this, &TimelineForm::takeCell);
    connect(m_unit, &QComboBox::currentIndexChanged, this, &TimelineForm::unitChanged);
    connect(m_transfers, &QComboBox::currentIndexChanged, this, &TimelineForm::changed);
    connect(m_schedule, &QComboBox::currentIndexChanged, this, &TimelineForm::clearStages);
    for (QSpinBox* box : {m_devices, m_chunks}) {
        connect(box, &QSpinBox::valueChanged, this, &TimelineForm::clearStages);
    }
    connect(m_microBatches, &QSpinBox::valueChanged, this, &TimelineForm::changed);
    enableFields();
}

QDoubleSpinBox* TimelineForm::addTime(QFormLayout* layout, const QString& object,
                                      const QString& label, const QString& name, const QString& tip,
                                      double value) {
    QDoubleSpinBox* box = named(new TimeBox(this), object, name, tip);
    box->setRange(0, 1e6);
    box->setDecimals(6);
    box->setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
    box->setValue(value);
    box->setKeyboardTracking(false);
    layout->addRow(label, box);
    connect(box, &QDoubleSpinBox::valueChanged, this, &TimelineForm::changed);
    return box;
}

bool TimelineForm::hasSchedule() const {
    return m_schedule->currentIndex() >= 0 && (!showsPlan() || m_plan);
}

bool TimelineForm::showsPlan() const {
    return m_schedule->currentIndex() == kPlanRow;
}

void TimelineForm::choosePlan() {
    m_schedule->setCurrentIndex(kPlanRow);
}

void TimelineForm::setPlan(std::optional<ScheduleSpec> plan) {
    const bool other = m_plan.has_value(); // what was typed belongs to other stages
    m_plan = std::move(plan);
    enableFields();
    if (!showsPlan()) return;
    if (other) m_own.clear();
    emit changed();
}

void TimelineForm::enableFields() {
    auto* items = qobject_cast<QStandardItemModel*>(m_schedule->model());
    items->item(kPlanRow)->setEnabled(m_plan.has_value());
    const bool own = !showsPlan();
    for (QWidget* field : std::initializer_list<QWidget*>{
             m_devices, m_microBatches, m_forward, m_input, m_weight, m_recompute, m_transfer,
             m_transfers, m_allReduce, m_update, m_joint, m_unit})
        field->setEnabled(own);
    m_chunks->setEnabled(m_schedule->currentData().toString() == QLatin1String("interleaved"));
    m_table->setHorizontalHeaderLabels(
        own ? QStringList{QStringLiteral("F"), QStringLiteral("B"), QStringLiteral("W")}
            : QStringList{tr("F ms"), tr("B ms"), tr("W ms")});
    if (own || !m_plan) return;
    const QSignalBlocker quiet(this);
    m_devices->setValue(static_cast<int>(m_plan->devices));
    m_microBatches->setValue(static_cast<int>(m_plan->microBatches));
    m_chunks->setValue(static_cast<int>(m_plan->chunks));
    m_unit->setCurrentIndex(kSecondsRow);
}

double TimelineForm::tableUnit() const {
    return showsPlan() ? 1e-3 : 1;
}

StageTimes TimelineForm::usualTimes(std::uint32_t stage) const {
    if (showsPlan() && m_plan && stage < m_plan->times.size()) return m_plan->times[stage];
    StageTimes usual{m_forward->value(),   m_input->value(),  m_weight->value(),
                     m_recompute->value(), m_update->value(), m_allReduce->value()};
    for (double* time : {&usual.forward, &usual.input, &usual.weight, &usual.recompute,
                         &usual.update, &usual.allReduce})
        *time /= m_onDevice;
    return usual;
}

double TimelineForm::secondsPerUnit() const {
    return m_unit->currentData().toDouble();
}

TimelineWish TimelineForm::wish() const {
    TimelineWish wish;
    for (const auto& [stage, times] : m_own) {
        StageTimes all = usualTimes(stage);
        all.forward = times.forward;
        all.input = times.input;
        all.weight = times.weight;
        wish.stages.emplace(stage, all);
    }
    if (showsPlan() && m_plan) {
        wish.spec = *m_plan;
        return wish;
    }
    ScheduleSpec& spec = wish.spec;
    spec.name = m_schedule->currentData().toString().toStdString();
    spec.devices = static_cast<std::uint32_t>(m_devices->value());
    spec.microBatches = static_cast<std::uint32_t>(m_microBatches->value());
    spec.chunks = spec.name == "interleaved" ? static_cast<std::uint32_t>(m_chunks->value()) : 1;
    if (spec.name == "terapipe") spec.slices.assign(kTeraPipeSlices, 1.0 / kTeraPipeSlices);
    spec.times = {StageTimes{m_forward->value(), m_input->value(), m_weight->value(),
                             m_recompute->value(), m_update->value(), m_allReduce->value()}};
    spec.transfer = {m_transfer->value()};
    spec.transfers = static_cast<Transfers>(m_transfers->currentIndex());
    spec.jointFactor = m_joint->value();
    return wish;
}

void TimelineForm::clearStages() {
    // Stages of another division are other stages.
    m_own.clear();
    enableFields();
    emit changed();
}

void TimelineForm::showStages(const Schedule& schedule) {
    m_stages = schedule.orders.stages;
    m_onDevice = std::max(1u, m_stages / std::max(1u, schedule.orders.devices));
    std::erase_if(m_own, [this](const auto& own) { return own.first >= m_stages; });
    fillTable();
}

void TimelineForm::fillTable() {
    m_filling = true;
    const auto rows = static_cast<int>(std::min(m_stages, kMostRows));
    m_table->setRowCount(rows);
    for (int row = 0; row < rows; ++row) {
        StageTimes usual = usualTimes(static_cast<std::uint32_t>(row));
        m_table->setVerticalHeaderItem(row, new QTableWidgetItem(tr("stage %1").arg(row)));
        const auto own = m_own.find(static_cast<std::uint32_t>(row));
        StageTimes times = own == m_own.end() ? usual : own->second;
        for (int column = 0; column < kColumns; ++column) {
            auto* item = m_table->item(row, column);
            if (!item) m_table->setItem(row, column, item = new QTableWidgetItem);
            item->setText(timelineNumber(timeOf(times, column) / tableUnit(), 0));
            QFont font = m_table->font();
            font.setBold(own != m_own.end() && timeOf(times, column) != timeOf(usual, column));
            item->setFont(font);
        }
    }
    m_filling = false;
}

void TimelineForm::takeCell(int row, int column) {
    if (m_filling) return;
    const QString typed = m_table->item(row, column)->text();
    const auto stage = static_cast<std::uint32_t>(row);
    StageTimes usual = usualTimes(stage);
    std::optional<double> time = parseTime(typed);
    if (time) *time *= tableUnit();
    if (typed.trimmed().isEmpty()) time = timeOf(usual, column);
    if (time) {
        StageTimes& own = m_own.try_emplace(stage, usual).first->second;
        timeOf(own, column) = *time;
        const bool same =
            own.forward == usual.forward && own.input == usual.input && own.weight == usual.weight;
        if (same) m_own.erase(stage);
    }
    fillTable(); // what is no time is taken back
    if (time) emit changed();
}

void TimelineForm::edit(std::uint32_t stage, Pass pass) {
    QDoubleSpinBox* box = pass == Pass::AllReduce   ? m_allReduce
                          : pass == Pass::Update    ? m_update
                          : isSend(pass)            ? m_transfer
                          : pass == Pass::Recompute ? m_recompute
                                                    : nullptr;
    if (box && showsPlan()) return; // only passes of stages can be typed over
    if (box) {
        box->setFocus();
        box->selectAll();
        return;
    }
    if (static_cast<int>(stage) >= m_table->rowCount()) return;
    const int column = pass == Pass::Forward || pass == Pass::ForwardNoGrad ? 0
                       : pass == Pass::WeightGrad                           ? 2
                                                                            : 1;
    m_table->setCurrentCell(static_cast<int>(stage), column);
    m_table->setFocus();
    m_table->editItem(m_table->currentItem());
}

QJsonObject TimelineForm::state() const {
    QJsonArray stages;
    for (const auto& [stage, times] : m_own) {
        stages.append(
            QJsonArray{static_cast<int>(stage), times.forward, times.input, times.weight});
    }
    QJsonObject state{{QStringLiteral("schedule"), m_schedule->currentData().toString()},
                      {QStringLiteral("transfers"), m_transfers->currentIndex()},
                      {QStringLiteral("unit"), m_unit->currentIndex()},
                      {QStringLiteral("stages"), stages},
                      {QStringLiteral("stagesOnDevice"), static_cast<int>(m_onDevice)}};
    for (const QSpinBox* box : findChildren<QSpinBox*>()) state[box->objectName()] = box->value();
    for (const QDoubleSpinBox* box : findChildren<QDoubleSpinBox*>()) {
        state[box->objectName()] = box->value();
    }
    return state;
}

void TimelineForm::setState(const QJsonObject& state) {
    const QSignalBlocker blocked(this);
    const int index = m_schedule->findData(state[QStringLiteral("schedule")].toString());
    m_schedule->setCurrentIndex(index);
    for (QSpinBox* box : findChildren<QSpinBox*>()) {
        box->setValue(state[box->objectName()].toInt(box->value()));
    }
    for (QDoubleSpinBox* box : findChildren<QDoubleSpinBox*>()) {
        box->setValue(state[box->objectName()].toDouble(box->value()));
    }
    m_transfers->setCurrentIndex(std::clamp(state[QStringLiteral("transfers")].toInt(), 0, 2));
    m_unit->setCurrentIndex(
        std::clamp(state[QStringLiteral("unit")].toInt(), 0, static_cast<int>(kUnits.size()) - 1));
    m_onDevice = static_cast<std::uint32_t>(
        std::clamp(state[QStringLiteral("stagesOnDevice")].toInt(1), 1, 1024));
    m_own.clear();
    for (const auto& entry : state[QStringLiteral("stages")].toArray()) {
        const QJsonArray own = entry.toArray();
        const int stage = own[0].toInt(-1);
        StageTimes times;
        for (int column = 0; column < kColumns; ++column) {
            timeOf(times, column) = std::max(0.0, own[column + 1].toDouble(1));
        }
        if (stage >= 0) m_own[static_cast<std::uint32_t>(stage)] = times;
    }
    enableFields();
}

} // namespace shardlens
