// SPDX-License-Identifier: Apache-2.0
// The points of a sweep, to look at, walk through and choose from. One plain widget: everything but
// the marks of the mouse and the selection is kept as an image, so that ten thousand points cost
// nothing until they change.
#pragma once

#include "ui/views/sweep_painter.h"

#include <QWidget>

namespace shardlens {

class SweepChart : public QWidget {
    Q_OBJECT

public:
    explicit SweepChart(QWidget* parent = nullptr);

    /// @param shown rows of the sweep, in any order
    void setSweep(std::shared_ptr<const SweepData> sweep, std::vector<int> shown);
    void setShown(std::vector<int> shown);
    void setMeasure(SweepMeasure measure);
    SweepMeasure measure() const { return m_measure; }
    /// Shown in the middle while there are no points.
    void setPlaceholder(const QString& text);
    const QString& placeholder() const { return m_placeholder; }
    const std::shared_ptr<const SweepData>& sweep() const { return m_data; }
    const std::vector<int>& shown() const { return m_shown; }

    int selected() const { return m_state.selected; } ///< row of the sweep, -1: none
    void select(int row);

    // Widget coordinates; for tests, accessibility and tips.
    const SweepGeometry& geometryNow() const;
    QRectF rectOf(int row) const;
    int rowAt(QPointF point) const; ///< -1: nothing near

    QSize sizeHint() const override { return {480, 300}; }
    QSize minimumSizeHint() const override { return {220, 140}; }

signals:
    void selectionChanged(int row);
    void openRequested(int row);

protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    void forget(); ///< geometry and image
    void drawAll(const SweepGeometry& geometry);
    void updateMarks(int row);
    bool isShown(int row) const;
    void hover(int row);
    void walk(SweepMeasure along, int direction, bool frontOnly);
    void walkCells(int across, int down);
    int first() const;
    void describe();

    std::shared_ptr<const SweepData> m_data;
    std::vector<int> m_shown; ///< ascending
    SweepMeasure m_measure = SweepMeasure::Time;
    SweepPaintState m_state;
    QString m_placeholder;
    mutable std::optional<SweepGeometry> m_geometry;
    QImage m_image;
    bool m_drawn = false; ///< the image shows what is shown
};

/// Makes points of sweeps known to assistive technology. Call once at start.
void installSweepAccessibility();

} // namespace shardlens
