#include "train/draft_check.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "fmt/format.h"
#include "io/shown.h"
#include "spec/head_drafter.h"

namespace paceline::train {
namespace {

// A stream's text, handed to a drafter row by row as a live run hands it over.
class Reader {
 public:
  Reader(const DumpStream& stream, HeadDrafter& drafter)
      : stream_(stream), drafter_(drafter), hidden_(static_cast<size_t>(stream.width)) {
    const auto n_prompt = static_cast<size_t>(stream.n_prompt);
    drafter.begin(stream.tokens.first(n_prompt), stream.positions() + 1 + kMostDrafts);
  }

  // Until the text ends with token row + 1.
  void read_to(int row) {
    for (; n_rows_ <= row; ++n_rows_) {
      stream_.hidden(n_rows_, hidden_);
      const auto next = stream_.tokens.subspan(static_cast<size_t>(n_rows_) + 1, 1);
      const Mat<const float> hidden(hidden_.data(), 1, stream_.width);
      if (n_rows_ + 1 < stream_.n_prompt)
        drafter_.prefill(next, hidden);
      else
        drafter_.observe(next, hidden);
    }
  }

 private:
  const DumpStream& stream_;
  HeadDrafter& drafter_;
  std::vector<float> hidden_;
  int n_rows_ = 0;
};

}  // namespace

Result<int64_t> check_recorded_drafts(const Model& model, const HeadTensors& tensors,
                                      std::string_view head_sha256, const Dump& dump,
                                      CacheType cache, int64_t most,
                                      const std::function<bool()>& stop) {
  int64_t compared = 0;
  if (head_sha256.empty()) return compared;
  const auto head = model.make_head(tensors);
  if (!head) return head.error();
  const auto workspace = (*head)->make_workspace(HeadDrafter::kWorkspaceRows);
  if (!workspace) return workspace.error();
  HeadDrafter drafter(**head, **workspace, cache);
  std::vector<Draft> chain;
  for (int i = 0; i < dump.size() && compared < most; ++i) {
    if (stop && stop()) return Error{ErrorCode::Interrupted, "interrupted"};
    const DumpStream stream = dump.stream(i);
    const auto mtp = std::ranges::find(stream.sources, to_string(DraftSource::Mtp));
    if (stream.head_sha256 != head_sha256 || mtp == stream.sources.end()) continue;
    const auto own = static_cast<uint32_t>(mtp - stream.sources.begin());
    Reader reader(stream, drafter);
    for (const DumpRound& round : stream.rounds()) {
      reader.read_to(round.row);
      drafter.start();
      chain.clear();
      for (const DumpDraft& recorded : round.drafts) {
        if (recorded.source == own) {
          Draft draft;
          drafter.guess(chain, static_cast<int>(chain.size()) - 1, {&draft, 1});
          const TokenId token = draft.token;
          if (token != recorded.token)
            return Error{
                ErrorCode::BadFormat,
                fmt::format("stream {}, row {}: the engine drafted {} at depth {} with this head, "
                            "and {} is what training would draft; the dump comes from another "
                            "program or machine, or one of the two is wrong",
                            quoted_name(stream.id), round.row, recorded.token, chain.size() + 1,
                            token)};
          ++compared;
        }
        chain.push_back({.token = recorded.token});
      }
    }
  }
  return compared;
}

}  // namespace paceline::train
