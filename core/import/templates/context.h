// SPDX-License-Identifier: Apache-2.0
// What a template gets: the config, the builder and the workload; and what several templates share:
// the language-model head, activations, dropout.
#pragma once

#include "core/import/hf_keys.h"
#include "core/import/importer.h"
#include "core/import/templates/builder.h"

namespace shardlens::hf {

struct Context {
    const Config& config;
    Graph& graph;
    Builder& build;
    std::string modelType; ///< "llama"
    std::string head;      ///< what follows the family in the class name: "ForCausalLM", "Model"
    std::int64_t batch = 1;
    std::int64_t sequence = 1;
    bool training = true;
    std::map<std::string, std::int64_t> bindings; ///< sizes the user gave by name

    void warn(std::string sentence) { graph.warnings.push_back(std::move(sentence)); }
};

/// @throws InputError unless the head is one of the known ones
void requireHead(const Context& context, std::initializer_list<std::string_view> known);

/// Whether the model is the bare body, without a head ("LlamaModel").
bool isBareModel(const Context& context);

/// The Elementwise function of the config's activation. @throws InputError for an unknown one
std::string activationOf(const Context& context, std::string_view fallback);

/// Dropout probability under `key`; 0 outside training.
double dropoutOf(const Context& context, std::string_view key, double fallback);

/// The heads' width: "head_dim", else hidden_size / num_attention_heads.
std::int64_t headWidth(const Context& context, std::int64_t hidden, std::int64_t heads);

/// Shortens the sequence, with a warning, where learned positions end.
void limitSequence(Context& context, std::int64_t positions);

std::int64_t labelCount(const Context& context);

/// Logits (x times `weight` [V,h]) and, in training, their loss against "labels"; marks the output.
void finishLanguageModel(Context& context, const std::string& name, TensorId x, TensorId weight,
                         TensorId bias = kNoTensor);

/// Ends a graph whose last tensor is logits [..,V] with labels [..].
void finishWithLogits(Context& context, TensorId logits);

/// Ends the graph of a bare model in its hidden states.
void finishBare(Context& context, TensorId x);

} // namespace shardlens::hf
