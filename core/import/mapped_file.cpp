// SPDX-License-Identifier: Apache-2.0
// Mapping of a file by mmap(2). The descriptor is closed at once: the mapping keeps the file.
#include "core/import/mapped_file.h"

#include "core/error.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace shardlens {

namespace {

/// Closes a file descriptor when it goes out of scope.
struct Descriptor {
    int value;
    ~Descriptor() {
        if (value >= 0) ::close(value);
    }
};

} // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
    const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file.value < 0)
        throw InputError(std::string("cannot be opened: ") + std::strerror(errno), path.string(),
                         "check the path and its permissions");
    struct stat status{};
    if (::fstat(file.value, &status) != 0)
        throw InputError(std::string("cannot be read: ") + std::strerror(errno), path.string());
    if (S_ISDIR(status.st_mode))
        throw InputError("is a folder, not a model file", path.string(),
                         "open the config.json or the .onnx file inside it");
    if (!S_ISREG(status.st_mode)) throw InputError("is not a regular file", path.string());
    if (status.st_size == 0) throw InputError("the file is empty", path.string());

    const auto size = static_cast<std::size_t>(status.st_size);
    void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value, 0);
    if (memory == MAP_FAILED)
        throw InputError(std::string("cannot be mapped: ") + std::strerror(errno), path.string());
    m_bytes = {static_cast<const std::byte*>(memory), size};
}

MappedFile::~MappedFile() {
    if (!m_bytes.empty())
        ::munmap(const_cast<std::byte*>(m_bytes.data()), m_bytes.size()); // NOLINT: munmap's type
}

MappedFile::MappedFile(MappedFile&& other) noexcept : m_bytes(std::exchange(other.m_bytes, {})) {
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(m_bytes, other.m_bytes);
    return *this;
}

} // namespace shardlens
