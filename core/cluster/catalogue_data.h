// SPDX-License-Identifier: Apache-2.0
// The files of resources/hardware as text; catalogue_data.cpp is generated from them by CMake.
#pragma once

#include <string_view>

namespace shardlens::catalogue_data {

extern const std::string_view devicesCsv;
extern const std::string_view linksCsv;
extern const std::string_view clustersCsv;

} // namespace shardlens::catalogue_data
