// The part of `bench` that states what exactness costs.
#pragma once

#include "apps/json_file.h"
#include "measure/price.h"

namespace paceline::apps {

Json price_json(const measure::Price& price);
void print_price(const measure::Price& price);

}  // namespace paceline::apps
