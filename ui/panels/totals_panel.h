// SPDX-License-Identifier: Apache-2.0
// The plan in total: step time with its certificate, split into compute and communication, and the
// memory of a device against its limit; above it the whole job, where one is planned. Says which
// model the numbers come from, and when they are stale.
#pragma once

#include "ui/document.h"

#include <QFrame>

class QLabel;

namespace shardlens {

/// A bar of named parts, drawn against a limit if there is one.
class StackedBar : public QWidget {
    Q_OBJECT

public:
    struct Part {
        QString name, value;
        double amount = 0;
        int colour = 0; ///< index of Palette::category
    };

    explicit StackedBar(QWidget* parent = nullptr);
    /// @param limit in the parts' unit; 0 for none, then the bar is as long as the parts together
    void setParts(std::vector<Part> parts, double limit = 0, const QString& limitText = {});
    QSize sizeHint() const override;
    int heightForWidth(int width) const override;

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    bool event(QEvent* event) override;

private:
    struct Key { // of the legend under the bar
        QRectF swatch;
        QRectF text;
        std::size_t part;
    };
    std::vector<Key> keys(int width) const;

    std::vector<Part> m_parts;
    double m_limit = 0;
    QString m_limitText;
};

class TotalsPanel : public QWidget {
    Q_OBJECT

public:
    explicit TotalsPanel(Document& document, QWidget* parent = nullptr);
    QString badgeText() const;

protected:
    void changeEvent(QEvent* event) override;

private:
    void refresh();
    void refreshJob();
    void setBadge(const QString& text, const QColor& colour);

    Document& m_document;
    QLabel* m_time;
    QLabel* m_badge;
    QLabel* m_state;
    QLabel* m_certificate;
    StackedBar* m_timeBar;
    QLabel* m_memory;
    StackedBar* m_memoryBar;
    QLabel* m_source;
    QLabel* m_job; ///< the plan of the whole job
};

} // namespace shardlens
