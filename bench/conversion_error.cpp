// What running a file's block types in others costs in accuracy: of the weights, type by type, and
// of the logits over a text, against the same file in float32.
//
//   conversion_error MODEL TEXT [TOKENS]
//
// The error of the weights is the root of the mean square of what the conversion changes over that
// of the values. That of the logits holds rounded activations as well; a file whose types have
// kernels of their own shows how much of it is theirs.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "io/convert.h"
#include "kernels/argmax.h"
#include "kernels/softmax.h"
#include "measure/reading.h"

namespace paceline {
namespace {

struct Squares {
  double change = 0;
  double size = 0;
  int tensors = 0;
  void add(std::span<const float> before, std::span<const float> after) {
    for (size_t i = 0; i < before.size(); ++i) {
      const double difference = static_cast<double>(after[i]) - static_cast<double>(before[i]);
      change += difference * difference;
      size += static_cast<double>(before[i]) * static_cast<double>(before[i]);
    }
  }
  double relative() const { return std::sqrt(change / size); }
};

void print_weight_errors(const Checkpoint& checkpoint) {
  std::map<DType, Squares> errors;
  for (const Tensor& tensor : checkpoint.tensors()) {
    const DType to = streamed_as(tensor.type);
    if (to == tensor.type || tensor.shape.size() != 2) continue;
    const int64_t row = tensor.shape[1];
    std::vector<float> before(static_cast<size_t>(row));
    std::vector<float> after(before.size());
    std::vector<std::byte> bytes(static_cast<size_t>(row / block_length(to) * block_bytes(to)));
    Squares& error = errors[tensor.type];
    ++error.tensors;
    for (int64_t r = 0; r < tensor.shape[0]; ++r) {
      dequantize(tensor, r * row, before);
      convert(tensor, r * row, to, bytes);
      dequantize({.name = "", .type = to, .shape = {row}, .data = bytes}, 0, after);
      error.add(before, after);
    }
  }
  for (const auto& [type, error] : errors)
    fmt::print("weights  {} as {}: {:.2e} over {} tensors\n", to_string(type),
               to_string(streamed_as(type)), error.relative(), error.tensors);
}

struct Reading {
  std::vector<float> logits;  // (tokens - 1, vocab)
  std::vector<int> first;     // the first choice at each position
  double nll = 0;             // mean, of tokens 1 and on
};

Result<Reading> read(const Engine& engine, std::span<const TokenId> ids) {
  Reading reading;
  auto read = measure::read_given(
      engine, ids, {.width = 32}, [&](int position, std::span<const float> row) {
        reading.nll +=
            static_cast<double>(log_sum_exp(row)) - static_cast<double>(row[ids[position + 1]]);
        reading.first.push_back(argmax(row));
        reading.logits.insert(reading.logits.end(), row.begin(), row.end());
      });
  if (!read) return read.error();
  reading.nll /= static_cast<double>(ids.size() - 1);
  return reading;
}

int run(const char* path, const char* text_path, size_t n_tokens) {
  const auto checkpoint = Checkpoint::open(path);
  if (!checkpoint) return fmt::print(stderr, "{}\n", checkpoint.error().message), 1;
  print_weight_errors(*checkpoint);

  std::ifstream file(text_path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<TokenId> ids;
  std::vector<Reading> readings;
  for (const WeightsType weights : {WeightsType::F32, WeightsType::Native, WeightsType::BF16}) {
    const auto engine = Engine::open(path, {.weights = weights});
    if (!engine) return fmt::print(stderr, "{}\n", engine.error().message), 1;
    if (ids.empty()) {
      engine->tokenizer()->encode(text, /*read_specials=*/false, ids);
      ids.resize(std::min(ids.size(), n_tokens));
    }
    auto reading = read(*engine, ids);
    if (!reading) return fmt::print(stderr, "{}\n", reading.error().message), 1;
    readings.push_back(*std::move(reading));
    const Reading& exact = readings.front();
    const Reading& got = readings.back();
    Squares error;
    error.add(exact.logits, got.logits);
    int same = 0;
    for (size_t i = 0; i < got.first.size(); ++i) same += got.first[i] == exact.first[i] ? 1 : 0;
    constexpr const char* kNames[] = {"f32", "native", "bf16"};
    fmt::print("logits   {}: error {:.2e}, NLL {:.6f} ({:+.6f}), same first choice {} of {}\n",
               kNames[readings.size() - 1], error.relative(), got.nll, got.nll - exact.nll, same,
               got.first.size());
  }
  return 0;
}

}  // namespace
}  // namespace paceline

int main(int n_args, char** args) {
  if (n_args < 3) return fmt::print(stderr, "conversion_error MODEL TEXT [TOKENS]\n"), 1;
  return paceline::run(args[1], args[2], n_args > 3 ? std::strtoul(args[3], nullptr, 10) : 512);
}
