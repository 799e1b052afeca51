// SPDX-License-Identifier: Apache-2.0
// The panels that are lists: pins and issues.
#pragma once

#include "ui/document.h"
#include "ui/models/list_models.h"

#include <QWidget>

class QPushButton;
class QTableView;

namespace shardlens {

class PinsPanel : public QWidget {
    Q_OBJECT

public:
    explicit PinsPanel(Document& document, QWidget* parent = nullptr);
    PinsModel* model() { return m_model; }

signals:
    void opRequested(OpId op);

protected:
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void refresh();
    void removeCurrent();

    Document& m_document;
    PinsModel* m_model;
    QTableView* m_table;
    QPushButton* m_remove;
};

class IssuesPanel : public QWidget {
    Q_OBJECT

public:
    explicit IssuesPanel(Document& document, QWidget* parent = nullptr);
    IssuesModel* model() { return m_model; }

signals:
    void opRequested(OpId op);
    void countChanged(int count);

protected:
    void changeEvent(QEvent* event) override;

private:
    void refresh();

    Document& m_document;
    IssuesModel* m_model;
    QTableView* m_table;
};

} // namespace shardlens
