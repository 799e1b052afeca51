// SPDX-License-Identifier: Apache-2.0
// Small HLO modules for tests, written as XLA prints them.
#pragma once

#include "core/error.h"
#include "core/import/hlo_import.h"
#include "core/model/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace shardlens::test::hlo {

inline Graph importText(const std::string& text) {
    return importHlo(text, "test.hlo", {});
}

/// A module whose ENTRY has this body; `before` holds other computations.
inline std::string moduleOf(const std::string& body, const std::string& before = {}) {
    return "HloModule m\n\n%sum (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = "
           "f32[] parameter(1)\n  ROOT %c = f32[] add(%a, %b)\n}\n\n%max (a: f32[], b: f32[]) -> "
           "f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n  ROOT %c = f32[] "
           "maximum(%a, %b)\n}\n\n" +
           before + "\nENTRY %main {\n" + body + "}\n";
}

/// The op that makes output `i`.
inline const Op& outputOp(const Graph& graph, std::size_t i = 0) {
    return graph.op(graph.tensor(graph.outputs()[i]).producer);
}

inline std::size_t countKind(const Graph& graph, OpKind kind) {
    return static_cast<std::size_t>(
        std::ranges::count_if(graph.ops(), [&](const Op& op) { return op.kind == kind; }));
}

/// The sentence an import ends in; empty if it does not.
inline std::string errorOf(const std::string& text) {
    try {
        importText(text);
    } catch (const InputError& error) {
        return error.what();
    }
    return {};
}

/// A scan over `layers` layers, as JAX writes it: stacked weights, saved activations, and a second
/// loop that goes through them backwards.
inline std::string scan(int layers, const std::string& config = {}) {
    return fmt::format(
        R"(HloModule jit_step, input_output_alias={{ {{0}}: (0, {{}}, may-alias) }}, num_partitions=1

%body (p: (s32[], f32[4,8], f32[{0},8,8], f32[{0},4,8])) -> (s32[], f32[4,8], f32[{0},8,8], f32[{0},4,8]) {{
  %p = (s32[], f32[4,8]{{1,0}}, f32[{0},8,8]{{2,1,0}}, f32[{0},4,8]{{2,1,0:T(8,128)}}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %x = f32[4,8]{{1,0}} get-tuple-element(%p), index=1
  %w = f32[{0},8,8]{{2,1,0}} get-tuple-element(%p), index=2
  %zero = s32[] constant(0)
  %wi = f32[1,8,8]{{2,1,0}} dynamic-slice(%w, %i, %zero, %zero), dynamic_slice_sizes={{1,8,8}}
  %wr = f32[8,8]{{1,0}} reshape(%wi)
  %y = f32[4,8]{{1,0}} dot(%x, %wr), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  %t = f32[4,8]{{1,0}} tanh(%y)
  %saved = f32[{0},4,8]{{2,1,0}} get-tuple-element(%p), index=3
  %xr = f32[1,4,8]{{2,1,0}} reshape(%x)
  %dus = f32[{0},4,8]{{2,1,0}} dynamic-update-slice(%saved, %xr, %i, %zero, /*index=4*/%zero)
  ROOT %r = (s32[], f32[4,8]{{1,0}}, f32[{0},8,8]{{2,1,0}}, f32[{0},4,8]{{2,1,0}}) tuple(%next, %t, %w, %dus)
}}

%condition (p: (s32[], f32[4,8], f32[{0},8,8], f32[{0},4,8])) -> pred[] {{
  %p = (s32[], f32[4,8]{{1,0}}, f32[{0},8,8]{{2,1,0}}, f32[{0},4,8]{{2,1,0}}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %n = s32[] constant({0})
  ROOT %lt = pred[] compare(%i, %n), direction=LT
}}

%back (p: (s32[], f32[4,8], f32[{0},8,8], f32[{0},4,8])) -> (s32[], f32[4,8], f32[{0},8,8], f32[{0},4,8]) {{
  %p = (s32[], f32[4,8]{{1,0}}, f32[{0},8,8]{{2,1,0}}, f32[{0},4,8]{{2,1,0}}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %last = s32[] constant({1})
  %j = s32[] subtract(%last, %i)
  %g = f32[4,8]{{1,0}} get-tuple-element(%p), index=1
  %dw = f32[{0},8,8]{{2,1,0}} get-tuple-element(%p), index=2
  %saved = f32[{0},4,8]{{2,1,0}} get-tuple-element(%p), index=3
  %zero = s32[] constant(0)
  %xi = f32[1,4,8]{{2,1,0}} dynamic-slice(%saved, %j, %zero, %zero), dynamic_slice_sizes={{1,4,8}}
  %x = f32[4,8]{{1,0}} reshape(%xi)
  %gw = f32[8,8]{{1,0}} dot(%x, %g), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  %gr = f32[1,8,8]{{2,1,0}} reshape(%gw)
  %dus = f32[{0},8,8]{{2,1,0}} dynamic-update-slice(%dw, %gr, %j, %zero, %zero)
  %gx = f32[4,8]{{1,0}} multiply(%g, %x)
  %gs = f32[4,8]{{1,0}} sine(%gx)
  ROOT %r = (s32[], f32[4,8]{{1,0}}, f32[{0},8,8]{{2,1,0}}, f32[{0},4,8]{{2,1,0}}) tuple(%next, %gs, %dus, %saved)
}}

ENTRY %main.1 (w: f32[{0},8,8], x: f32[4,8]) -> (f32[{0},8,8]) {{
  %w = f32[{0},8,8]{{2,1,0}} parameter(0)
  %x = f32[4,8]{{1,0}} parameter(1)
  %zero = s32[] constant(0)
  %nought = f32[] constant(0)
  %none = f32[{0},4,8]{{2,1,0}} broadcast(%nought), dimensions={{}}
  %init = (s32[], f32[4,8]{{1,0}}, f32[{0},8,8]{{2,1,0}}, f32[{0},4,8]{{2,1,0}}) tuple(%zero, %x, %w, %none)
  %while.1 = (s32[], f32[4,8]{{1,0}}, f32[{0},8,8]{{2,1,0}}, f32[{0},4,8]{{2,1,0}}) while(%init), condition=%condition, body=%body{2}
  %y = f32[4,8]{{1,0}} get-tuple-element(%while.1), index=1
  %acts = f32[{0},4,8]{{2,1,0}} get-tuple-element(%while.1), index=3
  %grads = f32[{0},8,8]{{2,1,0}} broadcast(%nought), dimensions={{}}
  %init2 = (s32[], f32[4,8]{{1,0}}, f32[{0},8,8]{{2,1,0}}, f32[{0},4,8]{{2,1,0}}) tuple(%zero, %y, %grads, %acts)
  %while.2 = (s32[], f32[4,8]{{1,0}}, f32[{0},8,8]{{2,1,0}}, f32[{0},4,8]{{2,1,0}}) while(%init2), condition=%condition, body=%back{2}
  %dw = f32[{0},8,8]{{2,1,0}} get-tuple-element(%while.2), index=2
  %new = f32[{0},8,8]{{2,1,0}} subtract(%w, %dw)
  ROOT %out = (f32[{0},8,8]{{2,1,0}}) tuple(%new)
}}
)",
        layers, layers - 1, config);
}

} // namespace shardlens::test::hlo
