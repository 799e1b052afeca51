// SPDX-License-Identifier: Apache-2.0
// The painted items of a graph view as a tree of named objects, for screen readers and for tests
// that read what is on the screen. Interfaces are made when asked for and belong to the view's own.
#include "ui/views/graph_view.h"

#include <QAccessible>
#include <QAccessibleWidget>

#include <map>

namespace shardlens {

namespace {

class ItemAccessible : public QAccessibleInterface {
public:
    ItemAccessible(GraphView* view, int item) : m_view(view), m_item(item) {}

    bool isValid() const override { return m_view && m_item < m_view->itemCount(); }
    QObject* object() const override { return nullptr; }
    QAccessibleInterface* childAt(int, int) const override { return nullptr; }
    QAccessibleInterface* parent() const override {
        return QAccessible::queryAccessibleInterface(m_view);
    }
    QAccessibleInterface* child(int) const override { return nullptr; }
    int childCount() const override { return 0; }
    int indexOfChild(const QAccessibleInterface*) const override { return -1; }
    QString text(QAccessible::Text kind) const override {
        return isValid() && kind == QAccessible::Name ? m_view->describe(m_item) : QString();
    }
    void setText(QAccessible::Text, const QString&) override {}
    QRect rect() const override {
        if (!isValid()) return {};
        const QRect where = m_view->itemRect(m_item).toAlignedRect();
        return QRect(m_view->mapToGlobal(where.topLeft()), where.size());
    }
    QAccessible::Role role() const override { return QAccessible::TreeItem; }
    QAccessible::State state() const override {
        QAccessible::State state;
        state.selectable = state.focusable = true;
        state.selected = state.focused = isValid() && m_view->selectedItem() == m_item;
        state.invalid = !isValid();
        return state;
    }

private:
    QPointer<GraphView> m_view;
    int m_item;
};

class GraphAccessible : public QAccessibleWidget {
public:
    explicit GraphAccessible(GraphView* view)
        : QAccessibleWidget(view, QAccessible::Tree, view->accessibleName()), m_view(view) {}
    ~GraphAccessible() override {
        for (const auto& [item, id] : m_children) QAccessible::deleteAccessibleInterface(id);
    }

    int childCount() const override { return m_view ? m_view->itemCount() : 0; }
    QAccessibleInterface* child(int index) const override {
        if (index < 0 || index >= childCount()) return nullptr;
        const auto found = m_children.find(index);
        if (found != m_children.end()) return QAccessible::accessibleInterface(found->second);
        auto* made = new ItemAccessible(m_view, index);
        m_children[index] = QAccessible::registerAccessibleInterface(made);
        return made;
    }
    int indexOfChild(const QAccessibleInterface* child) const override {
        for (const auto& [item, id] : m_children)
            if (QAccessible::accessibleInterface(id) == child) return item;
        return -1;
    }
    QAccessibleInterface* childAt(int x, int y) const override {
        return m_view ? child(m_view->itemAt(QPointF(m_view->mapFromGlobal(QPoint(x, y)))))
                      : nullptr;
    }
    QAccessibleInterface* focusChild() const override {
        return m_view ? child(m_view->selectedItem()) : nullptr;
    }

private:
    QPointer<GraphView> m_view;
    mutable std::map<int, QAccessible::Id> m_children;
};

QAccessibleInterface* makeGraphAccessible(const QString&, QObject* object) {
    auto* view = qobject_cast<GraphView*>(object);
    return view ? new GraphAccessible(view) : nullptr;
}

} // namespace

void installGraphAccessibility() {
    QAccessible::installFactory(makeGraphAccessible);
}

} // namespace shardlens
