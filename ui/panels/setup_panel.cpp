// SPDX-License-Identifier: Apache-2.0
// See setup_panel.h.
#include "ui/panels/setup_panel.h"

#include "core/error.h"
#include "core/units.h"
#include "ui/format.h"
#include "ui/panels/fields.h"
#include "ui/theme.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QEvent>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>

#include <limits>

namespace shardlens {

namespace {

QString bindingsText(const std::map<std::string, std::int64_t>& bindings) {
    QStringList parts;
    for (const auto& [name, value] : bindings)
        parts << QStringLiteral("%1=%2").arg(text(name)).arg(value);
    return parts.join(QStringLiteral(", "));
}

QString meshText(const std::vector<AxisSize>& axes) {
    QStringList parts;
    for (const AxisSize& axis : axes)
        parts << QStringLiteral("%1=%2").arg(text(axis.name)).arg(axis.size);
    return parts.join(QLatin1Char(','));
}

std::map<std::string, std::int64_t> parseBindings(const QString& typed) {
    std::map<std::string, std::int64_t> bindings;
    const QStringList parts = typed.split(QLatin1Char(','), Qt::SkipEmptyParts);
    for (const QString& part : parts) {
        const QStringList sides = part.split(QLatin1Char('='));
        bool ok = sides.size() == 2;
        const qlonglong value = ok ? sides[1].trimmed().toLongLong(&ok) : 0;
        if (!ok || value < 1)
            throw PlanError("'" + part.trimmed().toStdString() + "' is no size", "sizes",
                            "write name=number, such as batch_size=8");
        bindings[sides[0].trimmed().toStdString()] = value;
    }
    return bindings;
}

} // namespace

SetupPanel::SetupPanel(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document),
      m_cluster(named(new QComboBox(this), QStringLiteral("setupCluster"), tr("Cluster"),
                      tr("Kind of machine; figures from data sheets"))),
      m_nodes(named(new QSpinBox(this), QStringLiteral("setupNodes"), tr("Nodes"),
                    tr("Number of machines"))),
      m_mesh(named(new QLineEdit(this), QStringLiteral("setupMesh"), tr("Mesh"),
                   tr("Named axes, the last one innermost: dp=8,tp=8"))),
      m_mode(
          named(new QComboBox(this), QStringLiteral("setupMode"), tr("Mode"), tr("What is run"))),
      m_batch(named(new QSpinBox(this), QStringLiteral("setupBatch"), tr("Batch"),
                    tr("Sequences or samples of one step"))),
      m_sequence(named(new QSpinBox(this), QStringLiteral("setupSequence"), tr("Sequence"),
                       tr("Tokens of one sequence"))),
      m_bindings(named(new QLineEdit(this), QStringLiteral("setupBindings"), tr("Sizes"),
                       tr("Further sizes the model leaves open: name=8, other=128"))),
      m_memory(named(new QDoubleSpinBox(this), QStringLiteral("setupMemory"), tr("Memory limit"),
                     tr("Of a device; the lowest value means all it has"))),
      m_cost(named(new QComboBox(this), QStringLiteral("setupCost"), tr("Cost model"),
                   tr("Where times come from"))),
      m_problem(new QLabel(this)) {
    setObjectName(QStringLiteral("setup"));
    for (const ClusterInfo& info : knownClusters()) {
        m_cluster->addItem(text(info.name));
        m_cluster->setItemData(m_cluster->count() - 1, text(info.description), Qt::ToolTipRole);
    }
    m_cluster->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    m_cluster->setMinimumContentsLength(10);
    m_nodes->setRange(1, 4096);
    m_mode->addItem(tr("training"), static_cast<int>(Mode::Train));
    m_mode->addItem(tr("inference"), static_cast<int>(Mode::Infer));
    m_batch->setRange(1, std::numeric_limits<int>::max());
    m_sequence->setRange(1, std::numeric_limits<int>::max());
    m_memory->setRange(0, 4096);
    m_memory->setDecimals(1);
    m_memory->setSuffix(tr(" GiB"));
    m_memory->setSpecialValueText(tr("all of the device"));
    m_cost->addItem(QStringLiteral("roofline"));
    m_cost->addItem(QStringLiteral("alpa"));
    for (QAbstractSpinBox* box :
         std::initializer_list<QAbstractSpinBox*>{m_nodes, m_batch, m_sequence, m_memory})
        box->setKeyboardTracking(false);
    m_problem->setObjectName(QStringLiteral("setupProblem"));
    m_problem->setWordWrap(true);
    auto* form = new QFormLayout(this);
    form->setContentsMargins(8, 6, 8, 8);
    form->setVerticalSpacing(4);
    form->setFieldGrowthPolicy(QFormLayout::ExpandingFieldsGrow);
    form->addRow(tr("Cluster"), m_cluster);
    form->addRow(tr("Nodes"), m_nodes);
    form->addRow(tr("Mesh"), m_mesh);
    form->addRow(tr("Mode"), m_mode);
    form->addRow(tr("Batch"), m_batch);
    form->addRow(tr("Sequence"), m_sequence);
    form->addRow(tr("Sizes"), m_bindings);
    form->addRow(tr("Memory"), m_memory);
    form->addRow(tr("Costs"), m_cost);
    form->addRow(m_problem);
    m_problem->hide();
    for (QComboBox* box : {m_cluster, m_mode, m_cost})
        connect(box, &QComboBox::activated, this, &SetupPanel::apply);
    for (QSpinBox* box : {m_nodes, m_batch, m_sequence})
        connect(box, &QSpinBox::valueChanged, this, &SetupPanel::apply);
    connect(m_memory, &QDoubleSpinBox::valueChanged, this, &SetupPanel::apply);
    for (QLineEdit* line : {m_mesh, m_bindings})
        connect(line, &QLineEdit::editingFinished, this, &SetupPanel::apply);
    connect(&m_document, &Document::requestChanged, this, &SetupPanel::refresh);
    connect(&m_document, &Document::loaded, this, &SetupPanel::refresh);
    connect(&m_document, &Document::modelChanged, this, &SetupPanel::refresh);
    refresh();
}

void SetupPanel::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        m_problem->setStyleSheet(QStringLiteral("color: %1").arg(Palette::of(this).bad.name()));
}

void SetupPanel::refresh() {
    m_refreshing = true;
    const PlanRequest& request = m_document.request();
    m_cluster->setCurrentIndex(m_cluster->findText(text(request.cluster)));
    m_nodes->setValue(request.nodes);
    m_mesh->setText(meshText(request.mesh));
    m_mode->setCurrentIndex(m_mode->findData(static_cast<int>(request.mode)));
    m_batch->setValue(static_cast<int>(request.batch));
    m_sequence->setValue(static_cast<int>(request.sequence));
    m_memory->setValue(request.memoryLimitBytes.value_or(0) / kGiB);
    m_cost->setCurrentIndex(m_cost->findText(text(request.costModel)));
    m_bindings->setText(bindingsText(request.bindings));
    m_bindings->setPlaceholderText(m_document.graph() ? bindingsText(m_document.graph()->bindings)
                                                      : QString());
    setEnabled(m_document.isOpen() && !m_document.isReadOnly());
    say({});
    m_refreshing = false;
}

void SetupPanel::say(const QString& problem) {
    m_problem->setText(problem);
    m_problem->setVisible(!problem.isEmpty());
    m_problem->setStyleSheet(QStringLiteral("color: %1").arg(Palette::of(this).bad.name()));
}

PlanRequest SetupPanel::edited() const {
    PlanRequest request = m_document.request();
    request.cluster = m_cluster->currentText().toStdString();
    request.nodes = m_nodes->value();
    request.mode = static_cast<Mode>(m_mode->currentData().toInt());
    request.batch = m_batch->value();
    request.sequence = m_sequence->value();
    request.costModel = m_cost->currentText().toStdString();
    request.bindings = parseBindings(m_bindings->text());
    request.memoryLimitBytes.reset();
    if (m_memory->value() > 0) request.memoryLimitBytes = m_memory->value() * kGiB;
    if (request.cluster != m_document.request().cluster) request.devicesPerNode = 0;
    const Cluster cluster = clusterByName(request.cluster, request.nodes, request.devicesPerNode);
    const bool otherCluster = request.cluster != m_document.request().cluster ||
                              request.nodes != m_document.request().nodes;
    const QString typed = m_mesh->text();
    if (otherCluster && typed == meshText(m_document.request().mesh)) {
        // The old mesh is for other machines: keep it if it fits, suggest one if not.
        try {
            request.mesh = parseMesh(typed.toStdString());
            if (layMesh(cluster, request.mesh).devices() != cluster.devices())
                request.mesh = defaultMesh(cluster);
        } catch (const Error&) {
            request.mesh = defaultMesh(cluster);
        }
    } else {
        request.mesh =
            typed.trimmed().isEmpty() ? defaultMesh(cluster) : parseMesh(typed.toStdString());
    }
    (void)layMesh(cluster, request.mesh); // says what does not fit
    if (request.costModel == "alpa" && request.alpha.size() != request.mesh.size()) {
        request.alpha.assign(request.mesh.size(), 1);
        request.beta.assign(request.mesh.size(), 1);
        request.beta.front() = 10; // the outer axis crosses slower links
    }
    return request;
}

QString SetupPanel::stepLabel(const PlanRequest& request) const {
    const PlanRequest& before = m_document.request();
    if (request.cluster != before.cluster) return tr("Cluster %1").arg(text(request.cluster));
    if (request.nodes != before.nodes) return tr("%n node(s)", nullptr, request.nodes);
    if (request.batch != before.batch) return tr("Batch %1").arg(request.batch);
    if (request.sequence != before.sequence) return tr("Sequence %1").arg(request.sequence);
    if (request.mode != before.mode)
        return request.mode == Mode::Train ? tr("Training") : tr("Inference");
    if (request.bindings != before.bindings)
        return tr("Sizes %1").arg(bindingsText(request.bindings));
    if (request.costModel != before.costModel)
        return tr("Cost model %1").arg(text(request.costModel));
    if (request.memoryLimitBytes != before.memoryLimitBytes)
        return request.memoryLimitBytes
                   ? tr("Memory limit %1").arg(formatBytes(*request.memoryLimitBytes))
                   : tr("No memory limit of its own");
    return tr("Mesh %1").arg(meshText(request.mesh));
}

void SetupPanel::apply() {
    if (m_refreshing || !m_document.isOpen()) return;
    try {
        const PlanRequest request = edited();
        say({});
        m_document.changeSetup(request, stepLabel(request));
    } catch (const Error& error) {
        say(text(error.what()));
    }
}

} // namespace shardlens
