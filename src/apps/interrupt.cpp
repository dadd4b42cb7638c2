#include "apps/interrupt.h"

#include <atomic>
#include <csignal>

namespace paceline::apps {
namespace {

std::atomic<bool> was_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch it");

void on_interrupt(int) { was_interrupted.store(true); }

}  // namespace

void catch_interrupts() {
  was_interrupted.store(false);
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  // No SA_RESTART: a read from the terminal returns. SA_RESETHAND: the next one kills.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return was_interrupted.load(); }

}  // namespace paceline::apps
