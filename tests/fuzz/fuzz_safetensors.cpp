// Any bytes as a safetensors file: an error, or contents that can be read whole.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "io/safetensors_reader.h"

namespace {

void fuzz_file(std::span<const std::byte> file) {
  using namespace paceline;
  const auto got = read_safetensors(file, "fuzz");
  if (!got) {
    check(!got.error().message.empty(), "an error without a sentence");
    return;
  }
  size_t tensor_bytes = 0;
  for (const Tensor& tensor : got->tensors) {
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    dequantize(tensor, 0, values);
    tensor_bytes += tensor.data.size();
  }
  check(tensor_bytes <= file.size(), "tensors share bytes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  fuzz_file(bytes);
  // The length in front is hard to guess; with the right one more inputs reach the parser. The rest
  // is header up to the last '}', data behind it.
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const uint64_t header = text.rfind('}') == std::string_view::npos ? size : text.rfind('}') + 1;
  std::string file(reinterpret_cast<const char*>(&header), sizeof(header));
  file += text;
  fuzz_file(std::as_bytes(std::span(file)));
  return 0;
}
