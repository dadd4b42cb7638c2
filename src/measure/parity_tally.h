// Counts bytes that differ, row by row of the report.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>

#include "measure/parity.h"

namespace paceline::measure {

// Where a comparison belongs in the report.
struct ParityPlace {
  std::string op;
  std::string shape;
  std::string type;
  int64_t outputs = 0;  // elements of a row that the table computes
  const KernelTable* table = nullptr;
  int width = 1;
  int threads = 1;
};

class ParityTally {
 public:
  // Holds one row's values, `size` bytes of elements of `element` bytes, against what they should
  // be. first_at: number of the first element in the whole row.
  void compare(const ParityPlace& place, std::string_view against, int row, int64_t first_at,
               const void* got, const void* wanted, size_t size, size_t element);
  template <class T>
  void compare(const ParityPlace& place, std::string_view against, int row, std::span<const T> got,
               std::span<const T> wanted, int64_t first_at = 0) {
    compare(place, against, row, first_at, got.data(), wanted.data(), got.size_bytes(), sizeof(T));
  }

  // Hands the report over.
  void finish(ParityResult& result);

 private:
  ParityRow& row_of(const ParityPlace& place);

  std::vector<ParityRow> rows_;
  std::map<std::string, size_t> index_;
};

}  // namespace paceline::measure
