// SPDX-License-Identifier: Apache-2.0
// SHA-1 comes with Boost.UUID, which needs it for name-based ids (RFC 4122).
#include "core/store/model_reference.h"

#include "core/error.h"

#include <boost/uuid/detail/sha1.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <system_error>
#include <vector>

namespace shardlens {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kHashedBytes = std::uint64_t{64} << 20;
constexpr std::size_t kChunk = std::size_t{1} << 20;

[[noreturn]] void unreadable(const fs::path& path, const std::string& why) {
    throw StoreError(fmt::format("the model file cannot be read ({})", why), path.string(),
                     "check the path and its permissions");
}

std::string hashOf(const fs::path& path, std::uint64_t bytes) {
    std::ifstream stream(path, std::ios::binary);
    boost::uuids::detail::sha1 sha1;
    std::vector<char> chunk(kChunk);
    std::uint64_t left = std::min(bytes, kHashedBytes);
    while (left > 0) {
        const std::uint64_t wanted = std::min<std::uint64_t>(left, kChunk);
        if (!stream.read(chunk.data(), static_cast<std::streamsize>(wanted)))
            unreadable(path, "it ends early");
        sha1.process_bytes(chunk.data(), wanted);
        left -= wanted;
    }
    boost::uuids::detail::sha1::digest_type digest;
    sha1.get_digest(digest);
    std::string text = bytes > kHashedBytes ? "sha1-head:" : "sha1:";
    for (const unsigned int word : digest) text += fmt::format("{:08x}", word);
    return text;
}

std::int64_t modifiedTime(const fs::path& path) {
    const auto time = std::chrono::file_clock::to_sys(fs::last_write_time(path));
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

} // namespace

ModelReference describeModelFile(const fs::path& path, std::string format) {
    std::error_code error;
    if (!fs::is_regular_file(path, error))
        unreadable(path, error ? error.message() : "it is not a regular file");
    try {
        ModelReference reference;
        reference.path = path.string();
        reference.absolutePath = fs::absolute(path).lexically_normal().string();
        reference.format = std::move(format);
        reference.bytes = fs::file_size(path);
        reference.modified = modifiedTime(path);
        reference.hash = hashOf(path, reference.bytes);
        return reference;
    } catch (const fs::filesystem_error& failure) {
        unreadable(path, failure.code().message());
    }
}

ModelFileState checkModelFile(const ModelReference& reference) {
    const fs::path path = reference.absolutePath;
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return ModelFileState::Missing;
    try {
        const std::uint64_t bytes = fs::file_size(path);
        if (bytes != reference.bytes) return ModelFileState::Changed;
        if (modifiedTime(path) == reference.modified) return ModelFileState::Same;
        return hashOf(path, bytes) == reference.hash ? ModelFileState::Same
                                                     : ModelFileState::Changed;
    } catch (const std::exception&) {
        return ModelFileState::Missing;
    }
}

} // namespace shardlens
