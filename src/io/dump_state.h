// What an open dump holds. Inside the box only.
#pragma once

#include <vector>

#include "base/mapped_file.h"
#include "io/dump.h"
#include "io/dump_format.h"

namespace paceline {

struct Dump::State {
  DumpStream view(const StreamBlock& block) const;

  DumpHeader header;
  std::vector<MappedFile> files;    // the shards; blocks point into them,
  std::vector<std::byte> memory;    // or into this, where streams are made from records
  std::vector<TokenId> tokens;      // of those too
  std::vector<StreamBlock> blocks;  // a stream each
  int64_t dropped_bytes = 0;
};

}  // namespace paceline
