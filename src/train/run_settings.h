// What a run depends on, and whether its parts belong together.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/table.h"
#include "train/train_options.h"
#include "train/trainer.h"

namespace paceline::train {

// What must be the same for a run to be continued: one line a setting.
std::vector<std::string> settings_of(const TrainInputs& inputs, const TrainOptions& options,
                                     const TrainTable& table);

// OUT.run
std::filesystem::path state_file_of(const TrainInputs& inputs);

}  // namespace paceline::train
