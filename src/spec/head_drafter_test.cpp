// The head's cache and its hidden: which rows it reads, when, and what they are paired with. A toy
// head shows every mistake in every draft behind it.
#include "spec/head_drafter.h"

#include <gtest/gtest.h>

#include <random>

#include "kernels/argmax.h"
#include "tests/toy_head.h"
#include "tests/toy_runs.h"

namespace paceline {
namespace {

using Tokens = std::vector<TokenId>;

// The toy trunk's hidden of the token at `pos`.
std::vector<float> trunk_hidden(int pos, TokenId token, Tap tap) {
  std::vector<float> row = {static_cast<float>(pos), static_cast<float>(token), 1, -1};
  if (tap == Tap::Before)
    for (float& x : row) x *= 2;
  return row;
}

// The draft behind a chain by the definition: every module over the whole text, from the beginning.
TokenId draft_by_definition(const ToyHead& head, const Tokens& text, const Tokens& chain) {
  const int modules = head.info().config.modules;
  const int rows = static_cast<int>(text.size()) - 1;
  const int depth = static_cast<int>(chain.size()) + 1;
  Tokens known = text;
  known.insert(known.end(), chain.begin(), chain.end());
  std::vector<std::vector<float>> hidden(rows);
  for (int p = 0; p < rows; ++p) hidden[p] = trunk_hidden(p, text[p], head.info().config.tap);
  ToyHeadRows module_rows;
  TokenId token = -1;
  for (int m = 0; m < std::min(depth, modules); ++m) {
    module_rows = ToyHeadRows();
    for (int p = 0; p < rows; ++p) {
      token = known[p + m + 1];
      module_rows.read(m, hidden[p], token);
      hidden[p] = module_rows.next();
    }
  }
  for (int d = modules + 1; d <= depth; ++d) {
    token = known[rows + d - 1];
    module_rows.read(modules - 1, module_rows.next(), token);
  }
  return head.guess(module_rows, token);
}

Tokens drafts_by_definition(const ToyHead& head, const Tokens& text, int n) {
  Tokens chain;
  while (std::ssize(chain) < n) chain.push_back(draft_by_definition(head, text, chain));
  return chain;
}

// Runs a drafter in the place of another and looks at each of its drafts.
class CheckedDrafter : public HeadDrafter {
 public:
  CheckedDrafter(const ToyHead& head, HeadWorkspace& workspace)
      : HeadDrafter(head, workspace, CacheType::F32), head_(head) {}
  void begin(std::span<const TokenId> prompt, int capacity) override {
    text_.assign(prompt.begin(), prompt.end());
    HeadDrafter::begin(prompt, capacity);
  }
  void observe(std::span<const TokenId> tokens, Mat<const float> hidden) override {
    text_.insert(text_.end(), tokens.begin(), tokens.end());
    HeadDrafter::observe(tokens, hidden);
  }
  int draft(std::span<Draft> out) override {
    ++asked;
    if (silent_rounds && asked > silent_rounds->first && asked <= silent_rounds->second) return 0;
    const int n = HeadDrafter::draft(out);
    Tokens tokens;
    for (const Draft& draft : out) tokens.push_back(draft.token);
    EXPECT_EQ(tokens, drafts_by_definition(head_, text_, n)) << "behind " << text_.size();
    return n;
  }

  std::optional<std::pair<int, int>> silent_rounds;
  int asked = 0;

 private:
  const ToyHead& head_;
  Tokens text_;
};

HeadConfig config_of(int modules, Tap tap = Tap::After) {
  HeadConfig config;
  config.modules = modules;
  config.tap = tap;
  return config;
}

Tokens some_prompt(int n) {
  Tokens prompt(n);
  for (int i = 0; i < n; ++i) prompt[i] = (i * i + 3 * i + 7) % 40;
  return prompt;
}

TEST(HeadDrafter, DraftsAreThoseOfTheWholeTextReadFromTheStart) {
  const ToyHeadedModel trunk({.speech = 200});
  for (const Tap tap : {Tap::After, Tap::Before}) {
    for (const int modules : {1, 2, 3, 5}) {
      const ToyHead head(trunk, config_of(modules, tap));
      const auto workspace = head.make_workspace(HeadDrafter::kWorkspaceRows);
      for (const int n_prompt : {1, 2, 3, 63, 64, 65, 66, 130, 200}) {
        for (const int depth : {1, 2, 3, 4, 8}) {
          CheckedDrafter drafter(head, **workspace);
          const ToyRunOptions options{
              .prompt = some_prompt(n_prompt), .budget = 40, .depth = depth};
          const ToyRun run = toy_run(trunk, drafter, options);
          EXPECT_EQ(run.tokens, toy_plain(trunk, options));
          EXPECT_GE(drafter.asked, 40 / (depth + 1) - 1);
        }
      }
    }
  }
}

// Case 30: after a = 0 .. 4 drafts stood, the hidden that goes with the token just chosen is that
// of verify row a, row 0 being the token that the block began with.
TEST(HeadDrafter, PairsTheHiddenOfTheLastRowThatStoodWithTheTokenBehindIt) {
  const ToyHeadedModel trunk({.speech = 200});
  ToyHead head(trunk, config_of(1));
  const auto workspace = head.make_workspace(HeadDrafter::kWorkspaceRows);
  for (int stood = 0; stood <= 4; ++stood) {
    HeadDrafter drafter(head, **workspace, CacheType::F32);
    const Tokens prompt = {5, 9};
    drafter.begin(prompt, 100);
    const auto row = [](int pos, TokenId token) { return trunk_hidden(pos, token, Tap::After); };
    auto hidden = row(0, 5);
    drafter.prefill({&prompt[1], 1}, {hidden.data(), 1, 4});
    const TokenId first = 11;
    hidden = row(1, 9);
    drafter.observe({&first, 1}, {hidden.data(), 1, 4});
    std::vector<Draft> drafts(4);
    drafter.draft(drafts);

    // The block: 11 and four drafts at positions 2 .. 6, of which `stood` stand; then token 77.
    Tokens emitted;
    std::vector<float> rows;
    for (int r = 0; r <= stood; ++r) {
      emitted.push_back(r < stood ? drafts[r].token : 77);
      const auto of_row = row(2 + r, r == 0 ? first : drafts[r - 1].token);
      rows.insert(rows.end(), of_row.begin(), of_row.end());
    }
    drafter.observe(emitted, {rows.data(), stood + 1, 4});
    std::vector<TracedRow> trace;
    head.trace = &trace;
    drafter.draft(std::span(drafts).first(1));
    head.trace = nullptr;
    ASSERT_EQ(std::ssize(trace), stood + 1);  // each committed row once, none of the old chain
    const TracedRow& last = trace.back();
    EXPECT_EQ(last.position, 2 + stood);
    EXPECT_EQ(last.hidden, row(2 + stood, stood == 0 ? first : emitted[stood - 1]));
    EXPECT_EQ(last.token, 77);
  }
}

// Case 33.
TEST(HeadDrafter, RowsOfThePromptPairEachHiddenWithTheTokenBehindIt) {
  const ToyHeadedModel trunk({.speech = 200});
  ToyHead head(trunk, config_of(1));
  const auto workspace = head.make_workspace(HeadDrafter::kWorkspaceRows);
  HeadDrafter drafter(head, **workspace, CacheType::F32);
  std::vector<TracedRow> trace;
  head.trace = &trace;
  const Tokens prompt = {3, 1, 4, 1, 5, 9};
  const ToyRun run = toy_run(trunk, drafter, {.prompt = prompt, .budget = 3, .depth = 1});
  ASSERT_GE(std::ssize(trace), 6);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(trace[i].position, i);
    EXPECT_EQ(trace[i].hidden, trunk_hidden(i, prompt[i], Tap::After));
    EXPECT_EQ(trace[i].token, i < 5 ? prompt[i + 1] : run.tokens[0]);
  }
}

// Case 31.
TEST(HeadDrafter, TheFirstDraftDependsOnTheWholePrompt) {
  const ToyHeadedModel trunk({.speech = 200});
  int differ = 0;
  for (int modules = 1; modules <= 2; ++modules) {
    const ToyHead head(trunk, config_of(modules));
    for (int seed = 0; seed < 16; ++seed) {
      Tokens a = some_prompt(30), b = a;
      for (int i = 3; i <= 8; ++i) b[i] = (b[i] + 1 + seed) % 40;
      differ += drafts_by_definition(head, a, 1) != drafts_by_definition(head, b, 1) ? 1 : 0;
    }
  }
  EXPECT_GT(differ, 4);  // the drafter's own are held against the definition above
}

// Case 34: nothing is drafted for 50 rounds; drafts behind the pause are held against those of the
// whole text.
TEST(HeadDrafter, APauseLeavesNoGapBehindIt) {
  const ToyHeadedModel trunk({.speech = 200});
  for (const int modules : {1, 3}) {
    const ToyHead head(trunk, config_of(modules));
    const auto workspace = head.make_workspace(HeadDrafter::kWorkspaceRows);
    CheckedDrafter paused(head, **workspace);
    paused.silent_rounds = {5, 55};
    const ToyRunOptions options{.prompt = some_prompt(20), .budget = 200, .depth = 4};
    EXPECT_EQ(toy_run(trunk, paused, options).tokens, toy_plain(trunk, options));
    EXPECT_GT(paused.asked, 70);
  }
}

// A round without drafts costs no row of the head until there are many.
TEST(HeadDrafter, ReadsNothingWhileNobodyAsks) {
  const ToyHeadedModel trunk({.speech = 200});
  ToyHead head(trunk, config_of(1));
  const auto workspace = head.make_workspace(HeadDrafter::kWorkspaceRows);
  HeadDrafter drafter(head, **workspace, CacheType::F32);
  std::vector<TracedRow> trace;
  head.trace = &trace;
  toy_run(trunk, drafter, {.prompt = some_prompt(20), .budget = 40, .depth = 0});
  EXPECT_TRUE(trace.empty());
  toy_run(trunk, drafter, {.prompt = some_prompt(20), .budget = 60, .depth = 0});
  EXPECT_EQ(std::ssize(trace), HeadDrafter::kMostPending - 1);  // the newest row waits
}

// As a union asks: tokens of the chain come from elsewhere, and depths are passed over.
TEST(HeadDrafter, FollowsAChainThatOthersDrafted) {
  const ToyHeadedModel trunk({.speech = 200});
  std::mt19937 random(3);
  for (const int modules : {1, 2, 4}) {
    const ToyHead head(trunk, config_of(modules));
    const auto workspace = head.make_workspace(HeadDrafter::kWorkspaceRows);
    HeadDrafter drafter(head, **workspace, CacheType::F32);
    Tokens text = some_prompt(10);
    drafter.begin(text, 400);
    int n_hidden = 0;
    const auto read_up_to = [&](int rows) {
      Tokens next;
      std::vector<float> hiddens;
      for (; n_hidden < rows; ++n_hidden) {
        next.push_back(text[n_hidden + 1]);
        const auto row = trunk_hidden(n_hidden, text[n_hidden], Tap::After);
        hiddens.insert(hiddens.end(), row.begin(), row.end());
      }
      return std::pair(next, hiddens);
    };
    const auto [prompt_next, prompt_rows] = read_up_to(9);
    drafter.prefill(prompt_next, {prompt_rows.data(), 9, 4});
    for (int round = 0; round < 60; ++round) {
      const int old_rows = n_hidden;
      const int n = 1 + static_cast<int>(random() % 4);
      for (int i = 0; i < n; ++i) text.push_back(static_cast<TokenId>(random() % 200));
      const auto [tokens, rows] = read_up_to(old_rows + n);
      drafter.observe(tokens, {rows.data(), n, 4});
      if (random() % 3 == 0) continue;  // nobody asks this round
      drafter.start();
      Tokens chain;
      std::vector<Draft> drafts;
      while (chain.size() < 8) {
        const bool asks = random() % 2 == 0;
        TokenId token = static_cast<TokenId>(random() % 200);
        if (asks) {
          Draft draft;
          drafter.guess(drafts, static_cast<int>(drafts.size()) - 1, {&draft, 1});
          EXPECT_EQ(draft.source, DraftSource::Mtp);
          EXPECT_EQ(draft.token, draft_by_definition(head, text, chain));
          token = draft.token;
          if (random() % 4 == 0) token = (token + 7) % 200;  // another's token is taken
        }
        chain.push_back(token);
        drafts.push_back({.token = token});
      }
    }
  }
}

TEST(HeadDrafter, EvidenceIsTheProbabilityInSixteenLevels) {
  const ToyHeadedModel trunk({.speech = 200});
  const ToyHead head(trunk, config_of(1));  // one logit of 12 among 299 of 0: 0.998
  const auto workspace = head.make_workspace(HeadDrafter::kWorkspaceRows);
  HeadDrafter drafter(head, **workspace, CacheType::F32);
  const TokenId token = 3;
  const auto hidden = trunk_hidden(0, 3, Tap::After);
  drafter.begin({&token, 1}, 10);
  drafter.observe({&token, 1}, {hidden.data(), 1, 4});
  std::vector<Draft> drafts(2);
  EXPECT_EQ(drafter.draft(drafts), 2);
  EXPECT_EQ(drafts[0].evidence, 15);
  EXPECT_EQ(drafts[0].source, DraftSource::Mtp);
}

TEST(HeadDrafter, IdsBeyondSixteenBitsComeThroughAShortlist) {
  const ToyHeadedModel trunk({.vocab_size = 70'000, .speech = 70'000});
  HeadConfig config = config_of(1);
  for (TokenId id = 1; id < 70'000; id += 2) config.draft_vocabulary.push_back(id);
  const ToyHead head(trunk, config);
  const auto workspace = head.make_workspace(HeadDrafter::kWorkspaceRows);
  HeadDrafter drafter(head, **workspace, CacheType::F32);
  const ToyRunOptions options{.prompt = {69'000, 65'536}, .budget = 60, .depth = 3};
  const ToyRun run = toy_run(trunk, drafter, options);
  EXPECT_EQ(run.tokens, toy_plain(trunk, options));
  int accepted = 0;
  for (const RoundStats& round : run.rounds) accepted += round.n_accepted;
  EXPECT_GT(accepted, 5);  // odd ids are in the list
}

}  // namespace
}  // namespace paceline
