// SPDX-License-Identifier: Apache-2.0
// See mesh_panel.h.
#include "ui/panels/mesh_panel.h"

#include "core/model/catalogue.h"
#include "ui/format.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

namespace shardlens {

MeshPanel::MeshPanel(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_tensor(new QComboBox(this)),
      m_side(new QComboBox(this)), m_view(new MeshView(this)), m_note(new QLabel(this)) {
    setObjectName(QStringLiteral("meshPanel"));
    m_tensor->setObjectName(QStringLiteral("meshTensor"));
    m_tensor->setAccessibleName(tr("Tensor"));
    m_tensor->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    m_tensor->setMinimumContentsLength(14);
    m_side->setObjectName(QStringLiteral("meshSide"));
    m_side->setAccessibleName(tr("Value or gradient"));
    m_side->addItem(tr("value"));
    m_side->addItem(tr("gradient"));
    m_note->setObjectName(QStringLiteral("meshNote"));
    m_note->setWordWrap(true);
    auto* row = new QHBoxLayout;
    row->addWidget(m_tensor, 1);
    row->addWidget(m_side);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 6, 8, 8);
    layout->addLayout(row);
    layout->addWidget(m_view, 1);
    layout->addWidget(m_note);
    connect(&m_document, &Document::selectionChanged, this, &MeshPanel::refresh);
    connect(&m_document, &Document::planChanged, this, &MeshPanel::refresh);
    connect(&m_document, &Document::loaded, this, &MeshPanel::refresh);
    connect(m_tensor, &QComboBox::currentIndexChanged, this, &MeshPanel::refreshShards);
    connect(m_side, &QComboBox::currentIndexChanged, this, &MeshPanel::refreshShards);
    connect(m_view, &MeshView::deviceSelected, this, &MeshPanel::takeDevice);
    connect(&m_document, &Document::pipelineChanged, this, &MeshPanel::refreshStages);
    connect(&m_document, &Document::selectionChanged, this, &MeshPanel::refreshStages);
    refresh();
}

void MeshPanel::refresh() {
    const auto& plan = m_document.plan();
    if (!plan || plan->context->graph != m_document.graph()) {
        m_view->clear();
        m_note->clear();
        m_tensor->clear();
        return;
    }
    m_view->setMesh(plan->context->mesh, plan->context->cluster.devicesPerNode);
    const int before = m_tensor->currentIndex();
    const QSignalBlocker blocker(m_tensor);
    m_tensor->clear();
    if (const OpId op = m_document.selectedOp(); op != kNoOp) {
        const Graph& graph = *m_document.graph();
        const Op& shown = graph.op(op);
        for (std::size_t r = 0; r < shown.outputs.size(); ++r)
            m_tensor->addItem(tr("result of %1").arg(shortName(shown.name)),
                              QPoint(0, static_cast<int>(r)));
        for (std::size_t o = 0; o < shown.inputs.size(); ++o)
            if (shown.inputs[o] != kNoTensor)
                m_tensor->addItem(
                    tr("operand %1: %2")
                        .arg(o)
                        .arg(shortName(graph.op(graph.tensor(shown.inputs[o]).producer).name)),
                    QPoint(1, static_cast<int>(o)));
        if (before > 0 && before < m_tensor->count()) m_tensor->setCurrentIndex(before);
    }
    refreshShards();
}

void MeshPanel::refreshStages() {
    std::vector<int> byDevice;
    QStringList held;
    const auto& job = m_document.pipeline();
    for (int stage = 0; job && stage < job->stages(); ++stage) {
        byDevice.resize(static_cast<std::size_t>(job->devicesOf(stage).second), stage);
        held << text(job->chunksOf(stage));
    }
    m_view->setStages(std::move(byDevice), held);
    m_view->setSelectedStage(m_document.selectedStage());
}

void MeshPanel::takeDevice(int device) {
    refreshShards();
    const int stage = device < 0 ? -1 : m_view->stageOf(device);
    if (stage < 0) return;
    // Who looks at what a device holds of a tensor goes on doing so.
    if (m_document.selectedOp() == kNoOp) m_document.selectStage(stage);
    emit stagePointed(stage);
}

void MeshPanel::refreshShards() {
    const auto& plan = m_document.plan();
    const OpId op = m_document.selectedOp();
    if (!plan || plan->context->graph != m_document.graph()) return;
    const Mesh& mesh = plan->context->mesh;
    if (op == kNoOp || m_tensor->currentIndex() < 0) {
        m_view->setShards({}, {});
        m_note->setText(tr("Mesh %1 on %2. Select an op to see who holds what.")
                            .arg(text(mesh.toString()), text(plan->context->cluster.name)));
        return;
    }
    const Graph& graph = *m_document.graph();
    const QPoint which = m_tensor->currentData().toPoint();
    const auto port = static_cast<std::size_t>(which.y());
    const FactorRule rule = factorRule(viewOf(graph, op));
    const Choice& choice = plan->decisions.op[op];
    const bool operand = which.x() == 1;
    const Layout layout =
        operand ? operandLayout(choice, rule, port, mesh) : resultLayout(choice, rule, port, mesh);
    const SideLayout side = m_side->currentIndex() == 0 ? valueSide(layout) : gradientSide(layout);
    const TensorId tensor = operand ? graph.op(op).inputs[port] : graph.op(op).outputs[port];
    const TensorSpec& spec = graph.tensor(tensor).spec;
    m_view->setShards(shardsOf(spec.shape, side, mesh), spec.shape);
    QStringList partial;
    for (std::size_t a = 0; a < mesh.axes.size(); ++a)
        if (side[a] == kStatePartial) partial << text(mesh.axes[a].name);
    QString note = tr("%1 shards, %2 each on %3")
                       .arg(shardCount(side, mesh))
                       .arg(formatBytes(bytesOf({spec.dtype, localShape(spec.shape, side, mesh)})),
                            text(plan->context->cluster.name));
    if (!partial.isEmpty())
        note += tr(" · Σ partial sums over %1").arg(partial.join(QStringLiteral(", ")));
    if (m_view->selectedDevice() >= 0) note = m_view->describe(m_view->selectedDevice());
    m_note->setText(note);
}

} // namespace shardlens
