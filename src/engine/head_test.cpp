// A draft head in the engine: who drafts, what is reused, what is refused.
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/costs.h"
#include "engine/head_search.h"
#include "engine/headed_golden.h"
#include "io/test_files.h"
#include "models/golden_support.h"
#include "models/head_support.h"
#include "tests/toy_engine.h"
#include "tests/toy_head.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<TokenId>;

HeadTensors toy_head(int modules) {
  HeadTensors head;
  head.config.modules = modules;
  return head;
}

Engine headed_engine(int modules, std::optional<ToyOptions> options = {}) {
  auto engine = Engine::with_model(
      std::make_unique<ToyHeadedModel>(options.value_or(ToyOptions{.speech = 200})), 4000, 1, {},
      CacheType::F32);
  check(engine.has_value(), "a toy engine opens");
  check(engine->use_head(toy_head(modules)).has_value(), "a toy head fits");
  return std::move(*engine);
}

Tokens some_prompt(int n, int salt = 0) {
  Tokens prompt(n);
  for (int i = 0; i < n; ++i) prompt[i] = (i * i + 3 * i + 7 + salt * i) % 40;
  return prompt;
}

Request mtp(Tokens prompt, int max_tokens, int depth) {
  Request request{.prompt = std::move(prompt), .max_tokens = max_tokens, .depth = depth};
  request.drafter = DrafterKind::Mtp;
  return request;
}

TEST(EngineHead, TextIsThePlainOneAndDraftsStand) {
  for (const int modules : {1, 2, 3}) {
    const Engine engine = headed_engine(modules);
    for (int depth = 1; depth <= 8; ++depth) {
      for (const double temperature : {0.0, 1.3}) {
        Request request = mtp(some_prompt(30), 150, depth);
        request.sampling.temperature = temperature;
        const Answer got = answer(engine, request);
        EXPECT_EQ(got.error, "");
        EXPECT_EQ(got.drafter, "mtp");
        EXPECT_EQ(got.tokens, plain_answer(engine, request).tokens) << depth;
        if (temperature == 0.0) {
          EXPECT_GT(got.stats.accepted_by_source[static_cast<int>(DraftSource::Mtp)], 40);
        }
      }
    }
    const Answer by_policy = answer(engine, mtp(some_prompt(30), 150, kAutoDepth));
    EXPECT_EQ(by_policy.tokens, plain_answer(engine, mtp(some_prompt(30), 150, 0)).tokens);
  }
}

TEST(EngineHead, DraftsUnlessAnotherIsAskedFor) {
  const Engine engine = headed_engine(1);
  Request request{.prompt = some_prompt(9), .max_tokens = 20, .depth = 2};
  EXPECT_EQ(answer(engine, request).drafter, "union");
  request.drafter = DrafterKind::Lookup;
  EXPECT_EQ(answer(engine, request).drafter, "lookup");
  request.drafter = DrafterKind::None;
  EXPECT_EQ(answer(engine, request).drafter, "none");
}

TEST(EngineHead, WithoutOneADrafterAskedForByNameIsRefused) {
  const Engine engine = toy_engine();
  const Answer got = answer(engine, mtp(some_prompt(9), 20, 2));
  EXPECT_EQ(got.error, engine.no_head());
  EXPECT_NE(got.error, "");
  Request request{.prompt = some_prompt(9), .max_tokens = 20, .depth = 2};
  EXPECT_EQ(answer(engine, request).drafter, "lookup");
}

void expect_same_counts(const Answer& got, const Answer& cold, const std::string& what) {
  EXPECT_EQ(got.tokens, cold.tokens) << what;
  EXPECT_EQ(got.stats.rounds, cold.stats.rounds) << what;
  EXPECT_EQ(got.stats.drafted_by_depth, cold.stats.drafted_by_depth) << what;
  EXPECT_EQ(got.stats.accepted_by_depth, cold.stats.accepted_by_depth) << what;
}

// What stands does not depend on what ran before: rows of the head come along with the trunk's, or
// both are read again.
TEST(EngineHead, AcceptanceIsThatOfAColdRunWhateverRanBefore) {
  for (const int modules : {1, 2, 4}) {
    for (const int n_prompt : {60, 64, 65, 66, 68, 130, 300}) {
      const std::string what = std::to_string(modules) + ", " + std::to_string(n_prompt);
      const Request request = mtp(some_prompt(n_prompt), 80, 4);
      const Answer cold = answer(headed_engine(modules), request);

      const Engine again = headed_engine(modules);
      answer(again, request);
      expect_same_counts(answer(again, request), cold, "again " + what);

      // The next turn of a conversation goes on behind the first one's answer.
      const Engine turns = headed_engine(modules);
      answer(turns, request);
      Request next = request;
      next.prompt.insert(next.prompt.end(), cold.tokens.begin(), cold.tokens.end());
      next.prompt.push_back(17);
      const Answer warm = answer(turns, next);
      expect_same_counts(warm, answer(headed_engine(modules), next), "turn " + what);
      if (n_prompt == 300) {
        EXPECT_GE(warm.stats.reused_tokens, 320);
      }

      // A beginning that was read for others, without a head; and one that ends at a page's border.
      const Engine others = headed_engine(modules);
      Request plain = request;
      plain.drafter = DrafterKind::None;
      answer(others, plain);
      expect_same_counts(answer(others, request), cold, "others " + what);
      for (const int common : {63, 64, 65, 66, 67, 128, 129}) {
        if (common >= n_prompt) continue;
        const Engine split = headed_engine(modules);
        Request other = request;
        for (size_t i = common; i < other.prompt.size(); ++i) other.prompt[i] = 39;
        answer(split, other);
        expect_same_counts(answer(split, request), cold, "split " + what);
      }
    }
  }
}

// 100 tokens in common, the last two of which rows of the second module depend on. A trunk with
// windows shares whole pages, so there both go on at 64.
TEST(EngineHead, GoesOnAtTheLastPlaceThatItSharesWithTheTrunk) {
  for (const char* name : {"llama/plain", "mistral/window", "gemma3/objects"}) {
    SCOPED_TRACE(name);
    const Engine engine = headed_golden(name);
    answer(engine, mtp(some_prompt(150), 20, 3));
    Request other = mtp(some_prompt(150), 20, 3);
    for (size_t i = 100; i < other.prompt.size(); ++i) other.prompt[i] = 39;
    const Answer got = answer(engine, other);
    EXPECT_EQ(got.stats.reused_tokens, engine.model().info().n_sliding > 0 ? 64 : 98);
    expect_same_counts(got, answer(headed_golden(name), other), name);
    EXPECT_EQ(got.tokens, plain_answer(headed_golden(name), other).tokens);
  }
}

TEST(EngineHead, SequencesThatStepTogetherDraftAsTheyDoAlone) {
  const Engine engine = headed_engine(2);
  std::vector<Generation> generations;
  std::vector<Answer> alone;
  for (int i = 0; i < 3; ++i) {
    const Request request = mtp(some_prompt(5 + 40 * i, i), 60, 1 + 2 * i);
    alone.push_back(answer(headed_engine(2), request));
    auto generation = engine.start(request);
    ASSERT_TRUE(generation);
    generations.push_back(std::move(*generation));
  }
  std::vector<Generation*> all;
  all.reserve(generations.size());
  for (Generation& generation : generations) all.push_back(&generation);
  while (std::ranges::any_of(all, [](const Generation* g) { return !g->done(); }))
    Generation::step_together(all);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(generations[i].stats().accepted_by_depth, alone[i].stats.accepted_by_depth) << i;
    EXPECT_EQ(generations[i].stats().rounds, alone[i].stats.rounds) << i;
  }
}

// --- where heads are found -----------------------------------------------------------------------

fs::path golden_gguf() {
  return fs::path(PACELINE_SOURCE_DIR) / "tests/golden/llama/gguf_f32/model.gguf";
}

std::string digest_of(const fs::path& model) {
  const auto checkpoint = Checkpoint::open(model);
  check(checkpoint.has_value(), "a golden opens");
  return checkpoint->trunk_sha256();
}

class HeadPlaces : public testing::Test {
 protected:
  HeadPlaces() {
    setenv("XDG_DATA_HOME", (folder_.path() / "data").c_str(), 1);
    fs::create_directories(user_heads_folder());
    fs::copy(golden_gguf(), model());
    auto engine = Engine::open(model(), {.threads = 1, .use_head = false});
    check(engine.has_value(), "a golden opens");
    HeadConfig config;
    config.family = "llama";
    config.trunk_sha256 = digest_of(model());
    head_ = random_head(engine->model(), config, 2);
  }
  ~HeadPlaces() override { unsetenv("XDG_DATA_HOME"); }

  fs::path model() const { return folder_.path() / "tiny.gguf"; }
  void put(const fs::path& file) const { ASSERT_TRUE(write_head(file, head_)); }
  Engine open(const fs::path& asked = {}) const {
    auto engine = Engine::open(model(), {.threads = 1, .head = asked});
    check(engine.has_value(), "a golden opens");
    return std::move(*engine);
  }

  TemporaryFolder folder_;
  HeadTensors head_;
};

TEST_F(HeadPlaces, NoneIsToldWithEveryPlace) {
  const Engine engine = open();
  EXPECT_EQ(engine.head(), nullptr);
  for (const std::string& place :
       {std::string("mtp.* tensors"), head_side_file(model()).string(), std::string("heads"),
        user_heads_folder().string(), std::string("share/paceline/heads"), std::string("--head")})
    EXPECT_NE(engine.no_head().find(place), std::string::npos) << engine.no_head();
}

TEST_F(HeadPlaces, TheUsersFolderThenTheSideFileThenTheOneNamed) {
  put(user_heads_folder() / "b.safetensors");
  head_.config.trunk_sha256 = std::string(64, '0');  // of another model
  put(user_heads_folder() / "a.safetensors");
  head_.config.trunk_sha256 = digest_of(model());
  {
    const Engine engine = open();
    ASSERT_NE(engine.head(), nullptr) << engine.no_head();
    EXPECT_EQ(engine.head()->file, user_heads_folder() / "b.safetensors");
    EXPECT_EQ(engine.head()->sha256.size(), 64u);
    EXPECT_EQ(engine.no_head(), "");
  }
  put(head_side_file(model()));
  EXPECT_EQ(open().head()->file, head_side_file(model()));
  put(folder_.path() / "c.safetensors");
  EXPECT_EQ(open(folder_.path() / "c.safetensors").head()->file, folder_.path() / "c.safetensors");
}

// Case 81: another digest alone is a warning, other sizes are refused, where the head was asked
// for; one that was found is left aside.
TEST_F(HeadPlaces, AHeadOfAnotherModelIsAWarningOrRefused) {
  head_.config.trunk_sha256 = std::string(64, '0');
  put(folder_.path() / "other.safetensors");
  const Engine engine = open(folder_.path() / "other.safetensors");
  ASSERT_NE(engine.head(), nullptr);
  ASSERT_EQ(engine.warnings().size(), 1u);
  EXPECT_NE(engine.warnings()[0].find(digest_of(model())), std::string::npos);

  head_.tensors.at("mtp.norm.weight") = {{7}, std::vector<float>(7, 1.0f)};
  put(folder_.path() / "other.safetensors");
  const auto refused =
      Engine::open(model(), {.threads = 1, .head = folder_.path() / "other.safetensors"});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("mtp.norm.weight is [7], wanted [48]"), std::string::npos)
      << refused.error().message;

  put(head_side_file(model()));
  const Engine aside = open();
  EXPECT_EQ(aside.head(), nullptr);
  EXPECT_NE(aside.no_head().find("wanted [48]"), std::string::npos);
  EXPECT_EQ(aside.warnings().size(), 1u);
}

TEST_F(HeadPlaces, AFileThatIsNotThereIsRefused) {
  EXPECT_FALSE(Engine::open(model(), {.threads = 1, .head = folder_.path() / "none"}));
}

TEST_F(HeadPlaces, TheDraftsPriceIsMeasured) {
  put(head_side_file(model()));
  const Engine engine = open();
  EXPECT_GT(engine.costs().head, 0);
  EXPECT_LT(engine.costs().head, 5);
  EXPECT_EQ(engine.costs().price(DraftSource::Mtp), engine.costs().head);
  EXPECT_EQ(engine.costs().price(DraftSource::Lookup), engine.costs().draft);
}

}  // namespace
}  // namespace paceline
