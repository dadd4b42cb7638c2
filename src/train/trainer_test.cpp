#include "train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "train/row_ops.h"
#include "train/run_state.h"
#include "train/test_support.h"

namespace paceline::train {
namespace {

namespace fs = std::filesystem;

// Whether a run ended well; its sentence where it did not.
#define ASSERT_RAN(result) ASSERT_TRUE((result).has_value()) << (result).error().message

// --- what can be learnt ----------------------------------------------------------------------

TEST(Train, LearnsAWordThatFollowsFromTheOneBeforeIt) {
  ToyText text = pairs(words_from(4, 16));
  text.streams = 300;  // half of the targets are noise, which few streams would have it memorise
  ToyRun toy(24, text);
  toy.options.depths = 1;
  toy.options.steps = 300;
  toy.options.batch = 8;
  toy.options.flat_evaluations = 100;
  const auto report = toy.run();
  ASSERT_RAN(report);
  // Rounds begin behind the first word of a pair and guess the second; behind a wrong guess one
  // begins in between and cannot guess.
  EXPECT_LT(report->baseline.joint[0], 0.2);
  EXPECT_GT(report->best.joint[0], 0.95);
  EXPECT_EQ(report->end, TrainEnd::Done);
}

TEST(Train, LearnsNothingWhereWordsAreRandom) {
  ToyRun toy(24, noise(words_from(4, 16)));
  const auto report = toy.run();
  ASSERT_RAN(report);
  EXPECT_LT(report->best.joint[0], 0.2);  // chance is 1 in 16
}

TEST(Train, WordsBehindTheTwoByteBorderAreLearntAsTheyAre) {
  // 70,000 + i and 4,464 + i, which the same sixteen bits would hold, are different words.
  std::vector<TokenId> words = words_from(70000, 8);
  const auto low = words_from(70000 - 65536, 8);
  words.insert(words.begin() + 4, low.begin(), low.end());
  ToyText text = pairs(words);
  text.streams = 300;
  ToyRun toy(70100, text);
  toy.shortlist = 64;
  toy.options.depths = 1;
  toy.options.steps = 300;
  toy.options.batch = 8;
  toy.options.flat_evaluations = 100;
  const auto report = toy.run();
  ASSERT_RAN(report);
  EXPECT_GT(report->best.joint[0], 0.95);
  const auto head = read_head(toy.out());
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->config.draft_vocabulary.back(), 70007);
  EXPECT_EQ(head->config.draft_vocabulary.front(), 70000 - 65536);
}

// The rows of a batch of pairs that have the second word to guess, at the level of the net.
struct PairHits {
  double right = 0;    // with the targets as they are
  double shifted = 0;  // with targets one further on
};
PairHits pair_hits(Model& model, const Dump& dump, int shift) {
  auto trunk = TrunkSide::of(model);
  DataOptions data_options;
  data_options.held_out = 0.2;
  auto data = TrainingData::of(dump, data_options, *model.dense_trunk()->pool);
  const Tools tools{train_tables().back(), model.dense_trunk()->pool.get()};
  const NetShape shape = trunk->net_shape(HeadConfig{}, 1, Mask::Served, 64);
  const Layout layout = trunk->layout(1);
  std::vector<float> weights = values_of(trunk->new_head(HeadConfig{}, 1), layout);
  HeadNet net(shape, layout, tools);
  net.set_weights(weights);
  const auto words = trunk->output_rows({});
  VocabularyLoss vocabulary({words.data(), trunk->vocab_size(), trunk->dim()}, tools);
  BatchBuilder builder(*data, *trunk, Tap::After, {}, Targets::Hard, 1);
  Optimiser optimiser(layout, {});
  std::vector<float> gradient(layout.size());
  const auto pass = [&](std::span<const Piece> pieces, LossSums& sum) {
    NetBatch batch = builder.build(pieces, 1, 1, static_cast<int>(std::ssize(pieces)));
    for (const Segment& s : batch.segments)
      for (int row = 0; row < s.rows; ++row) {
        const int at = s.first + row;
        // Row p reads token p + 1 and is to guess p + 2; pairs begin at even places.
        const bool second = (row + 1) % 2 == 0 && row + 1 + shift < s.rows;
        batch.weights[0][at] = second ? 0.05f / static_cast<float>(batch.segments.size()) : 0;
        if (second && shift > 0) batch.hard[0][at] = batch.hard[0][at + shift];
      }
    net.forward(batch);
    net.loss(batch, Targets::Hard, vocabulary, {&sum, 1});
    net.backward(batch, gradient);
  };
  PieceOrder order(static_cast<int>(std::ssize(data->training())), 8, 1);
  for (int step = 0; step < 200; ++step) {
    std::vector<Piece> pieces;
    for (const int i : order.of_step(step)) pieces.push_back(data->training()[i]);
    LossSums sum;
    pass(pieces, sum);
    EXPECT_TRUE(
        optimiser.step(scheduled_rate(3e-3f, step, 10, step / 200.0), weights, gradient, tools));
    net.set_weights(weights);
  }
  LossSums held_out;
  pass(data->held_out(), held_out);
  PairHits hits;
  (shift == 0 ? hits.right : hits.shifted) =
      static_cast<double>(held_out.hits) / static_cast<double>(held_out.targets);
  return hits;
}

TEST(Train, ATargetThatIsShiftedByOneIsNotLearnt) {
  TemporaryFolder folder;
  const auto model = toy_model(folder, 24);
  const Dump dump = toy_dump(folder, "dump", 24, pairs(words_from(4, 16)));
  EXPECT_GT(pair_hits(*model, dump, 0).right, 0.95);
  EXPECT_LT(pair_hits(*model, dump, 1).shifted, 0.25);
}

// --- training is serving ---------------------------------------------------------------------

// Distance of training from serving where the weights that train are changed on the way.
Result<Distance> distance(const Model& model, const Dump& dump, const HeadConfig& config,
                          const NetShape& shape,
                          const std::function<void(const Layout&, std::vector<float>&)>& change) {
  auto trunk = TrunkSide::of(model);
  auto data = TrainingData::of(dump, {}, *model.dense_trunk()->pool);
  const Tools tools{train_tables().back(), model.dense_trunk()->pool.get()};
  const Layout layout = trunk->layout(config.modules);
  HeadTensors start = trunk->new_head(config, 1);
  // A merge as large as a trained one.
  for (auto& [name, tensor] : start.tensors)
    if (name.ends_with("fc.weight"))
      for (float& x : tensor.values) x *= 10;
  auto head = model.make_head(start);
  if (!head) return head.error();
  std::vector<float> weights = values_of(start, layout);
  if (change) change(layout, weights);
  HeadNet net(shape, layout, tools);
  net.set_weights(weights);
  BatchBuilder builder(*data, *trunk, config.tap, {}, Targets::Soft, shape.depths);
  const Piece piece = data->training().front();
  const NetBatch& batch = builder.build({&piece, 1}, shape.depths, 1, 1);
  net.forward(batch);
  return distance_to_serving(net, shape, batch, dump.stream(piece.stream).tokens, **head,
                             CacheType::F16);
}

TEST(Train, ComputesWhatIsServedAtEveryDepthForEveryTapAndNumberOfModules) {
  TemporaryFolder folder;
  const auto model = toy_model(folder, 24);
  ToyText text = noise(words_from(4, 16));
  for (const Tap tap : {Tap::After, Tap::Before}) {
    text.tap = tap;
    const Dump dump = toy_dump(folder, to_string(tap), 24, text);
    for (const int modules : {1, 2, 3}) {
      HeadConfig config;
      config.tap = tap;
      config.modules = modules;
      const auto trunk = TrunkSide::of(*model);
      const NetShape shape = trunk->net_shape(config, 4, Mask::Served, 64);
      const auto near = distance(*model, dump, config, shape, {});
      ASSERT_TRUE(near.has_value()) << near.error().message;
      for (int depth = 1; depth <= 4; ++depth)
        EXPECT_LT(near->median[depth - 1], 0.03)
            << modules << " modules, tap " << to_string(tap) << ", depth " << depth;
    }
  }
}

TEST(Train, ASwappedMergeAnotherMaskAndAWrongTapLieFarFromWhatIsServed) {
  TemporaryFolder folder;
  const auto model = toy_model(folder, 24);
  const Dump dump = toy_dump(folder, "dump", 24, noise(words_from(4, 16)));
  const auto trunk = TrunkSide::of(*model);
  const NetShape shape = trunk->net_shape({}, 3, Mask::Served, 64);

  const auto swapped =
      distance(*model, dump, {}, shape, [](const Layout& layout, std::vector<float>& weights) {
        float* fc = weights.data() + layout.find("mtp.fc.weight")->offset;
        for (int row = 0; row < kToyDim; ++row)
          std::swap_ranges(fc + row * 2 * kToyDim, fc + row * 2 * kToyDim + kToyDim,
                           fc + row * 2 * kToyDim + kToyDim);
      });
  EXPECT_GT(swapped->median[0], 0.5);

  NetShape recipe = shape;
  recipe.mask = Mask::Recipe;
  const auto masked = distance(*model, dump, {}, recipe, {});
  EXPECT_LT(masked->median[0], 0.03);  // depth 1 is the same
  EXPECT_GT(masked->median[1], 0.05);

  NetShape before = shape;
  before.recycles_normed = false;
  const auto tapped = distance(*model, dump, {}, before, {});
  EXPECT_GT(tapped->median[0], 0.05);
}

TEST(Train, DeeperDepthsReadTheHeadsOwnOutputRoundedAndTheNextToken) {
  TemporaryFolder folder;
  const auto model = toy_model(folder, 24);
  const Dump dump = toy_dump(folder, "dump", 24, noise(words_from(4, 16)));
  const auto trunk = TrunkSide::of(*model);
  const auto data = TrainingData::of(dump, {}, *model->dense_trunk()->pool);
  const Tools tools{train_tables().front(), model->dense_trunk()->pool.get()};
  const Layout layout = trunk->layout(1);
  const auto weights = values_of(trunk->new_head({}, 1), layout);
  NetShape shape = trunk->net_shape({}, 3, Mask::Recipe, 64);
  HeadNet deep(shape, layout, tools);
  deep.set_weights(weights);
  BatchBuilder builder(*data, *trunk, Tap::After, {}, Targets::Hard, 3);
  const Piece piece = data->training().front();
  const NetBatch batch = builder.build({&piece, 1}, 3, 1, 1);
  deep.forward(batch);
  const auto tokens = dump.stream(piece.stream).tokens;
  for (int depth = 1; depth <= 3; ++depth)
    for (int row = 0; row + depth < piece.rows; ++row)
      ASSERT_EQ(batch.hard[depth - 1][row], tokens[row + depth + 1]);  // one further on

  // Depth 2 by hand: a net of one depth over what depth 1 gave, and the tokens one further on.
  shape.depths = 1;
  HeadNet single(shape, layout, tools);
  single.set_weights(weights);
  std::vector<float> rounded(static_cast<size_t>(piece.rows) * kToyDim);
  for (size_t i = 0; i < rounded.size(); ++i) rounded[i] = to_f32(to_bf16(deep.y(1).data[i]));
  NetBatch second = batch;
  second.hidden = {rounded.data(), piece.rows, kToyDim};
  second.embedding = batch.embedding.middle(1, piece.rows);
  single.forward(second);
  for (int row = 0; row < piece.rows; ++row)
    for (int i = 0; i < kToyDim; ++i)
      ASSERT_EQ(single.y(1).row(row)[i], deep.y(2).row(row)[i]) << "row " << row;
}

// --- a run that is cut short -----------------------------------------------------------------

TEST(Train, ARunThatIsResumedEndsWithTheSameBytes) {
  const ToyText text = pairs(words_from(4, 16));
  const auto set = [](ToyRun& toy) {
    toy.options.steps = 20;
    toy.options.evaluate_every = 5;
    toy.options.optimiser.average = 0.9f;
  };
  ToyRun whole(24, text);
  set(whole);
  const auto at_one_go = whole.run();
  ASSERT_RAN(at_one_go);

  ToyRun parts(24, text);
  set(parts);
  const auto stop_after_ten = [&parts] {
    fs::path used;
    const auto state = read_run_state(parts.out().string() + ".run", &used);
    return state.has_value() && state->step >= 10;
  };
  for (const bool damaged : {false, true}) {
    parts.stop = stop_after_ten;
    const auto first = parts.run();
    ASSERT_RAN(first);
    EXPECT_EQ(first->end, TrainEnd::Interrupted);
    EXPECT_EQ(first->steps, 10);
    parts.stop = {};
    const fs::path state = parts.out().string() + ".run";
    if (damaged) fs::resize_file(state, fs::file_size(state) - 1000);
    const auto second = parts.run(true);
    ASSERT_RAN(second);
    EXPECT_EQ(parts.warned("is not whole; going on from"), damaged);
    EXPECT_EQ(second->steps, 20);
    ASSERT_EQ(second->history.size(), at_one_go->history.size());
    for (size_t i = 0; i < second->history.size(); ++i) {
      EXPECT_EQ(second->history[i].step, at_one_go->history[i].step);
      EXPECT_EQ(second->history[i].loss, at_one_go->history[i].loss);
      EXPECT_EQ(second->history[i].held_out_loss, at_one_go->history[i].held_out_loss);
    }
    EXPECT_EQ(read_whole(parts.out()), read_whole(whole.out()));
    EXPECT_FALSE(fs::exists(state));
  }
}

TEST(Train, WhereverARunIsStoppedItsHistoryGoesOnAsIfItHadNotBeen) {
  const auto set = [](ToyRun& toy) {
    toy.options.steps = 20;
    toy.options.evaluate_every = 5;
    toy.options.first_depth_share = 0.4;
  };
  ToyRun whole(24, pairs(words_from(4, 16)));
  set(whole);
  const auto at_one_go = whole.run();
  ASSERT_RAN(at_one_go);

  ToyRun parts(24, pairs(words_from(4, 16)));
  set(parts);
  // It is asked between steps and between the streams of an evaluation: both are stopped in.
  int asked = 0;
  int most = 14;
  parts.stop = [&] { return ++asked > most; };
  auto report = parts.run();
  ASSERT_RAN(report);
  int stops = 0;
  for (; report->end == TrainEnd::Interrupted; ++stops) {
    ASSERT_LT(stops, 40);
    asked = 0;
    most = 5;
    report = parts.run(true);
    ASSERT_RAN(report);
  }
  EXPECT_GT(stops, 4);
  ASSERT_EQ(report->history.size(), at_one_go->history.size());
  for (size_t i = 0; i < report->history.size(); ++i) {
    HistoryEntry one = report->history[i];
    one.seconds = at_one_go->history[i].seconds;
    EXPECT_EQ(to_json(one), to_json(at_one_go->history[i])) << "entry " << i;
  }
  EXPECT_EQ(report->distance, at_one_go->distance);
  ASSERT_EQ(report->by_length.size(), at_one_go->by_length.size());
  for (size_t i = 0; i < report->by_length.size(); ++i)
    EXPECT_EQ(report->by_length[i].accepted_by_depth, at_one_go->by_length[i].accepted_by_depth);
  EXPECT_EQ(read_whole(parts.out()), read_whole(whole.out()));
}

TEST(History, ALossThatIsNotFiniteComesBackFromItsFile) {
  HistoryEntry entry;
  entry.step = 7;
  entry.held_out_loss = INFINITY;
  entry.training_hits = entry.held_out_hits = entry.joint = {0.5};
  HistoryEntry back;
  ASSERT_TRUE(from_json(nlohmann::ordered_json::parse(to_json(entry).dump()), back));
  EXPECT_EQ(back.step, 7);
  EXPECT_TRUE(std::isnan(back.held_out_loss));
}

TEST(Train, DepthOneIsTrainedAloneForTheShareThatIsGiven) {
  std::vector<int64_t> positions;
  for (const double share : {0.0, 0.5, 1.0}) {
    ToyRun toy(24, pairs(words_from(4, 16)));
    toy.options.steps = 10;
    toy.options.first_depth_share = share;
    const auto report = toy.run();
    ASSERT_RAN(report);
    positions.push_back(report->positions);
  }
  // Ten steps of 4 streams of 40 rows: 39 targets at depth 1, 38 at depth 2.
  EXPECT_EQ(positions,
            (std::vector<int64_t>{10 * 4 * (39 + 38), 10 * 4 * 39 + 5 * 4 * 38, 10 * 4 * 39}));
}

TEST(Train, AnotherHeadOrTapIsNotResumed) {
  ToyRun toy(24, pairs(words_from(4, 16)));
  toy.options.steps = 20;
  toy.options.evaluate_every = 5;
  toy.stop = [&toy] { return fs::exists(toy.out().string() + ".run"); };
  ASSERT_RAN(toy.run());
  toy.stop = {};
  toy.head_seed = 2;
  const auto start = toy.run(true);
  ASSERT_FALSE(start.has_value());
  EXPECT_NE(start.error().message.find("a start from a head of SHA-256"), std::string::npos)
      << start.error().message;
  toy.head_seed = 1;
  toy.data_options.max_rows = 16;
  const auto pieces = toy.run(true);
  ASSERT_FALSE(pieces.has_value());
  EXPECT_NE(pieces.error().message.find("pieces of 16 rows where the run to resume has pieces of "
                                        "512 rows"),
            std::string::npos)
      << pieces.error().message;
  toy.data_options.max_rows = 512;
  toy.head.modules = 2;
  const auto modules = toy.run(true);
  ASSERT_FALSE(modules.has_value());
  EXPECT_NE(modules.error().message.find("modules 2 where the run to resume has modules 1"),
            std::string::npos)
      << modules.error().message;
  toy.head.modules = 1;
  toy.head.tap = Tap::Before;
  const auto tap = toy.run(true);
  ASSERT_FALSE(tap.has_value());
  EXPECT_NE(tap.error().message.find("taken after the final norm, the head reads those before"),
            std::string::npos)
      << tap.error().message;
}

// --- what must not hurt ----------------------------------------------------------------------

TEST(Train, FewDataAreMemorisedAndTheBestHeadIsKept) {
  ToyText text = noise(words_from(4, 16));
  text.streams = 12;
  ToyRun toy(24, text);
  toy.options.steps = 400;
  toy.options.evaluate_every = 10;
  const auto report = toy.run();
  ASSERT_RAN(report);
  EXPECT_EQ(report->end, TrainEnd::Flat);
  EXPECT_LT(report->steps, 400);
  EXPECT_TRUE(toy.warned("positions to train on are few"));
  EXPECT_TRUE(toy.warned("the head is memorising"));
  EXPECT_GE(report->best.expected, report->baseline.expected);
  // What lies on disk is the best one.
  const auto data = toy.data();
  const auto plan = plan_evaluation(*data, toy.options.evaluation_tokens, 2, CacheType::F16);
  const auto kept = read_head(toy.out());
  const auto again = evaluate(*toy.model, *kept, plan);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->expected(), report->best.expected);
}

TEST(Train, StepsThatAreNotFiniteLeaveTheBestHeadAlone) {
  ToyRun toy(24, pairs(words_from(4, 16)));
  toy.options.rate = 1e30f;
  toy.options.warmup = 0;
  toy.options.optimiser.decay = 0;
  toy.options.evaluate_every = 50;
  const auto report = toy.run();
  ASSERT_RAN(report);
  EXPECT_EQ(report->end, TrainEnd::NotFinite);
  EXPECT_EQ(report->skipped, 3);
  EXPECT_TRUE(toy.warned("not finite; the step was skipped"));
  const auto trunk = TrunkSide::of(*toy.model);
  const auto start = trunk->new_head(toy.head, 1);
  const auto kept = read_head(toy.out());
  for (const auto& [name, tensor] : kept->tensors) {
    const auto& wanted = start.tensors.at(name).values;
    for (size_t i = 0; i < wanted.size(); ++i)
      ASSERT_EQ(tensor.values[i], to_f32(to_bf16(wanted[i]))) << name;
  }
}

TEST(Train, StepsWithoutATargetAreSkippedAndChangeNothing) {
  ToyRun toy(24, pairs(words_from(4, 16)));
  toy.options.steps = 5;
  toy.head.draft_vocabulary = {1, 2, 3};  // none of which is in the text
  const auto report = toy.run();
  ASSERT_RAN(report);
  EXPECT_EQ(report->skipped, 5);
  EXPECT_EQ(report->positions, 0);
}

TEST(Train, LargeHiddensGiveFiniteLossesInEveryPrecision) {
  ToyText text = pairs(words_from(4, 16));
  text.edit = [](int, int row, std::span<float> hidden) {
    for (float& x : hidden) x *= 60;
    if (row % 3 == 0) hidden[5] = 60000;
  };
  for (const Products products : {Products::F32, Products::Auto}) {
    ToyRun toy(24, text);
    toy.options.products = products;
    toy.options.targets = Targets::Mixed;
    toy.options.steps = 20;
    const auto report = toy.run();
    ASSERT_RAN(report);
    EXPECT_EQ(report->skipped, 0);
    EXPECT_TRUE(std::isfinite(report->history.back().loss));
  }
}

TEST(Train, LearnsWithWeightsByExpectedLengthToo) {
  ToyText text = pairs(words_from(4, 16));
  text.streams = 300;
  ToyRun toy(24, text);
  toy.options.dpace = 0.5;
  toy.options.steps = 200;
  toy.options.batch = 8;
  toy.options.flat_evaluations = 100;
  const auto report = toy.run();
  ASSERT_RAN(report);
  EXPECT_GT(report->best.joint[0], 0.8);
}

TEST(Train, FrozenPartsStayAsTheyAre) {
  ToyRun toy(24, pairs(words_from(4, 16)));
  toy.options.freeze = {Part::Merge, Part::Norms};
  toy.options.steps = 60;
  const auto report = toy.run();
  ASSERT_RAN(report);
  ASSERT_GT(report->best.step, 0);
  const auto start = TrunkSide::of(*toy.model)->new_head(toy.head, 1);
  const auto head = read_head(toy.out());
  const Layout layout = TrunkSide::of(*toy.model)->layout(1);
  for (const Parameter& p : layout.parameters()) {
    std::vector<float> wanted = start.tensors.at(p.name).values;
    for (float& x : wanted) x = to_f32(to_bf16(x));
    EXPECT_EQ(head->tensors.at(p.name).values == wanted, p.part != Part::Layer) << p.name;
  }
}

TEST(Schedule, RisesThenFallsAlongACosine) {
  EXPECT_FLOAT_EQ(scheduled_rate(1, 0, 10, 0), 0.1f);
  EXPECT_FLOAT_EQ(scheduled_rate(1, 9, 10, 0), 1);
  EXPECT_NEAR(scheduled_rate(1, 50, 10, 0.5), 0.525, 1e-6);
  EXPECT_NEAR(scheduled_rate(1, 100, 10, 1), 0.05, 1e-6);
}

}  // namespace
}  // namespace paceline::train
