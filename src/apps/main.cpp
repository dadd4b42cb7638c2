// The program: looks at the first argument and hands the rest to that command.
#include <fmt/core.h>

#include <array>
#include <cstdio>
#include <new>
#include <string_view>
#include <system_error>

#include "apps/commands.h"
#include "apps/process.h"
#include "apps/say.h"
#include "apps/values.h"
#include "base/version.h"
#include "io/shown.h"

namespace paceline::apps {
namespace {

struct Command {
  std::string_view name;
  int (*run)(Args args);
  std::string_view what;
};

constexpr std::array kCommands = {
    Command{"generate", generate, "continue prompts, plain or speculative, and compare"},
    Command{"chat", chat, "talk to the model in the terminal"},
    Command{"bench", bench, "time plain and speculative decoding side by side"},
    Command{"collect", collect, "record a model's answers with its hiddens, for a draft head"},
    Command{"train", train, "teach a draft head on a dump"},
    Command{"drift", drift, "say whether two runs wrote the same, by token ids"},
    Command{"replay", replay, "count over a dump what drafts would have stood, without the trunk"},
    Command{"store", store, "make a store of n-grams of a dump's answers"},
    Command{"trace", trace, "write the logits of a given text, bit for bit"},
    Command{"trace-compare", trace_compare, "say where two traces choose differently"},
    Command{"guard", guard, "weigh what a margin guard would cost kernels that are not exact"},
    Command{"inspect", inspect, "say what a checkpoint holds and what will run"},
    Command{"tokenize", tokenize, "text to token ids and back"},
    Command{"probe", probe, "prove on this machine that a model's blocks equal its chains"},
    Command{"parity", parity, "hold every kernel's rows against themselves, by bytes"},
    Command{"export", run_export, "write a model as a folder in bfloat16 that transformers loads"},
    Command{"patch", patch, "put a draft head into a checkpoint"},
    Command{"unpatch", unpatch, "take it out again, to the byte"},
    Command{"synth", synth, "write a checkpoint with random weights and real shapes"},
};

void print_help() {
  say("Paceline writes a language model's text faster without changing a byte of it.\n\n"
      "Usage: paceline COMMAND MODEL [flags]\n\nCommands:\n");
  for (const Command& command : kCommands) say("  {:<15}{}\n", command.name, command.what);
  say("\nMODEL is a folder (config.json and safetensors) or a .gguf file.\n"
      "paceline COMMAND --help lists a command's flags; paceline --version names the build.\n\n"
      "Example:\n  paceline generate model.gguf --prompt \"Why is the sky blue?\"\n");
}

// Errors are values; these two alone come from below: memory, and threads of the system.
int run_command(const Command& command, Args args) {
  try {
    return command.run(args);
  } catch (const std::bad_alloc&) {
    return fail(command.name, {ErrorCode::TooLarge, "there is not enough memory for this"});
  } catch (const std::system_error& error) {
    return fail(command.name,
                {ErrorCode::TooLarge, "the system has no more threads to give (" +
                                          error.code().message() + "); try fewer --threads"});
  }
}

int run(Args args) {
  if (args.empty()) {
    say(stderr, "paceline: no command given; see paceline --help\n");
    return kExitBadInput;
  }
  const std::string_view name = args[0];
  if (name == "--version") {
    say("paceline {} ({})\n", version(), commit());
    return kExitSuccess;
  }
  if (name == "--help" || name == "-h") {
    print_help();
    return kExitSuccess;
  }
  for (const Command& command : kCommands) {
    if (name == command.name) return run_command(command, args.subspan(1));
  }
  say(stderr, "paceline: there is no command {}; see paceline --help\n", quoted_name(name));
  return kExitBadInput;
}

}  // namespace
}  // namespace paceline::apps

int main(int argc, char** argv) {
  const char* const* arguments = argv;
  paceline::apps::prepare_process();
  const int status =
      paceline::apps::run({arguments + 1, static_cast<size_t>(argc > 0 ? argc - 1 : 0)});
  return paceline::apps::finish_output(status);
}
