// SPDX-License-Identifier: Apache-2.0
// The right end of the status bar: what runs, since when, how far (incumbent, bound, gap), and a
// button that stops it.
#pragma once

#include "ui/document.h"

#include <QElapsedTimer>
#include <QTimer>
#include <QWidget>

class QLabel;
class QProgressBar;
class QToolButton;

namespace shardlens {

class JobBar : public QWidget {
    Q_OBJECT

public:
    explicit JobBar(Document& document, QWidget* parent = nullptr);
    void setLayoutBusy(bool busy);
    QString text() const;

private:
    void refresh();

    Document& m_document;
    bool m_layoutBusy = false, m_wasBusy = false;
    QElapsedTimer m_since;
    QTimer m_tick;
    QLabel* m_label;
    QProgressBar* m_bar;
    QToolButton* m_cancel;
};

} // namespace shardlens
