// SPDX-License-Identifier: Apache-2.0
// Graphviz in a process of its own: a layout that takes too long or is no longer wanted is killed,
// which is the only way to stop dot, and a crash there harms nobody. The program starts itself with
// a hidden flag as the helper; runLayoutHelper() is what it does then.
#pragma once

#include "core/layout/box_layout.h"

#include <iosfwd>
#include <string>
#include <vector>

namespace shardlens {

/// The helper's side: reads one layout problem a line (layout_json.h), answers each with one line,
/// the drawing by Graphviz or {"error": "..."}, until the input ends. Asks the kernel to end this
/// process when its parent ends. Returns the exit code: 0, or 1 if any line failed.
int runLayoutHelper(std::istream& input, std::ostream& output);

/// The caller's side. Each layout is one short-lived process, so that any number of threads may
/// share a HelperLayouter; no descriptor or process outlives the call.
class HelperLayouter {
public:
    /// @param executable path of a program that ends up in runLayoutHelper() when run with
    ///                   arguments; it is not searched in PATH
    /// @param timeLimitSeconds wall time after which the helper is killed
    HelperLayouter(std::string executable, std::vector<std::string> arguments,
                   double timeLimitSeconds);

    /// Drawn by the helper or, if that cannot be started, is too slow, fails or talks nonsense, by
    /// layeredLayout(), with the reason in note. Blocks; call it from a background thread. Throws
    /// InputError for bad input and Cancelled once stop is requested, then with the helper killed.
    LayoutResult layout(const LayoutInput& input, const std::stop_token& stop = {}) const;

private:
    LayoutResult ask(const LayoutInput& input, const std::stop_token& stop) const;

    std::string m_executable;
    std::vector<std::string> m_arguments;
    double m_timeLimitSeconds;
};

} // namespace shardlens
