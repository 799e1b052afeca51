// SPDX-License-Identifier: Apache-2.0
// See alternatives_model.h.
#include "ui/models/alternatives_model.h"

#include "ui/format.h"

#include <QFont>
#include <QGuiApplication>

#include <cmath>

namespace shardlens {

namespace {

bool isExact(const Alternative& alternative) {
    return alternative.current || alternative.leastTime >= alternative.time; // both may be infinite
}

} // namespace

AlternativesModel::AlternativesModel(QObject* parent)
    : QAbstractTableModel(parent), m_palette(&Palette::of(QGuiApplication::palette())) {
}

void AlternativesModel::setAlternatives(std::vector<Alternative> list, std::string unit,
                                        const QString& pinned) {
    beginResetModel();
    m_list = std::move(list);
    m_unit = std::move(unit);
    m_pinned = pinned;
    endResetModel();
}

void AlternativesModel::clear() {
    setAlternatives({}, m_unit, {});
}

void AlternativesModel::setPalette(const Palette& palette) {
    m_palette = &palette;
    if (!m_list.empty())
        emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1), {Qt::ForegroundRole});
}

int AlternativesModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_list.size());
}

int AlternativesModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QString AlternativesModel::display(const Alternative& alternative, int column) const {
    switch (column) {
    case Choice:
        return text(alternative.text);
    case DeltaTime:
        if (!alternative.legal) return {};
        if (!std::isfinite(alternative.time))
            return isExact(alternative) ? tr("impossible") : tr("not found");
        return (isExact(alternative) ? QString() : QStringLiteral("≤ ")) +
               (m_unit == "s" ? formatDelta(alternative.deltaTime)
                              : formatCost(alternative.deltaTime, m_unit));
    case DeltaMemory:
        if (!alternative.legal || !std::isfinite(alternative.time)) return {};
        return formatBytesDelta(alternative.deltaMemory);
    case Time:
        if (!alternative.legal || !std::isfinite(alternative.time)) return {};
        return formatCost(alternative.time, m_unit);
    case Note:
        if (!alternative.legal) return text(alternative.reason);
        if (!m_pinned.isEmpty() && m_pinned == text(alternative.text)) return tr("pinned");
        if (alternative.current) return tr("chosen");
        return text(alternative.reason);
    default:
        return {};
    }
}

QVariant AlternativesModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const Alternative& alternative = at(index.row());
    switch (role) {
    case Qt::DisplayRole:
        return display(alternative, index.column());
    case Qt::ToolTipRole:
        if (!alternative.legal) return text(alternative.reason);
        if (isExact(alternative))
            return tr("Times are modelled, with everything else re-optimised.");
        return tr("Times are modelled, with everything else re-optimised as far as a short search "
                  "goes: a step takes at least %1.")
            .arg(formatCost(alternative.leastTime, m_unit));
    case Qt::TextAlignmentRole:
        return index.column() == Choice || index.column() == Note
                   ? QVariant(Qt::AlignLeft | Qt::AlignVCenter)
                   : QVariant(Qt::AlignRight | Qt::AlignVCenter);
    case Qt::FontRole: {
        QFont font;
        font.setBold(alternative.current);
        return font;
    }
    case Qt::ForegroundRole:
        if (!alternative.legal) return m_palette->muted;
        if (index.column() == DeltaTime && alternative.deltaTime > 1e-12) return m_palette->bad;
        if (index.column() == DeltaTime && alternative.deltaTime < -1e-12) return m_palette->good;
        return {};
    case ChoiceTextRole:
        return text(alternative.text);
    case LegalRole:
        return alternative.legal;
    default:
        return {};
    }
}

QVariant AlternativesModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal) return {};
    if (role == Qt::TextAlignmentRole)
        return section == Choice || section == Note ? QVariant(Qt::AlignLeft | Qt::AlignVCenter)
                                                    : QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role != Qt::DisplayRole) return {};
    switch (section) {
    case Choice:
        return tr("Choice");
    case DeltaTime:
        return tr("Δ time");
    case DeltaMemory:
        return tr("Δ memory");
    case Time:
        return tr("Step");
    case Note:
        return tr("Note");
    default:
        return {};
    }
}

Qt::ItemFlags AlternativesModel::flags(const QModelIndex& index) const {
    if (!index.isValid()) return Qt::NoItemFlags;
    return Qt::ItemIsSelectable | Qt::ItemIsEnabled | Qt::ItemNeverHasChildren;
}

} // namespace shardlens
