// SPDX-License-Identifier: Apache-2.0
// The painted items of a graph view as a tree of named objects, for screen readers and for tests
// that read what is on the screen; behind them the boundaries of stages, as sliders along the units
// of the model. Interfaces are made when asked for and belong to the view's own.
#include "ui/format.h"
#include "ui/views/accessible_leaf.h"
#include "ui/views/graph_view.h"

#include <QAccessible>
#include <QAccessibleWidget>

#include <algorithm>
#include <map>

namespace shardlens {

namespace {

class GraphPart : public AccessibleLeaf {
public:
    explicit GraphPart(GraphView* view) : m_view(view) {}

    QAccessibleInterface* parent() const override {
        return QAccessible::queryAccessibleInterface(m_view);
    }
    QRect rect() const override {
        if (!isValid()) return {};
        const QRect where = place().toAlignedRect();
        return QRect(m_view->mapToGlobal(where.topLeft()), where.size());
    }

protected:
    virtual QRectF place() const = 0; ///< in the view, while valid

    QPointer<GraphView> m_view;
};

class ItemAccessible : public GraphPart {
public:
    ItemAccessible(GraphView* view, int item) : GraphPart(view), m_item(item) {}

    bool isValid() const override { return m_view && m_item < m_view->itemCount(); }
    QString text(QAccessible::Text kind) const override {
        return isValid() && kind == QAccessible::Name ? m_view->describe(m_item) : QString();
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
    QRectF place() const override { return m_view->itemRect(m_item); }

    int m_item;
};

/// The nth boundary along the flow: it stays the same object when it is moved.
class BoundaryAccessible : public GraphPart,
                           public QAccessibleValueInterface,
                           public QAccessibleActionInterface {
public:
    BoundaryAccessible(GraphView* view, int number)
        : GraphPart(view), m_number(static_cast<std::size_t>(number)) {}

    bool isValid() const override { return m_view && m_number < m_view->boundaries().size(); }
    QString text(QAccessible::Text kind) const override {
        if (!isValid()) return {};
        const QString begins = shardlens::text(plan().nameOf(unit()));
        switch (kind) {
        case QAccessible::Name:
            return GraphView::tr("boundary before %1").arg(begins);
        case QAccessible::Value:
            return begins;
        case QAccessible::Description:
            return m_view->describeBoundary(unit());
        default:
            return {};
        }
    }
    QAccessible::Role role() const override { return QAccessible::Slider; }
    QAccessible::State state() const override {
        QAccessible::State state;
        state.invalid = !isValid();
        if (state.invalid) return state;
        state.selectable = state.focusable = state.movable = true;
        state.selected = m_view->selectedBoundary() == unit();
        state.focused = state.selected && m_view->hasFocus();
        state.busy = m_view->isMoving();
        state.invisible = m_view->handleRect(unit()).isNull();
        return state;
    }
    void* interface_cast(QAccessible::InterfaceType type) override {
        if (type == QAccessible::ValueInterface)
            return static_cast<QAccessibleValueInterface*>(this);
        if (type == QAccessible::ActionInterface)
            return static_cast<QAccessibleActionInterface*>(this);
        return nullptr;
    }

    QVariant currentValue() const override { return isValid() ? QVariant(unit()) : QVariant(); }
    void setCurrentValue(const QVariant& value) override {
        if (isValid()) m_view->moveBoundary(unit(), value.toInt());
    }
    QVariant minimumValue() const override { return 1; }
    QVariant maximumValue() const override {
        return isValid() ? QVariant(static_cast<int>(plan().units.units.size()) - 1) : QVariant();
    }
    QVariant minimumStepSize() const override { return 1; }

    QStringList actionNames() const override {
        return {setFocusAction(), increaseAction(), decreaseAction()};
    }
    void doAction(const QString& name) override {
        if (!isValid()) return;
        if (name == setFocusAction()) {
            m_view->setFocus();
            m_view->selectBoundary(unit());
        } else if (name == increaseAction()) {
            m_view->moveBoundary(unit(), unit() + 1);
        } else if (name == decreaseAction()) {
            m_view->moveBoundary(unit(), unit() - 1);
        }
    }
    QStringList keyBindingsForAction(const QString&) const override { return {}; }

private:
    QRectF place() const override { return m_view->handleRect(unit()); }
    int unit() const { return m_view->boundaries()[m_number]; }
    const PipelinePlan& plan() const { return *m_view->overlay()->stages.plan; }

    std::size_t m_number;
};

class GraphAccessible : public QAccessibleWidget {
public:
    explicit GraphAccessible(GraphView* view)
        : QAccessibleWidget(view, QAccessible::Tree, view->accessibleName()), m_view(view) {}
    ~GraphAccessible() override {
        for (const Children* children : {&m_items, &m_boundaries})
            for (const auto& [number, id] : *children) QAccessible::deleteAccessibleInterface(id);
    }

    int childCount() const override {
        return m_view ? m_view->itemCount() + static_cast<int>(m_view->boundaries().size()) : 0;
    }
    QAccessibleInterface* child(int index) const override {
        if (index < 0 || index >= childCount()) return nullptr;
        const int items = m_view->itemCount();
        return index < items ? known<ItemAccessible>(m_items, index)
                             : known<BoundaryAccessible>(m_boundaries, index - items);
    }
    int indexOfChild(const QAccessibleInterface* child) const override {
        for (const auto& [item, id] : m_items)
            if (QAccessible::accessibleInterface(id) == child) return item;
        for (const auto& [number, id] : m_boundaries)
            if (QAccessible::accessibleInterface(id) == child)
                return m_view ? m_view->itemCount() + number : -1;
        return -1;
    }
    QAccessibleInterface* childAt(int x, int y) const override {
        if (!m_view) return nullptr;
        const QPointF at(m_view->mapFromGlobal(QPoint(x, y)));
        const int boundary = m_view->boundaryAt(at);
        return boundary >= 0 ? childOf(boundary) : child(m_view->itemAt(at));
    }
    QAccessibleInterface* focusChild() const override {
        if (!m_view) return nullptr;
        const int boundary = m_view->selectedBoundary();
        return boundary >= 0 ? childOf(boundary) : child(m_view->selectedItem());
    }

private:
    using Children = std::map<int, QAccessible::Id>;

    template <typename Accessible>
    QAccessibleInterface* known(Children& children, int number) const {
        const auto found = children.find(number);
        if (found != children.end()) return QAccessible::accessibleInterface(found->second);
        auto* made = new Accessible(m_view, number);
        children[number] = QAccessible::registerAccessibleInterface(made);
        return made;
    }
    QAccessibleInterface* childOf(int boundary) const {
        const std::vector<int> all = m_view->boundaries();
        const auto at = std::ranges::find(all, boundary);
        if (at == all.end()) return nullptr;
        return child(m_view->itemCount() + static_cast<int>(at - all.begin()));
    }

    QPointer<GraphView> m_view;
    mutable Children m_items, m_boundaries;
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
