// What looking costs: `trace` against plain reading in blocks of the same width, and a gap log
// against a run without one.
//
//   trace_cost MODEL TEXT [TIMES]
//
// Processor time on one thread, so that a machine which others use is seen through. With more
// threads passes take less and looking, on one thread, as long.
//
// Inside the timing: of plain reading the passes over 512 tokens behind a prefill of 512 and the
// greedy choice of every row; of a trace the same passes, those that wrong drafts add, the largest
// logits, their sum, and the lines written to a file. Of a gap log a whole run over drafts that all
// stand, at the depth that makes blocks of this width, with the lines made. Each pair in turns, the
// second first every other time: the least of one over the least of the other, beside it the middle
// half of the pairs' ratios.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "apps/gap_log.h"
#include "apps/trace_file.h"
#include "engine/engine.h"
#include "kernels/argmax.h"
#include "measure/reading.h"
#include "measure/trace.h"

namespace paceline {
namespace {

using Tokens = std::vector<TokenId>;

constexpr int kPrefill = 512;
constexpr int kRows = 512;

// Of the processor, for this program.
double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
double seconds_since(double start) { return seconds_now() - start; }

// Both ways read the prefill, which is timed alone and taken off.
double prefill_seconds(const Engine& engine, const Tokens& text) {
  const auto start = seconds_now();
  const auto first = std::span(text).first(kPrefill + 1);
  const auto read = measure::read_given(engine, first, {.first = kPrefill - 1}, [](auto...) {});
  return read ? seconds_since(start) : -1;
}

double plain_seconds(const Engine& engine, const Tokens& text, int width) {
  TokenId sum = 0;  // so that no choice is left out
  const auto start = seconds_now();
  const auto read = measure::read_given(
      engine, text, {.first = kPrefill - 1, .width = width},
      [&](int /*position*/, std::span<const float> logits) { sum += argmax(logits); });
  return read && sum >= 0 ? seconds_since(start) : -1;
}

double trace_seconds(const Engine& engine, const Tokens& text, int width) {
  std::ofstream file("/dev/null", std::ios::binary);
  const auto start = seconds_now();
  const auto traced =
      measure::trace_text(engine, text, {.width = width, .prefill = kPrefill, .top = 16},
                          [&](const measure::TracePoint& point) -> Result<void> {
                            file << apps::trace_line(point);
                            return {};
                          });
  return traced ? seconds_since(start) : -1;
}

double run_seconds(const Engine& engine, const Tokens& prompt, const Tokens& script, int width,
                   bool gaps) {
  Request request{.prompt = prompt,
                  .max_tokens = kRows,
                  .ignore_eos = true,
                  .depth = width - 1,
                  .drafter = width > 1 ? DrafterKind::Scripted : DrafterKind::None,
                  .script = script,
                  .gaps = gaps,
                  .allow_inexact = true};
  auto generation = engine.start(request);
  if (!generation) return -1;
  double start = seconds_now();
  while (!generation->done()) {
    const bool in_prompt = generation->tokens().empty();
    if (!generation->step()) return -1;
    if (in_prompt) start = seconds_now();  // the prefill is outside
  }
  if (!gaps) return seconds_since(start);
  apps::ArmResult arm;
  arm.gaps = generation->gaps();
  return apps::gap_lines("0", arm).empty() ? -1 : seconds_since(start);
}

// Of pairs in turns.
struct Ratio {
  double least = 0;  // of the least times
  double low = 0;    // quartiles of the pairs' ratios
  double high = 0;
};
template <class First, class Second>
Ratio ratio_of(int times, First first, Second second) {
  std::vector<double> ratios;
  double least_a = 1e9;
  double least_b = 1e9;
  for (int i = 0; i < times; ++i) {
    double a = 0;
    double b = 0;
    if (i % 2 == 1) b = second();
    a = first();
    if (i % 2 == 0) b = second();
    ratios.push_back(b / a);
    least_a = std::min(least_a, a);
    least_b = std::min(least_b, b);
  }
  std::sort(ratios.begin(), ratios.end());
  const auto at = [&](double share) {
    return ratios[static_cast<size_t>(std::lround(share * static_cast<double>(ratios.size() - 1)))];
  };
  return {least_b / least_a, at(0.25), at(0.75)};
}

void print(const char* what, int width, const Ratio& ratio) {
  fmt::print("{:<10} width {:2}: {:+6.2f} % ({:+.2f} to {:+.2f})\n", what, width,
             100 * (ratio.least - 1), 100 * (ratio.low - 1), 100 * (ratio.high - 1));
  std::fflush(stdout);
}

int run(const char* model, const char* text_file, int times) {
  auto engine =
      Engine::open(model, {.threads = 1, .context = 2048, .use_head = false, .use_store = false});
  if (!engine) {
    fmt::print(stderr, "{}\n", engine.error().message);
    return 2;
  }
  std::ifstream file(text_file);
  const std::string content((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
  auto text = engine->encode_text(content);
  if (!text || text->size() <= kPrefill + kRows) {
    fmt::print(stderr, "{}: wants {} tokens and more\n", text_file, kPrefill + kRows + 1);
    return 2;
  }
  text->resize(kPrefill + kRows);
  const Tokens prompt(text->begin(), text->begin() + kPrefill);
  auto written =
      engine->start({.prompt = prompt, .max_tokens = kRows, .ignore_eos = true, .depth = 0});
  while (written && !written->done())
    if (!written->step()) return 2;
  Tokens script;
  for (const EmittedToken& token : written->tokens()) script.push_back(token.id);

  for (const int width : {1, 4, 8, 16}) {
    const double before = prefill_seconds(*engine, *text);
    print("trace", width,
          ratio_of(
              times, [&] { return plain_seconds(*engine, *text, width) - before; },
              [&] { return trace_seconds(*engine, *text, width) - before; }));
    print("gap log", width,
          ratio_of(
              times, [&] { return run_seconds(*engine, prompt, script, width, false); },
              [&] { return run_seconds(*engine, prompt, script, width, true); }));
  }
  return 0;
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "trace_cost MODEL TEXT [TIMES]\n");
    return 2;
  }
  return paceline::run(argv[1], argv[2], argc > 3 ? std::max(1, std::atoi(argv[3])) : 9);
}
