// Timings of kernels on one thread. Inside the window: the kernel alone, weights streamed from a
// buffer larger than the caches where the matrix is small, activations prepared.
#include <benchmark/benchmark.h>

#include <random>
#include <string>

#include "kernels/cases.h"
#include "kernels/choose.h"
#include "kernels/matmul.h"

namespace paceline {
namespace {

// Copies of one matrix, together at least this large, so that weights come from memory.
constexpr size_t kStreamBytes = size_t{192} << 20;

void run_product(benchmark::State& state, const KernelTable& table, WeightType type,
                 const MatmulCase& shape, int rows) {
  PackedMatrix w{type, shape.n_out, shape.n_in, nullptr};
  const size_t copies = std::max<size_t>(1, kStreamBytes / w.bytes());
  auto memory = HugeBuffer::allocate(copies * w.bytes());
  if (!memory) {
    state.SkipWithError("no memory");
    return;
  }
  // Any bytes do for the time; small ones are finite in every type.
  for (size_t i = 0; i < memory->size(); ++i) memory->data()[i] = static_cast<std::byte>(i % 61);
  std::vector<float> x(static_cast<size_t>(rows) * shape.n_in);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(random);
  std::vector<float> y(static_cast<size_t>(rows) * shape.n_out);
  ThreadPool pool(1);
  const Kernels kernels{&table, &pool};
  auto prepared = *Activations::make(rows, shape.n_in);
  prepared.set({x.data(), rows, shape.n_in}, type, kernels);
  size_t copy = 0;
  for (auto _ : state) {
    w.data = memory->data() + copy * w.bytes();
    copy = (copy + 1) % copies;
    const Product product{w, {y.data(), rows, shape.n_out}};
    matmul(prepared, {&product, 1}, kernels);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * w.bytes()));
}

// Every table worth timing: not the definition-like ones, and of amx numerics the hardware's.
std::vector<const KernelTable*> timed_tables() {
  std::vector<const KernelTable*> tables;
  for (const auto numerics : {Numerics::Portable, Numerics::Amx})
    for (const KernelTable* table : kernel_tables(numerics))
      if (std::string(table->isa) != "scalar" && std::string(table->isa) != "amx-emulated")
        tables.push_back(table);
  return tables;
}

void register_all() {
  for (const KernelTable* table : timed_tables()) {
    for (const MatmulCase& shape : kRealProducts) {
      for (const WeightType type : kWeightTypes) {
        for (const int rows : {1, 2, 3, 4, 5, 6, 8, 16}) {
          const std::string name = std::string(table->variant) + "/" + to_string(table->numerics) +
                                   "/" + to_string(type) + "/" + shape.name +
                                   "/rows:" + std::to_string(rows);
          benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
            run_product(state, *table, type, shape, rows);
          });
        }
      }
    }
  }
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  paceline::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
