// SPDX-License-Identifier: Apache-2.0
// What the inspector says about an op or a block, as simple HTML.
#include "core/model/catalogue.h"
#include "ui/format.h"
#include "ui/panels/inspector_panel.h"
#include "ui/views/graph_overlay.h"

#include <map>

namespace shardlens {

namespace {

constexpr std::size_t kMostNeighbours = 4;

QString coloured(const QString& label, const QColor& colour) {
    return QStringLiteral("<span style=\"color:%1\">%2</span>").arg(colour.name(), label);
}

QString attributeText(const AttributeValue& value) {
    const auto joined = [](const auto& list) {
        QStringList parts;
        for (const auto& entry : list) parts << QString::number(entry);
        return QStringLiteral("[%1]").arg(parts.join(QStringLiteral(", ")));
    };
    return std::visit(
        [&](const auto& held) -> QString {
            using Held = std::decay_t<decltype(held)>;
            if constexpr (std::is_same_v<Held, std::string>)
                return text(held);
            else if constexpr (std::is_arithmetic_v<Held>)
                return QString::number(held);
            else
                return joined(held);
        },
        value);
}

} // namespace

QString InspectorPanel::row(const QString& name, const QString& html) const {
    if (html.isEmpty()) return {};
    return QStringLiteral("<tr><td style=\"padding-right:8px\">%1</td><td>%2</td></tr>")
        .arg(coloured(name, Palette::of(this).muted), html);
}

QString InspectorPanel::tensorText(const TensorSpec& spec, const SideLayout& side,
                                   const Mesh& mesh) const {
    const Palette& palette = Palette::of(this);
    const TensorMark mark = markOf(spec.shape, side, mesh);
    QStringList dims;
    bool sharded = false;
    for (const DimMark& dim : mark.dims) {
        QString label = QString::number(dim.local);
        QStringList axes;
        for (const std::uint8_t axis : dim.axes) axes << text(mesh.axes[axis].name).toHtmlEscaped();
        if (!axes.isEmpty())
            label += QStringLiteral("<sub>%1</sub>").arg(axes.join(QStringLiteral("·")));
        sharded = sharded || !dim.axes.empty();
        dims << (dim.axes.empty() ? label : QStringLiteral("<b>%1</b>").arg(label));
    }
    QString result = formatShape(spec.shape);
    if (sharded) result += QStringLiteral(" → ") + dims.join(QStringLiteral("×"));
    result += coloured(QStringLiteral(" ") + text(nameOf(spec.dtype)), palette.muted);
    for (const std::uint8_t axis : mark.partial)
        result +=
            coloured(tr(" Σ partial over %1").arg(text(mesh.axes[axis].name)), palette.warning);
    return result;
}

QString InspectorPanel::opLink(OpId op) const {
    return QStringLiteral("<a href=\"op:%1\">%2</a>")
        .arg(op)
        .arg(text(m_document.graph()->op(op).name).toHtmlEscaped());
}

QString InspectorPanel::collectivesText(OpId op) const {
    const Plan& plan = *m_document.plan();
    QStringList lines;
    for (const PlannedCollective& collective : plan.collectives) {
        const bool incoming = collective.to == op;
        const bool outgoing = collective.from == op && collective.to == kNoOp;
        if (!incoming && !outgoing) continue;
        QString line = tr("%1 over %2, %3: %4, %5")
                           .arg(text(nameOf(collective.step.kind)),
                                text(plan.context->mesh.axes[collective.step.axis].name),
                                text(nameOf(collective.phase)), formatBytes(collective.step.bytes),
                                formatCost(collective.seconds, m_document.costUnit()));
        if (collective.tensor != kNoTensor && incoming)
            line +=
                tr(" for %1").arg(shortName(plan.context->graph->tensor(collective.tensor).name));
        lines << line.toHtmlEscaped();
    }
    return lines.isEmpty() ? tr("none") : lines.join(QStringLiteral("<br>"));
}

QString InspectorPanel::figuresText(OpId op) const {
    const OpFigures& figures = m_document.plan()->figures[op];
    const std::string unit = m_document.costUnit();
    QString compute = tr("%1 forward").arg(formatCost(figures.compute.forward, unit));
    if (figures.compute.backward > 0)
        compute += tr(" + %1 backward").arg(formatCost(figures.compute.backward, unit));
    const MemorySplit& memory = figures.memory;
    QStringList parts;
    const auto part = [&](const QString& name, double bytes) {
        if (bytes > 0) parts << tr("%1 %2").arg(name, formatBytes(bytes));
    };
    part(tr("parameters"), memory.parameters);
    part(tr("gradients"), memory.gradients);
    part(tr("optimizer"), memory.optimizer);
    part(tr("activations"), memory.activations);
    part(tr("workspace"), memory.workspace);
    const QString from =
        coloured(QStringLiteral(" (%1)").arg(text(nameOf(m_document.plan()->provenance))),
                 Palette::of(this).muted);
    return row(tr("Compute"), compute + from) +
           row(tr("Communication"), formatCost(figures.communication, unit) + from) +
           row(tr("Memory"),
               parts.isEmpty() ? tr("none kept") : parts.join(QStringLiteral(", ")) + from);
}

QString InspectorPanel::stageText(OpId id) const {
    const auto& job = m_document.pipeline();
    const int stage = m_document.selectedStage();
    if (!job || stage < 0) return {};
    const auto inside = job->insideOf(stage);
    if (!inside || !inside->decided[id]) return {};
    const Plan& plan = *inside->plan;
    const Graph& sized = *plan.context->graph;
    const Mesh& mesh = plan.context->mesh;
    const Choice& choice = plan.decisions.op[id];
    const FactorRule rule = factorRule(viewOf(sized, id));
    QString html =
        row(tr("In stage %1").arg(stage),
            QStringLiteral("<b>%1</b>").arg(text(toString(choice, rule, mesh)).toHtmlEscaped()) +
                coloured(tr(" on %1").arg(text(mesh.toString())), Palette::of(this).muted));
    for (std::size_t r = 0; r < sized.op(id).outputs.size(); ++r)
        html +=
            row(tr("Its result"), tensorText(sized.tensor(sized.op(id).outputs[r]).spec,
                                             valueSide(resultLayout(choice, rule, r, mesh)), mesh));
    return html;
}

QString InspectorPanel::opFacts(OpId id) const {
    const Graph& graph = *m_document.graph();
    const Folding& folding = *m_document.folding();
    const Op& op = graph.op(id);
    const OpClass& opClass = folding.classes[folding.classOf[id]];
    const auto& plan = m_document.plan();
    const bool planned = plan && plan->context->graph == m_document.graph();
    const FactorRule rule = factorRule(viewOf(graph, id));
    QString html;
    if (m_document.isStale() || !m_document.planError().isEmpty())
        html +=
            coloured(tr("These figures belong to the previous plan."), Palette::of(this).warning);
    html += QStringLiteral("<table cellspacing=\"2\">");
    QString kind = text(nameOf(op.kind));
    if (!op.type.empty() && op.type != nameOf(op.kind)) kind += tr(" (%1)").arg(text(op.type));
    if (opClass.multiplicity > 1)
        kind += tr(" · block %1 of %2 alike").arg(folding.instanceOf[id]).arg(opClass.multiplicity);
    html += row(tr("Kind"), kind.toHtmlEscaped());
    if (planned) {
        const Mesh& mesh = plan->context->mesh;
        const Choice& choice = plan->decisions.op[id];
        html += row(
            tr("Sharding"),
            QStringLiteral("<b>%1</b>").arg(text(toString(choice, rule, mesh)).toHtmlEscaped()) +
                (plan->pinned.size() > id && plan->pinned[id]
                     ? coloured(tr(" pinned"), Palette::of(this).pin)
                     : QString()));
        for (std::size_t r = 0; r < op.outputs.size(); ++r)
            html += row(op.outputs.size() > 1 ? tr("Result %1").arg(r) : tr("Result"),
                        tensorText(graph.tensor(op.outputs[r]).spec,
                                   valueSide(resultLayout(choice, rule, r, mesh)), mesh));
        for (std::size_t o = 0; o < op.inputs.size(); ++o)
            if (op.inputs[o] != kNoTensor)
                html += row(tr("Operand %1").arg(o),
                            tensorText(graph.tensor(op.inputs[o]).spec,
                                       valueSide(operandLayout(choice, rule, o, mesh)), mesh));
        html += figuresText(id) + row(tr("Collectives"), collectivesText(id));
    } else {
        for (const TensorId tensor : op.outputs)
            html += row(tr("Result"), formatShape(graph.tensor(tensor).spec.shape));
    }
    html += stageText(id);
    html += row(tr("Factors"), text(rule.toString()).toHtmlEscaped());
    for (const auto& [name, value] : op.attributes.values())
        html += row(text(name).toHtmlEscaped(), attributeText(value).toHtmlEscaped());
    QStringList producers, consumers;
    for (const TensorId tensor : op.inputs)
        if (tensor != kNoTensor) producers << opLink(graph.tensor(tensor).producer);
    for (const TensorId tensor : op.outputs)
        for (const Graph::Use& use : graph.uses(tensor)) consumers << opLink(use.op);
    producers.removeDuplicates();
    consumers.removeDuplicates();
    const auto few = [](QStringList list) {
        const auto count = static_cast<std::size_t>(list.size());
        if (count > kMostNeighbours) {
            list = list.mid(0, kMostNeighbours);
            list << tr("and %1 more").arg(count - kMostNeighbours);
        }
        return list.join(QStringLiteral("<br>"));
    };
    html += row(tr("Reads"), few(producers)) + row(tr("Read by"), few(consumers));
    return html + QStringLiteral("</table>");
}

QString InspectorPanel::runFacts(int run) const {
    const Graph& graph = *m_document.graph();
    const Folding& folding = *m_document.folding();
    const FoldRun& fold = folding.runs[static_cast<std::size_t>(run)];
    const bool repeats = fold.count > 1; // else a section
    QString html = QStringLiteral("<table cellspacing=\"2\">");
    html += row(repeats ? tr("Block") : tr("Section"),
                nameOfRun(graph, folding, static_cast<std::size_t>(run)).toHtmlEscaped());
    if (repeats) html += row(tr("Repeats"), QString::number(fold.count));
    std::map<QString, int> kinds;
    for (std::size_t local = 0; local < fold.period; ++local)
        ++kinds[text(nameOf(graph.op(folding.order[fold.position(0, local)]).kind))];
    QStringList parts;
    for (const auto& [kind, count] : kinds)
        parts << (count > 1 ? tr("%1 ×%2").arg(kind).arg(count) : kind);
    html += row(repeats ? tr("One block") : tr("Ops"), parts.join(QStringLiteral(", ")));
    const auto& plan = m_document.plan();
    if (plan && plan->context->graph == m_document.graph()) {
        double compute = 0, communication = 0, memory = 0;
        for (std::size_t at = fold.first; at < fold.end(); ++at) {
            const OpFigures& figures = plan->figures[folding.order[at]];
            compute += figures.compute.forward + figures.compute.backward;
            communication += figures.communication;
            memory += figures.memory.total();
        }
        const std::string unit = m_document.costUnit();
        html += row(repeats ? tr("All blocks") : tr("Together"),
                    tr("compute %1, communication %2, memory %3 a device")
                        .arg(formatCost(compute, unit), formatCost(communication, unit),
                             formatBytes(memory)));
        QStringList ranges;
        for (const RepeatRange& range : rangesOf(*plan, static_cast<std::size_t>(run)))
            ranges << (range.first == range.last
                           ? QString::number(range.first)
                           : QStringLiteral("%1–%2").arg(range.first).arg(range.last));
        if (repeats)
            html +=
                row(tr("Choices"), ranges.size() == 1
                                       ? tr("the same in all blocks")
                                       : tr("differ: %1").arg(ranges.join(QStringLiteral(" | "))));
    }
    html += row(tr("Open"), tr("Enter, or a double click on the block"));
    return html + QStringLiteral("</table>");
}

} // namespace shardlens
