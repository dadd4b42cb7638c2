// The keys and values of one sequence in every layer of a trunk with attention, full or in sliding
// windows.
#pragma once

#include <memory>
#include <vector>

#include "kernels/table.h"
#include "models/kv_memory.h"
#include "models/model.h"
#include "models/window_ring.h"

namespace paceline {

struct KvShape {
  int n_layers = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  CacheType type = CacheType::F16;
  int window = 0;                 // positions that a sliding layer sees, its own among them
  std::vector<bool> slides = {};  // a layer; empty: none

  bool layer_slides(int layer) const { return !slides.empty() && slides[layer]; }
  int n_sliding() const;
  size_t key_bytes() const;    // of one head in one page
  size_t value_bytes() const;  // the same for values
  size_t head_bytes() const { return key_bytes() + value_bytes(); }
  size_t layer_bytes() const { return head_bytes() * n_kv_heads; }
  size_t page_bytes() const { return layer_bytes() * (n_layers - n_sliding()); }
  size_t sliding_page_bytes() const { return layer_bytes() * n_sliding(); }
  int value_stride() const { return (head_dim + 15) / 16 * 16; }  // elements
};

// kSpan positions of one sequence, every full layer and head: [layer][key head][keys, then values],
// see AttendArgs. The memory that it is a part of is given back with the last page of it.
using KvPage = std::shared_ptr<std::byte>;

// A cache is a row of slots, slot s in page s / kSpan. Committed position p stands at slot p, and
// behind N of them row r of the open block at slot N + r, wherever it stands in the tree: commit
// moves the rows of the path to the slots of their positions, and rolling back is counting fewer
// rows. There are slots for kMostTreeRows rows beyond the capacity, so that a tree fits wherever
// its longest path does. Pages of full layers below the committed length are never written again,
// so sequences that begin alike share them. Sliding layers have a ring of pages of their own; a
// fork copies it.
class KvCache final : public SequenceState {
 public:
  // memory: of the caches of one trunk, or of this one alone. TooLarge when it is not there, with
  // both numbers.
  static Result<std::unique_ptr<KvCache>> make(const KvShape& shape, int capacity,
                                               std::shared_ptr<KvMemory> memory = nullptr);

  int64_t bytes() const override;
  // Shares whole pages and copies what is left of the last one, as far as its own capacity goes.
  // With sliding layers whole pages only; none, where a window has moved on past what would be seen
  // behind them.
  Result<std::unique_ptr<SequenceState>> fork(int capacity, int length) const override;
  // By layer and key head: the key's elements, then the value's.
  void append_bytes(int position, std::vector<std::byte>& to) const override;
  int first_remembered() const override { return ring_.first_remembered(); }

  // Announces the block whose rows append() will write.
  void open(const Block& block);

  // k, v (n_kv_heads * head_dim): of them key head `head`, of row `row` of the open block, in one
  // layer. Rows of a head side by side share cache lines.
  void append(int layer, int row, int head, const float* k, const float* v,
              const KernelTable& table);

  // Fills the cache fields of args for one layer.
  void fill(int layer, AttendArgs& args) const;

 protected:
  void keep(std::span<const int> path) override;

 private:
  // length: positions that are there from the start, those in `shared` and some that are to be
  // copied.
  KvCache(const KvShape& shape, int capacity, int length, std::vector<KvPage> shared,
          std::shared_ptr<KvMemory> memory);
  // Takes new pages behind those that are there, one for every slot, and the ring.
  Result<void> take_memory();
  // Positions [first, length()), which lie in one page of full layers.
  void copy_from(const KvCache& other, int first);
  // Key and value of every head, in one layer.
  void move_row(int layer, int from_slot, int to_slot);
  template <class Element>
  void move_elements(int layer, int from_slot, int to_slot);
  std::byte* const* pages_of(int layer) const {
    return shape_.layer_slides(layer) ? ring_.pages() : page_data_.data();
  }

  KvShape shape_;
  CacheElement element_;
  int n_slots_;
  std::shared_ptr<KvMemory> memory_;
  std::vector<size_t> layer_at_;  // where each layer's part of a page begins, in bytes
  std::vector<KvPage> pages_;
  std::vector<std::byte*> page_data_;  // the same, as kernels read them
  WindowRing ring_;
};

}  // namespace paceline
