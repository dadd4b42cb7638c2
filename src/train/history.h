// What a run has seen of its head.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace paceline::train {

struct HistoryEntry {
  int64_t step = 0;       // steps made; 0: the head that the run began with
  int64_t positions = 0;  // position-depths trained on so far
  double seconds = 0;
  double loss = 0;           // of the steps since the entry before
  double held_out_loss = 0;  // the same loss over held-out rows
  // Rows whose best word was the token that followed, over rows with a target; a depth each.
  std::vector<double> training_hits;
  std::vector<double> held_out_hits;
  // Served: rounds, and those in which depths 1 .. d stood over them.
  int64_t rounds = 0;
  std::vector<double> joint;
  double expected = 0;  // E: the sum of joint
};

nlohmann::ordered_json to_json(const HistoryEntry& entry);
bool from_json(const nlohmann::ordered_json& json, HistoryEntry& entry);

}  // namespace paceline::train
