// SPDX-License-Identifier: Apache-2.0
// See sweep_form.h.
#include "ui/panels/sweep_form.h"

#include "ui/format.h"

#include <QComboBox>
#include <QFormLayout>
#include <QJsonArray>
#include <QLabel>
#include <QLineEdit>

namespace shardlens {

namespace {

/// Values to begin with, by SweepParameter.
constexpr std::array<const char*, kSweepParameters> kSuggested = {"1..64",
                                                                  "64..4096",
                                                                  "1024..32768",
                                                                  "8..256",
                                                                  "1..64",
                                                                  "1..8",
                                                                  "1..8",
                                                                  "1..8",
                                                                  "off, on",
                                                                  "1..64",
                                                                  "gpipe, 1f1b, interleaved",
                                                                  "0..3:1",
                                                                  "none, selective, full",
                                                                  "24, 32, 40, 80, 141"};

} // namespace

SweepForm::SweepForm(QWidget* parent) : QWidget(parent) {
    setObjectName(QStringLiteral("sweepForm"));
    auto* layout = new QFormLayout(this);
    layout->setContentsMargins(8, 6, 8, 6);
    layout->setVerticalSpacing(4);
    m_what = new QComboBox(this);
    m_what->setObjectName(QStringLiteral("sweepWhat"));
    m_what->setAccessibleName(tr("What is swept"));
    m_what->addItems({tr("all equal-stage plans"), tr("one setting"), tr("two settings")});
    m_what->setItemData(0,
                        tr("Tensor, context, pipeline, expert and data degree, sequence "
                           "parallelism, chunks, micro-batch, ZeRO stage, recomputation"),
                        Qt::ToolTipRole);
    setFocusProxy(m_what);
    layout->addRow(tr("S&weep"), m_what);
    m_axes = {makeAxis(QStringLiteral("sweepFirst"), tr("&First")),
              makeAxis(QStringLiteral("sweepSecond"), tr("S&econd"))};
    m_planner = new QComboBox(this);
    m_planner->setObjectName(QStringLiteral("sweepPlanner"));
    m_planner->setAccessibleName(tr("Planner"));
    m_planner->addItem(tr("equal stages"), QStringLiteral("megatron"));
    m_planner->addItem(tr("optimum"), QStringLiteral("optimum"));
    m_planner->setToolTip(tr("Who makes the plan of each point"));
    m_plannerLabel = new QLabel(tr("&Planner"), this);
    m_plannerLabel->setBuddy(m_planner);
    layout->addRow(m_plannerLabel, m_planner);
    m_axes[0].parameter->setCurrentIndex(static_cast<int>(SweepParameter::Nodes));
    m_axes[1].parameter->setCurrentIndex(static_cast<int>(SweepParameter::Batch));
    for (const Axis& axis : m_axes) suggest(axis);
    connect(m_what, &QComboBox::currentIndexChanged, this, [this] {
        showFields();
        emit changed();
    });
    connect(m_planner, &QComboBox::currentIndexChanged, this, &SweepForm::changed);
    showFields();
}

SweepForm::Axis SweepForm::makeAxis(const QString& object, const QString& label) {
    auto* layout = static_cast<QFormLayout*>(this->layout());
    Axis axis{new QLabel(label, this), new QComboBox(this), new QLineEdit(this)};
    for (int p = 0; p < kSweepParameters; ++p)
        axis.parameter->addItem(text(titleOf(static_cast<SweepParameter>(p))));
    axis.parameter->setObjectName(object);
    axis.parameter->setAccessibleName(tr("Setting"));
    axis.values->setObjectName(object + QStringLiteral("Values"));
    axis.values->setAccessibleName(tr("Values"));
    axis.values->setToolTip(
        tr("Values with commas; 1..64 doubles from 1 to 64, 2..10:2 goes in steps of 2"));
    axis.label->setBuddy(axis.parameter);
    layout->addRow(axis.label, axis.parameter);
    layout->addRow(QString(), axis.values);
    connect(axis.parameter, &QComboBox::currentIndexChanged, this, [this, axis] {
        suggest(axis);
        emit changed();
    });
    connect(axis.values, &QLineEdit::textEdited, this, &SweepForm::changed);
    connect(axis.values, &QLineEdit::returnPressed, this, &SweepForm::runRequested);
    return axis;
}

void SweepForm::suggest(const Axis& axis) {
    axis.values->setText(
        QLatin1String(kSuggested[static_cast<std::size_t>(axis.parameter->currentIndex())]));
}

void SweepForm::showFields() {
    const int shown = m_what->currentIndex();
    for (int i = 0; i < 2; ++i) {
        const Axis& axis = m_axes[static_cast<std::size_t>(i)];
        for (QWidget* field :
             std::initializer_list<QWidget*>{axis.label, axis.parameter, axis.values})
            field->setVisible(i < shown);
    }
    m_planner->setVisible(shown > 0);
    m_plannerLabel->setVisible(shown > 0);
}

SweepForm::What SweepForm::what() const {
    return static_cast<What>(m_what->currentIndex());
}

void SweepForm::setWhat(What what) {
    m_what->setCurrentIndex(static_cast<int>(what));
}

void SweepForm::setAxis(int axis, SweepParameter parameter, const QString& values) {
    m_axes.at(static_cast<std::size_t>(axis))
        .parameter->setCurrentIndex(static_cast<int>(parameter));
    m_axes.at(static_cast<std::size_t>(axis)).values->setText(values);
    emit changed();
}

QString SweepForm::planner() const {
    return m_planner->currentData().toString();
}

std::vector<SweepAxis> SweepForm::axes() const {
    std::vector<SweepAxis> axes;
    for (int i = 0; i < m_what->currentIndex(); ++i) {
        const Axis& axis = m_axes[static_cast<std::size_t>(i)];
        const auto parameter = static_cast<SweepParameter>(axis.parameter->currentIndex());
        axes.push_back({parameter, sweepValues(parameter, axis.values->text().toStdString())});
    }
    return axes;
}

QJsonObject SweepForm::state() const {
    QJsonArray axes;
    for (const Axis& axis : m_axes)
        axes.append(
            QJsonObject{{QStringLiteral("setting"),
                         text(nameOf(static_cast<SweepParameter>(axis.parameter->currentIndex())))},
                        {QStringLiteral("values"), axis.values->text()}});
    return {{QStringLiteral("settings"), m_what->currentIndex()},
            {QStringLiteral("axes"), axes},
            {QStringLiteral("planner"), planner()}};
}

void SweepForm::setState(const QJsonObject& state) {
    const QJsonArray axes = state[QStringLiteral("axes")].toArray();
    for (int i = 0; i < std::min<int>(2, static_cast<int>(axes.size())); ++i) {
        const QJsonObject axis = axes[i].toObject();
        const QString name = axis[QStringLiteral("setting")].toString();
        for (int p = 0; p < kSweepParameters; ++p)
            if (text(nameOf(static_cast<SweepParameter>(p))) == name)
                setAxis(i, static_cast<SweepParameter>(p),
                        axis[QStringLiteral("values")].toString());
    }
    m_planner->setCurrentIndex(
        std::max(0, m_planner->findData(state[QStringLiteral("planner")].toString())));
    m_what->setCurrentIndex(std::clamp(state[QStringLiteral("settings")].toInt(), 0, 2));
}

} // namespace shardlens
