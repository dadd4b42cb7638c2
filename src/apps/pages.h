// Reports as HTML pages. A page is made of a report's JSON and of nothing else, so what a program
// wrote can be drawn by another, later.
#pragma once

#include <string>

#include "apps/page.h"

namespace paceline::apps {

// By the report's `command`; Unsupported for one whose reports have no page.
Result<std::string> page_of(const Json& report);

std::string bench_page(const Json& report);
std::string drift_page(const Json& report);
std::string trace_compare_page(const Json& report);
std::string guard_page(const Json& report);
std::string parity_page(const Json& report);
// A report of generate; texts are coloured where its arms have `pieces`.
std::string generate_page(const Json& report);
// `history` is a list of {"step", "loss", "held_out_loss", "joint_acceptance", "expected"};
// `baseline` and `best` have the latter two. Acceptance and E are of held-out streams, loss is of
// the steps since the entry before; what an entry lacks is left out of the plots.
std::string train_page(const Json& report);
// Runs side by side.
std::string report_page(const Json& report);

// Tokens a second that the cost model gives for drafting 0, 1, ... K tokens a round, K being the
// depth of `arm` (an arm of bench) and `cost` the cost of a pass of 1, 2, ... rows in passes of
// one. From what the arm counted: a shallower run is taken to be the same rounds with their deeper
// drafts cut off. Empty where the arm counted nothing.
std::vector<Value> modelled_speed(const Json& arm, const std::vector<Value>& cost,
                                  double draft_cost, double plain_tokens_per_second);

}  // namespace paceline::apps
