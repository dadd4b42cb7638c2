#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace paceline {

void check_failed(std::string_view message, const char* file, int line) {
  std::fprintf(stderr, "paceline: internal error at %s:%d: %.*s\n", file, line,
               static_cast<int>(message.size()), message.data());
  std::abort();
}

}  // namespace paceline
