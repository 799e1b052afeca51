// SPDX-License-Identifier: Apache-2.0
// The mesh with the shards of one tensor of the selected op: a result, or an operand as the op
// reads it, value or gradient.
#pragma once

#include "ui/document.h"
#include "ui/views/mesh_view.h"

class QComboBox;
class QLabel;

namespace shardlens {

class MeshPanel : public QWidget {
    Q_OBJECT

public:
    explicit MeshPanel(Document& document, QWidget* parent = nullptr);
    MeshView* view() { return m_view; }

signals:
    void stagePointed(int stage); ///< of the device that was chosen

private:
    void refresh();
    void refreshStages();
    void takeDevice(int device);
    void refreshShards();

    Document& m_document;
    QComboBox* m_tensor;
    QComboBox* m_side;
    MeshView* m_view;
    QLabel* m_note;
};

} // namespace shardlens
