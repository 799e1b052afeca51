// SPDX-License-Identifier: Apache-2.0
// What is painted and not a widget, as an object for screen readers and tests: no QObject behind it
// and, unless a class says otherwise, nothing inside it. Interfaces belong to their view's own.
#pragma once

#include <QAccessible>

namespace shardlens {

class AccessibleLeaf : public QAccessibleInterface {
public:
    QObject* object() const override { return nullptr; }
    QAccessibleInterface* child(int) const override { return nullptr; }
    QAccessibleInterface* childAt(int, int) const override { return nullptr; }
    int childCount() const override { return 0; }
    int indexOfChild(const QAccessibleInterface*) const override { return -1; }
    void setText(QAccessible::Text, const QString&) override {}
};

} // namespace shardlens
