// Looks for hiddens that no trunk writes and that would spoil a training.
#pragma once

#include <string>
#include <vector>

#include "io/dump.h"

namespace paceline {

enum class RowFault { NotANumber, Infinite, AllZero };

struct BadRow {
  int stream = 0;  // index into the dump
  std::string id;
  int row = 0;  // the position
  RowFault fault = RowFault::NotANumber;

  std::string sentence() const;  // "stream 'g1-17', position 4: the hidden holds a NaN"
};

// Of every stream, in order; a row is named once, for its worst fault.
std::vector<BadRow> find_bad_rows(const Dump& dump);

}  // namespace paceline
