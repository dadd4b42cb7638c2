// paceline trace: the logits of a given text, position by position, as a file.
#include <fmt/core.h>

#include <cmath>

#include "apps/commands.h"
#include "apps/interrupt.h"
#include "apps/json_file.h"
#include "apps/model_flags.h"
#include "apps/output_path.h"
#include "apps/say.h"
#include "apps/terminal.h"
#include "apps/text_file.h"
#include "apps/trace_file.h"
#include "apps/values.h"
#include "base/sha256.h"
#include "io/output_file.h"

namespace paceline::apps {
namespace {

struct TraceFlags {
  ModelFlags model;
  std::optional<std::string> text;
  std::optional<std::string> out;
  int width = kMaxDepth + 1;
  int prefill = 512;
  int top = 16;
  JsonFile json;
};

// Traced rows gather here and go to the file in pieces.
class TraceWriter {
 public:
  explicit TraceWriter(OutputFile file) : file_(std::move(file)) {}
  Result<void> add(const measure::TracePoint& point) {
    ++rows_;
    nll_ += point.nll;
    return add(trace_line(point));
  }
  Result<void> add(const std::string& line) {
    constexpr size_t kPiece = size_t{1} << 20;
    buffer_ += line;
    if (buffer_.size() < kPiece) return {};
    return flush();
  }
  Result<void> commit() {
    auto flushed = flush();
    return flushed ? file_.commit() : flushed;
  }
  int64_t rows() const { return rows_; }
  double mean_nll() const { return rows_ > 0 ? nll_ / static_cast<double>(rows_) : 0; }

 private:
  Result<void> flush() {
    auto written = file_.write(std::as_bytes(std::span(buffer_)));
    buffer_.clear();
    return written;
  }

  OutputFile file_;
  std::string buffer_;
  int64_t rows_ = 0;
  double nll_ = 0;
};

// What decides the bits of a trace: two that agree in all of it are one configuration.
Json configuration_of(const Json& report) {
  Json configuration = Json::object();
  for (const char* name :
       {"version", "commit", "model_sha256", "numerics", "kernels", "instruction_set", "threads",
        "weights", "cache", "text_sha256", "width", "prefill", "piece", "top"})
    configuration[name] = report[name];
  return configuration;
}

int run(const TraceFlags& given) {
  const auto text = read_text("--text-file", *given.text);
  if (!text) return fail("trace", text.error());
  catch_interrupts();
  const auto engine = given.model.open();
  if (!engine) return fail("trace", engine.error());
  const auto ids = engine->encode_text(*text);
  if (!ids) return fail("trace", ids.error());
  auto file = OutputFile::create(*given.out);
  if (!file) return fail("trace", file.error());

  Json report = report_header("trace", given.model, *engine, "none");
  report["text_sha256"] = sha256(std::as_bytes(std::span(*text)));
  report["width"] = given.width;
  report["prefill"] = given.prefill;
  report["piece"] = engine->context();
  report["top"] = given.top;
  TraceWriter writer(*std::move(file));
  if (auto added = writer.add(trace_header_line(configuration_of(report))); !added)
    return fail("trace", added.error());

  ProgressLine progress;
  const auto traced =
      measure::trace_text(*engine, *ids,
                          {.width = given.width,
                           .prefill = given.prefill,
                           .top = given.top,
                           .stop = interrupted,
                           .progress = [&](double share) { progress.show("tracing", share); }},
                          [&](const measure::TracePoint& point) { return writer.add(point); });
  progress.clear();
  if (interrupted()) {
    say(stderr, "interrupted; nothing was written\n");
    return kExitInterrupted;
  }
  if (!traced) return fail("trace", traced.error());
  print_warnings(*engine);
  if (auto written = writer.commit(); !written) return fail("trace", written.error());

  report["tokens"] = ids->size();
  report["positions"] = writer.rows();
  report["mean_nll"] = writer.mean_nll();
  report["perplexity"] = std::exp(writer.mean_nll());
  report["file"] = *given.out;
  if (auto written = given.json.write(report); !written) return fail("trace", written.error());
  if (!given.json.is_stdout())
    say("{}: {} positions in blocks of {}, perplexity {:.4f}\n", *given.out, writer.rows(),
        given.width, std::exp(writer.mean_nll()));
  return kExitSuccess;
}

}  // namespace

int trace(Args args) {
  TraceFlags given;
  Flags flags("trace",
              "Read a text in blocks of one width and write the largest logits behind each of its "
              "tokens, bit for bit. Two traces are laid side by side by trace-compare.",
              "paceline trace model.gguf --text-file book.txt --width 1 --out plain.trace");
  given.model.add(flags);
  flags.group("Trace");
  flags.text("--text-file", "FILE", given.text,
             "the text, bytes as they are; in pieces of --context tokens where it is longer");
  flags.integer("--width", given.width, 1, 128,
                "rows of a block (default: the widest block of a round)");
  flags.integer("--prefill", given.prefill, 1, 1 << 24,
                "tokens of each piece in front of the first traced row (default: 512)");
  flags.integer("--top", given.top, 2, 4096, "logits kept of each row (default: 16)");
  flags.group("Output");
  flags.text("--out", "FILE", given.out, "the trace");
  given.json.add_flag(flags);
  const auto outcome = flags.parse(args);
  if (!outcome) return fail("trace", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (!given.text)
    return fail("trace", {ErrorCode::BadUsage, "--text-file FILE names the text to read"});
  if (!given.out)
    return fail("trace", {ErrorCode::BadUsage, "--out FILE names the trace to write"});
  const std::vector<std::string> inputs = {given.model.model, *given.text};
  if (auto ok = check_output("--out", *given.out, inputs); !ok) return fail("trace", ok.error());
  for (const std::string& file : {given.model.model, *given.text, *given.out})
    if (auto ok = given.json.check(file); !ok) return fail("trace", ok.error());
  return run(given);
}

}  // namespace paceline::apps
