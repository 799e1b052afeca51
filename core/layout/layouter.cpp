// SPDX-License-Identifier: Apache-2.0
// The choice of the engine and the cache of drawings.
#include "core/layout/layouter.h"

#include "core/layout/graphviz_layout.h"
#include "core/layout/layered_layout.h"
#include "core/layout/layout_process.h"

#include <bit>
#include <utility>

namespace shardlens {

namespace {

// FNV-1a over the bytes of 64-bit words.
class Hasher {
public:
    void add(std::uint64_t word) {
        for (int shift = 0; shift < 64; shift += 8)
            m_hash = (m_hash ^ ((word >> shift) & 0xff)) * 0x100000001b3ull;
    }
    void add(double value) { add(std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value)); }
    std::uint64_t hash() const { return m_hash; }

private:
    std::uint64_t m_hash = 0xcbf29ce484222325ull;
};

std::size_t itemsOf(const LayoutInput& input) {
    return 1 + input.boxes.size() + input.edges.size();
}

LayoutResult layoutUncached(const LayoutInput& input, const LayouterOptions& options) {
    if (options.helperExecutable.empty() || input.boxes.size() > maxGraphvizBoxes)
        return layeredLayout(input, options.stop);
    const HelperLayouter helper(options.helperExecutable, options.helperArguments,
                                options.timeLimitSeconds);
    return helper.layout(input, options.stop);
}

} // namespace

std::uint64_t structuralHash(const LayoutInput& input) {
    Hasher hasher;
    hasher.add(std::uint64_t{input.boxes.size()});
    for (const auto [width, height] : input.boxes) {
        hasher.add(width);
        hasher.add(height);
    }
    for (const auto [from, to] : input.edges) hasher.add(std::uint64_t{from} << 32 | to);
    hasher.add(input.rankGap);
    hasher.add(input.nodeGap);
    hasher.add(std::uint64_t{input.leftToRight});
    return hasher.hash();
}

LayoutCache::LayoutCache(std::size_t maxItems) : m_maxItems(maxItems) {
}

LayoutCache::Entries::iterator LayoutCache::findEntry(const LayoutInput& input,
                                                      std::uint64_t hash) {
    const auto [begin, end] = m_byHash.equal_range(hash);
    for (auto i = begin; i != end; ++i)
        if (i->second->input == input) return i->second;
    return m_entries.end();
}

std::shared_ptr<const LayoutResult> LayoutCache::find(const LayoutInput& input) {
    const std::uint64_t hash = structuralHash(input);
    const std::lock_guard lock(m_mutex);
    const auto entry = findEntry(input, hash);
    if (entry == m_entries.end()) return nullptr;
    m_entries.splice(m_entries.begin(), m_entries, entry);
    return entry->result;
}

void LayoutCache::insert(const LayoutInput& input, std::shared_ptr<const LayoutResult> result) {
    const std::uint64_t hash = structuralHash(input);
    const std::size_t items = itemsOf(input);
    if (items > m_maxItems) return;
    const std::lock_guard lock(m_mutex);
    if (findEntry(input, hash) != m_entries.end()) return;
    forgetUntil(m_maxItems - items);
    m_entries.push_front({hash, input, std::move(result)});
    m_byHash.emplace(hash, m_entries.begin());
    m_items += items;
}

void LayoutCache::forgetUntil(std::size_t items) {
    while (m_items > items) {
        const auto oldest = std::prev(m_entries.end());
        const auto [begin, end] = m_byHash.equal_range(oldest->hash);
        for (auto i = begin; i != end; ++i)
            if (i->second == oldest) {
                m_byHash.erase(i);
                break;
            }
        m_items -= itemsOf(oldest->input);
        m_entries.erase(oldest);
    }
}

std::size_t LayoutCache::size() const {
    const std::lock_guard lock(m_mutex);
    return m_entries.size();
}

LayoutResult layoutBoxes(const LayoutInput& input, const LayouterOptions& options) {
    throwIfStopped(options.stop);
    if (options.cache != nullptr)
        if (const auto known = options.cache->find(input)) return *known;
    LayoutResult result = layoutUncached(input, options);
    if (options.cache != nullptr)
        options.cache->insert(input, std::make_shared<const LayoutResult>(result));
    return result;
}

} // namespace shardlens
