#include "train/history.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

namespace paceline::train {

nlohmann::ordered_json to_json(const HistoryEntry& entry) {
  return {{"step", entry.step},
          {"positions", entry.positions},
          {"seconds", entry.seconds},
          {"loss", entry.loss},
          {"held_out_loss", entry.held_out_loss},
          {"training_hits", entry.training_hits},
          {"held_out_hits", entry.held_out_hits},
          {"rounds", entry.rounds},
          {"joint_acceptance", entry.joint},
          {"expected", entry.expected}};
}

bool from_json(const nlohmann::ordered_json& json, HistoryEntry& entry) {
  const auto number = [&](const char* key, auto& to) {
    const auto it = json.find(key);
    if (it == json.end()) return false;
    if constexpr (std::is_floating_point_v<std::remove_reference_t<decltype(to)>>) {
      if (it->is_null()) {  // JSON has no other way to write what is not finite
        to = std::numeric_limits<double>::quiet_NaN();
        return true;
      }
    }
    if (!it->is_number()) return false;
    it->get_to(to);
    return true;
  };
  const auto numbers = [&](const char* key, std::vector<double>& to) {
    const auto it = json.find(key);
    if (it == json.end() || !it->is_array()) return false;
    to.clear();
    for (const auto& value : *it) {
      if (!value.is_number()) return false;
      to.push_back(value);
    }
    return true;
  };
  return json.is_object() && number("step", entry.step) && number("positions", entry.positions) &&
         number("seconds", entry.seconds) && number("loss", entry.loss) &&
         number("held_out_loss", entry.held_out_loss) &&
         numbers("training_hits", entry.training_hits) &&
         numbers("held_out_hits", entry.held_out_hits) && number("rounds", entry.rounds) &&
         numbers("joint_acceptance", entry.joint) && number("expected", entry.expected);
}

}  // namespace paceline::train
