#include "models/weights.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "io/convert.h"
#include "io/writer.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// A GGUF file that is gone when the test is done.
class ModelFile {
 public:
  // Random bytes below 0x28: read as halves or floats, wherever a type has its scales, they are
  // small and finite.
  explicit ModelFile(std::vector<TensorSpec> tensors) {
    std::string name = (fs::temp_directory_path() / "weightsXXXXXX").native();
    close(mkstemp(name.data()));
    path = name;
    std::mt19937 random(7);
    const auto written = write_gguf(path, {}, tensors, [&](size_t, int64_t, auto rows) {
      for (std::byte& byte : rows) byte = static_cast<std::byte>(random() % 0x28);
      return Result<void>();
    });
    if (!written) ADD_FAILURE() << written.error().message;
  }
  ~ModelFile() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  fs::path path;
};

std::vector<float> row_of(const PackedMatrix& matrix, int row) {
  std::vector<float> values(static_cast<size_t>(matrix.n_in));
  unpack_row(matrix, row, values);
  return values;
}

// The row as the file has it, in the type that it is converted to.
std::vector<float> converted_row(const Tensor& tensor, int64_t row, DType to) {
  const int64_t n = tensor.shape[1];
  std::vector<std::byte> bytes(static_cast<size_t>(n / block_length(to) * block_bytes(to)));
  convert(tensor, row * n, to, bytes);
  std::vector<float> values(static_cast<size_t>(n));
  dequantize({.name = "", .type = to, .shape = {n}, .data = bytes}, 0, values);
  return values;
}

// Every type, in matrices and in a table of embeddings, with rows left over in the last tile.
TEST(WeightLoader, ConvertsTypesWithoutKernels) {
  for (const DType type : {DType::Q5_0, DType::Q5_1, DType::Q2_K, DType::Q3_K, DType::Q4_K,
                           DType::Q5_K, DType::Q6_K, DType::Q4_0, DType::F16}) {
    const ModelFile file({{"token_embd.weight", type, {37, 512}}, {"q", type, {64, 256}}});
    const auto checkpoint = Checkpoint::open(file.path);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    for (const auto weights : {WeightsType::Native, WeightsType::F32, WeightsType::BF16}) {
      WeightLoader loader(*checkpoint, weights);
      PackedMatrix embedding;
      PackedMatrix q;
      loader.matrix("token_embd.weight", 37, 512, &embedding);
      loader.matrix("q", 64, 256, &q, RowOrder::PairsToHalves, 32);
      ThreadPool pool(2);
      const auto memory = loader.load(pool, {});
      ASSERT_TRUE(memory) << memory.error().message;

      DType to = streamed_as(type);
      if (weights == WeightsType::F32) to = DType::F32;
      if (weights == WeightsType::BF16) to = DType::BF16;
      for (const int row : {0, 15, 16, 36})
        EXPECT_EQ(row_of(embedding, row),
                  converted_row(*checkpoint->find("token_embd.weight"), row, to))
            << to_string(type) << " row " << row;
      // Heads of 32: row 1 of a head is its second pair's first half, row 16 the first pair's
      // second.
      for (const auto& [row, source] : {std::pair{0, 0}, {1, 2}, {16, 1}, {33, 34}, {63, 63}})
        EXPECT_EQ(row_of(q, row), converted_row(*checkpoint->find("q"), source, to))
            << to_string(type) << " row " << row;
    }
  }
}

// A matrix that is packed in several pieces, and one after it.
TEST(WeightLoader, PacksLargeMatricesPieceByPiece) {
  constexpr int kRows = 9'001;
  const ModelFile file({{"large", DType::F32, {kRows, 512}}, {"next", DType::BF16, {16, 33}}});
  const auto checkpoint = Checkpoint::open(file.path);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  WeightLoader loader(*checkpoint, WeightsType::Native);
  PackedMatrix large;
  PackedMatrix next;
  loader.matrix("next", 16, 33, &next);
  loader.matrix("large", kRows, 512, &large);
  ThreadPool pool(3);
  double last = 0;
  const auto memory = loader.load(pool, [&](std::string_view, double share) {
    EXPECT_GE(share, last);
    last = share;
  });
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_EQ(last, 1.0);
  for (int row = 0; row < kRows; row += 250)
    ASSERT_EQ(row_of(large, row), converted_row(*checkpoint->find("large"), row, DType::F32));
  EXPECT_EQ(row_of(large, kRows - 1),
            converted_row(*checkpoint->find("large"), kRows - 1, DType::F32));
  EXPECT_EQ(row_of(next, 15), converted_row(*checkpoint->find("next"), 15, DType::BF16));
}

}  // namespace
}  // namespace paceline
