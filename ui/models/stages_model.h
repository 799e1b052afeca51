// SPDX-License-Identifier: Apache-2.0
// The stages of a whole job as a table: what each begins with (in interleaved plans the layers of
// each chunk), its devices, time and memory.
#pragma once

#include "core/plan/pipeline_service.h"

#include <QAbstractTableModel>

namespace shardlens {

class StagesModel : public QAbstractTableModel {
    Q_OBJECT

public:
    enum Column { Begins, Devices, Time, Memory, ColumnCount };

    explicit StagesModel(QObject* parent = nullptr);
    void setPlan(std::shared_ptr<const PipelinePlan> plan);

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    bool hasChunks() const; ///< of layers that are not contiguous
    QString tip(int stage) const;

    std::shared_ptr<const PipelinePlan> m_plan;
};

} // namespace shardlens
