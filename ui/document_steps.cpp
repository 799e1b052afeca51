// SPDX-License-Identifier: Apache-2.0
// Steps of the user. Each is first one transaction of the session and then one command on the undo
// stack; undo and redo ask the session, so that both tell the same story after a crash.
#include "core/error.h"
#include "core/plan/pins.h"
#include "core/plan/planner.h"
#include "ui/commands/step_command.h"
#include "ui/document_parts.h"
#include "ui/format.h"

#include <algorithm>

namespace shardlens {

void Document::rebuildUndo() {
    m_replaying = true;
    m_undo.clear();
    const SessionContent& content = m_session->content();
    for (const Step& step : content.steps) m_undo.push(new StepCommand(*this, text(step.label)));
    for (std::size_t i = content.steps.size(); i > content.done; --i) m_undo.undo();
    m_replaying = false;
}

bool Document::applyStep(const PlanRequest& request, const QString& label, const QString& kind) {
    if (!m_session) return false;
    if (isReadOnly()) {
        fail(tr("This session is read-only: %1.").arg(readOnlyReason()));
        return false;
    }
    try {
        if (!m_session->applyStep({label.toStdString(), kind.toStdString()}, request)) return true;
    } catch (const Error& error) {
        fail(text(error.what()));
        return false;
    }
    m_replaying = true; // it is done already
    m_undo.push(new StepCommand(*this, label));
    m_replaying = false;
    afterUndo();
    return true;
}

bool Document::undoStep() {
    if (m_replaying) return true;
    try {
        if (!m_session->undo()) return false;
    } catch (const Error& error) {
        fail(text(error.what()));
        QMetaObject::invokeMethod(this, &Document::rebuildUndo, Qt::QueuedConnection);
        return false;
    }
    afterUndo();
    return true;
}

bool Document::redoStep() {
    if (m_replaying) return true;
    try {
        if (!m_session->redo()) return false;
    } catch (const Error& error) {
        fail(text(error.what()));
        QMetaObject::invokeMethod(this, &Document::rebuildUndo, Qt::QueuedConnection);
        return false;
    }
    afterUndo();
    return true;
}

void Document::afterUndo() {
    m_request = m_session->content().request;
    emit requestChanged();
    const auto known = m_bundles.find(sizingOf(m_request));
    if (known == m_bundles.end()) { // undone in an earlier sitting: read the model for it
        m_stale = m_plan != nullptr;
        emit planChanged();
        reload(m_request, {});
        return;
    }
    useBundle(ModelBundle(known->second), m_request);
    resolve();
}

bool Document::pin(OpId op, const QString& choice, bool allBlocks) {
    if (!m_bundle.graph || op >= m_bundle.graph->ops().size()) return false;
    const Folding& folding = *m_bundle.folding;
    const OpClass& opClass = folding.classes[folding.classOf[op]];
    const std::string name = m_bundle.graph->op(op).name;
    const bool whole = allBlocks && opClass.multiplicity > 1;
    const std::string classTarget = "class:" + m_bundle.graph->op(opClass.representative).name;
    PlanRequest request = m_request;
    // The newest word on an op counts: what was pinned for the same target is replaced, and a pin
    // of the whole class takes the place of those of its members.
    std::erase_if(request.pins, [&](const Pin& pin) {
        if (!whole) return pin.target == name;
        if (pin.target == classTarget) return true;
        const auto member = m_bundle.graph->findOp(pin.target);
        return member && folding.classOf[*member] == folding.classOf[op];
    });
    request.pins.push_back({whole ? classTarget : name, choice.toStdString()});
    const QString shown =
        whole ? tr("%1 in all %2 blocks").arg(shortName(name)).arg(opClass.multiplicity)
              : text(name);
    return applyStep(request, tr("Pin %1 to %2").arg(shown, choice), QStringLiteral("pin"));
}

std::vector<std::size_t> Document::pinsOf(OpId op) const {
    std::vector<std::size_t> found;
    if (!m_bundle.graph || op >= m_bundle.graph->ops().size()) return found;
    const OpClass& opClass = m_bundle.folding->classes[m_bundle.folding->classOf[op]];
    const std::string& name = m_bundle.graph->op(op).name;
    const std::string classTarget = "class:" + m_bundle.graph->op(opClass.representative).name;
    for (std::size_t i = 0; i < m_request.pins.size(); ++i) {
        const std::string& target = m_request.pins[i].target;
        bool holds = target == name || target == classTarget;
        if (!holds && m_plan && target.find_first_of("*?") != std::string::npos) {
            const std::vector<OpId> ops = pinnedOps(*m_plan->context, m_request.pins[i]);
            holds = std::find(ops.begin(), ops.end(), op) != ops.end();
        }
        if (holds) found.push_back(i);
    }
    return found;
}

bool Document::unpin(OpId op) {
    const std::vector<std::size_t> pins = pinsOf(op);
    if (pins.empty()) return false;
    PlanRequest request = m_request;
    for (auto index = pins.rbegin(); index != pins.rend(); ++index)
        request.pins.erase(request.pins.begin() + static_cast<std::ptrdiff_t>(*index));
    return applyStep(request, tr("Unpin %1").arg(text(m_bundle.graph->op(op).name)),
                     QStringLiteral("unpin"));
}

bool Document::removePin(std::size_t index) {
    if (index >= m_request.pins.size()) return false;
    PlanRequest request = m_request;
    const QString target = text(request.pins[index].target);
    request.pins.erase(request.pins.begin() + static_cast<std::ptrdiff_t>(index));
    return applyStep(request, tr("Unpin %1").arg(target), QStringLiteral("unpin"));
}

bool Document::pinClashes(std::size_t index) const {
    return !m_planError.isEmpty() && index < m_request.pins.size() &&
           m_planError.contains(text(toString(m_request.pins[index])));
}

bool Document::changeSetup(const PlanRequest& request, const QString& label) {
    if (!m_session || toJson(request) == toJson(m_request)) return false;
    if (isReadOnly()) {
        fail(tr("This session is read-only: %1.").arg(readOnlyReason()));
        emit requestChanged();
        return false;
    }
    if (!m_bundles.contains(sizingOf(request))) {
        reload(request, label);
        return true;
    }
    return applyStep(request, label, QStringLiteral("setup"));
}

} // namespace shardlens
