// Headerless records: hiddens for programs that know nothing of dumps, and from such. A record is
//   pos u32 | row u32 | token u32 | hidden f32[width]
// little-endian, one behind another: the token at position pos of its sequence and the trunk's
// hidden of it; row counts the records of a stream from 0. Files may be appended to. Model, tap and
// width are known to whoever uses the file.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "io/dump.h"

namespace paceline {

// All streams of a dump, in its order; the last token of each has no hidden and falls. The file
// appears whole or not at all. Returns the number of records.
Result<int64_t> write_records(const std::filesystem::path& file, const Dump& dump);

}  // namespace paceline
