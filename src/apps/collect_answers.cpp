#include "apps/collect_answers.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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
  int64_t counted = 0;  // tokens that the progress has
};

// Answers are written in lanes, each with an engine, threads and sequences of its own, and go into
// the dump in the order of the prompts.
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
    if (auto read = read_beginning(); !read) return read.error();
    if (options_.depth > 0) engine_.gate(options_.stop);  // once, for all lanes
    const auto side_by_side = std::min<int64_t>(options_.batch, std::ssize(work_));
    const auto lanes =
        static_cast<int>(std::clamp<int64_t>(side_by_side / kLaneBatch, 1, engine_.threads()));
    if (lanes == 1) {
      run_lane(engine_, options_.batch);
    } else {
      std::vector<std::future<void>> others;
      for (int lane = 0; lane < lanes; ++lane)
        others.push_back(std::async(std::launch::async, [this, lane, lanes] {
          run_beside(share_of(engine_.threads(), lane, lanes),
                     share_of(options_.batch, lane, lanes));
        }));
      for (auto& other : others) other.get();
    }
    if (error_) return *error_;
    return progress_;
  }

 private:
  using Lane = std::vector<std::unique_ptr<Running>>;

  static int share_of(int n, int lane, int lanes) { return n / lanes + (lane < n % lanes ? 1 : 0); }

  void run_beside(int threads, int batch) try {
    const auto engine = engine_.beside(threads);
    if (engine)
      run_lane(*engine, batch);
    else
      end(engine.error());
  } catch (...) {  // out of memory; nobody may wait for what this lane has begun
    end();
    throw;
  }

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

  // `batch` sequences side by side until no prompt is left, or the run ends.
  void run_lane(const Engine& engine, int batch) {
    Lane running;
    std::vector<Generation*> stepping;
    while (fill(engine, batch, running)) {
      stepping.clear();
      for (const auto& one : running) stepping.push_back(&*one->generation);
      Generation::step_together(stepping);
      take_finished(running);
      std::erase_if(running, [](const auto& one) { return one->generation->done(); });
    }
  }

  // Begins sequences until the lane is full. False: nothing is left to do for it.
  bool fill(const Engine& engine, int batch, Lane& running) {
    while (std::ssize(running) < batch) {
      const auto next = next_prompt(/*wait=*/running.empty());
      if (!next) break;
      auto begun = begin(engine, *next);
      if (!begun) {
        end(begun.error());
        return false;
      }
      running.push_back(*std::move(begun));
    }
    return !running.empty() && !ended();
  }

  // The number of a prompt that is to be begun now. None: all have been, or an early one takes so
  // long that the lane has to go on without; with nothing else to do it waits.
  std::optional<size_t> next_prompt(bool wait) {
    const size_t window = kWindowBatches * static_cast<size_t>(options_.batch);
    std::unique_lock lock(mutex_);
    const auto may_begin = [&] { return n_begun_ - n_written_ < window; };
    const auto over = [&] { return ended_ || n_begun_ == work_.size(); };
    if (wait) moved_on_.wait(lock, [&] { return may_begin() || over(); });
    if (over() || !may_begin()) return std::nullopt;
    return n_begun_++;
  }

  Result<std::unique_ptr<Running>> begin(const Engine& engine, size_t index) const {
    const Prompt& prompt = *work_[index];
    auto one = std::make_unique<Running>(
        Running{.index = index,
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
    auto generation = engine.start(request);
    if (!generation) return in_prompt(prompt, generation.error());
    one->generation = std::move(*generation);
    const int room = engine.context() - static_cast<int>(prompt.ids.size());
    one->budget = std::min(request.max_tokens, room);
    return one;
  }

  // Whatever was collected before, the same answers are probed.
  bool drafts(std::string_view id) const {
    return options_.depth > 0 && (!options_.probes || seed_of(0, id) % kProbeEvery == 0);
  }

  static Error in_prompt(const Prompt& prompt, const Error& error) {
    return {error.code, fmt::format("prompt {}: {}", quoted_name(prompt.id), error.message)};
  }

  void take_finished(const Lane& running) {
    const std::scoped_lock lock(mutex_);
    if (error_) return;
    if (auto taken = take_and_write(running); !taken) {
      end_with(taken.error());
      return;
    }
    progress_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    if (options_.progress) options_.progress(progress_);
  }

  // With the mutex held, as all below that say so.
  Result<void> take_and_write(const Lane& running) {
    for (const auto& one : running) {
      const int64_t tokens = std::ssize(one->generation->tokens());
      progress_.tokens += tokens - one->counted;
      one->counted = tokens;
      if (!one->generation->done()) continue;
      if (const auto& error = one->generation->error())
        return in_prompt(*work_[one->index], *error);
      finished_.emplace(one->index,
                        one->recorder.finish(one->generation->finish_reason(), one->budget));
    }
    return write_in_order();
  }

  Result<void> write_in_order() {  // with the mutex held
    for (auto next = finished_.find(n_written_); next != finished_.end();
         next = finished_.find(n_written_)) {
      const NewStream& stream = next->second;
      if (auto added = dump_.add(stream); !added) return added;
      progress_.count(stream);
      finished_.erase(next);
      ++n_written_;
      moved_on_.notify_all();
    }
    return {};
  }

  bool ended() {
    const std::scoped_lock lock(mutex_);
    if (options_.stop && options_.stop()) end_with({});
    return ended_;
  }
  void end(std::optional<Error> error = {}) {
    const std::scoped_lock lock(mutex_);
    end_with(std::move(error));
  }
  // No lane begins, steps or, behind an error, writes any more; the first error is the run's. With
  // the mutex held.
  void end_with(std::optional<Error> error) {
    if (!error_) error_ = std::move(error);
    ended_ = true;
    moved_on_.notify_all();
  }

  const Engine& engine_;
  std::vector<const Prompt*> work_;
  const Request& request_;
  uint64_t seed_;
  const CollectAnswers& options_;
  std::shared_ptr<const Beginning> beginning_;  // none: they begin differently
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();

  std::mutex mutex_;  // of all below
  std::condition_variable moved_on_;
  DumpWriter& dump_;
  CollectProgress progress_;
  std::map<size_t, NewStream> finished_;  // done, and waiting for those before them
  size_t n_begun_ = 0;
  size_t n_written_ = 0;
  bool ended_ = false;
  std::optional<Error> error_;
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
