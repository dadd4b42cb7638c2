// Memory for weights and caches: aligned, zeroed, on huge pages where the system gives them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace paceline {

// One block of memory, page-aligned, filled with zeros, returned on destruction.
//
// Weights are read once a token from end to end; on 4 KiB pages some machines reach half of the
// bandwidth that they reach on 2 MiB pages. Transparent huge pages are asked for; huge_bytes() says
// what came.
class HugeBuffer {
 public:
  HugeBuffer() = default;
  // TooLarge when the system does not have the memory.
  static Result<HugeBuffer> allocate(size_t bytes);
  ~HugeBuffer();
  HugeBuffer(HugeBuffer&& other) noexcept;
  HugeBuffer& operator=(HugeBuffer&& other) noexcept;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  // How many bytes stand on pages of 2 MiB, as the kernel reports it now; pages appear when they
  // are first written.
  size_t huge_bytes() const;

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t mapped_ = 0;  // bytes mapped: size_ rounded up
};

// Memory that a new allocation could take without swapping, in bytes: what the kernel calls
// MemAvailable, or what a container limit leaves, whichever is less.
uint64_t available_memory();

}  // namespace paceline
