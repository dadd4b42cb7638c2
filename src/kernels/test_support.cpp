#include "kernels/test_support.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/types.h"
#include "kernels/amx_trap.h"
#include "kernels/choose.h"
#include "kernels/matmul.h"
#include "kernels/reference.h"
#include "kernels/tile_kernels.h"

namespace paceline {

namespace avx512_emulated {
extern const KernelTable table;
}
namespace avx512_vnni_emulated {
extern const KernelTable table;
}
namespace amx_emulated {
extern const TileKernels tiles;
}
namespace amx_avx512_emulated {
extern const TileKernels tiles;
}
namespace amx_over_avx2 {
extern const TileKernels tiles;
}

namespace {

// Rows of weights as a file holds them: any bytes for the integers, any finite scale.
std::vector<std::byte> random_weights(WeightType type, int n_out, int n_in, Random& random) {
  std::vector<std::byte> rows(n_out * row_bytes(type, n_in));
  const auto put = [&](size_t at, auto value) { std::memcpy(&rows[at], &value, sizeof(value)); };
  if (!is_quantized(type)) {
    const size_t element = type == WeightType::F32 ? 4 : 2;
    for (size_t at = 0; at < rows.size(); at += element) {
      const float v = random.normal() * std::ldexp(1.0f, random.up_to(8) - 12);
      if (type == WeightType::F32) put(at, v);
      if (type == WeightType::BF16) put(at, to_bf16(v));
      if (type == WeightType::F16) put(at, to_f16(v));
    }
    return rows;
  }
  rows = random.bytes(rows.size());
  const size_t block = row_bytes(type, kQuantBlock);
  for (size_t at = 0; at < rows.size(); at += block) {
    // Now and then a denormal scale.
    put(at, to_f16(random.normal() * (random.up_to(20) == 0 ? 1e-7f : 0.01f)));
    if (type == WeightType::Q4_1) put(at + 2, to_f16(random.normal() * 0.1f));
  }
  return rows;
}

}  // namespace

std::vector<const KernelTable*> portable_tables() {
  const auto real = kernel_tables();
  std::vector<const KernelTable*> tables(real.begin(), real.end());
#if defined(PACELINE_TEST_EMULATED)
  if (choose_kernel_table("avx2")) {
    tables.push_back(&avx512_emulated::table);
    tables.push_back(&avx512_vnni_emulated::table);
  }
#endif
  return tables;
}

std::vector<const KernelTable*> tile_tables() {
  static const std::vector<KernelTable> made = [] {
    std::vector<KernelTable> tables;
    const auto add = [&](const KernelTable& base, const TileKernels& tiles, const char* name) {
      for (const auto numerics : {Numerics::Portable, Numerics::Amx})
        tables.push_back(with_tiles(base, tiles, name, name, numerics));
    };
    const auto avx2 = choose_kernel_table("avx2");
    const KernelTable& lanes = avx2 ? **avx2 : *kernel_tables().front();
    if (choose_kernel_table("amx-emulated")) add(lanes, amx_emulated::tiles, "amx-emulated");
#if defined(PACELINE_TEST_EMULATED)
    if (avx2) add(avx512_vnni_emulated::table, amx_avx512_emulated::tiles, "amx-emulated avx512");
#endif
#if defined(PACELINE_TEST_TRAPS)
    if (avx2) {
      answer_amx_traps();
      add(**avx2, amx_over_avx2::tiles, amx_is_usable() ? "amx over avx2" : "amx trapped");
    }
#endif
    return tables;
  }();
  std::vector<const KernelTable*> tables;
  tables.reserve(made.size() + 1);
  for (const KernelTable& table : made) tables.push_back(&table);
  if (amx_is_usable()) {
    tables.push_back(*choose_kernel_table("amx", Numerics::Amx));
  }
  return tables;
}

std::vector<const KernelTable*> all_tables() {
  auto tables = portable_tables();
  const auto tiles = tile_tables();
  tables.insert(tables.end(), tiles.begin(), tiles.end());
  return tables;
}

testing::AssertionResult same_bits(std::span<const float> got, std::span<const float> wanted) {
  if (got.size() != wanted.size()) return testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(wanted[i])) continue;
    if (std::bit_cast<uint32_t>(got[i]) != std::bit_cast<uint32_t>(wanted[i]))
      return testing::AssertionFailure()
             << "element " << i << ": got " << got[i] << ", wanted " << wanted[i];
  }
  return testing::AssertionSuccess();
}

void pack_weights(WeightType type, int n_out, int n_in, Weights& w) {
  w.packed = {type, n_out, n_in, nullptr};
  w.memory = *HugeBuffer::allocate(w.packed.bytes());
  for (int tile = 0; tile < w.packed.tiles(); ++tile) {
    std::array<const std::byte*, kTileOutputs> rows = {};
    for (int o = 0; o < kTileOutputs; ++o)
      if (tile * kTileOutputs + o < n_out)
        rows[o] = w.rows.data() + (tile * kTileOutputs + o) * row_bytes(type, n_in);
    pack_tile(w.packed, tile, rows, w.memory.data());
  }
  w.packed.data = w.memory.data();
}

Weights make_weights(WeightType type, int n_out, int n_in, Random& random) {
  Weights w{random_weights(type, n_out, n_in, random), {}, {}};
  pack_weights(type, n_out, n_in, w);
  return w;
}

std::vector<float> reference_product(const Weights& w, std::span<const float> x,
                                     Numerics numerics) {
  std::vector<float> y;
  y.reserve(w.packed.n_out);
  for (int o = 0; o < w.packed.n_out; ++o)
    y.push_back(reference::product(
        w.packed.type, x, w.rows.data() + o * row_bytes(w.packed.type, w.packed.n_in), numerics));
  return y;
}

std::vector<float> rows_through(const KernelTable& table, ThreadPool& pool, const Weights& w,
                                std::span<const float> x, bool wide) {
  const int n_in = w.packed.n_in;
  const int rows = static_cast<int>(x.size()) / n_in;
  auto prepared = *Activations::make(rows, n_in);
  std::vector<float> y(static_cast<size_t>(rows) * w.packed.n_out, kNan);
  project({x.data(), rows, n_in}, {{w.packed, {y.data(), rows, w.packed.n_out}}}, prepared,
          {&table, &pool, wide});
  return y;
}

}  // namespace paceline
