#include "apps/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string_view>

#include "apps/say.h"
#include "apps/values.h"

namespace paceline::apps {
namespace {

void on_bus_error(int) {
  constexpr std::string_view kSentence =
      "paceline: a file was cut short while it was read; run again when it is whole\n";
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, kSentence.data(), kSentence.size());
  _exit(kExitBadInput);
}

}  // namespace

void prepare_process() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    // The lowest free number is this one. Opened the wrong way round, so that using it fails.
    [[maybe_unused]] const int opened =
        open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
  struct sigaction action = {};
  action.sa_handler = on_bus_error;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
  // A write beyond the limit of a file's size fails like one to a full disk, with a sentence.
  action.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &action, nullptr);
}

int finish_output(int status) {
  const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!failed || status != kExitSuccess) return status;
  say(stderr, "paceline: standard output cannot be written\n");
  return kExitBadInput;
}

}  // namespace paceline::apps
