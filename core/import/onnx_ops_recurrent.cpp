// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN. Layout 1 (batch first) is brought to the common one by transposes.
#include "core/import/onnx_tensor.h"
#include "core/import/onnx_translation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace shardlens::onnx {

namespace {

Attributes cellSettings(const Translation& t, std::string_view cell) {
    Attributes attributes{{"cell", std::string(cell)},
                          {"direction", std::string(t.text("direction", "forward"))}};
    if (const Attribute* names = t.attribute("activations"); names != nullptr)
        attributes.set("activations", fmt::format("{}", fmt::join(names->texts, ",")));
    for (const auto& [name, ours] :
         {std::pair{"activation_alpha", "alphas"}, std::pair{"activation_beta", "betas"}})
        if (const Attribute* numbers = t.attribute(name); numbers != nullptr)
            attributes.set(ours, numbers->numbers);
    if (const double clip = t.number("clip", 0); clip > 0) attributes.set("clip", clip);
    for (const auto& [name, ours] : {std::pair{"linear_before_reset", "linear_before_reset"},
                                     std::pair{"input_forget", "input_forget"}})
        if (t.integer(name, 0) != 0) attributes.set(ours, std::int64_t{1});
    return attributes;
}

/// Y [s,D,b,h], Y_h and Y_c [D,b,h]; batch first [b,s,D,h] and [b,D,h].
void recurrent(Translation& t, std::string_view cell) {
    t.require(t.rank(0) == 3 && t.rank(2) == 3, "the operands must have three dimensions");
    const bool batchFirst = t.integer("layout", 0) != 0;
    std::vector<TensorId> operands;
    for (std::size_t i = 0; i < t.inputCount(); ++i) operands.push_back(t.inputOrNone(i));
    while (!operands.empty() && operands.back() == kNoTensor) operands.pop_back();
    if (!batchFirst) {
        t.result(OpKind::Recurrent, cellSettings(t, cell), std::move(operands));
        return;
    }
    operands[0] = t.transposed(operands[0], {1, 0, 2});
    for (std::size_t i = 5; i < operands.size() && i < 7; ++i)
        if (operands[i] != kNoTensor) operands[i] = t.transposed(operands[i], {1, 0, 2});
    const TensorId first = t.step(OpKind::Recurrent, cellSettings(t, cell), std::move(operands));
    const Graph& graph = t.builder().graph();
    const std::vector<TensorId> results = graph.op(graph.tensor(first).producer).outputs;
    t.result(OpKind::Transpose, {{"perm", Translation::Ints{2, 0, 1, 3}}}, {results[0]});
    for (std::size_t r = 1; r < results.size(); ++r)
        if (t.wants(r))
            t.result(OpKind::Transpose, {{"perm", Translation::Ints{1, 0, 2}}}, {results[r]},
                     DType::Unknown, r);
}

} // namespace

std::vector<Rule> recurrentRules() {
    return {
        {"LSTM", recurrent, "lstm"},
        {"GRU", recurrent, "gru"},
        {"RNN", recurrent, "rnn"},
    };
}

} // namespace shardlens::onnx
