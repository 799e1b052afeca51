// SPDX-License-Identifier: Apache-2.0
// Recognises problem files by content, from a small part of them.
#include "core/error.h"
#include "core/solve/contest_file.h"
#include "core/solve/text_source.h"

#include <fstream>
#include <string>

namespace shardlens::solve {

bool isContestFile(const std::filesystem::path& file) {
    constexpr std::size_t kHead = 4096; ///< bytes, more than enough for the first key
    std::string bytes(kHead, '\0');
    std::ifstream in(file, std::ios::binary);
    in.read(bytes.data(), kHead);
    bytes.resize(static_cast<std::size_t>(in.gcount()));
    const std::string wanted = R"({"problem":{)";
    std::string seen;
    try {
        TextSource text(bytes);
        for (auto at = text.begin(); at != text.end() && seen.size() < wanted.size(); ++at) {
            const bool blank = *at == ' ' || *at == '\n' || *at == '\r' || *at == '\t';
            if (!blank) seen += *at;
        }
    } catch (const InputError&) {
        // the head of a gzip file ends too soon, of course
    }
    return seen == wanted;
}

} // namespace shardlens::solve
