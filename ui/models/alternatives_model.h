// SPDX-License-Identifier: Apache-2.0
// All choices of one op as a table: what each costs with the rest re-optimised, the current one
// marked, illegal ones greyed with the reason.
#pragma once

#include "core/plan/planner.h"
#include "ui/theme.h"

#include <QAbstractTableModel>

namespace shardlens {

class AlternativesModel : public QAbstractTableModel {
    Q_OBJECT

public:
    enum Column { Choice, DeltaTime, DeltaMemory, Time, Note, ColumnCount };
    enum Role { ChoiceTextRole = Qt::UserRole, LegalRole };

    explicit AlternativesModel(QObject* parent = nullptr);

    /// @param unit of the times, as the cost model names it
    void setAlternatives(std::vector<Alternative> list, std::string unit, const QString& pinned);
    void clear();
    const Alternative& at(int row) const { return m_list.at(static_cast<std::size_t>(row)); }
    void setPalette(const Palette& palette);

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    Qt::ItemFlags flags(const QModelIndex& index) const override;

private:
    QString display(const Alternative& alternative, int column) const;

    std::vector<Alternative> m_list;
    std::string m_unit = "s";
    QString m_pinned; ///< the choice that is pinned, empty if none
    const Palette* m_palette;
};

} // namespace shardlens
