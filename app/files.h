// SPDX-License-Identifier: Apache-2.0
// Files that subcommands read and write whole.
#pragma once

#include "core/error.h"

#include <fstream>
#include <string>

namespace shardlens::app {

/// @throws InputError if it cannot be read, or has more than 256 MiB
std::string readFile(const std::string& name);

/// @param write called with a std::ostream @throws Error if not all of it was written
void writeFile(const std::string& name, auto&& write) {
    std::ofstream file(name, std::ios::binary);
    write(file);
    file.close();
    if (!file) throw Error("the file could not be written", name, "check folder and free space");
}

} // namespace shardlens::app
