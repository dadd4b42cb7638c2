// The keys and values of one sequence in every layer of a trunk with full attention.
#pragma once

#include <memory>
#include <span>

#include "base/memory.h"
#include "kernels/table.h"
#include "models/model.h"

namespace paceline {

struct KvShape {
  int n_layers = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
};

// A flat cache: position p of a chain stands at slot p, so rolling back is counting fewer rows.
// Keys lie in tiles of 16 positions, values a row a position (kernels/table.h, AttendArgs).
class KvCache final : public SequenceState {
 public:
  // TooLarge when the memory is not there, with both numbers.
  static Result<std::unique_ptr<KvCache>> make(const KvShape& shape, int capacity, CacheType type);

  int64_t bytes() const override { return static_cast<int64_t>(memory_.size()); }

  // Announces the block whose rows append() will write. Only chains: the branches of a tree need a
  // keep() that moves the rows of the path together.
  void open(const Block& block);

  // k, v (n_kv_heads * head_dim): row of the open block at `position`, in one layer.
  void append(int layer, int position, const float* k, const float* v, const KernelTable& table);

  // Fills the cache fields of args for one layer.
  void fill(int layer, AttendArgs& args) const;

 private:
  KvCache(const KvShape& shape, int capacity, CacheType type);

  std::byte* keys(int layer) const;
  std::byte* values(int layer) const;

  KvShape shape_;
  CacheElement element_;
  int value_stride_;
  size_t key_head_bytes_;
  size_t value_head_bytes_;
  HugeBuffer memory_;
};

}  // namespace paceline
