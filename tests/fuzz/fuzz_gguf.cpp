// Any bytes as a GGUF file: an error, or contents that can be read to the last element.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "io/gguf_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paceline;
  const auto got = read_gguf(std::as_bytes(std::span(data, size)), "fuzz");
  if (!got) {
    check(!got.error().message.empty(), "an error without a sentence");
    return 0;
  }
  size_t tensor_bytes = 0;
  for (const Tensor& tensor : got->tensors) {
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    dequantize(tensor, 0, values);
    tensor_bytes += tensor.data.size();
  }
  check(tensor_bytes <= size, "tensors share bytes");
  for (const char* key : {"a", "general.alignment", "tokenizer.ggml.tokens"}) {
    const GgufMetadata& metadata = got->metadata;
    (void)metadata.integer(key);
    (void)metadata.number(key);
    (void)metadata.boolean(key);
    (void)metadata.integers(key);
    (void)metadata.numbers(key);
    if (const auto text = metadata.text(key)) check(text->size() <= size, "a text too long");
    if (const auto texts = metadata.texts(key)) check(texts->size() <= size, "too many texts");
  }
  return 0;
}
