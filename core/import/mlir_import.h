// SPDX-License-Identifier: Apache-2.0
// Reads StableHLO, MHLO and CHLO programs in MLIR text, with the shardings of the sdy dialect.
//
// "main" (else the first public function) is the graph; functions it calls are inlined, loops with
// a known number of turns are unrolled. Globals of floating-point type are parameters. Arguments of
// main are parameters where their name says so ("params['w']") or the program uses them as weights:
// second operand of a product without batch dimensions, kernel of a convolution, table of a lookup,
// or a vector that is broadcast. All other arguments are inputs.
// A main that is one sdy.manual_computation is one device's program: the graph has local shapes.
// Specification: https://openxla.org/stablehlo/spec, https://openxla.org/shardy.
#pragma once

#include "core/import/importer.h"

#include <string>
#include <string_view>

namespace shardlens {

/// @throws InputError with line and column; Cancelled
Graph importMlir(std::string_view text, const std::string& where, const ImportOptions& options);

} // namespace shardlens
