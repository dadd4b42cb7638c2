#include "apps/stream_recorder.h"

#include <utility>

#include "measure/cycle.h"

namespace paceline::apps {
namespace {

// A tail as short as that may be a row of dots, and training on it does no harm.
constexpr int kShortestCyclicTail = 2 * measure::kLongestCycle;

int cycle_start(const NewStream& stream) {
  const int positions = stream.hiddens.rows();
  const auto answer = std::span(stream.tokens).subspan(static_cast<size_t>(stream.n_prompt));
  const int start = measure::cycle_start(answer);
  const bool is_long = static_cast<int>(answer.size()) - start >= kShortestCyclicTail;
  return is_long ? stream.n_prompt + start : positions;
}

// How many of the round's drafts the text went on with.
int n_standing(const DumpRound& round, std::span<const TokenId> tokens) {
  int n = 0;
  for (size_t at = static_cast<size_t>(round.row) + 2; const DumpDraft& draft : round.drafts) {
    if (at >= tokens.size() || tokens[at++] != draft.token) break;
    ++n;
  }
  return n;
}

}  // namespace

StreamRecorder::StreamRecorder(std::string id, std::string category,
                               std::span<const TokenId> prompt, const RowKind& kind)
    : tap_(kind.tap),
      head_sha256_(kind.head_sha256),
      stream_{.id = std::move(id),
              .category = std::move(category),
              .n_prompt = static_cast<int>(prompt.size()),
              .own_top1 = 0,
              .tokens = {prompt[0]},
              .hiddens = HiddenRows(kind.type, kind.width)} {
  for (int source = 0; source < kDraftSources; ++source)
    stream_.sources.emplace_back(to_string(static_cast<DraftSource>(source)));
}

void StreamRecorder::rows(std::span<const TokenId> next, Mat<const float> hidden) {
  stream_.tokens.insert(stream_.tokens.end(), next.begin(), next.end());
  const auto values = static_cast<size_t>(hidden.rows) * static_cast<size_t>(hidden.cols);
  stream_.hiddens.append({hidden.data, values});
}

void StreamRecorder::chosen(TokenId /*id*/, bool own_top1) { stream_.own_top1 += own_top1 ? 1 : 0; }

void StreamRecorder::drafted(std::span<const Draft> drafts, int /*n_accepted*/) {
  DumpRound round = {.row = stream_.hiddens.rows() - 1, .n_accepted = 0, .drafts = {}};
  for (const Draft& draft : drafts) {
    // Of a tree what its first draft goes on with, as a chain of first guesses would.
    if (draft.back != 1 || draft.second) break;
    round.drafts.push_back({draft.token, static_cast<uint32_t>(draft.source)});
    if (draft.source == DraftSource::Mtp) stream_.head_sha256 = head_sha256_;
  }
  if (!round.drafts.empty()) stream_.rounds.push_back(std::move(round));
}

NewStream StreamRecorder::finish(FinishReason reason, int budget) {
  stream_.budget = budget;
  stream_.ended = reason == FinishReason::Stop;
  stream_.cycle_start = cycle_start(stream_);
  for (DumpRound& round : stream_.rounds) round.n_accepted = n_standing(round, stream_.tokens);
  if (stream_.rounds.empty()) stream_.sources.clear();
  return std::move(stream_);
}

NewStream StreamRecorder::finish_text() {
  stream_.given_text = true;
  return finish(FinishReason::Length, static_cast<int>(stream_.tokens.size()) - stream_.n_prompt);
}

}  // namespace paceline::apps
