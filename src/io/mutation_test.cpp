// Small valid files, damaged at random thousands of times: every time a value or an error, and a
// value can be read to its last element. What this misses, the fuzzers of tests/fuzz look for.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "io/gguf_reader.h"
#include "io/safetensors_index.h"
#include "io/safetensors_reader.h"
#include "io/test_files.h"

namespace paceline {
namespace {

constexpr int kRounds = 20'000;

using Random = std::mt19937_64;

// One to four changes: a byte, a 64-bit word made extreme, a cut, a piece doubled.
std::string damaged(std::string bytes, Random& random) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const auto changes = 1 + below(4);
  for (size_t i = 0; i < changes && !bytes.empty(); ++i) {
    const size_t at = below(bytes.size());
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2: {
        constexpr uint64_t kExtremes[] = {0, 1, ~uint64_t{0}, uint64_t{1} << 63, uint64_t{1} << 32};
        const uint64_t value = kExtremes[below(5)];
        bytes.replace(at, 8, reinterpret_cast<const char*>(&value), 8);
        break;
      }
      case 3:
        bytes.resize(at);
        break;
      default:
        bytes.insert(at, bytes.substr(below(bytes.size()), below(24)));
    }
  }
  return bytes;
}

// Reads every element; returns how many there are.
int64_t read_all(const std::vector<Tensor>& tensors) {
  int64_t elements = 0;
  for (const Tensor& tensor : tensors) {
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    dequantize(tensor, 0, values);
    elements += tensor.elements();
  }
  return elements;
}

// How many of the damaged files were read and how many refused: a test that saw only one kind would
// have tested little.
struct Seen {
  int read = 0;
  int refused = 0;
};

Seen damage(const std::string& whole, const std::function<bool(const std::string&)>& is_read) {
  Seen seen;
  Random random(1);
  EXPECT_TRUE(is_read(whole));
  for (int round = 0; round < kRounds; ++round) {
    // A copy of exactly its size on the heap: one byte too far is seen by the address checker.
    std::string bytes = damaged(whole, random);
    bytes.shrink_to_fit();
    ++(is_read(bytes) ? seen.read : seen.refused);
  }
  EXPECT_GT(seen.read, 100);
  EXPECT_GT(seen.refused, 100);
  return seen;
}

TEST(Mutation, GgufReaderAlwaysAnswers) {
  GgufBytes file(3, 4);
  file.key("a.b", 4, 1u).text("name").put(8u).text("text");
  file.text("list").put(9u).put(8u).put(uint64_t{2}).text("x").text("yz");
  file.text("numbers").put(9u).put(5u).put(uint64_t{3}).put(1).put(-2).put(3);
  file.info("f", {4, 2}, 0, 0).info("q", {32, 2}, 3, 32).info("b", {3}, 30, 96).pad(32);
  file.zeros(32 + 64 + 6);
  damage(file.bytes(), [](const std::string& bytes) {
    const auto got = read_gguf(bytes_of(bytes), "x");
    if (!got) return got.error().message.empty();
    EXPECT_GE(read_all(got->tensors), 0);
    for (const char* key : {"a.b", "name", "list", "numbers"}) {
      for (const std::string_view text :
           got->metadata.texts(key).value_or(std::vector<std::string_view>())) {
        EXPECT_LE(text.size(), bytes.size());
      }
      (void)got->metadata.integer(key);
      (void)got->metadata.integers(key);
      (void)got->metadata.numbers(key);
      (void)got->metadata.text(key);
    }
    return true;
  });
}

TEST(Mutation, SafetensorsReaderAlwaysAnswers) {
  const std::string whole = safetensors_bytes(
      R"({"__metadata__":{"k":"v"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("v":{"shape":[3],"data_offsets":[8,14],"dtype":"BF16"}}   )",
      std::string(14, 'd'));
  damage(whole, [](const std::string& bytes) {
    const auto got = read_safetensors(bytes_of(bytes), "x");
    if (!got) return got.error().message.empty();
    EXPECT_GE(read_all(got->tensors), 0);
    return true;
  });
}

TEST(Mutation, IndexReaderAlwaysAnswers) {
  const std::string whole =
      R"({"metadata":{"total_size":14},"weight_map":{"w":"a.safetensors","v":"b/c.safetensors"}})";
  damage(whole, [](const std::string& bytes) {
    const auto got = read_safetensors_index(bytes, "x");
    if (!got) return got.error().message.empty();
    for (const IndexedTensor& entry : *got) EXPECT_FALSE(leaves_folder(entry.file));
    return true;
  });
}

}  // namespace
}  // namespace paceline
