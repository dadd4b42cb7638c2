// Every kernel held against itself: a row in a block of any width gives the bytes that it gives
// alone, on every instruction set, with any number of threads, and those of the definition in plain
// loops (docs/numerics.md). On shapes of real models, with weights drawn for each shape.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/table.h"

namespace paceline::measure {

enum class ParityDepth {
  Quick,  // every shape, type and width; of large shapes a hundred outputs or so; a minute
  Usual,  // the same with about ten times the outputs
  Full,   // whole matrices, every number of threads at every width
};

struct ParityOptions {
  ParityDepth depth = ParityDepth::Usual;
  std::vector<const KernelTable*> tables = {};  // what is compared; scalar need not be among them
  std::vector<int> threads = {1};               // numbers of threads, at least one
  bool wide = false;                            // run the control in place of the exact products
  std::string only = {};  // pieces whose name holds this text: "product 576 -> 192 q4_1"
  std::function<void(std::string_view what, double share)> progress = {};
  std::function<bool()> stop = {};  // looked at between pieces of work
};

// The first place where bytes differ.
struct ParityDifference {
  std::string against;  // "alone", "reference", or the name of an instruction set
  int row = 0;          // of the block
  int64_t at = 0;       // element of the row
  std::string got;      // the bytes, in hexadecimal, most significant first
  std::string wanted;
  int threads = 0;
};

// One op, shape, type, instruction set and width.
struct ParityRow {
  std::string op;     // "product"
  std::string shape;  // "576 -> 1536"
  std::string type;   // of weights, or of the cache: "q4_1"
  std::string isa;    // the table's variant: "avx512-vnni"
  std::string numerics;
  int width = 0;        // rows of the block
  int64_t outputs = 0;  // elements of a row that were computed: a part of them where there are many
  int64_t bytes = 0;    // compared
  int64_t bytes_different = 0;
  std::map<std::string, int64_t> different;  // of these, by what they were held against
  std::optional<ParityDifference> first;
};

struct ParityResult {
  std::vector<ParityRow> rows;
  int64_t bytes = 0;
  int64_t bytes_different = 0;
  std::vector<std::string> not_run;  // what this machine lacks, a sentence each
  bool complete = true;              // false when stopped
};

ParityResult run_parity(const ParityOptions& options);

// Numbers of threads worth comparing where `most` may be used: one, all, and one that does not
// divide the work evenly.
std::vector<int> parity_threads(int most);

}  // namespace paceline::measure
