// SPDX-License-Identifier: Apache-2.0
// Any bytes as a sharding dump: a plan that is written back with the same content, or an
// InputError.
#include "core/error.h"
#include "core/import/sharding_dump.h"

#include <cstdlib>

using namespace shardlens;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    looksLikeShardingDump(text);
    try {
        const ShardingDump dump = parseShardingDump(text, "fuzz");
        for (const DumpEntry& entry : dump.entries) shardingOf(dump, entry);
        if (!(bytesPerDevice(dump, 4) >= 0)) std::abort();
        if (!(parseShardingDump(writeShardingDump(dump), "again") == dump)) std::abort();
    } catch (const InputError&) {
        return 0;
    }
    return 0;
}
