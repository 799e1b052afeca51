// SPDX-License-Identifier: Apache-2.0
// What an import has to tell the user besides the graph: one sentence a matter, however often it
// occurs, in the order in which matters came up.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shardlens::onnx {

class Report {
public:
    void opaque(std::string type) { add(m_opaque, std::move(type)); }
    void unknownShape(std::string value);
    void dataDependent(std::string type) { add(m_dataDependent, std::move(type)); }
    /// A Concat that mixes tensors of rank 1 and 0: `node` is its index in the file.
    void mixedRanks(std::size_t node) { m_mixedRanks.push_back(node); }
    void say(std::string sentence) { m_sentences.push_back(std::move(sentence)); }

    std::vector<std::string> sentences() const;

private:
    using Counts = std::map<std::string, std::size_t>;
    static void add(Counts& counts, std::string key);

    Counts m_opaque, m_dataDependent;
    std::vector<std::size_t> m_mixedRanks;
    std::string m_firstUnknown;
    std::size_t m_unknown = 0;
    std::vector<std::string> m_sentences;
};

} // namespace shardlens::onnx
