// SPDX-License-Identifier: Apache-2.0
// Two small tables: the pins of the request, and the issues of the model and the plan.
#pragma once

#include "core/plan/request.h"
#include "ui/theme.h"

#include <QAbstractTableModel>

namespace shardlens {

class PinsModel : public QAbstractTableModel {
    Q_OBJECT

public:
    enum Column { Target, Choice, State, ColumnCount };

    explicit PinsModel(QObject* parent = nullptr);
    /// @param clashes by pin
    void setPins(std::vector<Pin> pins, std::vector<bool> clashes);
    void setPalette(const Palette& palette) { m_palette = &palette; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    std::vector<Pin> m_pins;
    std::vector<bool> m_clashes;
    const Palette* m_palette;
};

struct Issue {
    enum class Severity { Information, Warning, Error };
    Severity severity = Severity::Warning;
    QString text;
    QString op; ///< name of the op at fault, empty if none
    friend bool operator==(const Issue&, const Issue&) = default;
};

class IssuesModel : public QAbstractTableModel {
    Q_OBJECT

public:
    enum Column { Text, Op, ColumnCount };

    explicit IssuesModel(QObject* parent = nullptr);
    /// Equal issues are shown once, with a count.
    void setIssues(const std::vector<Issue>& issues);
    const Issue& at(int row) const { return m_rows.at(static_cast<std::size_t>(row)).issue; }
    void setPalette(const Palette& palette) { m_palette = &palette; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    struct Row {
        Issue issue;
        int count = 1;
    };
    std::vector<Row> m_rows;
    const Palette* m_palette;
};

} // namespace shardlens
