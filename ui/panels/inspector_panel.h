// SPDX-License-Identifier: Apache-2.0
// The selected op: what it is, how it is sharded, what it costs, and all its choices with their
// price; or the selected block. Pinning starts here.
#pragma once

#include "ui/document.h"
#include "ui/models/alternatives_model.h"

#include <QWidget>

class QComboBox;
class QLabel;
class QPushButton;
class QTableView;
class QTextBrowser;

namespace shardlens {

class InspectorPanel : public QWidget {
    Q_OBJECT

public:
    explicit InspectorPanel(Document& document, QWidget* parent = nullptr);
    AlternativesModel* model() { return m_model; }
    /// The plain text of the facts, for tests and screen readers.
    QString factsText() const;

public slots:
    void pinCurrent(); ///< pins the row of the table that is current

signals:
    void opRequested(OpId op); ///< a producer or consumer was clicked

protected:
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void refresh();
    void refreshAlternatives();
    void refreshButtons();
    QString opFacts(OpId op) const;
    QString stageText(OpId op) const; ///< what it does in its stage of the whole job
    QString runFacts(int run) const;
    QString row(const QString& name, const QString& html) const;
    QString tensorText(const TensorSpec& spec, const SideLayout& side, const Mesh& mesh) const;
    QString opLink(OpId op) const;
    QString collectivesText(OpId op) const;
    QString figuresText(OpId op) const;

    Document& m_document;
    QLabel* m_title;
    QTextBrowser* m_facts;
    AlternativesModel* m_model;
    QTableView* m_table;
    QLabel* m_tableNote;
    QComboBox* m_scope;
    QPushButton* m_pin;
    QPushButton* m_unpin;
};

} // namespace shardlens
