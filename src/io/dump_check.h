// Looks for hiddens that no trunk writes and that would spoil a training.
#pragma once

#include <string>
#include <vector>

#include "io/dump.h"

namespace paceline {

enum class RowFault { NotANumber, Infinite, AllZero };

struct BadRow {
  int row = 0;  // the position
  RowFault fault = RowFault::NotANumber;
};

// Among the first `rows` of a stream, in order; a row is named once, for its worst fault.
std::vector<BadRow> find_bad_rows(const DumpStream& stream, int rows);
// "stream 'g1-17', position 4: the hidden holds a NaN"
std::string sentence_of(const DumpStream& stream, const BadRow& bad);

}  // namespace paceline
