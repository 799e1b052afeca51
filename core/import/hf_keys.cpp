// SPDX-License-Identifier: Apache-2.0
// Reading a config.json. The aliases are the attribute maps of the config classes of
// `transformers`: one quantity, one first name, and the names the classes give it.
#include "core/import/hf_keys.h"

#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace shardlens::hf {

namespace {

using Json = nlohmann::json;

struct Alias {
    std::string_view key;
    std::array<std::string_view, 3> others;
};

constexpr std::array<Alias, 11> kAliases{{
    {"hidden_size", {"n_embd", "d_model", ""}},
    {"num_hidden_layers", {"n_layer", "num_layers", ""}},
    {"num_attention_heads", {"n_head", "num_heads", ""}},
    {"intermediate_size", {"n_inner", "d_ff", "ffn_dim"}},
    {"max_position_embeddings", {"n_positions", "n_ctx", ""}},
    {"num_experts", {"num_local_experts", "n_routed_experts", ""}},
    {"hidden_act", {"activation_function", "hidden_activation", "dense_act_fn"}},
    {"dtype", {"torch_dtype", "", ""}},
    {"hidden_dropout_prob", {"resid_pdrop", "hidden_dropout", "dropout_rate"}},
    {"embedding_dropout", {"embd_pdrop", "", ""}},
    {"num_key_value_heads", {"num_kv_heads", "", ""}},
}};

std::string parseMessage(const Json::exception& error) {
    const std::string_view text = error.what(); // "[json.exception...] parse error at ...: detail"
    const auto colon = text.rfind(": ");
    return std::string(colon == std::string_view::npos ? text : text.substr(colon + 2));
}

} // namespace

Config::Config(std::string_view json, std::string where) : m_where(std::move(where)) {
    try {
        m_json = Json::parse(json);
    } catch (const Json::parse_error& error) {
        throw InputError(
            fmt::format("not valid JSON at byte {} ({})", error.byte, parseMessage(error)), m_where,
            "the file may be cut off or edited by hand");
    } catch (const Json::exception& error) {
        throw InputError(fmt::format("not valid JSON ({})", parseMessage(error)), m_where);
    }
    if (!m_json.is_object()) fail("a model config is a JSON object, this is not one");
}

void Config::fail(const std::string& problem, const std::string& hint) const {
    throw InputError(problem, m_where, hint);
}

const Json* Config::find(std::string_view key) const {
    const auto present = [this](std::string_view name) -> const Json* {
        const auto found = m_json.find(name);
        return found == m_json.end() || found->is_null() ? nullptr : &*found;
    };
    if (const Json* value = present(key)) return value;
    const auto alias = std::ranges::find(kAliases, key, &Alias::key);
    if (alias == kAliases.end()) return nullptr;
    for (const std::string_view other : alias->others)
        if (!other.empty())
            if (const Json* value = present(other)) return value;
    return nullptr;
}

std::string Config::nameUsed(std::string_view key) const {
    const Json* value = find(key);
    if (!value) return std::string(key);
    for (const auto& [name, member] : m_json.items())
        if (&member == value) return name;
    return std::string(key);
}

std::int64_t Config::integer(std::string_view key, const Json& value, std::int64_t least,
                             std::int64_t most) const {
    if (!value.is_number_integer())
        fail(fmt::format("\"{}\" must be a whole number", nameUsed(key)));
    const bool tooLarge =
        value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most);
    const std::int64_t number = tooLarge ? most : value.get<std::int64_t>();
    if (tooLarge || number < least || number > most)
        fail(fmt::format("\"{}\" is {}, but must be {} to {}", nameUsed(key), value.dump(), least,
                         most));
    return number;
}

std::int64_t Config::size(std::string_view key) const {
    const Json* value = find(key);
    if (!value)
        fail(fmt::format("the key \"{}\" is missing", key),
             "take the config.json that belongs to the model's weights");
    return integer(key, *value, 1, kLargestSize);
}

std::int64_t Config::size(std::string_view key, std::int64_t fallback) const {
    const Json* value = find(key);
    return value ? integer(key, *value, 1, kLargestSize) : fallback;
}

std::int64_t Config::count(std::string_view key, std::int64_t fallback) const {
    const Json* value = find(key);
    return value ? integer(key, *value, 0, kLargestSize) : fallback;
}

std::int64_t Config::layers(std::string_view key) const {
    const std::int64_t number = size(key);
    if (number > kMostLayers)
        fail(fmt::format("\"{}\" is {}, but at most {} layers can be built", nameUsed(key), number,
                         kMostLayers));
    return number;
}

double Config::number(std::string_view key, double fallback) const {
    const Json* value = find(key);
    if (!value) return fallback;
    if (!value->is_number()) fail(fmt::format("\"{}\" must be a number", nameUsed(key)));
    return value->get<double>();
}

bool Config::flag(std::string_view key, bool fallback) const {
    const Json* value = find(key);
    if (!value) return fallback;
    if (!value->is_boolean()) fail(fmt::format("\"{}\" must be true or false", nameUsed(key)));
    return value->get<bool>();
}

std::string Config::text(std::string_view key, std::string fallback) const {
    const Json* value = find(key);
    if (!value) return fallback;
    if (!value->is_string()) fail(fmt::format("\"{}\" must be a text", nameUsed(key)));
    return value->get<std::string>();
}

std::vector<std::int64_t> Config::list(std::string_view key, std::int64_t least) const {
    const Json* value = find(key);
    std::vector<std::int64_t> result;
    if (!value) return result;
    if (!value->is_array())
        fail(fmt::format("\"{}\" must be a list of whole numbers", nameUsed(key)));
    for (const Json& element : *value) result.push_back(integer(key, element, least, kLargestSize));
    return result;
}

std::set<std::int64_t> Config::integers(std::string_view key) const {
    const std::vector<std::int64_t> all = list(key, 0);
    return {all.begin(), all.end()};
}

std::vector<std::int64_t> Config::sizes(std::string_view key,
                                        std::vector<std::int64_t> fallback) const {
    return has(key) ? list(key, 1) : std::move(fallback);
}

std::string Config::firstText(std::string_view key) const {
    const Json* value = find(key);
    if (!value || (value->is_array() && value->empty())) return {};
    if (!value->is_array() || !value->front().is_string())
        fail(fmt::format("\"{}\" must be a list of texts", nameUsed(key)));
    return value->front().get<std::string>();
}

std::size_t Config::entries(std::string_view key) const {
    const Json* value = find(key);
    return value && value->is_object() ? value->size() : 0;
}

std::string Config::nestedText(std::string_view key, std::string_view member) const {
    const Json* value = find(key);
    if (!value || !value->is_object()) return {};
    const auto found = value->find(member);
    return found != value->end() && found->is_string() ? found->get<std::string>() : std::string();
}

void Config::requireDivides(std::string_view wholeKey, std::int64_t whole, std::string_view partKey,
                            std::int64_t part) const {
    if (whole % part != 0)
        fail(fmt::format("\"{}\" is {}, which is not a multiple of \"{}\", {}", nameUsed(wholeKey),
                         whole, nameUsed(partKey), part));
}

bool Config::rename(const std::string& from, const std::string& to) {
    const auto found = m_json.find(from);
    if (found == m_json.end() || m_json.contains(to)) return false;
    Json value = std::move(*found);
    m_json.erase(found);
    m_json[to] = std::move(value);
    return true;
}

} // namespace shardlens::hf
