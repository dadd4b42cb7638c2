#include "models/head_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "io/shown.h"
#include "models/dense_head.h"
#include "models/dense_weights.h"

namespace paceline {
namespace {

constexpr size_t kFaultsInAnError = 40;

// Biases of the trunk's layers as they are: what the config leaves to the file, the last layer
// says.
DenseConfig settled(DenseConfig config, const Checkpoint& trunk) {
  const bool gguf = trunk.kind() == Checkpoint::Kind::Gguf;
  const auto settle = [&](Bias& bias, const char* in_gguf, const char* in_folder) {
    if (bias != Bias::IfThere) return;
    const int last = config.n_layers - 1;
    const std::string name = gguf ? fmt::format("blk.{}.{}", last, in_gguf)
                                  : fmt::format("model.layers.{}.{}", last, in_folder);
    bias = trunk.find(name) != nullptr ? Bias::Required : Bias::None;
  };
  settle(config.qkv_bias, "attn_q.bias", "self_attn.q_proj.bias");
  settle(config.out_bias, "attn_output.bias", "self_attn.o_proj.bias");
  settle(config.ffn_bias, "ffn_up.bias", "mlp.up_proj.bias");
  return config;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// What is wrong with the values of one tensor, or nothing.
std::string fault_in_values(const Tensor& tensor) {
  constexpr int64_t kPiece = 1 << 16;
  std::vector<float> values;
  int64_t not_finite = 0;
  bool all_zeros = tensor.elements() > 0;
  for (int64_t first = 0; first < tensor.elements(); first += kPiece) {
    values.resize(static_cast<size_t>(std::min(kPiece, tensor.elements() - first)));
    dequantize(tensor, first, values);
    for (const float x : values) {
      not_finite += std::isfinite(x) ? 0 : 1;
      all_zeros = all_zeros && x == 0;
    }
  }
  if (not_finite > 0)
    return fmt::format("{} holds {} values that are not finite", quoted_name(tensor.name),
                       not_finite);
  if (all_zeros && !tensor.name.ends_with(".bias"))
    return fmt::format("{} is all zeros", quoted_name(tensor.name));
  return {};
}

std::vector<std::string> faults_of(const std::vector<Tensor>& tensors,
                                   const std::vector<HeadShape>& shapes) {
  std::vector<std::string> faults;
  std::map<std::string_view, const Tensor*> by_name;
  for (const Tensor& tensor : tensors) by_name[tensor.name] = &tensor;
  for (const HeadShape& wanted : shapes) {
    const auto found = by_name.find(wanted.name);
    if (found == by_name.end()) {
      faults.push_back(fmt::format("{} is missing", quoted_name(wanted.name)));
      continue;
    }
    const Tensor& tensor = *found->second;
    if (tensor.shape != wanted.shape)
      faults.push_back(fmt::format("{} is {}, wanted {}", quoted_name(tensor.name),
                                   shape_text(tensor.shape), shape_text(wanted.shape)));
  }
  for (const Tensor& tensor : tensors) {
    const auto is_it = [&](const HeadShape& shape) { return shape.name == tensor.name; };
    if (std::ranges::none_of(shapes, is_it))
      faults.push_back(
          fmt::format("{} belongs to no head of this model", quoted_name(tensor.name)));
    if (tensor.type != DType::BF16)
      faults.push_back(
          fmt::format("{} is {}, wanted BF16", quoted_name(tensor.name), to_string(tensor.type)));
    const auto fits = [&](const HeadShape& shape) {
      return shape.name == tensor.name && shape.shape == tensor.shape;
    };
    if (std::ranges::none_of(shapes, fits)) continue;  // it may be of any size
    if (std::string fault = fault_in_values(tensor); !fault.empty())
      faults.push_back(std::move(fault));
  }
  return faults;
}

}  // namespace

std::string another_trunk(const HeadConfig& head, const std::string& trunk_sha256,
                          const std::string& name) {
  if (head.trunk_sha256.empty() || head.trunk_sha256 == trunk_sha256) return "";
  return fmt::format(
      "{} was trained for another trunk, SHA-256 {}, and this one has {}; what it drafts may "
      "seldom stand",
      name, head.trunk_sha256, trunk_sha256);
}

Result<std::vector<HeadShape>> head_shapes(const Checkpoint& trunk, int modules) {
  const auto config = read_config(trunk);
  if (!config) return config.error();
  return dense_head_shapes(settled(*config, trunk), modules);
}

Result<CheckedHead> check_head_file(const std::filesystem::path& path, const Checkpoint& trunk) {
  const auto trunk_config = read_config(trunk);
  if (!trunk_config) return trunk_config.error();
  auto config = read_head_config(path);
  if (!config) return config.error();
  const auto shapes = head_shapes(trunk, config->modules);
  if (!shapes) return shapes.error();
  auto file = open_weight_file(path, path.filename().native());
  if (!file) return file.error();
  const std::string place = shown_path(path);
  auto contents = read_safetensors(file->map.bytes(), place);
  if (!contents) return contents.error();
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::BadFormat, fmt::format("{}: {}", place, what)};
  };
  if (contents->tensors.empty()) return bad("a head without tensors adds nothing");

  std::vector<std::string> faults = faults_of(contents->tensors, *shapes);
  if (!config->family.empty() && config->family != trunk_config->family)
    faults.push_back(fmt::format("it was made for the family {}, the model is of {}",
                                 quoted_name(config->family), trunk_config->family));
  int n_words = trunk_config->vocab_size;
  if (trunk.kind() == Checkpoint::Kind::Gguf) n_words = vocabulary_rows(trunk).value_or(0);
  if (!config->draft_vocabulary.empty() && config->draft_vocabulary.back() >= n_words)
    faults.push_back(fmt::format("its draft vocabulary names id {}, the model has {} words",
                                 config->draft_vocabulary.back(), n_words));
  if (!faults.empty())
    return bad(fmt::format("{} faults, nothing was changed: {}", faults.size(),
                           listed(faults, kFaultsInAnError)));

  CheckedHead head{std::move(*file), std::move(*contents), std::move(*config), {}, {}};
  head.sha256 = cached_sha256(head.file);
  if (head.config.trunk_sha256.empty()) return head;
  if (auto warning = another_trunk(head.config, trunk.trunk_sha256(), place); !warning.empty())
    head.warnings.push_back(std::move(warning));
  return head;
}

}  // namespace paceline
