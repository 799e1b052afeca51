// SPDX-License-Identifier: Apache-2.0
// Opens a file, tells its kind from its content and hands it to the importer of that kind.
#include "core/import/importer.h"

#include "core/error.h"
#include "core/import/execution_trace.h"
#include "core/import/fx_text.h"
#include "core/import/gguf_import.h"
#include "core/import/gunzip.h"
#include "core/import/hf_config.h"
#include "core/import/hlo_import.h"
#include "core/import/mapped_file.h"
#include "core/import/mlir_import.h"
#include "core/import/model_explorer.h"
#include "core/import/onnx_import.h"
#include "core/import/safetensors.h"
#include "core/import/safetensors_index.h"
#include "core/import/text.h"
#include "core/import/torch_export.h"

#include <algorithm>
#include <utility>

namespace shardlens {

namespace {

void refuseUnsupported(const Recognised& recognised, const std::string& where) {
    if (recognised.kind == FileKind::Unsupported)
        throw InputError("this is " + recognised.name + ", which cannot be read as a model", where,
                         recognised.hint);
    if (recognised.kind == FileKind::Session)
        throw InputError("this is a Shardlens session, not a model", where, "open it as a session");
}

/// A file on its way to the importer of its kind.
struct Source {
    std::span<const std::byte> bytes; ///< unpacked
    const std::filesystem::path& path;
    bool zipped = false;
    std::string where; ///< for errors
    std::string_view text() const {
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
};

using ReadFunction = Graph (*)(const Source&, const ImportOptions&);

Graph readHfConfig(const Source& source, const ImportOptions& options) {
    return importHfConfig(source.text(), source.where, options);
}

Graph readOnnx(const Source& source, const ImportOptions& options) {
    Graph graph = importOnnx(source.bytes, source.where, options);
    graph.name = cleaned(source.path.stem().string());
    return graph;
}

Graph readSafetensors(const Source& source, const ImportOptions& options) {
    if (source.zipped)
        throw InputError("safetensors inside gzip cannot be read", source.where, "unpack it first");
    return importSafetensors(source.path, options);
}

Graph readSafetensorsIndex(const Source& source, const ImportOptions& options) {
    return importSafetensorsIndex(source.text(), source.path, options);
}

Graph readModelExplorer(const Source& source, const ImportOptions& options) {
    Graph graph = importModelExplorer(source.text(), source.where, options);
    graph.name = cleaned(source.path.stem().string());
    return graph;
}

Graph readGguf(const Source& source, const ImportOptions& options) {
    return importGguf(source.bytes, source.where, options);
}

Graph readMlir(const Source& source, const ImportOptions& options) {
    Graph graph = importMlir(source.text(), source.where, options);
    if (graph.name.empty()) graph.name = cleaned(source.path.stem().string());
    return graph;
}

Graph readFx(const Source& source, const ImportOptions& options) {
    Graph graph = importFx(source.text(), source.where, options);
    graph.name = cleaned(source.path.stem().string());
    return graph;
}

Graph readTorchExport(const Source& source, const ImportOptions& options) {
    Graph graph = source.text().starts_with("PK")
                      ? importTorchArchive(source.bytes, source.where, options)
                      : importTorchExport(source.text(), source.where, options);
    graph.name = cleaned(source.path.stem().string());
    return graph;
}

Graph readExecutionTrace(const Source& source, const ImportOptions& options) {
    Graph graph = importExecutionTrace(source.text(), source.where, options);
    graph.name = cleaned(source.path.stem().string());
    return graph;
}

Graph readHlo(const Source& source, const ImportOptions& options) {
    return importHlo(source.text(), source.where, options);
}

constexpr std::pair<FileKind, ReadFunction> kReaders[] = {
    {FileKind::HfConfig, readHfConfig},
    {FileKind::Onnx, readOnnx},
    {FileKind::Safetensors, readSafetensors},
    {FileKind::MlirText, readMlir},
    {FileKind::FxText, readFx},
    {FileKind::TorchExport, readTorchExport},
    {FileKind::ExecutionTrace, readExecutionTrace},
    {FileKind::Gguf, readGguf},
    {FileKind::SafetensorsIndex, readSafetensorsIndex},
    {FileKind::ModelExplorer, readModelExplorer},
    {FileKind::HloText, readHlo},
};

Graph importBytes(std::span<const std::byte> bytes, const std::filesystem::path& path, bool zipped,
                  const ImportOptions& options) {
    const Source source{bytes, path, zipped, path.string()};
    const Recognised recognised = recognise(bytes, bytes.size());
    refuseUnsupported(recognised, source.where);
    const auto reader =
        std::ranges::find(kReaders, recognised.kind, &std::pair<FileKind, ReadFunction>::first);
    if (reader == std::ranges::end(kReaders))
        throw InputError("there is no reader for " + recognised.name, source.where);
    return reader->second(source, options);
}

} // namespace

Graph importModel(const std::filesystem::path& path, const ImportOptions& options) {
    const MappedFile file(path);
    if (!looksLikeGzip(file.bytes())) return importBytes(file.bytes(), path, false, options);

    // Look at the beginning first: what is not a model need not be unpacked.
    constexpr std::size_t kHeadBytes = std::size_t{64} * 1024;
    const std::vector<std::byte> head = gunzipHead(file.bytes(), kHeadBytes);
    const bool whole = head.size() < kHeadBytes;
    if (!whole) {
        const Recognised recognised = recognise(head, kMaxUnzippedBytes);
        const bool mayBeOnnx = recognised.name == "a file of an unknown kind";
        if (!mayBeOnnx) refuseUnsupported(recognised, path.string());
    }
    const std::vector<std::byte> content = gunzip(file.bytes(), path.string(), options.stop);
    return importBytes(content, path, true, options);
}

} // namespace shardlens
