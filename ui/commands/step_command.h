// SPDX-License-Identifier: Apache-2.0
// One step of the user on the undo stack. What it changed is in the session; the command only says
// "one back" and "one forth", so the stack and the file cannot tell different stories.
#pragma once

#include "ui/document.h"

#include <QUndoCommand>

namespace shardlens {

class StepCommand : public QUndoCommand {
public:
    StepCommand(Document& document, const QString& label)
        : QUndoCommand(label), m_document(document) {}

    void undo() override { m_document.undoStep(); }
    void redo() override { m_document.redoStep(); }

private:
    Document& m_document;
};

} // namespace shardlens
