#include "base/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>

#include "fmt/format.h"

namespace paceline {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

Result<HugeBuffer> HugeBuffer::allocate(size_t bytes) {
  HugeBuffer buffer;
  if (bytes == 0) return buffer;
  // One page more than needed, so that the start can be moved to a huge-page border.
  if (bytes > std::numeric_limits<size_t>::max() - 2 * kHugePage)
    return Error{ErrorCode::TooLarge, fmt::format("cannot allocate {} bytes", bytes)};
  const size_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* raw = mmap(nullptr, rounded + kHugePage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED)
    return Error{ErrorCode::TooLarge,
                 fmt::format("cannot allocate {:.1f} MiB: {}",
                             static_cast<double>(rounded) / 1048576.0, std::strerror(errno))};
  auto* start = static_cast<std::byte*>(raw);
  auto* aligned = reinterpret_cast<std::byte*>(
      (reinterpret_cast<uintptr_t>(start) + kHugePage - 1) / kHugePage * kHugePage);
  if (aligned > start) munmap(start, aligned - start);
  if (size_t tail = start + kHugePage - aligned; tail > 0) munmap(aligned + rounded, tail);
  madvise(aligned, rounded, MADV_HUGEPAGE);  // a wish; huge_bytes() tells what came of it
  buffer.data_ = aligned;
  buffer.size_ = bytes;
  buffer.mapped_ = rounded;
  return buffer;
}

HugeBuffer::~HugeBuffer() {
  if (data_ != nullptr) munmap(data_, mapped_);
}

HugeBuffer::HugeBuffer(HugeBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

HugeBuffer& HugeBuffer::operator=(HugeBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

size_t HugeBuffer::huge_bytes() const {
  if (data_ == nullptr) return 0;
  // /proc/self/smaps: a header line "start-end perms ...", then one "Key: N kB" a line.
  std::ifstream smaps("/proc/self/smaps");
  const auto begin = reinterpret_cast<uintptr_t>(data_);
  const uintptr_t end = begin + mapped_;
  size_t found = 0;
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    unsigned long from = 0;
    unsigned long to = 0;
    size_t kilobytes = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) {
      inside = from < end && to > begin;
    } else if (inside && std::sscanf(line.c_str(), "AnonHugePages: %zu kB", &kilobytes) == 1) {
      found += kilobytes * 1024;
    }
  }
  // A neighbour may have been merged into the same mapping.
  return std::min(found, mapped_);
}

uint64_t available_memory() {
  uint64_t available = std::numeric_limits<uint64_t>::max();
  std::ifstream meminfo("/proc/meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    unsigned long long kilobytes = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %llu kB", &kilobytes) == 1)
      available = kilobytes * 1024;
  }
  std::ifstream limit_file("/sys/fs/cgroup/memory.max");
  std::ifstream used_file("/sys/fs/cgroup/memory.current");
  uint64_t limit = 0;
  uint64_t used = 0;
  if (limit_file >> limit && used_file >> used)
    available = std::min(available, limit > used ? limit - used : 0);
  return available;
}

}  // namespace paceline
