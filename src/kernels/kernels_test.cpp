// Every kernel of every instruction set against its definition, by bytes.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/types.h"
#include "kernels/attention.h"
#include "kernels/cases.h"
#include "kernels/choose.h"
#include "kernels/matmul.h"
#include "kernels/reference.h"
#include "kernels/rope.h"

namespace paceline {

// The AVX-512 kernels in portable C (isa/emulate_avx512.h), where this machine can run them.
namespace avx512_emulated {
extern const KernelTable table;
}
namespace avx512_vnni_emulated {
extern const KernelTable table;
}

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<const KernelTable*> all_tables() {
  const auto real = kernel_tables();
  std::vector<const KernelTable*> tables(real.begin(), real.end());
#if defined(PACELINE_TEST_EMULATED)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c")) {
    tables.push_back(&avx512_emulated::table);
    tables.push_back(&avx512_vnni_emulated::table);
  }
#endif
  return tables;
}

// The same bits, or a NaN on both sides.
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

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int up_to(int n) { return static_cast<int>(engine_() % static_cast<uint32_t>(n + 1)); }
  float normal() { return normal_(engine_); }
  std::vector<float> normals(size_t n, float scale = 1.0f) {
    std::vector<float> x(n);
    for (float& v : x) v = scale * normal();
    return x;
  }
  // Values of any size, among them zeros of both signs and denormals; infinities and NaNs if asked.
  std::vector<float> wild(size_t n, bool with_special) {
    std::vector<float> x(n);
    for (float& v : x) {
      v = normal() * std::ldexp(1.0f, up_to(60) - 40);
      const int kind = up_to(40);
      if (kind == 0) v = 0.0f;
      if (kind == 1) v = -0.0f;
      if (kind == 2) v = std::ldexp(normal(), -140);
      if (with_special && up_to(300) == 0) v = kind % 2 == 0 ? kNan : -kInf;
    }
    return x;
  }
  std::vector<std::byte> bytes(size_t n) {
    std::vector<std::byte> b(n);
    for (std::byte& v : b) v = static_cast<std::byte>(engine_());
    return b;
  }

 private:
  std::mt19937 engine_;
  std::normal_distribution<float> normal_;
};

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

// Weights packed, with the file's rows beside them.
struct Weights {
  std::vector<std::byte> rows;
  HugeBuffer memory;
  PackedMatrix packed;
};

Weights make_weights(WeightType type, int n_out, int n_in, Random& random) {
  Weights w{random_weights(type, n_out, n_in, random), {}, {type, n_out, n_in, nullptr}};
  w.memory = *HugeBuffer::allocate(w.packed.bytes());
  for (int tile = 0; tile < w.packed.tiles(); ++tile) {
    std::array<const std::byte*, kTileOutputs> rows = {};
    for (int o = 0; o < kTileOutputs; ++o)
      if (tile * kTileOutputs + o < n_out)
        rows[o] = w.rows.data() + (tile * kTileOutputs + o) * row_bytes(type, n_in);
    pack_tile(type, n_in, rows, w.memory.data() + tile * tile_bytes(type, n_in));
  }
  w.packed.data = w.memory.data();
  return w;
}

std::vector<float> reference_product(const Weights& w, std::span<const float> x) {
  std::vector<float> y;
  for (int o = 0; o < w.packed.n_out; ++o)
    y.push_back(reference::product(w.packed.type, x,
                                   w.rows.data() + o * row_bytes(w.packed.type, w.packed.n_in)));
  return y;
}

TEST(Kernels, ScalarAlwaysRunsAndTheBestIsLast) {
  const auto tables = kernel_tables();
  EXPECT_STREQ(tables[0]->variant, "scalar");
  EXPECT_EQ(*choose_kernel_table(""), tables.back());
  EXPECT_STREQ((*choose_kernel_table("scalar"))->isa, "scalar");
  EXPECT_EQ(choose_kernel_table("mmx").error().code, ErrorCode::BadUsage);
  EXPECT_EQ(choose_kernel_table("amx").error().code, ErrorCode::Unsupported);
}

TEST(Kernels, ProductsEqualTheirDefinition) {
  Random random(1);
  for (const WeightType type : kWeightTypes) {
    for (const MatmulCase& shape : kOddProducts) {
      if (is_quantized(type) && shape.n_in % kQuantBlock != 0) continue;
      const Weights w = make_weights(type, shape.n_out, shape.n_in, random);
      constexpr int kRows = 19;
      const auto x = random.wild(kRows * shape.n_in, /*with_special=*/true);
      const auto bias = random.normals(shape.n_out);
      std::vector<std::vector<float>> wanted;
      for (int r = 0; r < kRows; ++r)
        wanted.push_back(reference_product(w, std::span(x).subspan(r * shape.n_in, shape.n_in)));
      auto prepared = *Activations::make(kRows, shape.n_in);
      for (const int threads : {1, 3}) {
        ThreadPool pool(threads);
        for (const KernelTable* table : all_tables()) {
          SCOPED_TRACE(std::string(to_string(type)) + " " + shape.name + " " + table->variant);
          const Kernels kernels{table, &pool};
          for (int rows = 1; rows <= kRows; ++rows) {
            std::vector<float> y(rows * shape.n_out, 1.0f);
            const Mat<float> out(y.data(), rows, shape.n_out);
            project({x.data(), rows, shape.n_in}, {{w.packed, out}}, prepared, kernels);
            for (int r = 0; r < rows; ++r)
              ASSERT_TRUE(same_bits(out.row(r), wanted[r])) << rows << " rows, row " << r;
          }
          // With a bias, and added to what is there.
          std::vector<float> y(shape.n_out, 0.5f);
          project({x.data(), 1, shape.n_in},
                  {{w.packed, {y.data(), 1, shape.n_out}, bias.data(), Store::Add}}, prepared,
                  kernels);
          for (int o = 0; o < shape.n_out; ++o)
            EXPECT_TRUE(same_bits({&y[o], 1}, {{0.5f + (wanted[0][o] + bias[o])}}));
        }
      }
    }
  }
}

TEST(Kernels, ProductsOfRealShapesEqualTheirDefinition) {
  Random random(2);
  for (const WeightType type : kWeightTypes) {
    const Weights w = make_weights(type, 192, 576, random);
    const auto x = random.normals(576 * 5, 3.0f);
    auto prepared = *Activations::make(5, 576);
    ThreadPool pool(2);
    for (const KernelTable* table : all_tables()) {
      std::vector<float> y(5 * 192);
      const Mat<float> out(y.data(), 5, 192);
      project({x.data(), 5, 576}, {{w.packed, out}}, prepared, {table, &pool});
      for (int r = 0; r < 5; ++r)
        ASSERT_TRUE(same_bits(out.row(r), reference_product(w, std::span(x).subspan(r * 576, 576))))
            << to_string(type) << " " << table->variant;
    }
  }
}

TEST(Kernels, ExtremeWeightsDoNotSaturate) {
  // Every weight and every activation at its largest, both signs.
  for (const auto& [type, byte] : {std::pair{WeightType::Q8_0, 0x80},
                                   {WeightType::Q8_0, 0x7f},
                                   {WeightType::Q4_0, 0x00},
                                   {WeightType::Q4_1, 0xff}}) {
    for (const float sign : {1.0f, -1.0f}) {
      constexpr int kIn = 64;
      Random random(3);
      Weights w = make_weights(type, 16, kIn, random);
      const size_t block = row_bytes(type, kQuantBlock);
      const size_t scales = type == WeightType::Q4_1 ? 4 : 2;
      for (size_t at = 0; at < w.rows.size(); ++at)
        if (at % block >= scales) w.rows[at] = static_cast<std::byte>(byte);
      std::array<const std::byte*, 16> rows;
      for (int o = 0; o < 16; ++o) rows[o] = w.rows.data() + o * row_bytes(type, kIn);
      pack_tile(type, kIn, rows, w.memory.data());
      const std::vector<float> x(kIn, 5.0f * sign);
      auto prepared = *Activations::make(1, kIn);
      ThreadPool pool(1);
      for (const KernelTable* table : all_tables()) {
        std::vector<float> y(16);
        project({x.data(), 1, kIn}, {{w.packed, {y.data(), 1, 16}}}, prepared, {table, &pool});
        EXPECT_TRUE(same_bits(y, reference_product(w, x))) << to_string(type) << table->variant;
      }
    }
  }
}

TEST(Kernels, QuantisedActivationsFollowTheRule) {
  // 127 is reached, ties go to even, tiny blocks are zeros, a NaN or infinity poisons its block.
  std::vector<float> x(32, 0.0f);
  x[0] = -127.0f;
  x[1] = 0.5f;
  x[2] = 1.5f;
  x[3] = -2.5f;
  const auto row = reference::quantize_row(x);
  EXPECT_EQ(row.d[0], 1.0f);
  EXPECT_EQ((std::vector<int8_t>(row.q.begin(), row.q.begin() + 4)),
            (std::vector<int8_t>{-127, 0, 2, -2}));
  EXPECT_EQ(row.sum[0], -127);
  EXPECT_EQ(reference::quantize_row(std::vector<float>(32, 0x1p-101f)).d[0], 0.0f);
  EXPECT_GT(reference::quantize_row(std::vector<float>(32, 0x1p-100f)).d[0], 0.0f);
  for (const float bad : {kNan, kInf, -kInf}) {
    x[17] = bad;
    EXPECT_TRUE(std::isnan(reference::quantize_row(x).d[0]));
    for (const KernelTable* table : all_tables()) {
      std::vector<int8_t> q(32);
      float d = 0;
      float scaled = 0;
      int32_t sum = 1;
      table->quantize_rows(x.data(), 1, 32, 0, 1, q.data(), &d, &scaled, &sum);
      EXPECT_TRUE(std::isnan(d)) << table->variant;
      EXPECT_EQ(sum, 0);
    }
  }
  // The largest finite values are not taken for infinities.
  const std::vector<float> large(32, std::numeric_limits<float>::max());
  EXPECT_FALSE(std::isnan(reference::quantize_row(large).d[0]));
  for (const KernelTable* table : all_tables()) {
    std::vector<int8_t> q(32);
    float d = 0;
    float scaled = 0;
    int32_t sum = 1;
    table->quantize_rows(large.data(), 1, 32, 0, 1, q.data(), &d, &scaled, &sum);
    EXPECT_EQ(d, reference::quantize_row(large).d[0]) << table->variant;
    EXPECT_EQ(sum, 32 * 127);
  }
}

TEST(Kernels, FusedMultiplyAddRoundsOnce) {
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24 lies half-way between two floats; 2^-60 more decides. A sum
  // in double loses it, rounds to even, and is wrong.
  const float a = 1.0f + 0x1p-12f;
  const float c = 0x1p-60f;
  const float right = 1.0f + 0x1p-11f + 0x1p-23f;
  EXPECT_EQ(static_cast<float>(static_cast<double>(a) * a + static_cast<double>(c)),
            1.0f + 0x1p-11f);
  const std::vector<float> x = {1.0f, a};
  const std::vector<float> w = {c, a};
  const auto* row = reinterpret_cast<const std::byte*>(w.data());
  EXPECT_EQ(reference::product(WeightType::F32, x, row), right);
  std::array<const std::byte*, kTileOutputs> rows = {row};
  std::vector<std::byte> tile(tile_bytes(WeightType::F32, 2));
  pack_tile(WeightType::F32, 2, rows, tile.data());
  auto prepared = *Activations::make(1, 2);
  ThreadPool pool(1);
  for (const KernelTable* table : all_tables()) {
    float y = 0;
    project({x.data(), 1, 2}, {{{WeightType::F32, 1, 2, tile.data()}, {&y, 1, 1}}}, prepared,
            {table, &pool});
    EXPECT_EQ(y, right) << table->variant;
  }
}

TEST(Kernels, NormsEqualTheirDefinition) {
  Random random(4);
  for (const int dim : {1, 15, 16, 17, 48, 576, 1000}) {
    const auto x = random.wild(3 * dim, false);
    const auto weight = random.normals(dim);
    for (const KernelTable* table : all_tables()) {
      std::vector<float> y(3 * dim);
      table->rms_norm(x.data(), weight.data(), 1e-5f, 3, dim, y.data());
      for (int r = 0; r < 3; ++r)
        EXPECT_TRUE(
            same_bits(std::span(y).subspan(r * dim, dim),
                      reference::rms_norm(std::span(x).subspan(r * dim, dim), weight, 1e-5f)))
            << dim << table->variant;
    }
  }
  // Specification: dense decoders, section 8.
  const auto y = reference::rms_norm(std::vector<float>{1, -2, 3, 0.5f},
                                     std::vector<float>{1.1f, 1, 0.8f, 1.5f}, 1e-5f);
  EXPECT_NEAR(y[0], 0.582793f, 1e-6f);
  EXPECT_NEAR(y[1], -1.059624f, 1e-6f);
  EXPECT_NEAR(y[2], 1.271549f, 1e-6f);
  EXPECT_NEAR(y[3], 0.397359f, 1e-6f);
}

TEST(Kernels, RopeEqualsItsDefinition) {
  Random random(5);
  for (const int head_dim : {2, 6, 16, 34, 64, 128}) {
    std::vector<float> cos(head_dim / 2);
    std::vector<float> sin(head_dim / 2);
    rope_angles(rope_frequencies(10000, head_dim), 39, cos.data(), sin.data());
    for (const KernelTable* table : all_tables()) {
      auto x = random.normals(3 * head_dim);
      auto wanted = x;
      for (int head = 0; head < 3; ++head)
        reference::rope(std::span(wanted).subspan(head * head_dim, head_dim), cos, sin);
      table->rope(x.data(), 3, head_dim, cos.data(), sin.data());
      EXPECT_TRUE(same_bits(x, wanted)) << head_dim << table->variant;
    }
  }
  std::array<float, 2> cos;
  std::array<float, 2> sin;
  rope_angles(rope_frequencies(10000, 4), 1, cos.data(), sin.data());
  std::vector<float> x = {1, 0, 2, -1};
  reference::rope(x, cos, sin);
  EXPECT_NEAR(x[0], -1.142640f, 1e-6f);
  EXPECT_NEAR(x[1], 0.010000f, 1e-6f);
  EXPECT_NEAR(x[2], 1.922076f, 1e-6f);
  EXPECT_NEAR(x[3], -0.999950f, 1e-6f);
}

TEST(Rope, OwnFunctionsAreGoodToTheLastPlaces) {
  for (double x = -600; x < 600; x += 0.37)
    EXPECT_NEAR(exp_double(x) / std::exp(x), 1.0, 1e-15) << x;
  for (double x = 1e-10; x < 1e10; x *= 1.7)
    EXPECT_NEAR(log_double(x), std::log(x), 1e-14 * std::max(1.0, std::fabs(std::log(x)))) << x;
  for (double angle = -10; angle < 200000; angle = angle * 1.001 + 0.77) {
    double s = 0;
    double c = 0;
    sin_cos_double(angle, &s, &c);
    // Two parts of pi / 2 leave an error that grows with the angle: 1e-16 of it at most.
    const double error = 1e-15 + 1e-16 * std::fabs(angle) * 1e-4;
    EXPECT_NEAR(s, std::sin(angle), error) << angle;
    EXPECT_NEAR(c, std::cos(angle), error) << angle;
  }
}

TEST(Rope, Llama3ScalingHasThreeRanges) {  // specification: dense decoders, section 8
  auto w = rope_frequencies(500000, 128);
  EXPECT_NEAR(w[29], 2.616099e-3, 1e-9);
  scale_llama3(
      w, {.factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_positions = 8192});
  EXPECT_EQ(w[0], 1.0);
  EXPECT_NEAR(w[28], 3.211446e-3, 1e-9);
  EXPECT_NEAR(w[29], 2.166571e-3, 1e-9);
  EXPECT_NEAR(w[31], 8.567514e-4, 1e-10);
  EXPECT_NEAR(w[34], 1.785078e-4, 1e-10);
  EXPECT_NEAR(w[35], 9.556212e-5, 1e-11);
  EXPECT_NEAR(w[63], 3.068926e-7, 1e-13);
}

TEST(Kernels, ExpIsAccurateAndBounded) {
  for (float x = -87.2f; x < 88.7f; x += 0.0137f)
    EXPECT_NEAR(reference::exp(x) / std::exp(static_cast<double>(x)), 1.0, 2e-7) << x;
  EXPECT_EQ(reference::exp(-87.4f), 0.0f);
  EXPECT_EQ(reference::exp(-kInf), 0.0f);
  EXPECT_EQ(reference::exp(89.0f), kInf);
  EXPECT_EQ(reference::exp(kInf), kInf);
  EXPECT_TRUE(std::isnan(reference::exp(kNan)));
  EXPECT_EQ(reference::exp(0.0f), 1.0f);
  EXPECT_GE(reference::exp(-87.29f), std::numeric_limits<float>::min());
}

TEST(Kernels, SiluEqualsItsDefinition) {
  Random random(6);
  for (const int n : {1, 15, 16, 33, 1536}) {
    auto gate = random.normals(n, 30.0f);
    gate[0] = -200.0f;
    if (n > 5) gate[5] = kNan;
    const auto up = random.normals(n);
    std::vector<float> wanted;
    for (int i = 0; i < n; ++i) wanted.push_back(reference::silu_mul(gate[i], up[i]));
    for (const KernelTable* table : all_tables()) {
      auto got = gate;
      table->silu_mul(got.data(), up.data(), n);
      EXPECT_TRUE(same_bits(got, wanted)) << n << table->variant;
    }
  }
}

// A cache of one key head filled through the kernels, and its contents as the reference reads them.
// Its pages stand in no order.
struct CacheOf {
  CacheElement element;
  int head_dim;
  int stride;
  size_t key_bytes;
  std::vector<std::byte> memory;
  std::vector<std::byte*> pages;
  std::vector<float> rounded_keys, rounded_values;

  CacheOf(CacheElement e, int dim, int positions, const KernelTable& table, Random& random,
          bool poison)
      : element(e), head_dim(dim), stride((dim + 15) / 16 * 16) {
    const size_t bytes = e == CacheElement::F32 ? 4 : 2;
    key_bytes = bytes * kSpan * dim;
    const size_t page_bytes = key_bytes + bytes * kSpan * stride;
    const size_t n = (static_cast<size_t>(positions) + kSpan - 1) / kSpan;
    // All bits set: NaNs in every type, where nothing was written yet.
    memory.assign(n * page_bytes, std::byte{0xff});
    for (size_t i = 0; i < n; ++i) pages.push_back(memory.data() + (n - 1 - i) * page_bytes);
    for (int pos = 0; pos < positions; ++pos) {
      auto k = random.normals(dim);
      auto v = random.normals(dim);
      if (poison && pos == positions - 1) k[0] = v[0] = kNan;
      table.append_key(k.data(), dim, e, pages[pos / kSpan], pos % kSpan);
      table.append_value(v.data(), dim, stride, e, pages[pos / kSpan] + key_bytes, pos % kSpan);
      for (const float x : k) rounded_keys.push_back(rounded(x));
      for (const float x : v) rounded_values.push_back(rounded(x));
    }
  }
  float rounded(float x) const {
    if (element == CacheElement::F16) return to_f32(to_f16(x));
    if (element == CacheElement::BF16) return to_f32(to_bf16(x));
    return x;
  }
  void fill(AttendArgs& args) const {
    args.element = element;
    args.pages = pages.data();
    args.value_bytes = key_bytes;
    args.value_stride = stride;
  }
};

TEST(Kernels, AttentionEqualsItsDefinitionAroundEveryBorder) {
  for (const KernelTable* table : all_tables()) {
    for (const auto element : {CacheElement::F16, CacheElement::BF16, CacheElement::F32}) {
      for (const int head_dim : {2, 16, 20, 64}) {
        Random random(7);
        constexpr int kPositions = 150;
        constexpr int kHeads = 3;
        const CacheOf cache(element, head_dim, kPositions, *table, random, /*poison=*/false);
        const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
        // Rows that end around borders of tiles and spans, in blocks of several sizes.
        const std::vector<int> ends = {0, 1, 14, 15, 16, 17, 62, 63, 64, 65, 127, 128, 149};
        const auto q = random.normals(ends.size() * kHeads * head_dim);
        std::vector<float> wanted;
        for (size_t r = 0; r < ends.size(); ++r) {
          for (int h = 0; h < kHeads; ++h) {
            const size_t seen = static_cast<size_t>(ends[r] + 1) * head_dim;
            const auto out =
                reference::attend(std::span(q).subspan((r * kHeads + h) * head_dim, head_dim),
                                  std::span(cache.rounded_keys).first(seen),
                                  std::span(cache.rounded_values).first(seen), scale);
            wanted.insert(wanted.end(), out.begin(), out.end());
          }
        }
        ThreadPool pool(2);
        const size_t per_thread = attend_scratch_floats(kPositions, head_dim);
        std::vector<float> scratch(2 * per_thread, kNan);
        for (const int block : {1, 2, 5, 13}) {
          std::vector<float> out(q.size());
          for (size_t first = 0; first < ends.size(); first += block) {
            const int rows = static_cast<int>(std::min<size_t>(block, ends.size() - first));
            AttendArgs args{.q = q.data() + first * kHeads * head_dim,
                            .out = out.data() + first * kHeads * head_dim,
                            .rows = rows,
                            .positions = ends.data() + first,
                            .n_heads = kHeads,
                            .n_kv_heads = 1,
                            .head_dim = head_dim,
                            .scale = scale};
            cache.fill(args);
            attend({&args, 1}, scratch.data(), per_thread, {table, &pool});
          }
          ASSERT_TRUE(same_bits(out, wanted))
              << table->variant << " head_dim " << head_dim << " block " << block;
        }
      }
    }
  }
}

TEST(Kernels, AttentionReadsNothingBehindItsOwnPosition) {
  // The row behind holds NaNs; the row before must not notice.
  for (const KernelTable* table : all_tables()) {
    Random random(8);
    const CacheOf cache(CacheElement::F16, 32, 71, *table, random, /*poison=*/true);
    const auto q = random.normals(2 * 32);
    const std::vector<int> ends = {69, 70};
    std::vector<float> out(64);
    ThreadPool pool(1);
    std::vector<float> scratch(attend_scratch_floats(71, 32));
    AttendArgs args{.q = q.data(),
                    .out = out.data(),
                    .rows = 2,
                    .positions = ends.data(),
                    .n_heads = 1,
                    .n_kv_heads = 1,
                    .head_dim = 32,
                    .scale = 1.0f};
    cache.fill(args);
    attend({&args, 1}, scratch.data(), scratch.size(), {table, &pool});
    EXPECT_TRUE(same_bits(
        std::span(out).first(32),
        reference::attend(std::span(q).first(32), std::span(cache.rounded_keys).first(70 * 32),
                          std::span(cache.rounded_values).first(70 * 32), 1.0f)))
        << table->variant;
    EXPECT_TRUE(std::isnan(out[32])) << table->variant;
  }
}

TEST(Kernels, ArgmaxTakesTheLowestOfEquals) {
  Random random(9);
  for (const KernelTable* table : all_tables()) {
    const auto of = [&](std::vector<float> x) {
      EXPECT_EQ(table->argmax(x.data(), static_cast<int>(x.size())), reference::argmax(x))
          << table->variant;
      return reference::argmax(x);
    };
    EXPECT_EQ(of({1, 3, 3, 2}), 1);
    EXPECT_EQ(of({-0.0f, 0.0f}), 0);
    EXPECT_EQ(of({0.0f, -0.0f}), 0);
    EXPECT_EQ(of({kNan, -2, kNan}), 1);
    EXPECT_EQ(of({kNan, kNan}), -1);
    EXPECT_EQ(of({-kInf, -kInf}), -1);
    EXPECT_EQ(of({1, kInf}), -1);
    EXPECT_EQ(of({}), -1);
    for (int i = 0; i < 200; ++i) {
      std::vector<float> x(1 + random.up_to(100));
      for (float& v : x) v = static_cast<float>(random.up_to(3));
      of(x);
    }
    std::vector<float> large(200000, 0.0f);
    large[196700] = 1.0f;
    EXPECT_EQ(of(large), 196700);
  }
}

TEST(Kernels, LogSumExpEqualsItsDefinition) {
  Random random(10);
  for (const int n : {1, 15, 16, 1023, 1024, 1025, 5000}) {
    const auto x = random.normals(n, 8.0f);
    double exact = 0;
    for (const float v : x) exact += std::exp(static_cast<double>(v));
    const float wanted = reference::log_sum_exp(x);
    EXPECT_NEAR(wanted, std::log(exact), 2e-6 * std::max(1.0, std::fabs(std::log(exact))));
    for (const KernelTable* table : all_tables()) {
      const float got = table->log_sum_exp(x.data(), n);
      EXPECT_TRUE(same_bits({&got, 1}, {&wanted, 1})) << n << table->variant;
    }
  }
  // What is no sum of finite values gives NaN, not some number.
  for (const float bad : {kNan, -kNan, kInf}) {
    for (const size_t place : {0, 20, 39}) {
      std::vector<float> x(40, 1.0f);
      x[place] = bad;
      EXPECT_TRUE(std::isnan(reference::log_sum_exp(x))) << bad;
      for (const KernelTable* table : all_tables())
        EXPECT_TRUE(std::isnan(table->log_sum_exp(x.data(), 40))) << bad << table->variant;
    }
  }
}

TEST(Packed, RowsComeBackAsTheReferencePackagesRoundThem) {
  Random random(11);
  for (const WeightType type : kWeightTypes) {
    for (const MatmulCase& shape : kOddProducts) {
      if (is_quantized(type) && shape.n_in % kQuantBlock != 0) continue;
      const Weights w = make_weights(type, shape.n_out, shape.n_in, random);
      for (int row = 0; row < shape.n_out; ++row) {
        std::vector<float> got(shape.n_in);
        unpack_row(w.packed, row, got);
        const std::byte* stored = w.rows.data() + row * row_bytes(type, shape.n_in);
        for (int k = 0; k < shape.n_in; ++k) {
          float wanted = 0;
          if (!is_quantized(type)) {  // x = 1 picks one weight
            std::vector<float> one(shape.n_in, 0.0f);
            one[k] = 1.0f;
            wanted = reference::product(type, one, stored);
          } else {
            const std::byte* block = stored + k / 32 * row_bytes(type, 32);
            const auto half = [&](int at) {
              f16 h;
              std::memcpy(&h.bits, block + at, 2);
              return to_f32(h);
            };
            const int e = k % 32;
            const auto nibble = [&](int scales) {
              const int byte = static_cast<int>(block[scales + e % 16]);
              return static_cast<float>(e < 16 ? byte & 15 : byte >> 4);
            };
            if (type == WeightType::Q8_0) wanted = half(0) * static_cast<int8_t>(block[2 + e]);
            if (type == WeightType::Q4_0) wanted = half(0) * (nibble(2) - 8.0f);
            if (type == WeightType::Q4_1) {
              const float scaled = half(0) * nibble(4);
              wanted = scaled + half(2);
            }
          }
          ASSERT_TRUE(same_bits({&got[k], 1}, {&wanted, 1})) << to_string(type) << shape.name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace paceline
