// SPDX-License-Identifier: Apache-2.0
// See stages_model.h.
#include "ui/models/stages_model.h"

#include "ui/format.h"

namespace shardlens {

StagesModel::StagesModel(QObject* parent) : QAbstractTableModel(parent) {
}

void StagesModel::setPlan(std::shared_ptr<const PipelinePlan> plan) {
    if (plan == m_plan) return;
    beginResetModel();
    m_plan = std::move(plan);
    endResetModel();
}

int StagesModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() || !m_plan ? 0 : m_plan->stages();
}

int StagesModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant StagesModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const int stage = index.row();
    const PlannedStage& planned = m_plan->answer.stages[static_cast<std::size_t>(stage)];
    if (role == Qt::ToolTipRole) return tip(stage);
    if (role == Qt::TextAlignmentRole && index.column() != Begins)
        return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role != Qt::DisplayRole) return {};
    switch (index.column()) {
    case Begins:
        return hasChunks() ? text(m_plan->chunksOf(stage))
                           : shortName(m_plan->nameOf(planned.first));
    case Devices:
        return planned.option.devices();
    case Time:
        return formatTime(planned.price.seconds());
    case Memory:
        return formatBytes(m_plan->memoryOf(stage));
    default:
        return {};
    }
}

bool StagesModel::hasChunks() const {
    return m_plan && m_plan->answer.schedule.chunks > 1;
}

QString StagesModel::tip(int stage) const {
    const PlannedStage& planned = m_plan->answer.stages[static_cast<std::size_t>(stage)];
    const StagePolicy& policy = planned.policy;
    const QString recompute = policy.fullShare > 0
                                  ? tr("%1 recomputed whole").arg(formatPercent(policy.fullShare))
                              : policy.selective ? tr("memory-bound ops recomputed")
                                                 : tr("nothing recomputed");
    QString mesh;
    for (const AxisSize& axis : planned.option.replica.axes)
        mesh += QStringLiteral(" %1=%2").arg(text(axis.name)).arg(axis.size);
    return tr("Stage %1: %2\n%3 ×%4, ZeRO %5, %6")
        .arg(stage)
        .arg(text(m_plan->chunksOf(stage)))
        .arg(planned.option.replicas)
        .arg(mesh)
        .arg(policy.zero)
        .arg(recompute);
}

QVariant StagesModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (role != Qt::DisplayRole) return {};
    if (orientation == Qt::Vertical) return section;
    switch (section) {
    case Begins:
        return hasChunks() ? tr("Chunks") : tr("Begins with");
    case Devices:
        return tr("Devices");
    case Time:
        return tr("Time");
    case Memory:
        return tr("Memory");
    default:
        return {};
    }
}

} // namespace shardlens
