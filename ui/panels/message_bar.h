// SPDX-License-Identifier: Apache-2.0
// Messages above the graph: never modal, newest first shown, closed by a button or replaced.
#pragma once

#include "ui/document.h"

#include <QFrame>

class QLabel;
class QToolButton;

namespace shardlens {

class MessageBar : public QFrame {
    Q_OBJECT

public:
    explicit MessageBar(QWidget* parent = nullptr);
    void showMessage(MessageKind kind, const QString& text);
    QString text() const;
    MessageKind kind() const { return m_kind; }

protected:
    void changeEvent(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    MessageKind m_kind = MessageKind::Information;
    QLabel* m_icon;
    QLabel* m_label;
    QToolButton* m_close;
};

} // namespace shardlens
