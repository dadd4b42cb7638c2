// Mat<T>: a view of rows of equal length, one behind another. Owns nothing; pass it by value.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

namespace paceline {

template <class T>
struct Mat {
  T* data = nullptr;
  int rows = 0;
  int cols = 0;

  Mat() = default;
  Mat(T* data_, int rows_, int cols_) : data(data_), rows(rows_), cols(cols_) {}
  // A view that may write is also a view that may read.
  template <class U>
  requires(std::is_same_v<T, const U>) Mat(Mat<U> other)  // NOLINT: implicit
      : data(other.data), rows(other.rows), cols(other.cols) {}

  std::span<T> row(int r) const {
    return {data + static_cast<int64_t>(r) * cols, static_cast<size_t>(cols)};
  }
  // The first n rows.
  Mat top(int n) const { return {data, n, cols}; }
  // n rows from row first on.
  Mat middle(int first, int n) const {
    return {data + static_cast<int64_t>(first) * cols, n, cols};
  }
};

}  // namespace paceline
