#include "train/product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "train/choose.h"

namespace paceline::train {
namespace {

std::vector<float> random_values(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(n);
  for (float& x : values) x = std::uniform_real_distribution<float>(-1, 1)(random);
  return values;
}

float as_bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
  std::memcpy(&x, &bits, 4);
  return x;
}

// Sum over k of a(row, k) b(col, k) of values as the table takes them, in double.
double exact(const TrainTable& table, const std::vector<float>& a, const std::vector<float>& b,
             int row, int col, int n, int a_row, int a_k, int b_col, int b_k) {
  double sum = 0;
  for (int k = 0; k < n; ++k) {
    float x = a[row * a_row + k * a_k];
    float y = b[col * b_col + k * b_k];
    if (table.per_unit == 2) {
      x = as_bf16(x);
      y = as_bf16(y);
    }
    sum += double(x) * y;
  }
  return sum;
}

struct Shape {
  int rows, cols, n;
};
constexpr Shape kShapes[] = {{1, 1, 1},    {1, 32, 2},    {12, 32, 64}, {13, 33, 65},
                             {29, 70, 31}, {5, 100, 390}, {400, 40, 7}};

TEST(Product, EqualsThePlainSumForEveryFormOfItsOperandsOnEveryTable) {
  ThreadPool pool(2);
  for (const TrainTable* table : train_tables()) {
    const Tools tools{table, &pool};
    for (const Shape& s : kShapes) {
      for (int form = 0; form < 4; ++form) {
        const bool by_columns = (form & 1) != 0;  // a given as (n, rows)
        const bool b_columns = (form & 2) != 0;   // b given as (n, cols)
        const auto a = random_values(s.rows * s.n, 1);
        const auto b = random_values(s.cols * s.n, 2);
        Left left;
        Right right;
        if (by_columns)
          left.set_columns({a.data(), s.n, s.rows}, tools);
        else
          left.set_rows({a.data(), s.rows, s.n}, tools);
        if (b_columns)
          right.set_columns({b.data(), s.n, s.cols}, tools);
        else
          right.set_rows({b.data(), s.cols, s.n}, tools);
        std::vector<float> c(s.rows * s.cols, 0.5f);
        multiply(left, right, {c.data(), s.rows, s.cols}, true, tools);
        for (int i = 0; i < s.rows; ++i)
          for (int j = 0; j < s.cols; ++j) {
            const double want =
                0.5 + exact(*table, a, b, i, j, s.n, by_columns ? 1 : s.n, by_columns ? s.rows : 1,
                            b_columns ? 1 : s.n, b_columns ? s.cols : 1);
            ASSERT_NEAR(c[i * s.cols + j], want, 2e-5 * std::sqrt(s.n))
                << table->name << " form " << form << ", " << s.rows << "x" << s.cols << "x" << s.n
                << " at " << i << "," << j;
          }
      }
    }
  }
}

TEST(Product, BitsDoNotDependOnTheNumberOfThreads) {
  for (const TrainTable* table : train_tables()) {
    const auto a = random_values(500 * 390, 3);
    const auto b = random_values(300 * 390, 4);
    std::vector<float> first;
    for (int threads : {1, 2, 3, 5}) {
      ThreadPool pool(threads);
      const Tools tools{table, &pool};
      Left left;
      Right right;
      left.set_rows({a.data(), 500, 390}, tools);
      right.set_rows({b.data(), 300, 390}, tools);
      std::vector<float> c(500 * 300);
      multiply(left, right, {c.data(), 500, 300}, false, tools);
      if (first.empty()) first = c;
      EXPECT_EQ(std::memcmp(first.data(), c.data(), c.size() * 4), 0)
          << table->name << ", " << threads << " threads";
    }
  }
}

TEST(Product, Float32TablesGiveTheSameBits) {
  ThreadPool pool(1);
  const auto a = random_values(37 * 500, 5);
  const auto b = random_values(45 * 500, 6);
  std::vector<float> first;
  for (const TrainTable* table : train_tables()) {
    if (table->per_unit != 1) continue;
    const Tools tools{table, &pool};
    Left left;
    Right right;
    left.set_rows({a.data(), 37, 500}, tools);
    right.set_rows({b.data(), 45, 500}, tools);
    std::vector<float> c(37 * 45);
    multiply(left, right, {c.data(), 37, 45}, false, tools);
    if (first.empty()) first = c;
    EXPECT_EQ(std::memcmp(first.data(), c.data(), c.size() * 4), 0) << table->name;
  }
}

}  // namespace
}  // namespace paceline::train
