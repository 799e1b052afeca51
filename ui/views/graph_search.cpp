// SPDX-License-Identifier: Apache-2.0
// Search in the graph, and what can be done with one op: pin, unpin, context menu.
#include "core/model/catalogue.h"
#include "ui/format.h"
#include "ui/views/graph_controller.h"

#include <QMenu>

#include <algorithm>

namespace shardlens {

namespace {

std::string lower(std::string_view name) {
    std::string result(name);
    std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) {
        return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    });
    return result;
}

std::vector<std::string> wordsOf(const std::string& typed) {
    std::vector<std::string> words;
    std::string word;
    for (const char c : lower(typed) + ' ') {
        if (c != ' ') {
            word += c;
        } else if (!word.empty()) {
            words.push_back(std::exchange(word, {}));
        }
    }
    return words;
}

constexpr std::size_t kStopEvery = 1024;

} // namespace

std::vector<OpId> findOps(const Graph& graph, const Folding& folding, const std::string& typed,
                          const std::stop_token& stop) {
    const std::vector<std::string> words = wordsOf(typed);
    std::vector<OpId> found;
    if (words.empty()) return found;
    std::vector<bool> taken(folding.classes.size(), false);
    for (std::size_t at = 0; at < folding.order.size(); ++at) {
        if (at % kStopEvery == 0 && stop.stop_requested()) return {};
        const OpId id = folding.order[at];
        if (taken[folding.classOf[id]]) continue;
        const Op& op = graph.op(id);
        const std::string hay =
            lower(op.name) + ' ' + lower(nameOf(op.kind)) + ' ' + lower(op.type) + ' ' +
            lower(op.attributes.text("function")) + ' ' +
            lower(graph.op(folding.classes[folding.classOf[id]].representative).name);
        if (!std::all_of(words.begin(), words.end(), [&](const std::string& word) {
                return hay.find(word) != std::string::npos;
            }))
            continue;
        taken[folding.classOf[id]] = true;
        found.push_back(id);
    }
    return found;
}

void GraphController::search(const QString& typed) {
    const std::uint64_t wish = ++m_searchWish;
    if (typed.trimmed().isEmpty() || !m_document.graph()) {
        m_searchLane->cancel();
        m_searching = false;
        return takeMatches(wish, std::make_shared<std::vector<OpId>>());
    }
    m_searching = true;
    m_searchLane->submit([this, wish, graph = m_document.graph(), folding = m_document.folding(),
                          words = typed.toStdString()](const std::stop_token& stop) {
        auto found = std::make_shared<std::vector<OpId>>(findOps(*graph, *folding, words, stop));
        QMetaObject::invokeMethod(this, [this, wish, found] { takeMatches(wish, found); });
    });
}

void GraphController::takeMatches(std::uint64_t wish,
                                  const std::shared_ptr<std::vector<OpId>>& found) {
    if (wish != m_searchWish) return;
    m_searching = false;
    m_matches = *found;
    m_match = -1;
    markMatches();
    emit matchesChanged(m_match, static_cast<int>(m_matches.size()));
}

void GraphController::markMatches() {
    std::set<int> items;
    for (const OpId op : m_matches)
        if (const int item = m_view.itemOfOp(op); item >= 0) items.insert(item);
    m_view.setMatches(std::move(items));
}

void GraphController::nextMatch(int step) {
    const int count = static_cast<int>(m_matches.size());
    if (count == 0) return;
    m_match = m_match < 0 ? (step > 0 ? 0 : count - 1) : (m_match + step + count) % count;
    emit matchesChanged(m_match, count);
    showOp(m_matches[static_cast<std::size_t>(m_match)]);
}

void GraphController::pinSelected() {
    if (m_view.selectedBoundary() >= 0) {
        m_document.pinBoundary(m_view.selectedBoundary());
        return;
    }
    const OpId op = m_document.selectedOp();
    const auto& plan = m_document.plan();
    if (op == kNoOp || !plan || plan->context->graph != m_document.graph()) return;
    const FactorRule rule = factorRule(viewOf(*m_document.graph(), op));
    m_document.pin(op, text(toString(plan->decisions.op[op], rule, plan->context->mesh)));
}

void GraphController::unpinSelected() {
    if (m_view.selectedBoundary() >= 0)
        m_document.freeBoundary(m_view.selectedBoundary());
    else if (m_document.selectedOp() != kNoOp)
        m_document.unpin(m_document.selectedOp());
}

void GraphController::addPinChoices(QMenu* menu, OpId op) {
    const auto& plan = m_document.plan();
    if (!plan || plan->context->graph != m_document.graph()) return;
    const PlanContext& context = *plan->context;
    const Op& shown = m_document.graph()->op(op);
    const FactorRule rule = factorRule(viewOf(*m_document.graph(), op));
    const bool states = shown.kind == OpKind::Parameter && context.cost->parameterStates() &&
                        context.request.mode == Mode::Train;
    const LegalChoices choices =
        enumerateChoices(rule, context.mesh, context.cost->divisibility(), states);
    QMenu* pins = menu->addMenu(tr("&Pin to"));
    pins->setObjectName(QStringLiteral("pinMenu"));
    pins->setEnabled(!m_document.isReadOnly());
    for (const Choice& choice : choices.legal) {
        const QString label = text(toString(choice, rule, context.mesh));
        QAction* action =
            pins->addAction(label, this, [this, op, label] { m_document.pin(op, label); });
        action->setCheckable(true);
        action->setChecked(choice == plan->decisions.op[op]);
    }
}

QMenu* GraphController::makeMenu(OpId op, int run) {
    auto* menu = new QMenu(&m_view);
    menu->setObjectName(QStringLiteral("graphMenu"));
    if (run >= 0) {
        m_document.selectRun(run);
        menu->addAction(isOpen(run) ? tr("&Close block") : tr("&Open block"), this,
                        [this, run] { toggleRun(run); });
        return menu;
    }
    if (op == kNoOp) return menu;
    m_document.selectOp(op);
    addPinChoices(menu, op);
    QAction* unpin = menu->addAction(tr("&Unpin"), this, &GraphController::unpinSelected);
    unpin->setEnabled(!m_document.pinsOf(op).empty() && !m_document.isReadOnly());
    menu->addSeparator();
    menu->addAction(tr("&Copy name"), this, &GraphController::copyName);
    menu->addAction(tr("Show p&roducer"), this, &GraphController::goToProducer);
    menu->addAction(tr("Show c&onsumer"), this, &GraphController::goToConsumer);
    const Folding& folding = *m_document.folding();
    if (const int around = folding.classes[folding.classOf[op]].run; around >= 0) {
        menu->addSeparator();
        menu->addAction(isOpen(around) ? tr("C&lose block") : tr("Open b&lock"), this,
                        [this, around] { toggleRun(around); });
    }
    return menu;
}

} // namespace shardlens
