// SPDX-License-Identifier: Apache-2.0
// The notation, always in sight under the graph: axis colours, partial sums, collectives, families
// of ops, and the scale of the colours.
#pragma once

#include "ui/views/graph_painter.h"

#include <QWidget>

namespace shardlens {

class Legend : public QWidget {
    Q_OBJECT

public:
    explicit Legend(QWidget* parent = nullptr);
    void setOverlay(std::shared_ptr<const GraphOverlay> overlay);
    void setColourMode(ColourMode mode);
    QSize sizeHint() const override;
    /// The entries as text, for screen readers and tests.
    QString plainText() const;

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    struct Entry {
        enum class Sign {
            Axis,
            Partial,
            Collective,
            Backward,
            Step,
            Parameter,
            Boundary,
            Pin,
            Family,
            Scale
        };
        Sign sign;
        int index; ///< axis or family
        QString label;
    };
    std::vector<Entry> entries() const;
    std::vector<QRectF> place(const std::vector<Entry>& list) const;
    double signWidth(const Entry& entry) const;
    void drawSign(QPainter& painter, const Entry& entry, const QRectF& where) const;
    void fitHeight();
    QString most() const; ///< value at the end of the scale

    std::shared_ptr<const GraphOverlay> m_overlay;
    ColourMode m_mode = ColourMode::None;
};

} // namespace shardlens
