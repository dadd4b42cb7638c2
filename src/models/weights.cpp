#include "models/weights.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <span>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/mapped_file.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "io/convert.h"
#include "io/shown.h"

namespace paceline {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kNamesInAnError = 20;

// The type of the file that the packed matrix holds.
DType type_to_pack(DType stored, WeightsType wanted) {
  if (wanted == WeightsType::F32) return DType::F32;
  if (wanted == WeightsType::BF16) return DType::BF16;
  return streamed_as(stored);
}

WeightType kernel_type(DType type) {
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
    default:
      check(false, "a type without kernels");
      return WeightType::F32;
  }
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

// Has the system read tensors before they are packed, on a thread of its own and at most kAhead
// pieces before the packing, so that disk and cores work at the same time. Nobody packs what has
// not been read: page faults of several threads, at several places, would make the disk's work
// random.
class ReadAhead {
 public:
  ReadAhead(const Checkpoint& checkpoint, std::vector<std::span<const std::byte>> pieces)
      : checkpoint_(checkpoint), pieces_(std::move(pieces)), thread_([this] { run(); }) {}
  ~ReadAhead() {
    stop_ = true;
    packed_ += 1;
    packed_.notify_one();
    thread_.join();
  }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Waits until the first `count` pieces are in memory.
  void wait_for(size_t count) const {
    for (size_t done = read_; done < count; done = read_) read_.wait(done);
  }
  // The first `count` pieces are done with.
  void packed(size_t count) {
    packed_ = count;
    packed_.notify_one();
  }

 private:
  static constexpr size_t kAhead = 8;

  void run() {
    for (const auto piece : pieces_) {
      for (size_t done = packed_; read_ >= done + kAhead && !stop_; done = packed_)
        packed_.wait(done);
      if (stop_) return;
      checkpoint_.read_ahead(piece);
      read_ += 1;
      read_.notify_one();
    }
  }

  const Checkpoint& checkpoint_;
  std::vector<std::span<const std::byte>> pieces_;
  std::atomic<size_t> read_ = 0;    // pieces in memory
  std::atomic<size_t> packed_ = 0;  // pieces done with
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace

int64_t source_row(int64_t row, RowOrder order, int head_dim) {
  if (order == RowOrder::AsStored) return row;
  const int64_t head = row / head_dim;
  const int64_t within = row % head_dim;
  const int64_t half = head_dim / 2;
  return head * head_dim + 2 * (within % half) + within / half;
}

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
  const DType packed = type_to_pack(tensor->type, type_);
  *to = {.type = kernel_type(packed), .n_out = n_out, .n_in = n_in, .data = nullptr};
  jobs_.push_back({tensor, to, order, head_dim, bytes_});
  bytes_ += (to->bytes() + kAlignment - 1) / kAlignment * kAlignment;
  streamed_bytes_ += static_cast<int64_t>(to->bytes());
}

void WeightLoader::vector(std::string_view name, int n, std::vector<float>* to, RowOrder order,
                          int head_dim) {
  const Tensor* tensor = wanted(name, {n});
  if (tensor == nullptr) return;
  checkpoint_.read_ahead(tensor->data);  // a page or two; a fault would read megabytes around them
  std::vector<float> stored(n);
  dequantize(*tensor, 0, stored);
  to->resize(n);
  for (int i = 0; i < n; ++i) (*to)[i] = stored[source_row(i, order, head_dim)];
  streamed_bytes_ += n * 4;
}

std::vector<WeightLoader::Piece> WeightLoader::pieces() const {
  constexpr int64_t kPieceBytes = int64_t{8} << 20;
  std::vector<Piece> pieces;
  for (const Job& job : jobs_) {
    const auto bytes = static_cast<int64_t>(job.tensor->data.size());
    const int64_t tiles = job.to->tiles();
    const int64_t tile_source = std::max<int64_t>(bytes * kTileOutputs / job.to->n_out, 1);
    // Rows that change places within a head are packed with the whole matrix.
    const int64_t step =
        job.order == RowOrder::AsStored ? std::max<int64_t>(kPieceBytes / tile_source, 1) : tiles;
    for (int64_t tile = 0; tile < tiles; tile += step) {
      const int64_t begin = std::min(tile * tile_source, bytes);
      const int64_t end = tile + step >= tiles ? bytes : (tile + step) * tile_source;
      pieces.push_back(
          {&job, tile, std::min(tile + step, tiles),
           job.tensor->data.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin))});
    }
  }
  return pieces;
}

void WeightLoader::pack(const Piece& piece, std::byte* memory, ThreadPool& pool) const {
  const Job& job = *piece.job;
  PackedMatrix& m = *job.to;
  std::byte* packed = memory + job.offset;
  const DType type = type_to_pack(job.tensor->type, type_);
  const bool as_stored = type == job.tensor->type;
  const size_t row_size = row_bytes(m.type, m.n_in);
  pool.split(piece.end - piece.begin, 1, [&](int64_t first, int64_t last) {
    // Rows of one tile in the type to be packed, where the file has another.
    std::vector<std::byte> converted(as_stored ? 0 : row_size * kTileOutputs);
    for (int64_t tile = piece.begin + first; tile < piece.begin + last; ++tile) {
      std::array<const std::byte*, kTileOutputs> rows = {};
      for (int o = 0; o < kTileOutputs; ++o) {
        const int64_t row = tile * kTileOutputs + o;
        if (row >= m.n_out) continue;
        const int64_t from = source_row(row, job.order, job.head_dim);
        if (as_stored) {
          rows[o] = job.tensor->data.data() + from * row_size;
          continue;
        }
        const auto to = std::span(converted).subspan(o * row_size, row_size);
        convert(*job.tensor, from * m.n_in, type, to);
        rows[o] = to.data();
      }
      pack_tile(m, static_cast<int>(tile), rows, packed);
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
  // In the order of the file, as disks like it.
  std::ranges::sort(jobs_, {}, [](const Job& job) { return job.tensor->data.data(); });
  const std::vector<Piece> work = pieces();
  std::vector<std::span<const std::byte>> sources;
  sources.reserve(work.size());
  for (const Piece& piece : work) sources.push_back(piece.source);
  ReadAhead ahead(checkpoint_, std::move(sources));
  for (size_t i = 0; i < work.size(); ++i) {
    if (progress) progress("loading", static_cast<double>(i) / static_cast<double>(work.size()));
    ahead.wait_for(i + 1);
    pack(work[i], memory->data(), pool);
    release_pages(work[i].source);  // so that weights do not stand in memory twice
    ahead.packed(i + 1);
  }
  if (progress) progress("loading", 1.0);
  return memory;
}

}  // namespace paceline
