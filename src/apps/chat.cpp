// paceline chat: a conversation in the terminal.
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "apps/commands.h"
#include "apps/decode_flags.h"
#include "apps/gate_report.h"
#include "apps/generate_report.h"
#include "apps/interrupt.h"
#include "apps/json_file.h"
#include "apps/model_flags.h"
#include "apps/say.h"
#include "apps/spec_flags.h"
#include "apps/stream.h"
#include "apps/terminal.h"
#include "apps/values.h"

namespace paceline::apps {
namespace {

enum class Input { Line, End, Interrupted, Broken };

// One line of standard input, without its line end. Read byte-wise through read(2): stdio would
// swallow what Ctrl-C interrupts. prompts: with "> " in front.
Input read_line(std::string& line, bool prompts) {
  line.clear();
  if (prompts) {
    say("> ");
    std::fflush(stdout);
  }
  for (;;) {
    char c = 0;
    const ssize_t n = read(STDIN_FILENO, &c, 1);
    if (n < 0 && errno == EINTR && !interrupted()) continue;
    if (n < 0) return interrupted() ? Input::Interrupted : Input::Broken;
    if (n == 0) return line.empty() ? Input::End : Input::Line;
    if (c == '\n') break;
    line += c;
  }
  if (line.ends_with('\r')) line.pop_back();
  return Input::Line;
}

struct ChatFlags {
  ModelFlags model;
  DecodeFlags decode;
  SpecFlags spec;
  JsonFile json;
  std::optional<std::string> system;
  int color = 0;
};

Json messages_json(const std::vector<ChatMessage>& messages) {
  Json list = Json::array();
  for (const ChatMessage& message : messages) {
    list.push_back(Json{{"role", message.role}, {"content", message.content}});
  }
  return list;
}

// Answers the conversation's last message. Ctrl-C ends the answer, which stays as far as it came.
Result<ArmResult> answer(const ChatFlags& flags, const Engine& engine,
                         const std::vector<ChatMessage>& messages) {
  auto prompt = engine.encode_chat(messages);
  if (!prompt) return prompt.error();
  Request request = flags.decode.request(*std::move(prompt), flags.model.seed);
  request.depth = flags.spec.arms[0].depth;
  request.tree = flags.spec.arms[0].tree;
  request.drafter = flags.spec.kind();
  request.allow_inexact = flags.spec.allow_inexact;
  TextSink sink(!flags.json.is_stdout(), use_color(static_cast<ColorChoice>(flags.color)));
  auto result = run_arm(engine, request, sink);
  if (result && stderr_is_terminal()) {
    say(stderr, "{:.1f} tokens/s, {:.2f} tokens/round\n", result->stats.tokens_per_second(),
        result->stats.tokens_per_round());
  }
  return result;
}

// Reads and answers lines until /quit, the end of input, or Ctrl-C at the prompt.
Result<Input> converse(const ChatFlags& flags, const Engine& engine,
                       std::vector<ChatMessage>& messages) {
  const auto reset = [&] {
    messages.clear();
    if (flags.system) messages.push_back({"system", *flags.system});
  };
  reset();
  const bool prompts = isatty(STDIN_FILENO) == 1 && stdout_is_terminal() && !flags.json.is_stdout();
  std::string line;
  for (;;) {
    catch_interrupts();
    const Input input = read_line(line, prompts);
    if (input != Input::Line || line == "/quit") return input;
    if (line.empty()) continue;
    if (line == "/reset") {
      reset();
      continue;
    }
    messages.push_back({"user", line});
    const auto result = answer(flags, engine, messages);
    if (result) {
      engine.learn(result->token_ids);
      messages.push_back({"assistant", result->text});
    } else if (result.error().code == ErrorCode::TooLarge ||
               result.error().code == ErrorCode::BadUsage) {
      messages.pop_back();
      say(stderr, "{}; /reset begins anew\n", result.error().message);
    } else {
      return result.error();
    }
  }
}

}  // namespace

int chat(Args args) {
  ChatFlags given;
  Flags flags("chat",
              "A conversation in the terminal. /reset begins anew, /quit or Ctrl-D ends; Ctrl-C "
              "stops an answer.",
              "paceline chat model.gguf --system \"Answer in one sentence.\"");
  given.model.add(flags);
  flags.text("--system", "TEXT", given.system, "system message");
  given.decode.add(flags, 1024, false);
  given.spec.add(flags, "one depth, as --depth", {DraftShape()});
  flags.group("Output");
  given.json.add_flag(flags);
  flags.choice("--color", {"auto", "always", "never"}, given.color,
               "drafted tokens in colour by depth (default: on a terminal)");

  const auto outcome = flags.parse(args);
  if (!outcome) return fail("chat", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (auto ok = given.spec.check(true); !ok) return fail("chat", ok.error());
  if (given.spec.arms.size() != 1) {
    return fail("chat", {ErrorCode::BadUsage, "--depths wants one depth here; generate compares"});
  }
  if (given.spec.kind() == DrafterKind::Scripted) {
    return fail("chat", {ErrorCode::BadUsage, "--drafter scripted is for generate only"});
  }
  if (auto ok = given.decode.check(); !ok) return fail("chat", ok.error());
  std::vector<std::string> inputs = given.spec.files();
  inputs.push_back(given.model.model);
  if (auto ok = check_outputs({given.json.file()}, inputs); !ok) return fail("chat", ok.error());

  const auto engine = given.model.open(given.spec.head_choice(), given.spec.store_choice());
  if (!engine) return fail("chat", engine.error());
  if (engine->chat_template() == nullptr || engine->tokenizer() == nullptr) {
    return fail("chat", {ErrorCode::Unsupported, "the model has no chat template; use generate"});
  }
  print_warnings(*engine);
  Json report = report_header("chat", given.model, *engine, given.spec.drafter_name());
  report["sampling"] = sampling_json(given.decode.sampling);
  settle_gate(*engine, given.spec, report);
  std::vector<ChatMessage> messages;
  const auto ended = converse(given, *engine, messages);
  if (!ended) return fail("chat", ended.error());
  const auto kept = keep_learnt(*engine);  // the report is written all the same
  if (stdout_is_terminal() && !given.json.is_stdout() && *ended != Input::Line) say("\n");
  report["messages"] = messages_json(messages);
  if (auto written = given.json.write(report); !written) return fail("chat", written.error());
  if (!kept) return fail("chat", kept.error());
  if (*ended == Input::Broken)
    return fail("chat", {ErrorCode::Io, "standard input cannot be read"});
  return *ended == Input::Interrupted ? kExitInterrupted : kExitSuccess;
}

}  // namespace paceline::apps
