#include "apps/pages.h"

#include <array>

#include "apps/page_parts.h"
#include "io/shown.h"

namespace paceline::apps {

Result<std::string> page_of(const Json& report) {
  struct Kind {
    const char* command;
    std::string (*page)(const Json&);
  };
  constexpr std::array kKinds = {
      Kind{"bench", bench_page},
      Kind{"drift", drift_page},
      Kind{"trace-compare", trace_compare_page},
      Kind{"guard", guard_page},
      Kind{"parity", parity_page},
      Kind{"generate", generate_page},
      Kind{"train", train_page},
      Kind{"report", report_page},
  };
  const Json& command = at(report, "command");
  for (const Kind& kind : kKinds)
    if (command == kind.command) return kind.page(report);
  return Error{ErrorCode::Unsupported,
               "there is no page for reports of " + quoted_name(text_of(command))};
}

}  // namespace paceline::apps
