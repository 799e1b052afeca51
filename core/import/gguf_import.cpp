// SPDX-License-Identifier: Apache-2.0
// Keys by gguf.md and by llama.cpp's gguf-py/gguf/constants.py (MODEL_ARCH_NAMES, Keys).
#include "core/import/gguf_import.h"

#include "core/error.h"
#include "core/import/gguf.h"
#include "core/import/hf_config.h"
#include "core/import/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace shardlens {

namespace {

using gguf::Header;

struct Architecture {
    std::string_view name, modelType;
};
constexpr std::array<Architecture, 11> kArchitectures{{
    {"bert", "bert"},
    {"deepseek2", "deepseek_v2"},
    {"gemma", "gemma"},
    {"gpt2", "gpt2"},
    {"gptneox", "gpt_neox"},
    {"llama", "llama"},
    {"phi3", "phi3"},
    {"qwen2", "qwen2"},
    {"qwen2moe", "qwen2_moe"},
    {"qwen3", "qwen3"},
    {"qwen3moe", "qwen3_moe"},
}};

struct GgufKey {
    std::string_view ggufKey, configKey;
};
constexpr std::array<GgufKey, 14> kKeys{{
    {"block_count", "num_hidden_layers"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"context_length", "max_position_embeddings"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.q_lora_rank", "q_lora_rank"},
    {"attention.kv_lora_rank", "kv_lora_rank"},
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_shared_count", "n_shared_experts"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
    {"leading_dense_block_count", "first_k_dense_replace"},
}};

class ConfigMaker {
public:
    ConfigMaker(const Header& header, const std::string& where) : m_header(header), m_where(where) {
        const auto name = header.text("general.architecture");
        if (!name) fail("the file does not say its architecture (general.architecture)");
        const auto known = std::ranges::find(kArchitectures, *name, &Architecture::name);
        if (known == kArchitectures.end()) {
            std::vector<std::string_view> names;
            for (const Architecture& row : kArchitectures) names.push_back(row.name);
            fail(fmt::format("the architecture {} is not known", shardlens::inQuotes(*name)),
                 fmt::format("known ones are {}; or open the model's config.json",
                             fmt::join(names, ", ")));
        }
        m_architecture = *known;
    }

    nlohmann::json config() {
        m_config["model_type"] = std::string(m_architecture.modelType);
        for (const GgufKey& key : kKeys)
            if (const auto value = integer(key.ggufKey))
                m_config[std::string(key.configKey)] = *value;
        if (integer("expert_count").value_or(0) == 0) {
            m_config.erase("num_experts");
            m_config.erase("num_experts_per_tok");
        } else if (m_architecture.name == "llama") {
            m_config["model_type"] = "mixtral";
        }
        vocabulary();
        heads();
        m_config["tie_word_embeddings"] = shapeOf("output.weight") == nullptr;
        m_config["torch_dtype"] = elementType();
        special();
        return m_config;
    }

private:
    [[noreturn]] void fail(const std::string& problem, const std::string& hint = {}) const {
        throw InputError(problem, m_where, hint);
    }

    std::string keyOf(std::string_view key) const {
        return fmt::format("{}.{}", m_architecture.name, key);
    }

    /// A value that may be one for all layers or a list with one a layer; layers that differ are
    /// beyond the templates.
    std::optional<std::int64_t> integer(std::string_view key) const {
        if (const auto value = m_header.integer(keyOf(key))) return value;
        const gguf::List* list = m_header.list(keyOf(key));
        if (list == nullptr || list->integers.empty()) return std::nullopt;
        const std::int64_t first = list->integers.front();
        if (std::ranges::any_of(list->integers, [first](std::int64_t v) { return v != first; }))
            fail(fmt::format("{} differs from layer to layer, which is not modelled", keyOf(key)));
        return first;
    }

    const Shape* shapeOf(std::string_view tensor) const {
        const auto found = std::ranges::find(m_header.tensors, tensor, &gguf::Tensor::name);
        return found == m_header.tensors.end() ? nullptr : &found->shape;
    }

    void vocabulary() {
        if (const auto size = integer("vocab_size")) {
            m_config["vocab_size"] = *size;
        } else if (const Shape* table = shapeOf("token_embd.weight"); table && table->size() == 2) {
            m_config["vocab_size"] = table->front();
        } else if (const gguf::List* tokens = m_header.list("tokenizer.ggml.tokens")) {
            m_config["vocab_size"] = tokens->length;
        }
    }

    void heads() {
        const bool latent = m_architecture.name == "deepseek2";
        const auto width = integer("attention.key_length");
        if (width && !latent) m_config["head_dim"] = *width;
        const auto rotated = integer("rope.dimension_count");
        const auto hidden = integer("embedding_length"), count = integer("attention.head_count");
        if (!rotated || latent) return;
        std::int64_t whole = width.value_or(0);
        if (whole == 0 && hidden && count && *count > 0) whole = *hidden / *count;
        if (whole <= 0 || *rotated >= whole) return;
        const double share = static_cast<double>(*rotated) / static_cast<double>(whole);
        m_config[m_architecture.name == "gptneox" ? "rotary_pct" : "partial_rotary_factor"] = share;
    }

    std::string elementType() const {
        std::map<std::string_view, double> elements;
        for (const gguf::Tensor& tensor : m_header.tensors)
            elements[tensor.packing.name] += tensor.elements();
        const auto most =
            std::ranges::max_element(elements, {}, [](const auto& entry) { return entry.second; });
        if (most == elements.end()) return "bfloat16";
        return most->first == "F32" ? "float32" : most->first == "F16" ? "float16" : "bfloat16";
    }

    void special() {
        const bool biased = shapeOf("blk.0.attn_q.bias") != nullptr;
        if (m_architecture.name == "llama" || m_architecture.name == "qwen3")
            m_config["attention_bias"] = biased;
        if (m_architecture.name == "gptneox")
            if (const auto parallel = integer("use_parallel_residual"))
                m_config["use_parallel_residual"] = *parallel != 0;
        if (m_architecture.name == "bert") {
            m_config["architectures"] = {"BertModel"};
            if (const Shape* types = shapeOf("token_types.weight"); types && types->size() == 2)
                m_config["type_vocab_size"] = types->front();
        }
        if (m_architecture.name == "deepseek2") latentAttention();
    }

    void latentAttention() {
        const auto rotated = integer("rope.dimension_count");
        auto key = integer("attention.key_length_mla"),
             value = integer("attention.value_length_mla");
        if (!key) key = integer("attention.key_length");
        if (!value) value = integer("attention.value_length");
        if (rotated) m_config["qk_rope_head_dim"] = *rotated;
        if (rotated && key && *rotated >= 0 && *key > *rotated)
            m_config["qk_nope_head_dim"] = *key - *rotated;
        if (value) m_config["v_head_dim"] = *value;
        // With latent attention the file counts one key-value head; the template has no such
        // number.
        m_config.erase("num_key_value_heads");
        if (integer("expert_gating_func").value_or(1) == 2) m_config["model_type"] = "deepseek_v3";
    }

    const Header& m_header;
    const std::string& m_where;
    Architecture m_architecture;
    nlohmann::json m_config;
};

/// Tables computed for convenience, not trained.
bool isTrained(const gguf::Tensor& tensor) {
    return tensor.name.find("rope_freqs") == std::string_view::npos &&
           tensor.name.find("rope_factors") == std::string_view::npos;
}

void addFacts(Graph& graph, const Header& header) {
    struct Share {
        std::size_t tensors = 0;
        double elements = 0, bits = 0;
    };
    std::map<std::string_view, Share> shares;
    double elements = 0, bytes = 0;
    for (const gguf::Tensor& tensor : header.tensors) {
        Share& share = shares[tensor.packing.name];
        ++share.tensors;
        share.elements += tensor.elements();
        share.bits = tensor.packing.bits();
        bytes += tensor.elements() * tensor.packing.bits() / 8;
        if (isTrained(tensor)) elements += tensor.elements();
    }
    graph.facts["GGUF version"] = fmt::format("{}", header.version);
    graph.facts["tensors in the weights file"] = fmt::format("{}", header.tensors.size());
    graph.facts["bytes of weights"] = fmt::format("{:.0f}", bytes);
    for (const auto& [name, share] : shares)
        graph.facts[fmt::format("weights in {}", name)] = fmt::format(
            "{} tensors, {:.0f} elements of {} bits", share.tensors, share.elements, share.bits);
    const std::int64_t parts = header.integer("split.count").value_or(1);
    if (parts > 1) {
        graph.warnings.push_back(
            fmt::format("The file is one of {} parts; its weights were not compared.", parts));
        return;
    }
    if (elements != graph.parameterCount())
        graph.warnings.push_back(fmt::format(
            "The file holds {:.0f} weights, the model built from its hyper-parameters "
            "{:.0f}: they differ by {:.0f}.",
            elements, graph.parameterCount(), std::abs(elements - graph.parameterCount())));
}

} // namespace

Graph importGguf(std::span<const std::byte> file, const std::string& where,
                 const ImportOptions& options) {
    const Header header = gguf::parseHeader(file, where, options.stop);
    const nlohmann::json config = ConfigMaker(header, where).config();
    Graph graph = importHfConfig(config.dump(), where, options);
    graph.format = "GGUF";
    if (const auto name = header.text("general.name"); name && !name->empty())
        graph.name = cleaned(name->substr(0, 200));
    addFacts(graph, header);
    return graph;
}

} // namespace shardlens
