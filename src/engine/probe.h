// Does a block give what a chain gives? The exactness gate on a loaded trunk.
//
// One reader takes a text token by token. Others take the same text in blocks of several widths,
// with wrong tokens in them that are rolled back at every accept count, in other chunks, on other
// threads, beside other sequences, and as a path through random trees. Their logits, hiddens and
// cache bytes must be those of the first, byte for byte: then speculative decoding writes what
// plain decoding writes (docs/numerics.md).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "models/model.h"

namespace paceline {

struct ProbeOptions {
  int positions = 256;  // of a walk, behind a beginning that is read first; fewer in short contexts
  std::vector<int> widths = {2, 3, 5, 8, 16};
  int tree_readers = 1;  // of trees of up to kMostTreeRows rows
  int walks = 1;
  int beginning = 48;  // positions read before the first walk
  double seconds = 0;  // a walk goes no further behind this time; 0: to its end
  std::function<void(std::string_view what, double share)> progress = {};
  std::function<bool()> stop = {};  // looked at between passes
};
ProbeOptions long_probe();  // widths 1 to 16, three walks of up to 2,048 positions

enum class Verdict { Exact, Inexact, NotRun };
const char* to_string(Verdict verdict);  // "exact", "inexact", "not_run"

// The first byte that differs, and who read it.
struct Difference {
  std::string reader;  // "width 5, one thread"
  int walk = 0;
  int position = 0;
  int width = 0;        // rows of the block
  std::string tensor;   // "logits", "hidden", "cache"
  int64_t index = 0;    // element of the row; for caches the byte of the position
  uint32_t wanted = 0;  // bits that the chain gave there
  uint32_t found = 0;   // and the block
};

struct ProbeResult {
  Verdict verdict = Verdict::NotRun;
  std::string reason;  // one sentence: what differs, or why it was not run
  int positions = 0;   // that were compared, over all walks
  std::vector<int> widths;
  std::vector<std::string> readers;
  int trees = 0;  // that were read, and their rows
  int64_t tree_rows = 0;
  int64_t bytes = 0;  // compared
  double seconds = 0;
  std::optional<Difference> first_difference;
};

// text: at least two tokens, repeated as often as needed. `not_run` where the context is too short
// for every width and a fork, and where `stop` ended it, with what was compared so far. Errors are
// those of taking memory.
Result<ProbeResult> probe(const Model& model, std::span<const TokenId> text, int context,
                          CacheType cache, const ProbeOptions& options);

// Some text of several kinds, to be walked over.
std::string_view probe_text();

}  // namespace paceline
