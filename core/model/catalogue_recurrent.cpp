// SPDX-License-Identifier: Apache-2.0
// The row of the recurrent cells. Batch entries and directions are independent; every step needs
// the whole hidden state of the one before it, so that sequence and hidden size stay whole.
#include "core/model/catalogue_rows.h"

namespace shardlens::catalogue {
namespace {

struct RecurrentDims {
    std::int64_t steps, batch, input, directions, gates, hidden;
};

std::int64_t gatesOf(const OpView& view) {
    const std::string cell = view.op.attributes.text("cell", "lstm");
    require(cell == "lstm" || cell == "gru" || cell == "rnn", view,
            "the cell is none of lstm, gru and rnn");
    return cell == "lstm" ? 4 : cell == "gru" ? 3 : 1;
}

RecurrentDims recurrentDims(const OpView& view) {
    const Shape &x = shapeOf(view, 0), &w = shapeOf(view, 1), &r = shapeOf(view, 2);
    require(x.size() == 3 && w.size() == 3 && r.size() == 3, view,
            "the operands must have three dimensions");
    const RecurrentDims d{x[0], x[1], x[2], w[0], gatesOf(view), r[2]};
    const bool both = view.op.attributes.text("direction", "forward") == "bidirectional";
    require(d.directions == (both ? 2 : 1) && w == Shape{d.directions, d.gates * d.hidden, x[2]} &&
                r == Shape{d.directions, d.gates * d.hidden, d.hidden},
            view, "the weights do not fit the operand");
    const Shape state{d.directions, d.batch, d.hidden};
    const Shape optional[] = {{d.directions, 2 * d.gates * d.hidden},
                              {d.batch},
                              state,
                              state,
                              {d.directions, 3 * d.hidden}};
    for (std::size_t i = 0; i < std::size(optional); ++i)
        require(!view.hasInput(3 + i) || view.inputs[3 + i].shape == optional[i], view,
                fmt::format("operand {} does not fit the weights", 3 + i));
    return d;
}

std::vector<TensorSpec> recurrentShape(const OpView& view) {
    const RecurrentDims d = recurrentDims(view);
    const DType dtype = view.inputs[0].dtype;
    const TensorSpec state{dtype, {d.directions, d.batch, d.hidden}};
    std::vector<TensorSpec> results{{dtype, {d.steps, d.directions, d.batch, d.hidden}}, state};
    if (d.gates == 4) results.push_back(state);
    return results;
}

FactorRule recurrentRule(const OpView& view) {
    const RecurrentDims d = recurrentDims(view);
    FactorRule rule = emptyRule(view);
    const int b = rule.addFactor("b", d.batch);
    const int dir = rule.addFactor("direction", d.directions);
    const auto whole = [&](const char* name, std::int64_t size) {
        return rule.addFactor(name, size, FactorKind::Replicate);
    };
    const int s = whole("s", d.steps), i = whole("i", d.input), h = whole("h", d.hidden);
    const int gates = whole("gates", d.gates * d.hidden);
    rule.operands[0] = {{s}, {b}, {i}};
    rule.operands[1] = {{dir}, {gates}, {i}};
    rule.operands[2] = {{dir}, {gates}, {h}};
    if (view.hasInput(3)) rule.operands[3] = {{dir}, {whole("biases", 2 * d.gates * d.hidden)}};
    if (view.hasInput(4)) rule.operands[4] = {{b}};
    for (std::size_t port = 5; port < 7; ++port)
        if (view.hasInput(port)) rule.operands[port] = {{dir}, {b}, {h}};
    if (view.hasInput(7)) rule.operands[7] = {{dir}, {whole("peepholes", 3 * d.hidden)}};
    rule.results[0] = {{s}, {dir}, {b}, {h}};
    for (std::size_t r = 1; r < rule.results.size(); ++r) rule.results[r] = {{dir}, {b}, {h}};
    return rule;
}

double recurrentFlops(const OpView& view, const FactorRule&) {
    const RecurrentDims d = recurrentDims(view);
    return 2.0 * static_cast<double>(d.steps) * static_cast<double>(d.batch) *
           static_cast<double>(d.directions) * static_cast<double>(d.gates * d.hidden) *
           static_cast<double>(d.input + d.hidden);
}

/// All operands, the states of every step, and the gates.
SavedTensors recurrentSaved(const OpView& view) {
    const RecurrentDims d = recurrentDims(view);
    SavedTensors saved = saveOperands(view);
    saved.results[0] = true;
    saved.extraBytes = bytesOf(view.outputs[0]) * static_cast<double>(d.gates);
    return saved;
}

} // namespace

std::vector<Row> recurrentRows() {
    return {{OpKind::Recurrent, recurrentShape, recurrentRule, ComputeClass::Contraction,
             recurrentFlops, nullptr, recurrentSaved}};
}

} // namespace shardlens::catalogue
