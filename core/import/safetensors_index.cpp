// SPDX-License-Identifier: Apache-2.0
// Only plain names of files are followed, and only into the index's own folder.
#include "core/import/safetensors_index.h"

#include "core/error.h"
#include "core/import/hf_config.h"
#include "core/import/mapped_file.h"
#include "core/import/safetensors.h"
#include "core/import/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace shardlens {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostFiles = 10'000;
constexpr int kMostIndexDepth = 8;

/// "weight_map" and "metadata" while they are parsed; all else is dropped.
class IndexReader {
public:
    explicit IndexReader(const std::string& where) : m_where(where) {}

    SafetensorsIndex read(std::string_view text) {
        bool isObject = false;
        try {
            const Json root =
                Json::parse(text, [this](int depth, Json::parse_event_t event, Json& value) {
                    return visit(depth, event, value);
                });
            isObject = root.is_object();
        } catch (const Json::parse_error& error) {
            fail(fmt::format("not valid JSON at byte {}", error.byte));
        } catch (const Json::exception&) {
            fail("a number is out of range");
        }
        if (!isObject || m_index.files.empty()) fail("the index lists no tensors");
        return std::move(m_index);
    }

private:
    [[noreturn]] void fail(const std::string& problem) const {
        throw InputError(problem, m_where, "fetch the index again");
    }

    bool visit(int depth, Json::parse_event_t event, Json& value) {
        using Event = Json::parse_event_t;
        if (depth > kMostIndexDepth) fail("the JSON nests too deeply");
        if (event == Event::key) {
            if (depth <= 2) (depth == 1 ? m_section : m_key) = value.get<std::string>();
            return true;
        }
        if (depth == 1) return !isEnd(event);
        if (depth != 2 || !isEnd(event)) return true;
        if (m_section == "weight_map") addTensor(value);
        if (m_section == "metadata" && m_key == "total_size" && value.is_number_unsigned())
            m_index.totalSize = value.get<std::uint64_t>();
        return false;
    }

    static bool isEnd(Json::parse_event_t event) {
        using Event = Json::parse_event_t;
        return event == Event::object_end || event == Event::array_end || event == Event::value;
    }

    void addTensor(const Json& value) {
        if (!value.is_string())
            fail(fmt::format("the file of {} is no name", shardlens::inQuotes(m_key)));
        const std::string file = value.get<std::string>();
        const bool plain = !file.empty() && file != "." && file != ".." &&
                           file.find_first_of(std::string("/\\\0", 3)) == std::string::npos;
        if (!plain)
            throw InputError(
                fmt::format("the file {} is not one beside the index", shardlens::inQuotes(file)),
                m_where, "an index may only name files of its own folder");
        if (!m_index.files.emplace(m_key, file).second)
            fail(fmt::format("the tensor {} is listed twice", shardlens::inQuotes(m_key)));
    }

    const std::string& m_where;
    SafetensorsIndex m_index;
    std::string m_section, m_key;
};

struct Shards {
    std::vector<SafetensorsEntry> tensors;
    std::vector<std::string> missing; ///< files
    std::vector<std::string> lost;    ///< tensors that are not in the file that the index says
    std::size_t files = 0;
};

Shards readShards(const SafetensorsIndex& index, const std::filesystem::path& folder,
                  const ImportOptions& options, const std::string& where) {
    std::map<std::string, std::set<std::string>> byFile;
    for (const auto& [tensor, file] : index.files) byFile[file].insert(tensor);
    if (byFile.size() > kMostFiles)
        throw InputError(fmt::format("the index names {} files", byFile.size()), where,
                         "fetch the index again");
    Shards shards;
    shards.files = byFile.size();
    for (auto& [name, tensors] : byFile) {
        if (options.stop.stop_requested()) throw Cancelled();
        const std::filesystem::path path = folder / name;
        std::error_code error;
        if (!std::filesystem::is_regular_file(path, error)) {
            shards.missing.push_back(name);
            continue;
        }
        const MappedFile file(path);
        SafetensorsHeader header =
            parseSafetensorsHeader(file.bytes(), file.bytes().size(), path.string());
        for (SafetensorsEntry& entry : header.tensors) {
            tensors.erase(entry.name);
            shards.tensors.push_back(std::move(entry));
        }
        shards.lost.insert(shards.lost.end(), tensors.begin(), tensors.end());
    }
    return shards;
}

std::string someOf(const std::vector<std::string>& names) {
    constexpr std::size_t kMost = 3;
    std::vector<std::string> shown;
    for (const std::string& name : names)
        if (shown.size() < kMost) shown.push_back(shardlens::inQuotes(name));
    return fmt::format("{}{}", fmt::join(shown, ", "), names.size() > kMost ? ", …" : "");
}

void addFindings(Graph& graph, const SafetensorsIndex& index, const Shards& shards) {
    graph.facts["tensors in the weights index"] = fmt::format("{}", index.files.size());
    graph.facts["weights files"] = fmt::format("{}", shards.files);
    if (index.totalSize) graph.facts["bytes of weights"] = fmt::format("{}", *index.totalSize);
    if (!shards.missing.empty())
        graph.warnings.push_back(fmt::format(
            "{} of the {} weights files are not beside the index: {}; the shapes of their tensors "
            "are those of the config.",
            shards.missing.size(), shards.files, someOf(shards.missing)));
    if (!shards.lost.empty())
        graph.warnings.push_back(
            fmt::format("{} tensors are not in the file that the index says: {}.",
                        shards.lost.size(), someOf(shards.lost)));
    std::uint64_t bytes = 0;
    for (const SafetensorsEntry& entry : shards.tensors) bytes += entry.end - entry.begin;
    if (shards.missing.empty() && index.totalSize && bytes != *index.totalSize)
        graph.warnings.push_back(fmt::format("The weights files hold {} bytes, the index says {}.",
                                             bytes, *index.totalSize));
}

} // namespace

SafetensorsIndex parseSafetensorsIndex(std::string_view json, const std::string& where) {
    return IndexReader(where).read(json);
}

Graph importSafetensorsIndex(std::string_view json, const std::filesystem::path& path,
                             const ImportOptions& options) {
    const SafetensorsIndex index = parseSafetensorsIndex(json, path.string());
    const std::filesystem::path configPath = configBesideWeights(path);
    const Shards shards = readShards(index, configPath.parent_path(), options, path.string());
    const MappedFile config(configPath);
    const std::string_view text(reinterpret_cast<const char*>(config.bytes().data()),
                                config.bytes().size());
    Graph graph = importHfConfig(text, configPath.string(), options);
    graph.format = "safetensors index with HF config";
    compareWithWeights(graph, shards.tensors);
    addFindings(graph, index, shards);
    return graph;
}

} // namespace shardlens
