// SPDX-License-Identifier: Apache-2.0
// Kinds of model files by their first bytes. Suffixes are never looked at: an .onnx may be
// anything, and HLO comes as .txt, .hlo and .hlo.gz.
#include "core/error.h"
#include "core/import/gunzip.h"
#include "core/import/hf_config.h"
#include "core/import/importer.h"
#include "core/import/protobuf_wire.h"
#include "core/import/safetensors.h"
#include "core/import/sharding_dump.h"

#include <algorithm>
#include <array>
#include <optional>

namespace shardlens {

namespace {

constexpr std::size_t kHeadBytes = std::size_t{64} * 1024;

Recognised unsupported(std::string name, std::string_view hint) {
    return {FileKind::Unsupported, std::move(name), std::string(hint)};
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// --- binary files -------------------------------------------------------------------------------

/// Bytes at a fixed place.
struct Magic {
    std::size_t offset;
    std::string_view bytes;
    std::string_view name;
    std::string_view hint;
};

constexpr std::string_view kFromTensorFlow =
    "convert it to ONNX with tf2onnx (python -m tf2onnx.convert) and open that";

constexpr std::string_view kFromPyTorch =
    "it holds weights and no graph: open the config.json of the model, or export it with "
    "torch.onnx.export";

constexpr std::array kMagics{
    Magic{
        0, "ML\xEFR", "MLIR bytecode",
        "write it as text (stablehlo-translate --deserialize, or as_text() in JAX) and open that"},
    Magic{4, "TFL3", "TensorFlow Lite",
          "convert it to ONNX with tf2onnx (python -m tf2onnx.convert --tflite) and open that"},
    Magic{4, "ORTM", "ONNX Runtime's own format", "open the .onnx file it was made from"},
    Magic{4, "ET12", "ExecuTorch", "export the model with torch.onnx.export and open that"},
    Magic{0, "\x89HDF\r\n\x1a\n", "HDF5 (an old Keras model)", kFromTensorFlow},
    Magic{0, "\x80\x02", "a Python pickle (an old PyTorch checkpoint)", kFromPyTorch},
    Magic{0, "\x80\x03", "a Python pickle", kFromPyTorch},
    Magic{0, "\x80\x04", "a Python pickle", kFromPyTorch},
    Magic{0, "\x80\x05", "a Python pickle", kFromPyTorch},
    Magic{0, "\x93NUMPY", "a NumPy array", "it is no model: open the model it belongs to"},
};

std::optional<Recognised> byMagic(std::string_view head) {
    if (head.starts_with("GGUF")) return Recognised{FileKind::Gguf, "GGUF", {}};
    for (const Magic& magic : kMagics)
        if (head.size() >= magic.offset + magic.bytes.size() &&
            head.substr(magic.offset, magic.bytes.size()) == magic.bytes)
            return unsupported(std::string(magic.name), magic.hint);
    constexpr std::string_view kSqlite{"SQLite format 3\0", 16};
    constexpr std::size_t kApplicationId = 68; // big-endian, see sqlite.org/fileformat.html
    if (!head.starts_with(kSqlite)) return std::nullopt;
    if (head.size() >= kApplicationId + 4 && head.substr(kApplicationId, 4) == "SHLN")
        return Recognised{FileKind::Session, "Shardlens session", {}};
    return unsupported("an SQLite database (an Nsight Systems export?)",
                       "it is no model: open the model that was profiled");
}

std::optional<Recognised> byZip(std::string_view file) {
    if (!file.starts_with("PK\3\4")) return std::nullopt;
    const std::string_view head = file.substr(0, kHeadBytes);
    const std::string_view tail = file.substr(file.size() - std::min(file.size(), kHeadBytes));
    const auto has = [&](std::string_view name) {
        return contains(head, name) || contains(tail, name);
    };
    if (has("archive_format") || has("serialized_exported_program.json"))
        return Recognised{FileKind::TorchExport, "torch.export archive (.pt2)", {}};
    if (has("model.weights.h5")) return unsupported("a Keras model", kFromTensorFlow);
    if (has("data.pkl") && has("/code/"))
        return unsupported("a TorchScript archive",
                           "export the model with torch.onnx.export and open that");
    if (has("data.pkl"))
        return unsupported(
            "a PyTorch checkpoint (weights only)",
            "open the config.json of the model, or export it with torch.onnx.export");
    return unsupported("a ZIP archive", "unpack it and open the model inside");
}

// --- text ---------------------------------------------------------------------------------------

/// The text without leading blanks, byte-order mark, and lines that are comments.
std::string_view withoutPreamble(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    while (true) {
        const auto start = text.find_first_not_of(" \t\r\n");
        if (start == std::string_view::npos) return {};
        text.remove_prefix(start);
        const bool comment = text.starts_with("//") || text.starts_with("# ") ||
                             text.starts_with("#\n") || text.starts_with("#!");
        if (!comment) return text;
        const auto end = text.find('\n');
        if (end == std::string_view::npos) return {};
        text.remove_prefix(end);
    }
}

Recognised json(std::string_view text) {
    if (looksLikeHfConfig(text)) return {FileKind::HfConfig, "Hugging Face config", {}};
    const auto has = [&](std::string_view key) { return contains(text, key); };
    if (has("\"weight_map\"")) return {FileKind::SafetensorsIndex, "safetensors index", {}};
    if (has("\"graph_module\"") && (has("\"schema_version\"") || has("\"as_tensor\"")))
        return {FileKind::TorchExport, "torch.export program", {}};
    if (has("\"traceEvents\""))
        return unsupported("a Kineto (Chrome) trace",
                           "it is no model: open the model that was traced");
    if (has("\"schema\"") && has("\"nodes\"") && (has("\"op_schema\"") || has("\"attrs\"")))
        return {FileKind::ExecutionTrace, "PyTorch execution trace", {}};
    if ((has("\"graphs\"") || has("\"graphCollections\"")) &&
        (has("\"incomingEdges\"") || has("\"namespace\"")))
        return {FileKind::ModelExplorer, "Model Explorer graph", {}};
    if (looksLikeShardingDump(text))
        return unsupported("a sharding plan in JSON",
                           "it says how a model is spread over devices: open the model it was made "
                           "for, and lay the plan beside it");
    if (has("\"modelTopology\"") || (has("\"class_name\"") && has("\"keras_version\"")))
        return unsupported("a Keras or TensorFlow.js model in JSON", kFromTensorFlow);
    return unsupported("JSON of an unknown kind",
                       "open a Hugging Face config.json (it has \"model_type\" or "
                       "\"architectures\")");
}

/// "#loc = …" and "!t = …": an alias may come first.
bool beginsWithAlias(std::string_view text) {
    if (!text.starts_with("#") && !text.starts_with("!")) return false;
    const std::string_view line = text.substr(0, text.find('\n'));
    const auto equals = line.find(" = ");
    return equals != std::string_view::npos && line.substr(0, equals).find(' ') == line.npos;
}

bool looksLikeMlir(std::string_view text) {
    for (const std::string_view start :
         {"module {", "module @", "module attributes", "func.func", "\"builtin.module\""})
        if (text.starts_with(start)) return true;
    return beginsWithAlias(text) && (contains(text, "module") || contains(text, "func.func"));
}

std::optional<Recognised> byText(std::string_view head) {
    const std::string_view text = withoutPreamble(head);
    if (text.starts_with("{")) return json(head);
    if (text.starts_with("[") && contains(head, "\"incomingEdges\"")) return json(head);
    if (text.starts_with("HloModule")) return Recognised{FileKind::HloText, "HLO text", {}};
    if (looksLikeMlir(text)) return Recognised{FileKind::MlirText, "MLIR text", {}};
    if (contains(head, "class GraphModule(torch.nn.Module)") ||
        contains(head, "class Repro(torch.nn.Module)") ||
        (contains(head, "def forward(self") &&
         (contains(head, "primals_1") || contains(head, "torch.ops."))))
        return Recognised{FileKind::FxText, "FX graph text", {}};
    if (text.starts_with("ir_version:") ||
        (text.starts_with("<") && contains(text.substr(0, 200), "ir_version")))
        return unsupported("ONNX written as text",
                           "save it as binary (onnx.save in Python) and open that");
    if (text.starts_with("node {") && contains(head, "op: \""))
        return unsupported("a TensorFlow graph written as text", kFromTensorFlow);
    if (text.starts_with("<?xml") && contains(head, "<net ") && contains(head, "<layers>"))
        return unsupported("OpenVINO IR", "open the model it was converted from");
    return std::nullopt;
}

// --- ONNX ---------------------------------------------------------------------------------------

/// Whether a GraphProto holds a node with an op type: NodeProto has it in field 4, where the
/// GraphDef of TensorFlow and others that are protobuf too have something else.
bool holdsNode(wire::Reader graph) {
    for (wire::Field field; graph.next(field);) {
        if (!field.is(1, wire::Type::Bytes)) continue;
        wire::Reader node = graph.nested(field);
        for (wire::Field part; node.next(part);)
            if (part.is(4, wire::Type::Bytes) && !part.bytes.empty()) return true;
        return false;
    }
    return false;
}

/// Looks for a ModelProto by walking its fields; a file that is cut off still counts.
bool looksLikeOnnx(std::span<const std::byte> file) {
    constexpr std::array<std::uint32_t, 12> kFields{1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26};
    bool found = false;
    try {
        wire::Reader reader(file, 0, {}, wire::CutOff::Clamp);
        for (wire::Field field; reader.next(field);) {
            if (std::ranges::find(kFields, field.number) == kFields.end()) return false;
            if (field.is(7, wire::Type::Bytes)) found = found || holdsNode(reader.nested(field));
        }
    } catch (const InputError&) { // cut off in the middle of a number
    }
    return found;
}

// --- other protobufs ----------------------------------------------------------------------------

bool isWord(std::span<const std::byte> bytes) {
    return !bytes.empty() && std::ranges::all_of(bytes, [](std::byte b) {
        const auto c = static_cast<unsigned char>(b);
        return c > 0x20 && c < 0x7f;
    });
}

/// Whether a message has words in both fields: NodeDef of TensorFlow {name, op}, OperatorDef of
/// Caffe2 {…, type = 4}.
bool hasWords(wire::Reader message, std::uint32_t first, std::uint32_t second) {
    bool one = false, two = false;
    try {
        for (wire::Field field; message.next(field);) {
            one = one || (field.is(first, wire::Type::Bytes) && isWord(field.bytes));
            two = two || (field.is(second, wire::Type::Bytes) && isWord(field.bytes));
            if (one && two) return true;
        }
    } catch (const InputError&) { // a text, not a message
    }
    return false;
}

/// The formats that look alike: TensorFlow's GraphDef {node = 1} and SavedModel {version = 1,
/// meta_graph = 2 {graph_def = 2}}, Core ML's Model {version = 1, description = 2, a kind of model
/// from 200 on}, Caffe2's NetDef {name = 1, op = 2}.
std::optional<Recognised> otherProtobuf(std::span<const std::byte> file) {
    constexpr std::string_view kFromCaffe = "export the model to ONNX and open that";
    bool versioned = false, savedModel = false, graphDef = false, caffe = false, coreMl = false;
    try {
        wire::Reader reader(file, 0, {}, wire::CutOff::Clamp);
        for (wire::Field field; reader.next(field);) {
            if (field.number == 1 && field.type == wire::Type::Varint) versioned = true;
            if (field.is(1, wire::Type::Bytes) && !graphDef)
                graphDef = hasWords(reader.nested(field), 1, 2);
            if (field.is(2, wire::Type::Bytes) && !versioned && !caffe)
                caffe = hasWords(reader.nested(field), 2, 4);
            if (field.is(2, wire::Type::Bytes) && versioned && !savedModel) {
                wire::Reader metaGraph = reader.nested(field);
                for (wire::Field part; metaGraph.next(part);) {
                    if (!part.is(2, wire::Type::Bytes)) continue;
                    wire::Reader graph = metaGraph.nested(part);
                    for (wire::Field node; graph.next(node) && !savedModel;)
                        savedModel =
                            node.is(1, wire::Type::Bytes) && hasWords(graph.nested(node), 1, 2);
                    break;
                }
            }
            coreMl =
                coreMl || (versioned && field.number >= 200 && field.type == wire::Type::Bytes);
        }
    } catch (const InputError&) { // cut off, or no protobuf: what was found counts
    }
    if (savedModel) return unsupported("a TensorFlow SavedModel", kFromTensorFlow);
    if (coreMl) return unsupported("a Core ML model", "open the model it was converted from");
    if (graphDef) return unsupported("a TensorFlow GraphDef", kFromTensorFlow);
    if (caffe) return unsupported("a Caffe2 model", kFromCaffe);
    return std::nullopt;
}

} // namespace

Recognised recognise(std::span<const std::byte> head, std::uint64_t fileSize) {
    const std::string_view file{reinterpret_cast<const char*>(head.data()), head.size()};
    const std::string_view start = file.substr(0, kHeadBytes);
    if (looksLikeGzip(head)) return unsupported("gzip", "unpack it first");
    if (looksLikeSafetensors(head, fileSize)) return {FileKind::Safetensors, "safetensors", {}};
    if (auto kind = byMagic(start)) return *kind;
    if (auto kind = byZip(file)) return *kind;
    if (auto kind = byText(start)) return *kind;
    if (looksLikeOnnx(head)) return {FileKind::Onnx, "ONNX", {}};
    if (auto kind = otherProtobuf(head)) return *kind;
    return unsupported("a file of an unknown kind",
                       "models can be ONNX, a Hugging Face config.json, safetensors with its "
                       "config.json beside it, GGUF, and programs as text (HLO, StableHLO, FX)");
}

} // namespace shardlens
