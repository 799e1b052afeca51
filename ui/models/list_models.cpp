// SPDX-License-Identifier: Apache-2.0
// See list_models.h.
#include "ui/models/list_models.h"

#include "ui/format.h"

#include <QGuiApplication>

#include <algorithm>

namespace shardlens {

PinsModel::PinsModel(QObject* parent)
    : QAbstractTableModel(parent), m_palette(&Palette::of(QGuiApplication::palette())) {
}

void PinsModel::setPins(std::vector<Pin> pins, std::vector<bool> clashes) {
    beginResetModel();
    m_pins = std::move(pins);
    m_clashes = std::move(clashes);
    m_clashes.resize(m_pins.size(), false);
    endResetModel();
}

int PinsModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_pins.size());
}

int PinsModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant PinsModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const auto row = static_cast<std::size_t>(index.row());
    const Pin& pin = m_pins[row];
    if (role == Qt::ForegroundRole && m_clashes[row]) return m_palette->bad;
    if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
    switch (index.column()) {
    case Target:
        return pin.target.starts_with("class:") ? tr("all like %1").arg(text(pin.target.substr(6)))
                                                : text(pin.target);
    case Choice:
        return text(pin.choice);
    case State:
        return m_clashes[row] ? tr("⚠ clashes") : tr("holds");
    default:
        return {};
    }
}

QVariant PinsModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
    switch (section) {
    case Target:
        return tr("Op");
    case Choice:
        return tr("Pinned to");
    case State:
        return tr("State");
    default:
        return {};
    }
}

IssuesModel::IssuesModel(QObject* parent)
    : QAbstractTableModel(parent), m_palette(&Palette::of(QGuiApplication::palette())) {
}

void IssuesModel::setIssues(const std::vector<Issue>& issues) {
    beginResetModel();
    m_rows.clear();
    for (const Issue& issue : issues) {
        const auto same = std::find_if(m_rows.begin(), m_rows.end(),
                                       [&](const Row& row) { return row.issue == issue; });
        if (same == m_rows.end())
            m_rows.push_back({issue, 1});
        else
            ++same->count;
    }
    endResetModel();
}

int IssuesModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int IssuesModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant IssuesModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const Row& row = m_rows[static_cast<std::size_t>(index.row())];
    if (role == Qt::ForegroundRole && index.column() == Text) {
        if (row.issue.severity == Issue::Severity::Error) return m_palette->bad;
        if (row.issue.severity == Issue::Severity::Warning) return m_palette->warning;
        return {};
    }
    if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
    if (index.column() == Op) return row.issue.op;
    const QString mark = row.issue.severity == Issue::Severity::Error     ? QStringLiteral("✖ ")
                         : row.issue.severity == Issue::Severity::Warning ? QStringLiteral("⚠ ")
                                                                          : QStringLiteral("ℹ ");
    return row.count > 1 ? tr("%1%2 (%3 times)").arg(mark, row.issue.text).arg(row.count)
                         : mark + row.issue.text;
}

QVariant IssuesModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
    return section == Text ? tr("Issue") : tr("Op");
}

} // namespace shardlens
