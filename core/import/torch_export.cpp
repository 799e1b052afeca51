// SPDX-License-Identifier: Apache-2.0
// See torch_export.h. Arguments are unions with one key that says the type ("as_tensor",
// "as_ints").
#include "core/import/torch_export.h"

#include "core/error.h"
#include "core/import/json_text.h"
#include "core/import/text.h"
#include "core/import/torch_symbols.h"
#include "core/import/torch_translation.h"
#include "core/import/zip_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace shardlens {

namespace {

using nlohmann::json;
using torch::Value;

/// ScalarType of the schema, which counts otherwise than c10.
std::string_view scalarType(const json& code) {
    if (!code.is_number_integer()) return {};
    switch (code.get<std::int64_t>()) {
    case 1:
        return "uint8";
    case 2:
        return "int8";
    case 3:
        return "int16";
    case 4:
        return "int32";
    case 5:
        return "int64";
    case 6:
        return "float16";
    case 7:
        return "float32";
    case 8:
        return "float64";
    case 10:
        return "complex64";
    case 11:
        return "complex128";
    case 12:
        return "bool";
    case 13:
        return "bfloat16";
    case 28:
        return "uint16";
    case 29:
        return "float8_e4m3fn";
    case 30:
        return "float8_e5m2";
    default:
        return {};
    }
}

/// Many files hold a name as {"name": "x"}, old ones as "x".
std::string nameIn(const json& value) {
    return cleaned(value.is_string() ? value.get<std::string>() : textOf(value, "name"));
}

/// "L__self__,,Model;L__self___up,layers.0.up,torch.nn.Linear" → "layers.0.up".
std::string scopeOf(const json& node) {
    const std::string stack = textOf(member(node, "metadata"), "nn_module_stack");
    if (stack.empty()) return {};
    std::string_view last(stack);
    last.remove_prefix(last.rfind(';') == std::string_view::npos ? 0 : last.rfind(';') + 1);
    // A key may hold commas in brackets; the path is the last part but one.
    const auto type = last.rfind(',');
    if (type == std::string_view::npos) return {};
    last = last.substr(0, type);
    last.remove_prefix(last.rfind(',') == std::string_view::npos ? 0 : last.rfind(',') + 1);
    for (const std::string_view root : {"L['self'].", "L__self__.", "L['self']", "L__self__"})
        if (last.starts_with(root)) last.remove_prefix(root.size());
    return cleaned(last);
}

class Reader {
public:
    Reader(const json& root, const std::string& where, const ImportOptions& options)
        : m_root(root), m_graph(member(member(root, "graph_module"), "graph")), m_symbols(options),
          m_options(options) {
        m_program.where = where;
        m_program.lineWord = "node";
    }

    torch::Program read() {
        if (!m_graph.is_object() || !member(m_graph, "nodes").is_array())
            throw InputError("the JSON holds no graph of torch.export", m_program.where,
                             "save the program with torch.export.save");
        readValues();
        readInputs();
        std::size_t index = 0;
        for (const json& node : member(m_graph, "nodes")) {
            if (index % kStopEvery == 0 && m_options.stop.stop_requested()) throw Cancelled();
            readNode(node, index++);
        }
        readOutputs();
        noteReads();
        m_symbols.checkBindings(m_program.where);
        m_program.bindings = m_symbols.bindings();
        m_program.warnings = m_symbols.warnings();
        m_program.facts["nodes"] = fmt::format("{}", index);
        const json& version = member(m_root, "schema_version");
        if (version.is_object() && member(version, "major").is_number_integer())
            m_program.facts["schema_version"] = fmt::format(
                "{}.{}", member(version, "major").dump(), member(version, "minor").dump());
        if (const std::string torch = textOf(m_root, "torch_version"); !torch.empty())
            m_program.facts["torch_version"] = cleaned(torch);
        return std::move(m_program);
    }

private:
    [[noreturn]] void fail(const std::string& problem, std::size_t node) const {
        throw InputError(problem, fmt::format("{}, node {}", m_program.where, node),
                         "the file is damaged: export the program again");
    }

    // --- types -----------------------------------------------------------------------------------

    /// A size: {"as_int": 4}, {"as_expr": {"expr_str": "2*s0", "hint": 8}}, in old files 4.
    std::optional<std::int64_t> sizeOf(const json& size, int dim = -1) {
        if (size.is_number_integer()) return size.get<std::int64_t>();
        if (const json& number = member(size, "as_int"); number.is_number_integer())
            return number.get<std::int64_t>();
        const json& expression = member(size, "as_expr");
        const std::string text =
            expression.is_string() ? expression.get<std::string>() : textOf(expression, "expr_str");
        if (text.empty()) return std::nullopt;
        const json& hint = member(expression, "hint");
        const json& traced = hint.is_object() ? member(hint, "as_int") : hint;
        if (traced.is_number_integer()) m_symbols.hint(text, traced.get<std::int64_t>());
        return m_symbols.evaluate(text, dim);
    }

    std::optional<TensorSpec> specOf(const json& value) {
        const json& meta = member(value, "meta").is_object() ? member(value, "meta") : value;
        const auto dtype = torch::dtypeFromTorch(scalarType(member(meta, "dtype")));
        const json& sizes = member(meta, "sizes");
        if (!dtype || !sizes.is_array() || sizes.size() > torch::kMaxRank) return std::nullopt;
        TensorSpec spec{*dtype, {}};
        for (const json& size : sizes) {
            const auto known = sizeOf(size, static_cast<int>(spec.shape.size()));
            if (!known) return std::nullopt;
            spec.shape.push_back(*known);
        }
        if (!torch::isReasonable(spec.shape)) return std::nullopt;
        return spec;
    }

    void readValues() {
        const json& tensors = member(m_graph, "tensor_values");
        if (tensors.is_object())
            for (const auto& [name, value] : tensors.items())
                m_specs[cleaned(name)] = specOf(value);
        const json& sizes = member(m_graph, "sym_int_values");
        if (sizes.is_object())
            for (const auto& [name, value] : sizes.items())
                if (const auto size = sizeOf(value)) m_sizes[cleaned(name)] = *size;
    }

    // --- inputs ----------------------------------------------------------------------------------

    void readInputs() {
        readRoles();
        const json& inputs = member(m_graph, "inputs");
        if (!inputs.is_array()) return;
        for (const json& input : inputs) {
            torch::Placeholder placeholder;
            if (const json& tensor = member(input, "as_tensor"); !tensor.is_null()) {
                placeholder.name = nameIn(tensor);
                placeholder.spec = specNamed(placeholder.name);
                const auto role = m_roles.find(placeholder.name);
                // Without a signature the rule for printed graphs decides.
                const torch::Role other =
                    m_roles.empty() ? torch::Role::Unknown : torch::Role::Input;
                placeholder.role = role == m_roles.end() ? other : role->second;
            } else if (const json& size = member(input, "as_sym_int"); !size.is_null()) {
                placeholder.name = cleaned(textOf(size, "as_name"));
                if (const auto known = m_sizes.find(placeholder.name); known != m_sizes.end())
                    placeholder.number = known->second;
            } else {
                continue; // a number or an object: whoever reads it has it spelled out
            }
            if (!m_defined.insert(placeholder.name).second)
                fail(
                    fmt::format("the input {} exists twice", shardlens::inQuotes(placeholder.name)),
                    0);
            m_program.placeholders.push_back(std::move(placeholder));
        }
    }

    void setRole(const json& argument, torch::Role role) {
        std::string name = nameIn(argument);
        if (!name.empty()) m_roles[std::move(name)] = role;
    }

    /// input_specs since schema 2; maps from inputs to names before.
    void readRoles() {
        const json& signature = member(member(m_root, "graph_module"), "signature");
        const json& specs = member(signature, "input_specs");
        if (specs.is_array())
            for (const json& spec : specs) {
                setRole(member(member(spec, "parameter"), "arg"), torch::Role::Parameter);
                setRole(member(member(spec, "buffer"), "arg"), torch::Role::Buffer);
                setRole(member(member(spec, "tensor_constant"), "arg"), torch::Role::Buffer);
            }
        for (const auto& [key, role] : {std::pair{"inputs_to_parameters", torch::Role::Parameter},
                                        std::pair{"inputs_to_buffers", torch::Role::Buffer}})
            if (const json& map = member(signature, key); map.is_object())
                for (const auto& [name, target] : map.items()) m_roles[cleaned(name)] = role;
    }

    std::optional<TensorSpec> specNamed(const std::string& name) const {
        const auto found = m_specs.find(name);
        return found == m_specs.end() ? std::nullopt : found->second;
    }

    // --- nodes -----------------------------------------------------------------------------------

    template <typename Item>
    static Value listOf(const json& items, Item item) {
        std::vector<Value> values;
        if (items.is_array())
            for (const json& one : items) values.push_back(item(one));
        return Value::ofList(std::move(values));
    }

    static Value plain(const json& value) {
        if (value.is_boolean()) return Value::ofBoolean(value.get<bool>());
        if (value.is_number_integer()) return Value::ofInteger(value.get<std::int64_t>());
        if (value.is_number()) return Value::ofReal(value.get<double>());
        if (value.is_string()) return Value::ofText(cleaned(value.get<std::string>()));
        return {};
    }

    /// JSON has no infinities: old files write them as Infinity, new ones as text.
    static Value real(const json& value) {
        if (!value.is_string())
            return value.is_number() ? Value::ofReal(value.get<double>()) : Value{};
        const std::string text = value.get<std::string>();
        constexpr double kInfinity = std::numeric_limits<double>::infinity();
        if (text.ends_with("nfinity"))
            return Value::ofReal(text[0] == '-' ? -kInfinity : kInfinity);
        return Value::ofReal(std::numeric_limits<double>::quiet_NaN());
    }

    Value size(const json& value) {
        if (const std::string name = textOf(value, "as_name"); !name.empty()) {
            const auto known = m_sizes.find(cleaned(name));
            if (known != m_sizes.end()) return Value::ofInteger(known->second);
            return Value::ofName(cleaned(name));
        }
        return plain(member(value, "as_int"));
    }

    Value tensor(const json& value) {
        std::string name = nameIn(value);
        return name.empty() ? Value{} : Value::ofName(std::move(name));
    }

    Value argument(const json& argument) {
        if (!argument.is_object() || argument.size() != 1) return {};
        const std::string& type = argument.begin().key();
        const json& value = argument.begin().value();
        const auto any = [&](const json& item) { return plain(item); };
        if (type == "as_tensor") return tensor(value);
        if (type == "as_tensors")
            return listOf(value, [&](const json& item) { return tensor(item); });
        if (type == "as_optional_tensors")
            return listOf(value,
                          [&](const json& item) { return tensor(member(item, "as_tensor")); });
        if (type == "as_sym_int") return size(value);
        if (type == "as_sym_ints")
            return listOf(value, [&](const json& item) { return size(item); });
        if (type == "as_float") return real(value);
        if (type == "as_floats") return listOf(value, real);
        if (type == "as_scalar_type")
            return Value::ofText("torch." + std::string(scalarType(value)));
        if (type == "as_ints" || type == "as_bools" || type == "as_strings")
            return listOf(value, any);
        if (type == "as_int" || type == "as_bool" || type == "as_string") return plain(value);
        if (type == "as_none") return {};
        return Value::ofText(cleaned(type)); // device, layout, memory format, graph
    }

    static std::string targetOf(const std::string& target) {
        for (const std::string_view prefix : {"torch.ops.", "_"})
            if (target.starts_with(prefix)) return cleaned(target.substr(prefix.size()));
        return cleaned(target);
    }

    void readNode(const json& node, std::size_t index) {
        torch::Call call;
        call.line = index;
        const std::string target = textOf(node, "target");
        if (target.empty()) fail("a node has no target", index);
        call.target =
            target.starts_with("_operator.") ? cleaned(target.substr(1)) : targetOf(target);
        call.scope = scopeOf(node);
        const json& inputs = member(node, "inputs");
        if (inputs.is_array())
            for (const json& input : inputs)
                call.arguments.push_back(
                    {cleaned(textOf(input, "name")), argument(member(input, "arg"))});
        const json& outputs = member(node, "outputs");
        if (outputs.is_array())
            for (const json& output : outputs) addResults(output, call, index);
        if (call.results.empty()) return; // an assertion
        call.label = call.results[0].name;
        call.name = call.tuple || call.results.size() > 1 ? call.label + ":all" : call.label;
        call.tuple = call.tuple || call.results.size() > 1;
        m_program.calls.push_back(std::move(call));
    }

    void addResults(const json& output, torch::Call& call, std::size_t index) {
        const auto add = [&](std::string name) {
            if (!name.empty() && !m_defined.insert(name).second)
                fail(fmt::format("the value {} is defined twice", shardlens::inQuotes(name)),
                     index);
            auto spec = specNamed(name);
            call.results.push_back({std::move(name), std::move(spec), false});
        };
        if (const json& one = member(output, "as_tensor"); !one.is_null()) return add(nameIn(one));
        if (const json& size = member(output, "as_sym_int"); !size.is_null())
            return; // its value is known from sym_int_values wherever it is read
        for (const char* key : {"as_tensors", "as_optional_tensors"})
            if (const json& list = member(output, key); list.is_array()) {
                call.tuple = true;
                for (const json& item : list) {
                    const json& named = member(item, "as_tensor");
                    add(nameIn(named.is_null() ? item : named));
                }
            }
        if (output.is_object() && output.contains("as_none")) add({});
    }

    // --- outputs ---------------------------------------------------------------------------------

    /// Results of the user's function; not what buffers are overwritten with.
    void readOutputs() {
        const json& specs =
            member(member(member(m_root, "graph_module"), "signature"), "output_specs");
        if (specs.is_array())
            for (const json& spec : specs)
                for (const char* kind : {"user_output", "loss_output", "gradient_to_parameter",
                                         "gradient_to_user_input"}) {
                    const json& given = member(member(spec, kind), "arg");
                    if (given.is_null()) continue;
                    if (given.contains("name"))
                        m_program.outputs.push_back(tensor(given));
                    else
                        m_program.outputs.push_back(argument(given));
                    m_program.backward =
                        m_program.backward || std::string_view(kind).starts_with("gradient");
                }
        if (!m_program.outputs.empty()) return;
        const json& outputs = member(m_graph, "outputs");
        if (outputs.is_array())
            for (const json& output : outputs) m_program.outputs.push_back(argument(output));
    }

    void noteReads() {
        std::unordered_set<std::string> read;
        const auto collect = [&](auto&& self, const Value& value) -> void {
            if (value.kind == Value::Kind::Name) read.insert(value.text);
            for (const Value& item : value.items) self(self, item);
        };
        for (const torch::Call& call : m_program.calls)
            for (const torch::Argument& one : call.arguments) collect(collect, one.value);
        for (const Value& output : m_program.outputs) collect(collect, output);
        for (torch::Call& call : m_program.calls)
            for (torch::Result& result : call.results) result.wanted = read.contains(result.name);
    }

    static constexpr std::size_t kStopEvery = 1024;

    const json& m_root;
    const json& m_graph;
    torch::Symbols m_symbols;
    const ImportOptions& m_options;
    torch::Program m_program;
    std::unordered_map<std::string, std::optional<TensorSpec>> m_specs;
    std::unordered_map<std::string, std::int64_t> m_sizes;
    std::unordered_map<std::string, torch::Role> m_roles;
    std::unordered_set<std::string> m_defined;
};

constexpr std::uint64_t kMaxProgramBytes = std::uint64_t{256} << 20;

/// The member that holds the program, of either layout; `models` counts how many there are.
const ZipArchive::Entry* programIn(const ZipArchive& archive, std::size_t& models) {
    const ZipArchive::Entry* found = nullptr;
    for (const ZipArchive::Entry& entry : archive.entries()) {
        const std::string_view name = entry.name;
        const bool old = name.ends_with("serialized_exported_program.json");
        const auto folder = name.find("models/");
        const bool current = name.ends_with(".json") && folder != std::string_view::npos &&
                             (folder == 0 || name[folder - 1] == '/') &&
                             name.find('/', folder + 7) == std::string_view::npos;
        if (!old && !current) continue;
        ++models;
        if (found == nullptr || name.ends_with("/model.json")) found = &entry;
    }
    return found;
}

} // namespace

Graph importTorchExport(std::string_view text, const std::string& where,
                        const ImportOptions& options) {
    const json root = parseJson(text, where);
    return torch::translate(Reader(root, where, options).read(), "torch.export", options);
}

Graph importTorchArchive(std::span<const std::byte> file, const std::string& where,
                         const ImportOptions& options) {
    const ZipArchive archive(file, where);
    std::size_t models = 0;
    const ZipArchive::Entry* entry = programIn(archive, models);
    if (entry == nullptr)
        throw InputError("the archive holds no exported program", where,
                         "save the program with torch.export.save; compiled packages (AOTInductor) "
                         "hold machine code only");
    const std::string text = archive.read(*entry, kMaxProgramBytes, options.stop);
    Graph graph =
        importTorchExport(text, fmt::format("{} ({})", where, cleaned(entry->name)), options);
    if (models > 1)
        graph.warnings.push_back(fmt::format("The archive holds {} programs; {} was read.", models,
                                             shardlens::inQuotes(entry->name)));
    return graph;
}

} // namespace shardlens
