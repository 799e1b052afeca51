// SPDX-License-Identifier: Apache-2.0
// Recognition of model configs, the table of templates, and the frame around them: element types,
// workload sizes, names and facts.
#include "core/import/hf_config.h"

#include "core/error.h"
#include "core/import/templates/templates.h"
#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace shardlens {

namespace {

using hf::Config;
using hf::Context;

/// A row a model type: its name in "model_type", the family in the names of its classes, the head
/// it gets when "architectures" says nothing.
struct Template {
    std::string_view modelType;
    std::string_view family;
    std::string_view usualHead;
    void (*build)(Context&);
};

constexpr std::array<Template, 18> kTemplates{{
    {"bert", "Bert", "ForMaskedLM", hf::buildBert},
    {"deepseek_v2", "DeepseekV2", "ForCausalLM", hf::buildDeepSeek},
    {"deepseek_v3", "DeepseekV3", "ForCausalLM", hf::buildDeepSeek},
    {"gemma", "Gemma", "ForCausalLM", hf::buildLlama},
    {"gpt2", "GPT2", "LMHeadModel", hf::buildGpt2},
    {"gpt_neox", "GPTNeoX", "ForCausalLM", hf::buildGptNeoX},
    {"llama", "Llama", "ForCausalLM", hf::buildLlama},
    {"mistral", "Mistral", "ForCausalLM", hf::buildLlama},
    {"mixtral", "Mixtral", "ForCausalLM", hf::buildMixture},
    {"mt5", "MT5", "ForConditionalGeneration", hf::buildT5},
    {"phi3", "Phi3", "ForCausalLM", hf::buildLlama},
    {"qwen2", "Qwen2", "ForCausalLM", hf::buildLlama},
    {"qwen2_moe", "Qwen2Moe", "ForCausalLM", hf::buildMixture},
    {"qwen3", "Qwen3", "ForCausalLM", hf::buildLlama},
    {"qwen3_moe", "Qwen3Moe", "ForCausalLM", hf::buildMixture},
    {"resnet", "ResNet", "ForImageClassification", hf::buildResNet},
    {"t5", "T5", "ForConditionalGeneration", hf::buildT5},
    {"vit", "ViT", "ForImageClassification", hf::buildViT},
}};

struct Chosen {
    Template row;
    std::string head;
};

/// The row whose family begins the class name, e.g. "Qwen2Moe" for "Qwen2MoeForCausalLM": what
/// follows a family must begin a head, so that "Qwen2" does not take it.
std::optional<Chosen> byArchitecture(std::string_view architecture) {
    constexpr std::array<std::string_view, 5> kHeadBegins{"For", "Model", "LMHead", "WithLMHead",
                                                          "Encoder"};
    for (const Template& row : kTemplates) {
        if (!architecture.starts_with(row.family)) continue;
        const std::string_view head = architecture.substr(row.family.size());
        if (std::ranges::any_of(kHeadBegins,
                                [&](std::string_view begin) { return head.starts_with(begin); }))
            return Chosen{row, std::string(head)};
    }
    return std::nullopt;
}

const Template* byModelType(std::string_view modelType) {
    const auto row = std::ranges::find(kTemplates, modelType, &Template::modelType);
    return row == kTemplates.end() ? nullptr : &*row;
}

[[noreturn]] void failUnknown(const Config& config, const std::string& architecture,
                              const std::string& modelType) {
    const std::string hint =
        fmt::format("known model types are {}", fmt::join(knownHfModelTypes(), ", "));
    const std::string nested = config.nestedText("text_config", "model_type");
    if (byModelType(nested))
        config.fail(fmt::format("models of type {} are not known as a whole",
                                shardlens::inQuotes(modelType)),
                    fmt::format("their language part is of the known type \"{}\": save "
                                "\"text_config\" as a file of its own",
                                nested));
    if (architecture.empty() && modelType.empty())
        config.fail("neither \"architectures\" nor \"model_type\" says what model this is", hint);
    config.fail(fmt::format("the model type {}{} is not known", shardlens::inQuotes(modelType),
                            architecture.empty()
                                ? std::string()
                                : fmt::format(" (class {})", shardlens::inQuotes(architecture))),
                hint);
}

/// By the class name first, then by the model type: they can disagree (Phi-4 says Phi3 and phi4).
Chosen choose(const Config& config, std::vector<std::string>& warnings) {
    const std::string architecture = config.firstText("architectures");
    const std::string modelType = config.text("model_type");
    if (auto chosen = byArchitecture(architecture)) return *chosen;
    const Template* row = byModelType(modelType);
    if (!row) failUnknown(config, architecture, modelType);
    if (!architecture.empty())
        warnings.push_back(fmt::format("The class {} is not known; the model was read as {}{}.",
                                       shardlens::inQuotes(architecture), row->family,
                                       row->usualHead));
    return {*row, std::string(row->usualHead)};
}

/// DeepSeek's own inference configs name the same quantities differently and no model type.
void mapDeepSeekNames(Config& config, std::vector<std::string>& warnings) {
    static constexpr std::array<std::array<std::string_view, 2>, 12> kNames{{
        {"dim", "hidden_size"},
        {"inter_dim", "intermediate_size"},
        {"moe_inter_dim", "moe_intermediate_size"},
        {"n_layers", "num_hidden_layers"},
        {"n_dense_layers", "first_k_dense_replace"},
        {"n_heads", "num_attention_heads"},
        {"n_activated_experts", "num_experts_per_tok"},
        {"n_expert_groups", "n_group"},
        {"n_limited_groups", "topk_group"},
        {"route_scale", "routed_scaling_factor"},
        {"score_func", "scoring_func"},
        {"max_seq_len", "max_position_embeddings"},
    }};
    const bool own = !config.has("model_type") && !config.has("architectures") &&
                     config.has("kv_lora_rank") && config.has("n_routed_experts") &&
                     config.has("dim") && config.has("n_layers");
    if (!own) return;
    std::vector<std::string> mapped;
    for (const auto& [from, to] : kNames)
        if (config.rename(std::string(from), std::string(to)))
            mapped.push_back(fmt::format("{} as {}", from, to));
    // DeepSeek-V3 scores experts by sigmoids, DeepSeek-V2 by a softmax.
    const bool third = config.text("scoring_func", "softmax") == "sigmoid";
    config.set("model_type", third ? "deepseek_v3" : "deepseek_v2");
    warnings.push_back(fmt::format("The file is DeepSeek's own config, not a Hugging Face one; it "
                                   "was read as {}, with {}.",
                                   third ? "deepseek_v3" : "deepseek_v2", fmt::join(mapped, ", ")));
}

struct ElementTypes {
    DType activation = DType::BF16, weight = DType::BF16;
    std::string text;
};

ElementTypes elementTypesOf(const Config& config) {
    static constexpr std::array<std::pair<std::string_view, DType>, 7> kNames{{
        {"bfloat16", DType::BF16},
        {"float16", DType::F16},
        {"float32", DType::F32},
        {"float64", DType::F64},
        {"fp8", DType::F8E4M3},
        {"float8_e4m3fn", DType::F8E4M3},
        {"bf16", DType::BF16},
    }};
    const std::string name = config.text("dtype");
    ElementTypes types;
    if (name.empty()) {
        types.text = "bf16 (assumed: the config names none)";
    } else {
        const auto found =
            std::ranges::find_if(kNames, [&](const auto& entry) { return entry.first == name; });
        if (found == kNames.end())
            config.fail(fmt::format("the element type {} is not known", shardlens::inQuotes(name)),
                        "known ones are bfloat16, float16, float32, float64 and fp8");
        types.weight = found->second;
        if (types.weight != DType::F8E4M3) types.activation = types.weight;
        types.text = nameOf(types.weight);
    }
    if (config.nestedText("quantization_config", "quant_method") == "fp8")
        types.weight = DType::F8E4M3;
    if (types.weight == DType::F8E4M3)
        types.text =
            fmt::format("f8e4m3 weights of linear layers, {} otherwise", nameOf(types.activation));
    return types;
}

std::int64_t workloadSize(const ImportOptions& options, const char* name, std::int64_t usual,
                          const std::string& where) {
    const auto bound = options.bindings.find(name);
    const std::int64_t size = bound == options.bindings.end() ? usual : bound->second;
    if (size < 1 || size > hf::kLargestSize)
        throw InputError(
            fmt::format("the {} size is {}, but must be 1 to {}", name, size, hf::kLargestSize),
            where, fmt::format("choose another {}", name));
    return size;
}

/// "llama3-8b" for llama3-8b.json, llama3-8b_config.json and llama3-8b/config.json.
std::string modelNameFrom(const std::string& where) {
    const std::filesystem::path path(where);
    std::string stem = path.stem().string();
    if (stem == "config") return path.parent_path().filename().string();
    for (const std::string_view suffix : {"_config", "-config", ".config"})
        if (stem.size() > suffix.size() && stem.ends_with(suffix))
            stem.erase(stem.size() - suffix.size());
    return stem;
}

void addFacts(Graph& graph, const Context& context, const Chosen& chosen) {
    graph.facts["architecture"] = std::string(chosen.row.family) + chosen.head;
    graph.facts["model type"] = context.modelType;
    if (!graph.facts.contains("layers"))
        graph.facts["layers"] = fmt::format("{}", context.config.layers("num_hidden_layers"));
    graph.bindings["batch"] = context.batch;
    const bool images = chosen.row.usualHead == "ForImageClassification";
    if (!images) graph.bindings["sequence"] = context.sequence;
}

/// Notes which members the root object has; values are skipped without being kept.
class MemberNames : public nlohmann::json_sax<nlohmann::json> {
public:
    bool isConfig() const { return m_config || m_deepSeek == 3; }

    bool null() override { return value(); }
    bool boolean(bool) override { return value(); }
    bool number_integer(number_integer_t) override { return value(); }
    bool number_unsigned(number_unsigned_t) override { return value(); }
    bool number_float(number_float_t, const string_t&) override { return value(); }
    bool string(string_t&) override { return value(); }
    bool binary(binary_t&) override { return value(); }
    bool start_object(std::size_t) override { return ++m_depth > 0; }
    bool start_array(std::size_t) override { return m_depth++ > 0; } // no array at the root
    bool end_object() override { return --m_depth > 0; }
    bool end_array() override { return --m_depth > 0; }
    bool key(string_t& name) override {
        if (m_depth != 1) return true;
        m_config = m_config || name == "model_type" || name == "architectures";
        m_deepSeek += name == "n_layers" || name == "n_routed_experts" || name == "kv_lora_rank";
        return !isConfig();
    }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
        return false;
    }

private:
    bool value() const { return m_depth > 0; }

    int m_depth = 0;
    int m_deepSeek = 0;
    bool m_config = false;
};

} // namespace

bool looksLikeHfConfig(std::string_view head) {
    MemberNames names;
    nlohmann::json::sax_parse(head, &names);
    return names.isConfig();
}

std::vector<std::string> knownHfModelTypes() {
    std::vector<std::string> types;
    for (const Template& row : kTemplates) types.emplace_back(row.modelType);
    return types;
}

Graph importHfConfig(std::string_view json, const std::string& where,
                     const ImportOptions& options) {
    Graph graph;
    Config config(json, where);
    mapDeepSeekNames(config, graph.warnings);
    const Chosen chosen = choose(config, graph.warnings);
    const ElementTypes types = elementTypesOf(config);
    hf::Builder builder(graph, types.activation, types.weight, options.stop);
    Context context{config,
                    graph,
                    builder,
                    std::string(chosen.row.modelType),
                    chosen.head,
                    workloadSize(options, "batch", options.batch, where),
                    workloadSize(options, "sequence", options.sequence, where),
                    options.training,
                    {}};
    if (options.bindings.contains("target_sequence"))
        context.bindings["target_sequence"] = workloadSize(options, "target_sequence", 0, where);
    chosen.row.build(context);
    graph.name = modelNameFrom(where);
    graph.format = "HF config";
    graph.facts["element type"] = types.text;
    addFacts(graph, context, chosen);
    return graph;
}

} // namespace shardlens
