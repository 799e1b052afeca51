// SPDX-License-Identifier: Apache-2.0
// A sweep as a list of points for screen readers and tests. Interfaces are made when asked for, so
// that ten thousand points cost nothing until they are read.
#include "ui/views/accessible_leaf.h"
#include "ui/views/sweep_chart.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <QPointer>

#include <algorithm>
#include <map>

namespace shardlens {

namespace {

class SweepAccessible;

class PointAccessible : public AccessibleLeaf {
public:
    PointAccessible(SweepAccessible* owner, int row) : m_owner(owner), m_row(row) {}

    bool isValid() const override;
    QAccessibleInterface* parent() const override;
    QString text(QAccessible::Text kind) const override;
    QRect rect() const override;
    QAccessible::Role role() const override { return QAccessible::ListItem; }
    QAccessible::State state() const override;
    int row() const { return m_row; }

private:
    SweepAccessible* m_owner;
    int m_row;
};

class SweepAccessible : public QAccessibleWidget {
public:
    explicit SweepAccessible(SweepChart* chart)
        : QAccessibleWidget(chart, QAccessible::List), m_chart(chart) {}
    ~SweepAccessible() override {
        for (const auto& [row, id] : m_points) QAccessible::deleteAccessibleInterface(id);
    }

    const SweepChart* chart() const { return m_chart; }
    bool has(int row) const {
        return m_chart && m_chart->sweep() && std::ranges::binary_search(m_chart->shown(), row);
    }
    QString text(QAccessible::Text kind) const override {
        if (kind == QAccessible::Name && m_chart) return m_chart->accessibleName();
        return QAccessibleWidget::text(kind);
    }
    int childCount() const override {
        return m_chart ? static_cast<int>(m_chart->shown().size()) : 0;
    }
    QAccessibleInterface* child(int index) const override {
        if (index < 0 || index >= childCount()) return nullptr;
        return point(m_chart->shown()[static_cast<std::size_t>(index)]);
    }
    int indexOfChild(const QAccessibleInterface* child) const override {
        const auto* known = dynamic_cast<const PointAccessible*>(child);
        if (!known || !has(known->row())) return -1;
        const auto at = std::ranges::lower_bound(m_chart->shown(), known->row());
        return static_cast<int>(at - m_chart->shown().begin());
    }
    QAccessibleInterface* childAt(int x, int y) const override {
        if (!m_chart) return nullptr;
        const int row = m_chart->rowAt(QPointF(m_chart->mapFromGlobal(QPoint(x, y))));
        return row < 0 ? nullptr : point(row);
    }
    QAccessibleInterface* focusChild() const override {
        const bool focused = m_chart && m_chart->hasFocus() && m_chart->selected() >= 0;
        return focused ? point(m_chart->selected()) : nullptr;
    }

private:
    QAccessibleInterface* point(int row) const {
        const auto known = m_points.find(row);
        if (known != m_points.end()) return QAccessible::accessibleInterface(known->second);
        auto* made = new PointAccessible(const_cast<SweepAccessible*>(this), row);
        m_points[row] = QAccessible::registerAccessibleInterface(made);
        return made;
    }

    QPointer<SweepChart> m_chart;
    mutable std::map<int, QAccessible::Id> m_points;
};

bool PointAccessible::isValid() const {
    return m_owner->has(m_row);
}

QAccessibleInterface* PointAccessible::parent() const {
    return m_owner;
}

QString PointAccessible::text(QAccessible::Text kind) const {
    if (!isValid() || kind != QAccessible::Name) return {};
    return m_owner->chart()->sweep()->describe(m_row);
}

QRect PointAccessible::rect() const {
    if (!isValid()) return {};
    const SweepChart* chart = m_owner->chart();
    const QRect where = chart->rectOf(m_row).toAlignedRect();
    return QRect(chart->mapToGlobal(where.topLeft()), where.size());
}

QAccessible::State PointAccessible::state() const {
    QAccessible::State state;
    state.invalid = !isValid();
    if (state.invalid) return state;
    state.selectable = state.focusable = true;
    state.selected = m_owner->chart()->selected() == m_row;
    return state;
}

QAccessibleInterface* makeSweepAccessible(const QString&, QObject* object) {
    auto* chart = qobject_cast<SweepChart*>(object);
    return chart ? new SweepAccessible(chart) : nullptr;
}

} // namespace

void installSweepAccessibility() {
    QAccessible::installFactory(makeSweepAccessible);
}

} // namespace shardlens
