// Row operations, attention and choices of every instruction set against their definitions, by
// bytes. Products: matmul_test.cpp.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/types.h"
#include "kernels/attention.h"
#include "kernels/reference.h"
#include "kernels/rope.h"
#include "kernels/test_support.h"

namespace paceline {
namespace {

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

TEST(Kernels, GatesEqualTheirDefinitions) {
  Random random(6);
  for (const int n : {1, 15, 16, 33, 1536}) {
    auto gate = random.normals(n, 30.0f);
    gate[0] = -200.0f;
    if (n > 5) gate[5] = kNan;
    if (n > 20) std::copy_n(std::array{kInf, -kInf, 0.0f, -0.0f, 1e-40f}.begin(), 5, &gate[8]);
    const auto up = random.normals(n);
    std::vector<float> silu;
    std::vector<float> gelu;
    std::vector<float> capped;
    for (int i = 0; i < n; ++i) {
      silu.push_back(reference::silu_mul(gate[i], up[i]));
      gelu.push_back(reference::gelu_mul(gate[i], up[i]));
      capped.push_back(reference::soft_cap(gate[i], 30.0f));
    }
    for (const KernelTable* table : all_tables()) {
      auto got = gate;
      table->silu_mul(got.data(), up.data(), n);
      EXPECT_TRUE(same_bits(got, silu)) << n << table->variant;
      got = gate;
      table->gelu_mul(got.data(), up.data(), n);
      EXPECT_TRUE(same_bits(got, gelu)) << n << table->variant;
      got = gate;
      table->soft_cap(got.data(), n, 30.0f);
      EXPECT_TRUE(same_bits(got, capped)) << n << table->variant;
    }
  }
}

TEST(Kernels, GeluAndTanhAreAccurate) {
  for (double x = -12; x < 12; x += 0.00137) {
    const auto narrow = static_cast<float>(x);
    const double at = narrow;
    const double exact = std::tanh(at);
    EXPECT_NEAR(reference::tanh(narrow), exact, 2e-7 * std::fabs(exact)) << x;
    const double inner = std::sqrt(2 / std::acos(-1.0)) * (at + 0.044715 * at * at * at);
    const double gelu = 0.5 * at * (1 + std::tanh(inner));
    EXPECT_NEAR(reference::gelu_mul(narrow, 1.0f), gelu, 4e-7 * std::fabs(at) + 1e-12) << x;
  }
  EXPECT_EQ(reference::tanh(kInf), 1.0f);
  EXPECT_EQ(reference::tanh(-kInf), -1.0f);
  EXPECT_TRUE(std::isnan(reference::tanh(kNan)));
  EXPECT_EQ(reference::tanh(0.0f), 0.0f);
  // Neither order nor sign is lost where the two forms meet.
  EXPECT_LE(reference::tanh(std::nextafter(0.625f, 0.0f)), reference::tanh(0.625f));
  EXPECT_EQ(reference::tanh(-0.7f), -reference::tanh(0.7f));
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

  // All bits of a page set, which are NaNs in every type.
  void spoil(int page) {
    const size_t bytes = element == CacheElement::F32 ? 4 : 2;
    std::memset(pages[page], 0xff, key_bytes + bytes * kSpan * stride);
  }

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

// Pages before every window hold NaNs, as do positions before a window in the page where it begins:
// no row may notice. Rows of one block see windows that begin and end in different spans.
TEST(Kernels, WindowedAttentionEqualsItsDefinitionAndReadsNothingBeforeTheWindow) {
  for (const KernelTable* table : all_tables()) {
    for (const auto element : {CacheElement::F16, CacheElement::F32}) {
      for (const int window : {1, 3, 16, 17, 63, 64, 65, 100, 199, 300}) {
        Random random(12);
        constexpr int kPositions = 330;
        constexpr int kDim = 20;
        constexpr int kHeads = 2;
        CacheOf cache(element, kDim, kPositions, *table, random, /*poison=*/false);
        const std::vector<int> ends = {255, 256, 257, 271, 272, 319, 320, 321, 329};
        const int least = std::max(ends[0] - window + 1, 0);
        for (int page = 0; page < least / kSpan; ++page) cache.spoil(page);
        for (int pos = least / kSpan * kSpan; pos < least; ++pos) {
          const std::vector<float> nans(kDim, kNan);
          table->append_key(nans.data(), kDim, element, cache.pages[pos / kSpan], pos % kSpan);
          table->append_value(nans.data(), kDim, cache.stride, element,
                              cache.pages[pos / kSpan] + cache.key_bytes, pos % kSpan);
        }
        const auto q = random.normals(ends.size() * kHeads * kDim);
        std::vector<float> wanted;
        for (size_t r = 0; r < ends.size(); ++r) {
          for (int h = 0; h < kHeads; ++h) {
            const size_t seen = static_cast<size_t>(ends[r] + 1) * kDim;
            const auto out =
                reference::attend(std::span(q).subspan((r * kHeads + h) * kDim, kDim),
                                  std::span(cache.rounded_keys).first(seen),
                                  std::span(cache.rounded_values).first(seen), 0.3f, window);
            wanted.insert(wanted.end(), out.begin(), out.end());
          }
        }
        ThreadPool pool(1);
        std::vector<float> scratch(attend_scratch_floats(kPositions, kDim), kNan);
        for (const int block : {1, 2, 9}) {
          std::vector<float> out(q.size());
          for (size_t first = 0; first < ends.size(); first += block) {
            AttendArgs args{.q = q.data() + first * kHeads * kDim,
                            .out = out.data() + first * kHeads * kDim,
                            .rows = static_cast<int>(std::min<size_t>(block, ends.size() - first)),
                            .positions = ends.data() + first,
                            .window = window,
                            .n_heads = kHeads,
                            .n_kv_heads = 1,
                            .head_dim = kDim,
                            .scale = 0.3f};
            cache.fill(args);
            attend({&args, 1}, scratch.data(), scratch.size(), {table, &pool});
          }
          ASSERT_TRUE(same_bits(out, wanted))
              << table->variant << " window " << window << " block " << block;
        }
      }
    }
  }
}

// A bush: path 0 2 5 6 is looked at, and every slot beside it holds NaNs. Committed rows end before
// a border of spans, so that positions lie on one side of it and slots on the other.
TEST(Kernels, AttentionOfATreeReadsNothingOfOtherBranches) {
  constexpr int kDim = 20;
  const std::vector<int> parents = {-1, -1, 0, 2, 0, 2, 5};
  const std::vector<int> depths = {0, 0, 1, 2, 1, 2, 3};
  const std::vector<int> path = {0, 2, 5, 6};
  for (const KernelTable* table : all_tables()) {
    for (const auto element : {CacheElement::F16, CacheElement::BF16, CacheElement::F32}) {
      for (const int committed : {0, 13, 57, 60, 61, 62, 63, 64, 125}) {
        for (const int window : {0, 2, 3, 18}) {
          Random random(13);
          const int slots = committed + static_cast<int>(parents.size());
          CacheOf cache(element, kDim, slots, *table, random, /*poison=*/false);
          std::vector<float> keys, values;  // of the path
          const auto add = [&](int slot) {
            const auto row = [&](const std::vector<float>& all) {
              return std::span(all).subspan(static_cast<size_t>(slot) * kDim, kDim);
            };
            const auto k = row(cache.rounded_keys), v = row(cache.rounded_values);
            keys.insert(keys.end(), k.begin(), k.end());
            values.insert(values.end(), v.begin(), v.end());
          };
          for (int slot = 0; slot < committed; ++slot) add(slot);
          for (const int row : path) add(committed + row);
          for (const int row : {1, 3, 4}) {
            const std::vector<float> nans(kDim, kNan);
            const int slot = committed + row;
            table->append_key(nans.data(), kDim, element, cache.pages[slot / kSpan], slot % kSpan);
            table->append_value(nans.data(), kDim, cache.stride, element,
                                cache.pages[slot / kSpan] + cache.key_bytes, slot % kSpan);
          }
          const auto q = random.normals(parents.size() * kDim);
          std::vector<int> positions(depths.begin(), depths.end());
          for (int& position : positions) position += committed;
          std::vector<float> out(q.size());
          ThreadPool pool(1);
          std::vector<float> scratch(attend_scratch_floats(slots, kDim), kNan);
          AttendArgs args{.q = q.data(),
                          .out = out.data(),
                          .rows = static_cast<int>(parents.size()),
                          .positions = positions.data(),
                          .window = window,
                          .n_heads = 1,
                          .n_kv_heads = 1,
                          .head_dim = kDim,
                          .scale = 0.3f,
                          .first_open = committed,
                          .parents = parents.data()};
          cache.fill(args);
          attend({&args, 1}, scratch.data(), scratch.size(), {table, &pool});
          for (const int row : path) {
            const size_t seen = static_cast<size_t>(positions[row] + 1) * kDim;
            const auto at = static_cast<size_t>(row) * kDim;
            ASSERT_TRUE(same_bits(
                std::span(out).subspan(at, kDim),
                reference::attend(std::span(q).subspan(at, kDim), std::span(keys).first(seen),
                                  std::span(values).first(seen), 0.3f, window)))
                << table->variant << " row " << row << " behind " << committed << " window "
                << window;
          }
        }
      }
    }
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

}  // namespace
}  // namespace paceline
