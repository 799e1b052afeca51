// SPDX-License-Identifier: Apache-2.0
// See session_bundle.h.
#include "core/store/session_bundle.h"

#include "core/model/graph_json.h"

#include <fstream>
#include <span>
#include <vector>

namespace shardlens {

bool isSessionFile(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) return false;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    std::ifstream file(path, std::ios::binary);
    std::vector<char> head(std::size_t{64} * 1024);
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(file.gcount()));
    return !error && recognise(std::as_bytes(std::span(head)), size).kind == FileKind::Session;
}

ModelBundle bundleOf(const Session& session, std::stop_token stop) {
    const SessionContent& content = session.content();
    const auto sizing = content.viewState.find(kSnapshotSizing);
    if (sizing != content.viewState.end() && sizing->second != sizingOf(content.request)) {
        return loadModel(content.model.absolutePath, importOptions(content.request, stop));
    }
    return bundleOf(graphFromJson(session.graph()), stop);
}

} // namespace shardlens
