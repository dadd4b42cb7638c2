#include "train/choose.h"

#include <array>
#include <string>
#include <string_view>

#include "kernels/choose.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace paceline {

namespace train_scalar {
extern const train::TrainTable table;
}
#if defined(__x86_64__)
namespace train_avx2 {
extern const train::TrainTable table;
}
namespace train_avx512 {
extern const train::TrainTable table;
}
namespace train_avx512_bf16 {
extern const train::TrainTable table;
}
#endif

namespace train {
namespace {

struct Tables {
  std::array<const TrainTable*, 4> list = {};
  size_t count = 0;
  void add(const TrainTable& table) { list[count++] = &table; }
};

#if defined(__x86_64__)
// What the system saves and CPUID names is asked for in one place, which leaves its tables.
bool engine_runs(std::string_view isa) {
  for (const KernelTable* table : kernel_tables())
    if (table->isa == isa) return true;
  return false;
}

bool has_bf16() {
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  constexpr uint32_t kAvx512Bf16 = 1u << 5;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & kAvx512Bf16) != 0;
}
#endif

Tables find_tables() {
  Tables tables;
  tables.add(train_scalar::table);
#if defined(__x86_64__)
  if (engine_runs("avx2")) tables.add(train_avx2::table);
  if (engine_runs("avx512")) {
    tables.add(train_avx512::table);
    if (has_bf16()) tables.add(train_avx512_bf16::table);
  }
#endif
  return tables;
}

// How far up the list the engine's instruction set allows.
int level_of(std::string_view engine) {
  if (engine == "scalar") return 0;
  if (engine == "avx2" || engine == "amx-emulated") return 1;
  return 3;
}

int level_of(const TrainTable& table) {
  const std::string_view name = table.name;
  if (name == "scalar") return 0;
  if (name == "avx2") return 1;
  return name == "avx512" ? 2 : 3;
}

}  // namespace

std::span<const TrainTable* const> train_tables() {
  static const Tables tables = find_tables();
  return std::span(tables.list).first(tables.count);
}

Result<const TrainTable*> choose_train_table(const KernelTable& engine, Products products) {
  const TrainTable* best = nullptr;
  for (const TrainTable* table : train_tables()) {
    if (level_of(*table) > level_of(engine.isa)) continue;
    if (products == Products::F32 && table->per_unit != 1) continue;
    if (products == Products::Bf16 && table->per_unit != 2) continue;
    best = table;
  }
  if (best == nullptr)
    return Error{ErrorCode::Unsupported,
                 "products of bf16 want AVX-512 BF16, and this machine, or PACELINE_ISA=" +
                     std::string(engine.isa) + ", has none; leave --products away"};
  return best;
}

}  // namespace train
}  // namespace paceline
