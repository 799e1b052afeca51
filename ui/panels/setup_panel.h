// SPDX-License-Identifier: Apache-2.0
// What is asked: cluster, nodes, mesh, workload, memory limit, cost model. A field that is left
// with another value is one undo step; what cannot be is said under the field and not applied.
#pragma once

#include "ui/document.h"

#include <QWidget>

class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QLineEdit;
class QSpinBox;

namespace shardlens {

class SetupPanel : public QWidget {
    Q_OBJECT

public:
    explicit SetupPanel(Document& document, QWidget* parent = nullptr);

protected:
    void changeEvent(QEvent* event) override;

private:
    void refresh();
    void apply();
    void say(const QString& problem);
    PlanRequest edited() const; ///< @throws PlanError
    QString stepLabel(const PlanRequest& request) const;

    Document& m_document;
    QComboBox* m_cluster;
    QSpinBox* m_nodes;
    QLineEdit* m_mesh;
    QComboBox* m_mode;
    QSpinBox* m_batch;
    QSpinBox* m_sequence;
    QLineEdit* m_bindings;
    QDoubleSpinBox* m_memory;
    QComboBox* m_cost;
    QLabel* m_problem;
    bool m_refreshing = false;
};

} // namespace shardlens
