// SPDX-License-Identifier: Apache-2.0
// The whole job as pipeline stages: whether, who plans, from which schedules, what is pinned; and
// the stages that come of it as a table. A changed field is one undo step.
#pragma once

#include "ui/document.h"
#include "ui/models/stages_model.h"

#include <QWidget>

class QCheckBox;
class QComboBox;
class QFormLayout;
class QLabel;
class QPushButton;
class QSpinBox;
class QTableView;

namespace shardlens {

class PipelinePanel : public QWidget {
    Q_OBJECT

public:
    explicit PipelinePanel(Document& document, QWidget* parent = nullptr);
    StagesModel* model() { return m_model; }

protected:
    void changeEvent(QEvent* event) override;

private:
    QSpinBox* addPin(QFormLayout* form, const QString& object, const QString& label,
                     const QString& tip);
    QComboBox* addChoice(QFormLayout* form, const QString& object, const QString& label,
                         const QStringList& words, const QString& tip);
    QWidget* makeSchedules();
    void refresh();
    void refreshState();
    QString cutText(int cut) const; ///< a pinned boundary, as the plan names it
    void apply();
    PipelineSetup edited() const;
    QString stepLabel(const PipelineSetup& setup) const;
    void showSelection();

    Document& m_document;
    QCheckBox* m_on;
    QWidget* m_fields;
    std::vector<QCheckBox*> m_schedules;
    QComboBox *m_planner = nullptr, *m_zero = nullptr, *m_recompute = nullptr,
              *m_transfers = nullptr, *m_insideAxes = nullptr;
    QSpinBox *m_stages = nullptr, *m_microBatches = nullptr, *m_tensor = nullptr, *m_data = nullptr;
    QLabel *m_cuts, *m_state;
    QPushButton* m_free;
    StagesModel* m_model;
    QTableView* m_table;
    bool m_refreshing = false;
};

} // namespace shardlens
