// SPDX-License-Identifier: Apache-2.0
// Any bytes as a weights file: a header whose tensors tile the file, or an InputError. Inputs come
// twice: as they are, and as the JSON behind a right length, which random bytes would never have.
#include "core/error.h"
#include "core/import/safetensors.h"

#include <cstdlib>

using namespace shardlens;

namespace {

void parse(const std::string& bytes, std::uint64_t fileSize) {
    try {
        const SafetensorsHeader header =
            parseSafetensorsHeader(std::as_bytes(std::span(bytes)), fileSize, "fuzz");
        std::uint64_t at = 0;
        for (const SafetensorsEntry& entry : header.tensors) {
            if (entry.begin != at || entry.end < at) std::abort();
            at = entry.end;
        }
        if (at + header.headerBytes + 8 != fileSize) std::abort();
    } catch (const InputError&) {
        return;
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    parse(text, size);
    std::string framed;
    for (unsigned shift = 0; shift < 64; shift += 8)
        framed.push_back(static_cast<char>((std::uint64_t{size} >> shift) & 0xff));
    framed += text;
    for (const std::size_t dataBytes : {0U, 4U, 16U}) parse(framed, framed.size() + dataBytes);
    return 0;
}
