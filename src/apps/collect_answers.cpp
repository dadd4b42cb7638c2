#include "apps/collect_answers.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <unordered_set>
#include <utility>

#include "apps/stream_recorder.h"
#include "base/sha256.h"
#include "io/shown.h"

namespace paceline::apps {
namespace {

// A long answer must not hold back all others that are written behind it, nor the memory that these
// take grow without end: at most so many times the batch are begun ahead of it.
constexpr size_t kWindowBatches = 8;

// The first 64 bits of a hash, so that neighbouring seeds and ids have nothing in common.
uint64_t seed_of(uint64_t seed, std::string_view id) {
  const std::string text = fmt::format("{} {}", seed, id);
  const std::string digest = sha256(std::as_bytes(std::span(text)));
  return std::stoull(digest.substr(0, 16), nullptr, 16) >> 1;
}

struct Running {
  size_t index = 0;  // into the work list
  StreamRecorder recorder;
  std::optional<Generation> generation;
  int budget = 0;
};

class Collector {
 public:
  Collector(const Engine& engine, std::vector<const Prompt*> work, const Request& request,
            uint64_t seed, const CollectAnswers& options, DumpWriter& dump,
            CollectProgress progress)
      : engine_(engine),
        work_(std::move(work)),
        request_(request),
        seed_(seed),
        options_(options),
        dump_(dump),
        progress_(progress) {}

  Result<CollectProgress> run() {
    const auto start = std::chrono::steady_clock::now();
    if (auto read = read_beginning(); !read) return read.error();
    std::vector<Generation*> stepping;
    while (n_written_ < work_.size()) {
      if (options_.stop && options_.stop()) break;
      if (auto filled = fill(); !filled) return filled.error();
      stepping.clear();
      for (const auto& one : running_) stepping.push_back(&*one->generation);
      Generation::step_together(stepping);
      if (auto taken = take_finished(); !taken) return taken.error();
      if (auto written = write_in_order(); !written) return written.error();
      progress_.seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      progress_.tokens = finished_tokens_;
      for (const auto& one : running_)
        progress_.tokens += static_cast<int64_t>(one->generation->tokens().size());
      if (options_.progress) options_.progress(progress_);
    }
    return progress_;
  }

 private:
  // A chat template begins all prompts alike. Where a head drafts for every answer none would use
  // it: the head reads those rows as well.
  Result<void> read_beginning() {
    const bool all_draft = options_.depth > 0 && !options_.probes;
    if (work_.size() < 2 || all_draft) return {};
    std::span<const TokenId> common = work_[0]->ids;
    for (const Prompt* prompt : work_) {
      const auto differ = std::mismatch(common.begin(), common.end(), prompt->ids.begin(),
                                        prompt->ids.end() - 1);  // the last token is always read
      common = common.first(static_cast<size_t>(differ.first - common.begin()));
    }
    if (common.empty()) return {};
    auto beginning = engine_.read_beginning(common);
    if (!beginning) return beginning.error();
    beginning_ = *std::move(beginning);
    return {};
  }

  Result<void> fill() {
    const size_t window = kWindowBatches * static_cast<size_t>(options_.batch);
    while (running_.size() < static_cast<size_t>(options_.batch) && n_begun_ < work_.size() &&
           n_begun_ - n_written_ < window) {
      const Prompt& prompt = *work_[n_begun_];
      auto one = std::make_unique<Running>(
          Running{.index = n_begun_,
                  .recorder = StreamRecorder(prompt.id, prompt.category, prompt.ids, options_.rows),
                  .generation = {}});
      Request request = request_;
      request.prompt = prompt.ids;
      request.beginning = beginning_;
      request.sampling.seed = seed_of(seed_, prompt.id);
      request.row_sink = &one->recorder;
      if (drafts(prompt.id)) {
        request.drafter = DrafterKind::Mtp;
        request.depth = options_.depth;
        request.tree = 0;
      }
      auto generation = engine_.start(request);
      if (!generation) return in_prompt(prompt, generation.error());
      one->generation = std::move(*generation);
      const int room = engine_.context() - static_cast<int>(prompt.ids.size());
      one->budget = std::min(request.max_tokens, room);
      running_.push_back(std::move(one));
      ++n_begun_;
    }
    return {};
  }

  // Whatever was collected before, the same answers are probed.
  bool drafts(std::string_view id) const {
    return options_.depth > 0 && (!options_.probes || seed_of(0, id) % kProbeEvery == 0);
  }

  static Error in_prompt(const Prompt& prompt, const Error& error) {
    return {error.code, fmt::format("prompt {}: {}", quoted_name(prompt.id), error.message)};
  }

  Result<void> take_finished() {
    for (const auto& one : running_) {
      if (!one->generation->done()) continue;
      if (const auto& error = one->generation->error())
        return in_prompt(*work_[one->index], *error);
      finished_tokens_ += static_cast<int64_t>(one->generation->tokens().size());
      finished_.emplace(one->index,
                        one->recorder.finish(one->generation->finish_reason(), one->budget));
    }
    std::erase_if(running_, [](const auto& one) { return one->generation->done(); });
    return {};
  }

  Result<void> write_in_order() {
    for (auto next = finished_.find(n_written_); next != finished_.end();
         next = finished_.find(n_written_)) {
      const NewStream& stream = next->second;
      if (auto added = dump_.add(stream); !added) return added;
      progress_.count(stream);
      finished_.erase(next);
      ++n_written_;
    }
    return {};
  }

  const Engine& engine_;
  std::vector<const Prompt*> work_;
  const Request& request_;
  uint64_t seed_;
  const CollectAnswers& options_;
  DumpWriter& dump_;
  CollectProgress progress_;
  std::shared_ptr<const Beginning> beginning_;  // none: they begin differently

  std::vector<std::unique_ptr<Running>> running_;
  std::map<size_t, NewStream> finished_;  // done, and waiting for those before them
  size_t n_begun_ = 0;
  size_t n_written_ = 0;
  int64_t finished_tokens_ = 0;
};

}  // namespace

void CollectProgress::count(const NewStream& stream) {
  ++written;
  positions += stream.hiddens.rows();
  own_top1 += stream.own_top1;
  scored += static_cast<int64_t>(stream.tokens.size()) - stream.n_prompt;
  if (stream.cycle_start < stream.hiddens.rows()) ++cyclic;
}

Result<std::vector<const Prompt*>> work_left(const std::vector<Prompt>& prompts,
                                             const DumpWriter& dump) {
  std::vector<const Prompt*> work;
  for (const Prompt& prompt : prompts) {
    if (!dump.has(prompt.id)) {
      work.push_back(&prompt);
    } else if (!dump.has_of(prompt.id, prompt.ids)) {
      return Error{ErrorCode::BadUsage,
                   fmt::format("the dump holds a stream {} that was made of another prompt; use "
                               "other ids, or another folder",
                               quoted_name(prompt.id))};
    }
  }
  return work;
}

Result<CollectProgress> collect_answers(const Engine& engine, const std::vector<Prompt>& prompts,
                                        const Request& request, uint64_t seed,
                                        const CollectAnswers& options, DumpWriter& dump) {
  auto work = work_left(prompts, dump);
  if (!work) return work.error();
  CollectProgress progress;
  progress.total = prompts.size();
  progress.skipped = prompts.size() - work->size();
  return Collector(engine, *std::move(work), request, seed, options, dump, progress).run();
}

}  // namespace paceline::apps
