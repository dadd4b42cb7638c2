// Any bytes as model.safetensors.index.json: an error, or names that stay in the folder.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "io/safetensors_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paceline;
  const auto got = read_safetensors_index({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!got) {
    check(!got.error().message.empty(), "an error without a sentence");
    return 0;
  }
  check(!got->empty() && got->size() <= size, "more tensors than bytes that name them");
  check(std::ranges::is_sorted(*got, {}, &IndexedTensor::tensor), "names are not in order");
  for (const IndexedTensor& entry : *got)
    check(!leaves_folder(entry.file), "a file left the folder");
  return 0;
}
