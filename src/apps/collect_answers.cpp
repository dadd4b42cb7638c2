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
#include <system_error>
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

Error out_of_memory() { return {ErrorCode::TooLarge, "there is not enough memory for this"}; }

// Hands out prompts in their order, takes streams as they are done, and writes them in the order of
// the prompts. Lanes share it: every call takes the lock.
class StreamOrder {
 public:
  StreamOrder(size_t n_prompts, const CollectAnswers& options, DumpWriter& dump,
              CollectProgress progress)
      : n_prompts_(n_prompts),
        window_(kWindowBatches * static_cast<size_t>(options.batch)),
        options_(options),
        dump_(dump),
        progress_(progress) {}

  // The number of the prompt that is to be begun now. None: all have been, or an early one takes so
  // long that others have to go on without more; whoever has nothing else to do waits.
  std::optional<size_t> next(bool wait) {
    std::unique_lock lock(mutex_);
    const auto may_begin = [&] { return n_begun_ - n_written_ < window_; };
    const auto over = [&] { return ended_ || n_begun_ == n_prompts_; };
    if (wait) moved_on_.wait(lock, [&] { return may_begin() || over(); });
    if (over() || !may_begin()) return std::nullopt;
    return n_begun_++;
  }

  // What a step of a lane brought: tokens, and streams with the numbers of their prompts.
  void add(int64_t tokens, std::vector<std::pair<size_t, NewStream>>&& streams) {
    const std::scoped_lock lock(mutex_);
    if (error_) return;  // nothing is written behind it
    progress_.tokens += tokens;
    try {
      for (auto& [index, stream] : streams) waiting_.emplace(index, std::move(stream));
      if (auto written = write(); !written) return end_now(written.error());
    } catch (...) {  // half written, perhaps
      end_now(out_of_memory());
      throw;
    }
    progress_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    if (options_.progress) options_.progress(progress_);
  }

  // Whether lanes are to stop, done or not.
  bool ended() {
    const std::scoped_lock lock(mutex_);
    if (options_.stop && options_.stop()) end_now({});
    return ended_;
  }
  void end(std::optional<Error> error) {
    const std::scoped_lock lock(mutex_);
    end_now(std::move(error));
  }

  // When all lanes are through.
  Result<CollectProgress> result() const {
    if (error_) return *error_;
    return progress_;
  }

 private:
  // Both with the lock held.
  Result<void> write() {
    for (auto next = waiting_.find(n_written_); next != waiting_.end();
         next = waiting_.find(n_written_)) {
      if (auto added = dump_.add(next->second); !added) return added;
      progress_.count(next->second);
      waiting_.erase(next);
      ++n_written_;
      moved_on_.notify_all();
    }
    return {};
  }
  void end_now(std::optional<Error> error) {
    if (!error_) error_ = std::move(error);  // the first one tells
    ended_ = true;
    moved_on_.notify_all();
  }

  const size_t n_prompts_;
  const size_t window_;
  const CollectAnswers& options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();

  std::mutex mutex_;  // of all below
  std::condition_variable moved_on_;
  DumpWriter& dump_;
  CollectProgress progress_;
  std::map<size_t, NewStream> waiting_;  // for those before them
  size_t n_begun_ = 0;
  size_t n_written_ = 0;
  bool ended_ = false;
  std::optional<Error> error_;
};

struct Running {
  size_t index = 0;  // into the work list
  StreamRecorder recorder;
  std::optional<Generation> generation;
  int budget = 0;
  int64_t counted = 0;  // tokens that the order was told
};

// Answers are written in lanes, each with an engine, threads and sequences of its own: no lane
// waits for another, as the threads of one do at every product.
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
        order_(work_.size(), options, dump, progress) {}

  Result<CollectProgress> run() {
    if (auto read = read_beginning(); !read) return read.error();
    const auto may_draft = [&](const Prompt* prompt) { return drafts(prompt->id); };
    if (std::ranges::any_of(work_, may_draft)) engine_.gate(options_.stop);  // once, for all lanes
    const auto side_by_side =
        static_cast<int>(std::min<int64_t>(options_.batch, std::ssize(work_)));
    const int lanes = std::clamp(side_by_side / kLaneBatch, 1, engine_.threads());
    if (lanes == 1)
      run_lane(engine_, options_.batch);
    else
      run_lanes(lanes, side_by_side);
    return order_.result();
  }

 private:
  struct Lane {
    std::vector<std::unique_ptr<Running>> running;
    std::optional<size_t> held;  // a prompt for which there was no memory beside those
  };

  static int share_of(int n, int lane, int lanes) { return n / lanes + (lane < n % lanes ? 1 : 0); }

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

  void run_lanes(int lanes, int batch) {
    std::vector<std::future<void>> running;
    running.reserve(lanes);
    try {
      for (int lane = 0; lane < lanes; ++lane)
        running.push_back(std::async(std::launch::async, [=, this] {
          run_beside(share_of(engine_.threads(), lane, lanes), share_of(batch, lane, lanes));
        }));
    } catch (const std::system_error& error) {  // those that have begun are not to go on alone
      order_.end(Error{ErrorCode::TooLarge,
                       fmt::format("cannot start {} threads: {}", lanes, error.code().message())});
    }
    for (auto& lane : running) lane.get();
  }

  void run_beside(int threads, int batch) try {
    const auto engine = engine_.beside(threads);
    if (engine)
      run_lane(*engine, batch);
    else
      order_.end(engine.error());
  } catch (...) {  // out of memory; nobody may wait for what this lane has begun
    order_.end(out_of_memory());
    throw;
  }

  // `batch` sequences side by side until no prompt is left, or the run ends.
  void run_lane(const Engine& engine, int batch) {
    Lane lane;
    std::vector<Generation*> stepping;
    while (fill(engine, batch, lane)) {
      stepping.clear();
      for (const auto& one : lane.running) stepping.push_back(&*one->generation);
      Generation::step_together(stepping);
      take_finished(lane.running);
    }
  }

  // Begins sequences until the lane is full, or the memory is. False: nothing is left to do for it.
  bool fill(const Engine& engine, int batch, Lane& lane) {
    auto& running = lane.running;
    while (std::ssize(running) < batch) {
      const auto next = lane.held ? lane.held : order_.next(/*wait=*/running.empty());
      if (!next) break;
      auto begun = begin(engine, *next);
      const bool full = !begun && begun.error().code == ErrorCode::TooLarge && !running.empty();
      lane.held = full ? next : std::nullopt;
      if (full) break;
      if (!begun) {
        order_.end(begun.error());
        return false;
      }
      running.push_back(*std::move(begun));
    }
    return !running.empty() && !order_.ended();
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

  void take_finished(std::vector<std::unique_ptr<Running>>& running) {
    int64_t new_tokens = 0;
    std::vector<std::pair<size_t, NewStream>> streams;
    for (const auto& one : running) {
      const Generation& generation = *one->generation;
      const int64_t tokens = std::ssize(generation.tokens());
      new_tokens += tokens - one->counted;
      one->counted = tokens;
      if (!generation.done()) continue;
      if (const auto& error = generation.error())
        return order_.end(in_prompt(*work_[one->index], *error));
      streams.emplace_back(one->index,
                           one->recorder.finish(generation.finish_reason(), one->budget));
    }
    std::erase_if(running, [](const auto& one) { return one->generation->done(); });
    order_.add(new_tokens, std::move(streams));
  }

  const Engine& engine_;
  std::vector<const Prompt*> work_;
  const Request& request_;
  uint64_t seed_;
  const CollectAnswers& options_;
  std::shared_ptr<const Beginning> beginning_;  // none: they begin differently
  StreamOrder order_;
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
