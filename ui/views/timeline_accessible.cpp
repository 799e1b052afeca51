// SPDX-License-Identifier: Apache-2.0
// A timeline as a tree for screen readers and tests: a row for each device or link, in it its bars.
// Interfaces are made when asked for, so that a million bars cost nothing until they are read.
#include "ui/views/accessible_leaf.h"
#include "ui/views/timeline_view.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <QPointer>

#include <map>

namespace shardlens {

namespace {

using namespace schedule;

class TimelineAccessible;

/// A row, or with a position a bar of it. Both belong to the view's own interface.
class PartAccessible : public AccessibleLeaf {
public:
    PartAccessible(TimelineAccessible* owner, int row, int bar)
        : m_owner(owner), m_row(row), m_bar(bar) {}

    bool isValid() const override;
    QAccessibleInterface* parent() const override;
    QAccessibleInterface* child(int index) const override;
    int childCount() const override;
    int indexOfChild(const QAccessibleInterface* child) const override;
    QString text(QAccessible::Text kind) const override;
    QRect rect() const override;
    QAccessible::Role role() const override {
        return m_bar < 0 ? QAccessible::Row : QAccessible::ListItem;
    }
    QAccessible::State state() const override;
    int bar() const { return m_bar; }
    int row() const { return m_row; }

private:
    TaskId task() const;

    TimelineAccessible* m_owner;
    int m_row, m_bar;
};

class TimelineAccessible : public QAccessibleWidget {
public:
    explicit TimelineAccessible(TimelineView* view)
        : QAccessibleWidget(view, QAccessible::Table, view->accessibleName()), m_view(view) {}
    ~TimelineAccessible() override {
        for (const auto& [key, id] : m_parts) QAccessible::deleteAccessibleInterface(id);
    }

    const TimelineView* view() const { return m_view; }
    const TimelinePicture* picture() const { return m_view ? m_view->picture().get() : nullptr; }
    int childCount() const override {
        return picture() ? static_cast<int>(picture()->rows().size()) : 0;
    }
    QAccessibleInterface* child(int index) const override {
        return index >= 0 && index < childCount() ? part(index, -1) : nullptr;
    }
    int indexOfChild(const QAccessibleInterface* child) const override {
        const auto* known = dynamic_cast<const PartAccessible*>(child);
        return known ? known->row() : -1;
    }
    QAccessibleInterface* childAt(int x, int y) const override {
        if (!picture()) return nullptr;
        const QPointF point = m_view->mapFromGlobal(QPoint(x, y));
        return child(m_view->geometryNow().rowAt(point.y()));
    }
    QAccessibleInterface* part(int row, int bar) const {
        const auto found = m_parts.find({row, bar});
        if (found != m_parts.end()) return QAccessible::accessibleInterface(found->second);
        auto* made = new PartAccessible(const_cast<TimelineAccessible*>(this), row, bar);
        m_parts[{row, bar}] = QAccessible::registerAccessibleInterface(made);
        return made;
    }
    int bars(int row) const {
        const TimelineRow& its = picture()->rows()[static_cast<std::size_t>(row)];
        std::size_t count = 0;
        for (std::uint32_t l = 0; l < its.lanes; ++l) {
            count += picture()->lanes()[its.firstLane + l].order.size();
        }
        return static_cast<int>(count);
    }
    TaskId task(int row, int bar) const {
        const TimelineRow& its = picture()->rows()[static_cast<std::size_t>(row)];
        auto at = static_cast<std::size_t>(bar);
        for (std::uint32_t l = 0; l < its.lanes; ++l) {
            const auto& order = picture()->lanes()[its.firstLane + l].order;
            if (at < order.size()) return order[at];
            at -= order.size();
        }
        return kNoTask;
    }

private:
    QPointer<TimelineView> m_view;
    mutable std::map<std::pair<int, int>, QAccessible::Id> m_parts;
};

bool PartAccessible::isValid() const {
    return m_owner->picture() && m_row < m_owner->childCount() &&
           (m_bar < 0 || m_bar < m_owner->bars(m_row));
}
TaskId PartAccessible::task() const {
    return m_bar < 0 ? kNoTask : m_owner->task(m_row, m_bar);
}
QAccessibleInterface* PartAccessible::parent() const {
    return m_bar < 0 ? m_owner : m_owner->part(m_row, -1);
}
QAccessibleInterface* PartAccessible::child(int index) const {
    return index >= 0 && index < childCount() ? m_owner->part(m_row, index) : nullptr;
}
int PartAccessible::childCount() const {
    return m_bar < 0 && isValid() ? m_owner->bars(m_row) : 0;
}
int PartAccessible::indexOfChild(const QAccessibleInterface* child) const {
    const auto* known = dynamic_cast<const PartAccessible*>(child);
    return known && known->row() == m_row ? known->bar() : -1;
}
QString PartAccessible::text(QAccessible::Text kind) const {
    if (!isValid() || kind != QAccessible::Name) return {};
    return m_bar < 0 ? m_owner->view()->describeRow(static_cast<std::size_t>(m_row))
                     : m_owner->view()->describe(task());
}
QRect PartAccessible::rect() const {
    if (!isValid()) return {};
    const TimelineView* view = m_owner->view();
    const QRectF where =
        m_bar < 0 ? view->rowRect(static_cast<std::size_t>(m_row)) : view->taskRect(task());
    const QRect shown = where.intersected(QRectF(view->rect())).toAlignedRect();
    return QRect(view->mapToGlobal(shown.topLeft()), shown.size());
}
QAccessible::State PartAccessible::state() const {
    QAccessible::State state;
    state.invalid = !isValid();
    if (state.invalid) return state;
    state.selectable = state.focusable = true;
    state.selected = m_bar >= 0 && m_owner->view()->selected() == task();
    return state;
}

QAccessibleInterface* makeTimelineAccessible(const QString&, QObject* object) {
    auto* view = qobject_cast<TimelineView*>(object);
    return view ? new TimelineAccessible(view) : nullptr;
}

} // namespace

void installTimelineAccessibility() {
    QAccessible::installFactory(makeTimelineAccessible);
}

} // namespace shardlens
