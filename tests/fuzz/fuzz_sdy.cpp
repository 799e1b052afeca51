// SPDX-License-Identifier: Apache-2.0
// Any bytes as a mesh, a sharding or a list of shardings of the sdy dialect.
#include "core/error.h"
#include "core/import/sdy_text.h"

using namespace shardlens;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto tryTo = [](auto parse) {
        try {
            parse();
        } catch (const InputError&) {
            return;
        }
    };
    tryTo([&] { parseSdyMesh(text, "fuzz"); });
    tryTo([&] { parseSdyShardings(text, "fuzz"); });
    tryTo([&] {
        const SdySharding sharding = parseSdySharding(text, "fuzz");
        SdyAxes axes({{{"x", 8}, {"y", 6}}, {}});
        axes.add(sharding, "fuzz");
        axes.translate(sharding);
        axes.axes();
    });
    return 0;
}
