// SPDX-License-Identifier: Apache-2.0
// The bytes of a text one after the other, inflated on the way if they are gzip. Only a small
// window of the text is in memory at a time.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <string_view>

namespace shardlens::solve {

class TextSource {
public:
    /// @param bytes stay where they are while this is used
    explicit TextSource(std::string_view bytes);
    ~TextSource();
    TextSource(const TextSource&) = delete;
    TextSource& operator=(const TextSource&) = delete;

    class Iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = char;
        using difference_type = std::ptrdiff_t;
        using pointer = const char*;
        using reference = char;

        char operator*() const { return *m_source->m_at; }
        Iterator& operator++() {
            if (++m_source->m_at == m_source->m_end) m_source->refill();
            return *this;
        }
        Iterator operator++(int) = delete;
        /// Compares with the end only.
        bool operator==(const Iterator& other) const { return atEnd() == other.atEnd(); }

    private:
        friend class TextSource;
        explicit Iterator(TextSource* source) : m_source(source) {}
        bool atEnd() const { return !m_source || m_source->m_at == m_source->m_end; }
        TextSource* m_source;
    };

    Iterator begin() { return Iterator(this); }
    Iterator end() { return Iterator(nullptr); }

private:
    struct Inflater;
    /// @throws InputError when the gzip data are damaged or cut off
    void refill();

    std::unique_ptr<Inflater> m_inflater; ///< none for plain text
    const char* m_at = nullptr;
    const char* m_end = nullptr;
};

} // namespace shardlens::solve
