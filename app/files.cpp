// SPDX-License-Identifier: Apache-2.0
// See files.h.
#include "app/files.h"

namespace shardlens::app {

std::string readFile(const std::string& name) {
    constexpr std::size_t kMostBytes = std::size_t{1} << 28;
    std::ifstream in(name, std::ios::binary);
    if (!in) throw InputError("the file cannot be opened", name, "check its name");
    std::string text;
    for (char block[1 << 16]; in.read(block, sizeof block) || in.gcount() > 0;) {
        text.append(block, static_cast<std::size_t>(in.gcount()));
        if (text.size() > kMostBytes)
            throw InputError("the file is too large", name, "check its name");
    }
    if (in.bad()) throw InputError("the file cannot be read", name, "check its name");
    return text;
}

} // namespace shardlens::app
