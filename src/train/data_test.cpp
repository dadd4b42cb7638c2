#include "train/data.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "train/tap_check.h"
#include "train/test_support.h"

namespace paceline::train {
namespace {

TEST(TrainingData, StreamsAreHeldOutByTheirIdsAlone) {
  int held_out = 0;
  for (int i = 0; i < 10000; ++i) held_out += is_held_out("stream " + std::to_string(i), 0.1);
  EXPECT_NEAR(held_out, 1000, 100);
  EXPECT_FALSE(is_held_out("a", 0));
  EXPECT_TRUE(is_held_out("a", 1));
}

TEST(TrainingData, ACycleEndsAStreamAndLongOnesAreCut) {
  TemporaryFolder folder;
  const Dump dump = toy_dump(folder, "dump", 24, noise(words_from(4, 16)));  // 40 rows each
  ThreadPool pool(2);
  DataOptions options;
  options.max_rows = 15;
  const auto data = TrainingData::of(dump, options, pool);
  ASSERT_TRUE(data.has_value());
  int64_t rows = 0;
  for (const auto pieces : {data->training(), data->held_out()})
    for (const Piece& piece : pieces) {
      EXPECT_LE(piece.rows, 15);
      EXPECT_GE(piece.rows, 13);
      rows += piece.rows;
      EXPECT_EQ(is_held_out(dump.stream(piece.stream).id, options.held_out),
                pieces.data() == data->held_out().data());
    }
  EXPECT_EQ(rows, 40 * 40);
  EXPECT_EQ(data->facts().positions + data->facts().held_out, rows);
}

TEST(TrainingData, BadRowsAreLeftAwayWithWhatDependsOnThem) {
  ToyText text = noise(words_from(4, 16));
  text.edit = [](int stream, int row, std::span<float> hidden) {
    if (stream == 1 && row == 10) hidden[3] = std::numeric_limits<float>::quiet_NaN();
    if (stream == 2 && row == 20) hidden[0] = std::numeric_limits<float>::infinity();
    if (stream == 3 && row == 30) std::ranges::fill(hidden, 0.0f);
  };
  ToyRun toy(24, text);
  const auto data = toy.data();
  ASSERT_TRUE(data.has_value());
  EXPECT_EQ(data->facts().bad_rows, 3);
  EXPECT_EQ(data->facts().first_bad, "stream 's1', position 10: the hidden holds a NaN");
  for (const auto pieces : {data->training(), data->held_out()})
    for (const Piece& piece : pieces)
      for (const auto& [stream, row] : {std::pair{1, 10}, {2, 20}, {3, 30}})
        EXPECT_FALSE(piece.stream == stream && piece.first <= row &&
                     row < piece.first + piece.rows);
  toy.options.steps = 3;
  const auto report = toy.run();
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->skipped, 0);
  EXPECT_TRUE(toy.warned("3 rows are not finite or all zero, the first: stream 's1'"));
}

TEST(TrainingData, ADumpWithManyBadRowsIsRefused) {
  TemporaryFolder folder;
  ToyText text = noise(words_from(4, 16));
  text.edit = [](int, int row, std::span<float> hidden) {
    if (row % 50 == 7) std::ranges::fill(hidden, 0.0f);
  };
  const Dump dump = toy_dump(folder, "dump", 24, text);
  ThreadPool pool(2);
  const auto data = TrainingData::of(dump, {}, pool);
  ASSERT_FALSE(data.has_value());
  EXPECT_NE(data.error().message.find("40 of 1600 rows"), std::string::npos)
      << data.error().message;
}

TEST(TrainingData, TheShortlistHasTheMostFrequentWordsAndThoseThatMustBeThere) {
  TemporaryFolder folder;
  ToyText text;
  text.token = [](int i, const std::vector<TokenId>&, Random&) {
    return i % 4 == 0 ? 9 : i % 4 == 1 ? 5 : 70;  // 70 most, then 5 and 9
  };
  const Dump dump = toy_dump(folder, "dump", 80, text);
  ThreadPool pool(1);
  const auto data = TrainingData::of(dump, {}, pool);
  ASSERT_TRUE(data.has_value());
  const TokenId always[] = {2};
  EXPECT_EQ(data->shortlist(2, always, 80), (std::vector<TokenId>{2, 70}));
  EXPECT_EQ(data->shortlist(20, always, 80), (std::vector<TokenId>{2, 5, 9, 70}));
  EXPECT_TRUE(data->shortlist(80, always, 80).empty());
  EXPECT_NEAR(data->coverage(std::vector<TokenId>{2, 70}), 0.5, 0.02);
}

TEST(TapCheck, HiddensOfAnotherTapThanTheHeadersAreRefused) {
  TemporaryFolder folder;
  const auto model = toy_model(folder, 24);
  constexpr int kRows = 16;
  const auto token = [](int i) { return static_cast<TokenId>(4 + i * i % 7); };
  auto state = model->make_state(kRows, CacheType::F16);
  auto workspace = model->make_workspace(kRows, 1);
  Block block(kRows);
  block.reset(0);
  for (int i = 0; i < kRows; ++i) block.add(token(i));
  const TrunkOut out = model->forward(block, **state, LogitRows::None, **workspace);

  ToyText text;
  text.token = [&](int i, const std::vector<TokenId>&, Random&) { return token(i); };
  for (const Tap made : {Tap::After, Tap::Before})
    for (const Tap said : {Tap::After, Tap::Before}) {
      text.tap = said;
      text.edit = [&](int, int row, std::span<float> hidden) {
        if (row < kRows) std::ranges::copy(out.at(made).row(row), hidden.begin());
      };
      const std::string name = std::string(to_string(made)) + to_string(said);
      const Dump dump = toy_dump(folder, name, 24, text);
      const auto checked = check_dumped_hiddens(*model, dump, CacheType::F16);
      EXPECT_EQ(checked.has_value(), made == said) << name;
    }
}

TEST(PieceOrder, TakesEveryPieceOnceAPassInAnOrderOfItsOwn) {
  PieceOrder order(10, 4, 1);
  std::vector<int> taken;
  for (int step = 0; step < 5; ++step)
    for (const int i : order.of_step(step)) taken.push_back(i);
  const std::vector<int> first(taken.begin(), taken.begin() + 10);
  const std::vector<int> second(taken.begin() + 10, taken.end());
  EXPECT_EQ(std::set<int>(first.begin(), first.end()).size(), 10u);
  EXPECT_EQ(std::set<int>(second.begin(), second.end()).size(), 10u);
  EXPECT_NE(first, second);
  PieceOrder again(10, 4, 1);
  EXPECT_EQ(again.of_step(3), (std::vector<int>(taken.begin() + 12, taken.begin() + 16)));
}

TEST(BatchBuilder, LeavesOutRowsWhoseTargetStandsInThePromptIfTold) {
  ToyText text = noise(words_from(4, 16));
  text.n_prompt = 10;
  ToyRun toy(24, text);
  const auto trunk = TrunkSide::of(*toy.model);
  for (const bool prompts : {true, false}) {
    toy.data_options.prompt_rows = prompts;
    const auto data = toy.data();
    BatchBuilder builder(*data, *trunk, Tap::After, {}, Targets::Soft, 2);
    const NetBatch& batch = builder.build(data->training().first(1), 2, 0.5, 1);
    for (int depth = 1; depth <= 2; ++depth)
      for (int row = 0; row < batch.rows(); ++row) {
        const bool target = row + depth < batch.rows();
        const bool wanted = target && (prompts || row + depth + 1 >= 10);
        EXPECT_EQ(batch.weights[depth - 1][row] > 0, wanted)
            << "depth " << depth << ", row " << row;
      }
  }
}

}  // namespace
}  // namespace paceline::train
