// SPDX-License-Identifier: Apache-2.0
// The front of core/layout: picks the engine for a graph and remembers drawings, so that equal
// blocks are laid out once and a picture that was seen comes back unchanged.
#pragma once

#include "core/layout/box_layout.h"

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace shardlens {

/// Equal inputs have equal hashes, on every machine and in every run.
std::uint64_t structuralHash(const LayoutInput& input);

/// Drawings by their problems, the least recently used forgotten first. Safe to share between
/// threads.
class LayoutCache {
public:
    /// @param maxItems boxes plus edges of all problems kept together
    explicit LayoutCache(std::size_t maxItems = 1'000'000);

    /// The drawing of an equal problem (sizes, edges and gaps), or null.
    std::shared_ptr<const LayoutResult> find(const LayoutInput& input);

    /// Keeps a drawing unless its problem alone exceeds the limit.
    void insert(const LayoutInput& input, std::shared_ptr<const LayoutResult> result);

    std::size_t size() const;

private:
    struct Entry {
        std::uint64_t hash;
        LayoutInput input;
        std::shared_ptr<const LayoutResult> result;
    };
    using Entries = std::list<Entry>;

    Entries::iterator findEntry(const LayoutInput& input, std::uint64_t hash);
    void forgetUntil(std::size_t items);

    mutable std::mutex m_mutex;
    std::size_t m_maxItems, m_items = 0;
    Entries m_entries; // most recently used first
    std::unordered_multimap<std::uint64_t, Entries::iterator> m_byHash;
};

struct LayouterOptions {
    std::string helperExecutable;                                ///< empty: never use Graphviz
    std::vector<std::string> helperArguments{"--layout-helper"}; ///< see runLayoutHelper()
    double timeLimitSeconds = 2;                                 ///< for Graphviz
    std::stop_token stop{};
    LayoutCache* cache = nullptr; ///< asked first and filled, if given
};

/// Up to maxGraphvizBoxes boxes by Graphviz in the helper, if there is one; all else, and what
/// Graphviz cannot do in time, by layeredLayout(). Blocks; call it from a background thread.
/// Throws InputError for bad input, Cancelled once a stop is requested.
LayoutResult layoutBoxes(const LayoutInput& input, const LayouterOptions& options);

} // namespace shardlens
