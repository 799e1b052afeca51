// SPDX-License-Identifier: Apache-2.0
// The course of a solve: the best answer falling and the bound rising over time, until they meet.
// The range follows the gap, so that it stays visible however small; what lies above is cut off.
#pragma once

#include "core/solve/solver.h"
#include "ui/theme.h"

#include <QString>
#include <QWidget>

#include <functional>
#include <vector>

namespace shardlens {

class SolverChart : public QWidget {
    Q_OBJECT

public:
    explicit SolverChart(QWidget* parent = nullptr);
    /// @param points  ascending in time; infinite incumbents and bounds are not drawn
    /// @param format  of costs
    void setPoints(std::vector<solve::Progress> points, std::function<QString(double)> format);
    QSize sizeHint() const override { return {320, 190}; }
    QSize minimumSizeHint() const override { return {180, 120}; }

    struct Range {
        double low = 0, high = 1;
    };
    static QColor ink(const Palette& palette, bool bound);
    /// Of costs shown: the gap in the middle part of it.
    Range range() const;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QRectF plot() const;
    void paintAxes(QPainter& painter, const QRectF& plot, const Range& range) const;
    void paintLine(QPainter& painter, const QRectF& plot, const Range& range, bool bound) const;

    std::vector<solve::Progress> m_points;
    std::function<QString(double)> m_format;
};

} // namespace shardlens
