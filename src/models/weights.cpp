#include "models/weights.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/mapped_file.h"
#include "base/types.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "io/shown.h"

namespace paceline {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kNamesInAnError = 20;

WeightType packed_type(DType type, WeightsType wanted) {
  if (wanted == WeightsType::F32) return WeightType::F32;
  if (wanted == WeightsType::BF16) return WeightType::BF16;
  switch (type) {
    case DType::F32:
      return WeightType::F32;
    case DType::F16:
      return WeightType::F16;
    case DType::BF16:
      return WeightType::BF16;
    case DType::Q8_0:
      return WeightType::Q8_0;
    case DType::Q4_0:
      return WeightType::Q4_0;
    case DType::Q4_1:
      return WeightType::Q4_1;
  }
  return WeightType::F32;
}

bool is_stored_as(DType stored, WeightType packed) {
  return packed == packed_type(stored, WeightsType::Native);
}

// Row r of a matrix whose heads rotate halves, in a file whose heads rotate pairs.
int64_t source_row(int64_t row, RowOrder order, int head_dim) {
  if (order == RowOrder::AsStored) return row;
  const int64_t head = row / head_dim;
  const int64_t within = row % head_dim;
  const int64_t half = head_dim / 2;
  return head * head_dim + 2 * (within % half) + within / half;
}

// The weight that a tensor of scales or offsets belongs to, by the names that packed checkpoints
// use; empty for any other tensor.
std::string companion_of(std::string_view name) {
  for (const std::string_view ending : {".scales", ".biases", ".weight_scale", ".weight_scale_inv",
                                        ".weight_scale_2", ".weight_global_scale", ".qzeros"})
    if (name.ends_with(ending))
      return std::string(name.substr(0, name.size() - ending.size())) + ".weight";
  return {};
}

}  // namespace

WeightLoader::WeightLoader(const Checkpoint& checkpoint, WeightsType type)
    : checkpoint_(checkpoint), type_(type) {}

void WeightLoader::refuse_left_over(std::string family,
                                    std::function<bool(std::string_view)> belongs) {
  family_ = std::move(family);
  belongs_ = std::move(belongs);
}

const Tensor* WeightLoader::wanted(std::string_view name, const std::vector<int64_t>& shape) {
  const Tensor* tensor = checkpoint_.find(name);
  if (tensor == nullptr) {
    missing_.emplace_back(name);
    return nullptr;
  }
  used_.emplace_back(name);
  if (tensor->shape != shape) {
    misshapen_.push_back(fmt::format("{} is [{}], wanted [{}]", name,
                                     fmt::join(tensor->shape, ", "), fmt::join(shape, ", ")));
    return nullptr;
  }
  parameters_ += tensor->elements();
  return tensor;
}

void WeightLoader::matrix(std::string_view name, int n_out, int n_in, PackedMatrix* to,
                          RowOrder order, int head_dim) {
  const Tensor* tensor = wanted(name, {n_out, n_in});
  if (tensor == nullptr) return;
  *to = {.type = packed_type(tensor->type, type_), .n_out = n_out, .n_in = n_in, .data = nullptr};
  jobs_.push_back({tensor, to, order, head_dim, bytes_});
  bytes_ += (to->bytes() + kAlignment - 1) / kAlignment * kAlignment;
  streamed_bytes_ += static_cast<int64_t>(to->bytes());
}

void WeightLoader::vector(std::string_view name, int n, std::vector<float>* to, RowOrder order,
                          int head_dim) {
  const Tensor* tensor = wanted(name, {n});
  if (tensor == nullptr) return;
  std::vector<float> stored(n);
  dequantize(*tensor, 0, stored);
  to->resize(n);
  for (int i = 0; i < n; ++i) (*to)[i] = stored[source_row(i, order, head_dim)];
  streamed_bytes_ += n * 4;
}

void WeightLoader::pack(const Job& job, std::byte* memory, ThreadPool& pool) const {
  PackedMatrix& m = *job.to;
  std::byte* packed = memory + job.offset;
  const size_t tile_size = tile_bytes(m.type, m.n_in);
  const bool as_stored = is_stored_as(job.tensor->type, m.type);
  const size_t stored_row = as_stored ? row_bytes(m.type, m.n_in) : 0;
  pool.split(m.tiles(), 1, [&](int64_t begin, int64_t end) {
    // Rows of one tile in the type to be packed, where the file has another.
    std::vector<float> wide(as_stored ? 0 : m.n_in);
    std::vector<std::byte> converted(as_stored ? 0 : row_bytes(m.type, m.n_in) * kTileOutputs);
    for (int64_t tile = begin; tile < end; ++tile) {
      std::array<const std::byte*, kTileOutputs> rows = {};
      for (int o = 0; o < kTileOutputs; ++o) {
        const int64_t row = tile * kTileOutputs + o;
        if (row >= m.n_out) continue;
        const int64_t from = source_row(row, job.order, job.head_dim);
        if (as_stored) {
          rows[o] = job.tensor->data.data() + from * stored_row;
          continue;
        }
        dequantize(*job.tensor, from * m.n_in, wide);
        std::byte* to = converted.data() + o * row_bytes(m.type, m.n_in);
        if (m.type == WeightType::F32) {
          std::copy_n(reinterpret_cast<const std::byte*>(wide.data()), wide.size() * 4, to);
        } else {
          for (int k = 0; k < m.n_in; ++k) {
            const bf16 x = to_bf16(wide[k]);
            std::copy_n(reinterpret_cast<const std::byte*>(&x), 2, to + 2 * k);
          }
        }
        rows[o] = to;
      }
      pack_tile(m.type, m.n_in, rows, packed + tile * tile_size);
    }
  });
  m.data = packed;
}

Result<HugeBuffer> WeightLoader::load(
    ThreadPool& pool, const std::function<void(std::string_view, double)>& progress) {
  const std::string place = checkpoint_.path().string();
  if (!missing_.empty())
    return Error{ErrorCode::BadFormat,
                 fmt::format("{}: {} tensors are missing: {}", place, missing_.size(),
                             listed(missing_, kNamesInAnError))};
  if (!misshapen_.empty())
    return Error{ErrorCode::BadFormat,
                 fmt::format("{}: {} tensors have other shapes: {}", place, misshapen_.size(),
                             listed(misshapen_, kNamesInAnError))};
  std::sort(used_.begin(), used_.end());
  const auto is_used = [&](std::string_view name) {
    return std::binary_search(used_.begin(), used_.end(), name);
  };
  std::vector<std::string> left_over;
  for (const Tensor& tensor : checkpoint_.tensors()) {
    if (is_used(tensor.name)) continue;
    if (const auto owner = companion_of(tensor.name); !owner.empty() && is_used(owner))
      return Error{ErrorCode::Unsupported,
                   fmt::format("{}: {} says that {} is packed in a way that is not supported",
                               place, tensor.name, owner)};
    unused_.push_back(tensor.name);
    if (belongs_ && belongs_(tensor.name)) left_over.push_back(tensor.name);
  }
  if (!left_over.empty())
    return Error{ErrorCode::Unsupported,
                 fmt::format("{}: {} tensors of its layers are no part of family {} and would "
                             "change its results: {}",
                             place, left_over.size(), family_, listed(left_over, kNamesInAnError))};
  if (bytes_ > available_memory())
    return Error{ErrorCode::TooLarge, fmt::format("{}: the weights take {} MiB, {} MiB are free",
                                                  place, bytes_ >> 20, available_memory() >> 20)};
  auto memory = HugeBuffer::allocate(bytes_);
  if (!memory) return memory.error();
  size_t done = 0;
  for (const Job& job : jobs_) {
    if (progress) progress("loading", static_cast<double>(done) / static_cast<double>(bytes_));
    pack(job, memory->data(), pool);
    release_pages(job.tensor->data);  // so that weights do not stand in memory twice
    done += job.to->bytes();
  }
  if (progress) progress("loading", 1.0);
  return memory;
}

}  // namespace paceline
