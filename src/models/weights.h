// Weights on their way from a checkpoint into packed memory.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "base/result.h"
#include "base/threads.h"
#include "io/checkpoint.h"
#include "kernels/packed.h"
#include "models/registry.h"

namespace paceline {

// Which row of the file becomes row r. Llama's GGUF files keep the rows of q and k in the order of
// rotated pairs (2i, 2i + 1); the kernels rotate halves.
enum class RowOrder { AsStored, PairsToHalves };
int64_t source_row(int64_t row, RowOrder order, int head_dim);

// Collects what a family asks for, then packs it all into one block of huge-page memory. Faults are
// remembered and reported together by load().
class WeightLoader {
 public:
  WeightLoader(const Checkpoint& checkpoint, WeightsType type);

  // Whether the checkpoint has the tensor.
  bool has(std::string_view name) const { return checkpoint_.find(name) != nullptr; }

  // (n_out, n_in). `to` must stay where it is until load(). head_dim: for PairsToHalves.
  void matrix(std::string_view name, int n_out, int n_in, PackedMatrix* to,
              RowOrder order = RowOrder::AsStored, int head_dim = 0);
  // n values, as float32.
  void vector(std::string_view name, int n, std::vector<float>* to,
              RowOrder order = RowOrder::AsStored, int head_dim = 0);

  // Tensors that nobody asked for are refused by load() where belongs(name) holds: those of a part
  // of the model that runs. family: for the error.
  void refuse_left_over(std::string family, std::function<bool(std::string_view)> belongs);

  // Reads everything. Missing and misshapen tensors are refused, each named; so is a tensor that
  // would change how one that is used must be read (packed weights with scales beside them).
  Result<HugeBuffer> load(ThreadPool& pool,
                          const std::function<void(std::string_view, double)>& progress);

  // After load(): tensors of the checkpoint that nobody asked for.
  const std::vector<std::string>& unused() const { return unused_; }
  // After load(): elements of all tensors asked for; bytes that one pass streams.
  int64_t parameters() const { return parameters_; }
  int64_t streamed_bytes() const { return streamed_bytes_; }

 private:
  struct Job {
    const Tensor* tensor;
    PackedMatrix* to;
    RowOrder order;
    int head_dim;
    size_t offset;
  };

  // Tiles of one matrix that are packed at a time.
  struct Piece {
    const Job* job;
    int64_t begin;  // tiles
    int64_t end;
    std::span<const std::byte> source;  // in the file
  };

  const Tensor* wanted(std::string_view name, const std::vector<int64_t>& shape);
  std::vector<Piece> pieces() const;
  void pack(const Piece& piece, std::byte* memory, ThreadPool& pool) const;

  const Checkpoint& checkpoint_;
  WeightsType type_;
  std::string family_;
  std::function<bool(std::string_view)> belongs_;
  std::vector<Job> jobs_;
  std::vector<std::string> used_;
  std::vector<std::string> unused_;
  std::vector<std::string> missing_;
  std::vector<std::string> misshapen_;
  size_t bytes_ = 0;
  int64_t parameters_ = 0;
  int64_t streamed_bytes_ = 0;
};

}  // namespace paceline
