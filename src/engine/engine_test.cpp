#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/costs.h"
#include "engine/end_ids.h"
#include "tests/toy_engine.h"

namespace paceline {
namespace {

using Tokens = std::vector<TokenId>;

Request request(int max_tokens) { return {.prompt = {3, 1, 4, 1, 5}, .max_tokens = max_tokens}; }

std::unique_ptr<Tokenizer> letters() { return std::make_unique<ToyTokenizer>(letter_pairs(300)); }

void expect_same_answer(const Answer& got, const Answer& want) {
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.text, want.text);
  EXPECT_EQ(got.streamed, want.text);
  EXPECT_EQ(got.reason, want.reason);
  EXPECT_EQ(got.error, want.error);
}

// Stats as the contract defines them, whatever the run was.
void expect_sound_stats(const Answer& got) {
  const GenerationStats& s = got.stats;
  const auto emitted = static_cast<int64_t>(got.tokens.size());
  EXPECT_EQ(s.round_tokens, std::max<int64_t>(0, emitted - 1)) << "the prefill's is in no round";
  int64_t accepted = 0;
  for (int d = 0; d < s.depth_limit; ++d) {
    EXPECT_LE(s.accepted_by_depth[d], s.drafted_by_depth[d]);
    EXPECT_LE(s.drafted_by_depth[d], s.rounds);
    if (d > 0) {
      EXPECT_LE(s.accepted_by_depth[d], s.accepted_by_depth[d - 1]);
    }
    accepted += s.accepted_by_depth[d];
  }
  EXPECT_EQ(static_cast<int>(s.drafted_by_depth.size()), s.depth_limit);
  EXPECT_EQ(static_cast<int>(s.accepted_by_depth.size()), s.depth_limit);
  EXPECT_LE(accepted, s.round_tokens);
  EXPECT_GE(accepted, s.round_tokens - s.rounds);  // a round gives one token that is no draft
  int64_t by_source = 0;
  for (const int64_t n : s.accepted_by_source) by_source += n;
  EXPECT_EQ(by_source, accepted);
  const auto drafted = std::count_if(got.emitted.begin(), got.emitted.end(),
                                     [](const EmittedToken& t) { return t.depth > 0; });
  EXPECT_EQ(accepted, drafted);
}

// Case 1: the end at each place of a block of 5.
TEST(Engine, EndsAtTheEndTokenAtEveryPlaceOfABlock) {
  const Tokens plain = plain_answer(toy_engine(), request(30)).tokens;
  for (int at = 0; at <= 11; ++at) {
    ASSERT_EQ(std::count(plain.begin(), plain.begin() + at, plain[at]), 0);
    const Engine engine = toy_engine({}, {plain[at]}, 1000, letters());
    const Answer alone = plain_answer(engine, request(30));
    EXPECT_EQ(alone.tokens, Tokens(plain.begin(), plain.begin() + at + 1));
    EXPECT_EQ(alone.reason, FinishReason::Stop);
    EXPECT_EQ(alone.text.size(), 2u * at) << "the end token is no text";
    for (int depth = 1; depth <= 8; ++depth) {
      const Answer got = answer(engine, scripted(request(30), plain, depth));
      expect_same_answer(got, alone);
      expect_sound_stats(got);
    }
    // Without ending, it is chosen all the same.
    Request on = scripted(request(30), plain, 4);
    on.ignore_eos = true;
    const Answer whole = answer(engine, on);
    EXPECT_EQ(whole.tokens, plain);
    EXPECT_EQ(whole.reason, FinishReason::Length);
  }
}

// Cases 2 and 3: stop strings that complete at each place, within a token and across two.
TEST(Engine, CutsTheTextBeforeAStopStringAtEveryPlace) {
  const Engine engine = toy_engine({}, {}, 1000, letters());
  const Answer whole = plain_answer(engine, request(40));
  for (size_t length : {1, 2, 3, 5}) {
    for (size_t at = 0; at + length <= 40; ++at) {
      Request with_stop = request(40);
      with_stop.stop = {"no such text", whole.text.substr(at, length)};
      const size_t first = whole.text.find(with_stop.stop[1]);
      const Answer alone = plain_answer(engine, with_stop);
      EXPECT_EQ(alone.text, whole.text.substr(0, first));
      EXPECT_EQ(alone.reason, FinishReason::Stop);
      // Tokens up to the one that completed the string.
      EXPECT_EQ(alone.tokens.size(), (first + length + 1) / 2);
      for (const int depth : {1, 4, 8}) {
        const Answer got = answer(engine, scripted(with_stop, whole.tokens, depth));
        expect_same_answer(got, alone);
        expect_sound_stats(got);
      }
    }
  }
}

TEST(Engine, TheFirstHalfOfAStopStringIsNotLetOutBeforeItIsSettled) {
  const Engine engine = toy_engine({}, {}, 1000, letters());
  const Answer whole = plain_answer(engine, request(12));
  // Depth 4: the prefill gives token 0, the first block tokens 1 to 5, the next 6 to 10.
  Request with_stop = scripted(request(12), whole.tokens, 4);
  with_stop.stop = {whole.text.substr(2 * 5, 4)};  // tokens 5 and 6
  const Answer got = answer(engine, with_stop);
  EXPECT_EQ(got.by_step,
            (std::vector<std::string>{whole.text.substr(0, 2), whole.text.substr(2, 8), ""}));
  EXPECT_EQ(got.text, whole.text.substr(0, 10));
  // The same beginning that goes on otherwise comes out with the next block.
  with_stop.stop = {whole.text.substr(2 * 5, 2) + "!"};
  EXPECT_EQ(answer(engine, with_stop).by_step[1], whole.text.substr(2, 8));
  EXPECT_EQ(answer(engine, with_stop).text, whole.text);
}

TEST(Engine, HeldBackTextComesOutAtTheEnd) {
  const Engine engine = toy_engine({}, {}, 1000, letters());
  const Answer whole = plain_answer(engine, request(7));
  Request with_stop = request(7);
  with_stop.stop = {whole.text.substr(12, 2) + "!"};  // begins with the last token
  const Answer got = plain_answer(engine, with_stop);
  EXPECT_EQ(got.text, whole.text);
  EXPECT_EQ(got.streamed, whole.text);
  EXPECT_EQ(got.reason, FinishReason::Length);
}

// Case 4.
TEST(Engine, ThereAreAsManyLogprobsAsTokens) {
  const Engine engine = toy_engine({.levels = 8}, {}, 1000, letters());
  const Answer whole = plain_answer(engine, request(40));
  Request asked = request(40);
  asked.stop = {whole.text.substr(23, 3)};
  asked.logprobs = 5;
  const Answer alone = plain_answer(engine, asked);
  const Answer got = answer(engine, scripted(asked, whole.tokens, 4));
  ASSERT_EQ(got.logprobs.size(), got.tokens.size());
  ASSERT_EQ(alone.logprobs.size(), got.logprobs.size());
  for (size_t i = 0; i < got.logprobs.size(); ++i) {
    const TokenLogprob& one = got.logprobs[i];
    EXPECT_EQ(one.id, got.tokens[i]);
    EXPECT_EQ(one.logprob, alone.logprobs[i].logprob);
    EXPECT_EQ(one.top, alone.logprobs[i].top);
    ASSERT_EQ(one.top.size(), 5u);
    EXPECT_EQ(one.top[0], std::pair(one.id, one.logprob));  // greedy: the most likely
    EXPECT_TRUE(std::is_sorted(one.top.begin(), one.top.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    }));
    EXPECT_LT(one.logprob, 0);
  }
}

TEST(Engine, LogprobsAreThoseOfTheSoftmax) {
  // Four tokens with logits of 0 to 7/64 at most: their probabilities add up to one.
  const Engine engine = toy_engine({.vocab_size = 4, .speech = 4, .levels = 8});
  Request asked{.prompt = {1}, .max_tokens = 10, .depth = 0, .logprobs = 4};
  for (const TokenLogprob& one : answer(engine, asked).logprobs) {
    double sum = 0;
    for (const auto& [id, logprob] : one.top) sum += std::exp(logprob);
    EXPECT_EQ(one.top.size(), 4u);
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

// Cases 5, 6 and 9.
TEST(Engine, GivesExactlyTheTokensAskedFor) {
  const Engine engine = toy_engine({}, {7}, 1000, letters());
  for (int n = 1; n <= 20; ++n) {
    Request asked = request(n);
    asked.ignore_eos = true;
    const Answer alone = plain_answer(engine, asked);
    ASSERT_EQ(static_cast<int>(alone.tokens.size()), n);
    Tokens wrong_first = alone.tokens;
    Tokens wrong_last = alone.tokens;
    for (size_t i = 0; i < wrong_first.size(); ++i) {
      wrong_first[i] = (wrong_first[i] + 1) % 300;                // every draft
      if (i % 4 == 0) wrong_last[i] = (wrong_last[i] + 1) % 300;  // the fourth of each block
    }
    for (const Tokens& script : {alone.tokens, wrong_first, wrong_last}) {
      const Answer got = answer(engine, scripted(asked, script, 4));
      expect_same_answer(got, alone);
      expect_sound_stats(got);
      EXPECT_EQ(got.reason, FinishReason::Length);
    }
  }
}

// Cases 61 and 63.
TEST(Engine, StopsAtTheEndOfTheContext) {
  for (const int n_prompt : {56, 60, 61, 62, 63}) {
    const Engine engine = toy_engine({}, {}, 64);
    Request asked{.prompt = Tokens(n_prompt, 5), .max_tokens = 100};
    const Answer alone = plain_answer(engine, asked);
    EXPECT_EQ(static_cast<int>(alone.tokens.size()), 64 - n_prompt);
    EXPECT_EQ(alone.reason, FinishReason::Length);
    for (const int depth : {4, 16}) {
      const Answer got = answer(engine, scripted(asked, alone.tokens, depth));
      expect_same_answer(got, alone);
      expect_sound_stats(got);
    }
  }
}

TEST(Engine, APromptWithoutRoomForAnAnswerIsRefusedWithBothNumbers) {
  const Engine engine = toy_engine({}, {}, 128);
  for (const int n_prompt : {128, 129, 5000}) {
    const auto refused = engine.start({.prompt = Tokens(n_prompt, 5), .max_tokens = 1});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::TooLarge);
    EXPECT_NE(refused.error().message.find(std::to_string(n_prompt)), std::string::npos);
    EXPECT_NE(refused.error().message.find("128"), std::string::npos);
  }
  EXPECT_EQ(answer(engine, request(3)).tokens.size(), 3u) << "a normal one works as before";
}

TEST(Engine, RequestsThatMakeNoSenseAreRefusedByName) {
  const Engine engine = toy_engine();
  const auto refusal = [&](const std::function<void(Request&)>& change) {
    Request asked = request(5);
    change(asked);
    const auto refused = engine.start(asked);
    EXPECT_FALSE(refused);
    if (refused) return std::string();
    EXPECT_EQ(refused.error().code, ErrorCode::BadUsage);
    EXPECT_EQ(refused.error().message.find('\n'), std::string::npos);
    return refused.error().message;
  };
  const auto says = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  says(refusal([](Request& r) { r.prompt.clear(); }), "prompt is empty");
  says(refusal([](Request& r) { r.prompt[2] = 300; }), "300 at index 2");
  says(refusal([](Request& r) { r.prompt[0] = -1; }), "-1 at index 0");
  says(refusal([](Request& r) { r.script = {5, 300}; }), "script");
  says(refusal([](Request& r) { r.max_tokens = 0; }), "max_tokens");
  says(refusal([](Request& r) { r.max_tokens = -5; }), "-5");
  says(refusal([](Request& r) { r.depth = 17; }), "17");
  says(refusal([](Request& r) { r.depth = -2; }), "-2");
  says(refusal([](Request& r) { r.logprobs = -2; }), "logprobs");
  says(refusal([](Request& r) { r.logprobs = 301; }), "logprobs");
  says(refusal([](Request& r) { r.stop = {""}; }), "stop string is empty");
  says(refusal([](Request& r) { r.stop = {"x"}; }), "tokenizer");
  EXPECT_FALSE(Engine::with_model(std::make_unique<ToyModel>(), -1, 1, {}));
  const auto long_context =
      Engine::with_model(std::make_unique<ToyModel>(ToyOptions{.context_length = 50}), 51, 1, {});
  ASSERT_FALSE(long_context);
  says(long_context.error().message, "51");
}

// Case 110: characters cut between tokens and blocks.
TEST(Engine, StreamsWholeCharactersOnly) {
  const std::string sample = "né漢字👩‍🚀ok\xff!";
  std::vector<std::string> bytes;
  Tokens ids;
  for (const char c : sample) {
    ids.push_back(static_cast<TokenId>(bytes.size()));
    bytes.emplace_back(1, c);
  }
  // A toy says what it likes; so its tokens are the sample's bytes, and any order of them is text.
  const int n = static_cast<int>(bytes.size());
  const ToyOptions options{.vocab_size = n, .speech = n};
  const Engine engine = toy_engine(options, {}, 1000, std::make_unique<ToyTokenizer>(bytes));
  Request asked{.prompt = {0}, .max_tokens = 60};
  const Answer alone = plain_answer(engine, asked);
  EXPECT_EQ(alone.text, engine.decode(alone.tokens));
  EXPECT_NE(alone.text.find("\xEF\xBF\xBD"), std::string::npos);
  for (int depth = 0; depth <= 4; ++depth) {
    const Answer got = answer(engine, scripted(asked, alone.tokens, depth));
    expect_same_answer(got, alone);
  }
}

TEST(Engine, AnInterruptReleasesWhatWasHeldBack) {
  const Engine engine = toy_engine({}, {}, 1000, letters());
  const Answer whole = plain_answer(engine, request(40));
  Request asked = scripted(request(40), whole.tokens, 4);
  asked.stop = {whole.text.substr(10, 2) + "!"};
  auto generation = engine.start(asked);
  ASSERT_TRUE(generation);
  ASSERT_TRUE(generation->step());
  ASSERT_TRUE(generation->step());  // tokens 0 to 5, the last held back
  EXPECT_EQ(generation->text(), whole.text.substr(0, 10));
  std::string rest;
  for (const TextPiece& piece : generation->interrupt()) rest += piece.text;
  EXPECT_EQ(rest, whole.text.substr(10, 2));
  EXPECT_TRUE(generation->done());
  EXPECT_EQ(generation->finish_reason(), FinishReason::Interrupted);
  EXPECT_EQ(generation->tokens().size(), 6u);
  const auto nothing = generation->step();
  ASSERT_TRUE(nothing);
  EXPECT_TRUE(nothing->empty());
  EXPECT_TRUE(generation->interrupt().empty());
  EXPECT_EQ(generation->tokens().size(), 6u);
}

TEST(Engine, LogitsWithoutMaximumEndItWithAnError) {
  const Engine engine = toy_engine({.nan_from_pos = 12}, {}, 1000, letters());
  const Answer got = answer(engine, request(40));
  EXPECT_NE(got.error.find("position 12"), std::string::npos) << got.error;
  EXPECT_EQ(got.tokens.size(), 8u);
  EXPECT_EQ(got.reason, FinishReason::None);
}

TEST(Engine, CountsByTheContract) {
  const Engine engine = toy_engine();
  const Tokens plain = plain_answer(engine, request(22)).tokens;
  Tokens script = plain;
  script[3] = (script[3] + 1) % 300;
  // Prefill: 0. Round 1 drafts 1 2 3 4, of which 3 falls: emits 1 2 3. Round 2: 4 to 8. Then 9 to
  // 13, 14 to 18; 3 left: two drafts, 19 to 21.
  const Answer got = answer(engine, scripted(request(22), script, 4));
  EXPECT_EQ(got.tokens, plain);
  EXPECT_EQ(got.stats.prompt_tokens, 5);
  EXPECT_EQ(got.stats.rounds, 5);
  EXPECT_EQ(got.stats.round_tokens, 21);
  EXPECT_EQ(got.stats.depth_limit, 4);
  EXPECT_EQ(got.stats.drafted_by_depth, (std::vector<int64_t>{5, 5, 4, 4}));
  EXPECT_EQ(got.stats.accepted_by_depth, (std::vector<int64_t>{5, 5, 3, 3}));
  EXPECT_EQ(got.stats.accepted_by_source[static_cast<int>(DraftSource::Scripted)], 16);
  EXPECT_EQ(got.stats.proposed, 18);
  EXPECT_EQ(got.drafter, "scripted");
}

// A tree has more drafts than depths, or fewer; the lists are as long as the longest path may be.
TEST(Engine, ListsByDepthAreAsLongAsATreeIsDeep) {
  const Engine engine = toy_engine();
  Request grown = request(22);
  grown.drafter = DrafterKind::Lookup;
  for (const auto& [depth, tree] : {std::pair(3, 31), std::pair(16, 5), std::pair(4, 0)}) {
    grown.depth = depth;
    grown.tree = tree;
    const Answer got = answer(engine, grown);
    expect_sound_stats(got);
    EXPECT_EQ(got.stats.depth_limit, depth) << tree << " drafts";
  }
  grown.depth = kAutoDepth;
  grown.tree = kAutoTree;
  EXPECT_EQ(answer(engine, grown).stats.depth_limit, kMaxDepth);
}

// Case 67 and 68: short answers, and none drafted.
TEST(Engine, StatsOfShortAnswersAreSound) {
  const Engine engine = toy_engine();
  const Tokens plain = plain_answer(engine, request(5)).tokens;
  for (const int n : {1, 2, 5}) {
    const Answer got = answer(engine, scripted(request(n), plain, 8));
    expect_sound_stats(got);
    EXPECT_EQ(got.stats.rounds, n == 1 ? 0 : 1);
  }
  const Answer one = plain_answer(engine, request(1));
  EXPECT_EQ(one.stats.tokens_per_round(), 0);
  EXPECT_EQ(one.stats.tokens_per_second(), 0);
  EXPECT_EQ(one.stats.depth_limit, 0);
  EXPECT_EQ(one.drafter, "none");
}

TEST(Engine, CostsAreMeasuredForEveryWidth) {
  const Engine engine = toy_engine({.vocab_size = 2000, .speech = 2000});
  const CostModel& costs = engine.costs();
  EXPECT_EQ(costs.verify[1], 1);
  for (int m = 2; m <= CostModel::kMaxRows; ++m) EXPECT_GE(costs.verify[m], costs.verify[m - 1]);
  // Sixteen rows of a toy are sixteen times the work.
  EXPECT_GT(costs.verify[17], 4);
  EXPECT_GT(costs.draft, 0);
  EXPECT_LT(costs.draft, 1);
  // A context too short for the widest block is measured as far as it goes.
  EXPECT_GE(toy_engine({}, {}, 3).costs().verify[17], 1);
  EXPECT_GE(toy_engine({}, {}, 1).costs().verify[17], 1);
}

TEST(Passes, OfASlowTrunkAreTimedAtFewWidthsOnce) {
  const Engine engine = toy_engine();
  const int widths[] = {5, 9, 2, 3, 7, 400};
  const auto of = [&](PassSweeps sweeps) {
    sweeps.widths = widths;
    return time_passes(engine.model(), 64, CacheType::F32, sweeps);
  };
  const auto few = of({.seconds = 0});
  ASSERT_TRUE(few);
  EXPECT_EQ(few->widths, (std::vector<int>{5, 9, 2}));
  for (const auto& ratios : few->ratios) EXPECT_EQ(ratios.size(), 1u);
  EXPECT_EQ(few->one_row_seconds.size(), 4u);
  EXPECT_EQ(few->position, 64 - 9);

  const auto all = of({.most = 4, .seconds = 1e9});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->widths, (std::vector<int>{5, 9, 2, 3, 7}));  // one is wider than the context
  for (const auto& ratios : all->ratios) {
    ASSERT_EQ(ratios.size(), 4u);
    for (const double ratio : ratios) EXPECT_GT(ratio, 0);
  }
  int looks = 0;
  const auto stopped = of({.stop = [&] { return ++looks > 2; }});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::Interrupted);
  looks = -5;
  const auto begun = of({.seconds = 1e9, .stop = [&] { return ++looks > 2; }});
  ASSERT_TRUE(begun) << "a whole sweep is enough";
}

TEST(EndIds, AreReadAsNumberOrListAndRefusedOtherwise) {
  std::vector<int64_t> ids;
  EXPECT_TRUE(append_end_ids(R"({"eos_token_id": 2})", "a.json", ids));
  EXPECT_TRUE(append_end_ids(R"({"eos_token_id": [5, 2, 70000]})", "a.json", ids));
  EXPECT_TRUE(append_end_ids(R"({"eos_token_id": null})", "a.json", ids));
  EXPECT_TRUE(append_end_ids(R"({"other": 1})", "a.json", ids));
  EXPECT_TRUE(append_end_ids("", "a.json", ids));
  EXPECT_EQ(ids, (std::vector<int64_t>{2, 5, 2, 70000}));
  for (const char* bad : {R"({"eos_token_id": "2"})", R"({"eos_token_id": [1, 2.5]})", "[1]", "{",
                          R"({"eos_token_id": {"a": 1}})"}) {
    const auto refused = append_end_ids(bad, "a.json", ids);
    ASSERT_FALSE(refused) << bad;
    EXPECT_NE(refused.error().message.find("a.json"), std::string::npos);
  }
}

// Steps all requests together, each joining at its own step, until all are done; one whose `leaves`
// is reached is dropped where it is.
struct Joined {
  Request request;
  int joins = 0;
  int leaves = 1 << 30;
};

std::vector<Answer> together(const Engine& engine, const std::vector<Joined>& joined) {
  std::vector<std::optional<Generation>> running(joined.size());
  std::vector<Answer> answers(joined.size());
  bool waiting = true;
  for (int step = 0; waiting; ++step) {
    waiting = false;
    std::vector<Generation*> active;
    std::vector<size_t> whose;
    for (size_t i = 0; i < joined.size(); ++i) {
      if (step == joined[i].joins) running[i] = *engine.start(joined[i].request);
      if (step == joined[i].leaves) running[i].reset();
      waiting = waiting || step < joined[i].joins || (running[i] && !running[i]->done());
      if (!running[i]) continue;
      active.push_back(&*running[i]);  // those that are done as well: nothing comes of them
      whose.push_back(i);
    }
    std::rotate(active.begin(), active.begin() + (active.empty() ? 0 : step % active.size()),
                active.end());
    Generation::step_together(active);
    for (const size_t i : whose) {
      Answer& answer = answers[i];
      for (const TextPiece& piece : running[i]->pieces()) answer.streamed += piece.text;
      answer.tokens.clear();
      for (const EmittedToken& token : running[i]->tokens()) answer.tokens.push_back(token.id);
      answer.emitted = running[i]->tokens();
      answer.text = running[i]->text();
      answer.reason = running[i]->finish_reason();
      answer.stats = running[i]->stats();
      if (running[i]->error()) answer.error = running[i]->error()->message;
    }
  }
  return answers;
}

TEST(Engine, ManyTogetherWriteWhatEachWritesAlone) {
  const Engine engine =
      toy_engine({.speech = 12, .memory = 2, .novelty = 7}, {11}, 1000, letters());
  for (const size_t n : {1, 2, 5, 8, 40}) {
    std::vector<Joined> joined;
    for (size_t i = 0; i < n; ++i) {
      Request one = request(20 + static_cast<int>(i * 13 % 70));
      one.prompt.assign(1 + i * 31 % 150, static_cast<TokenId>(i % 5));
      one.prompt.back() = static_cast<TokenId>(i % 300);
      one.depth = i % 4 == 3 ? kAutoDepth : static_cast<int>(i % 17);
      one.ignore_eos = i % 3 != 0;
      if (i % 5 == 4) one.stop = {"ab"};
      one.drafter = i % 2 == 0 ? DrafterKind::Lookup : DrafterKind::Scripted;
      one.script = plain_answer(engine, one).tokens;
      for (size_t k = 2; k < one.script.size(); k += 3) one.script[k] = 1;
      joined.push_back({one, static_cast<int>(i * 3 % 20), i % 6 == 5 ? 30 : 1 << 30});
    }
    const auto got = together(engine, joined);
    for (size_t i = 0; i < n; ++i) {
      Answer want = plain_answer(engine, joined[i].request);
      if (joined[i].leaves < 1 << 30 && got[i].reason == FinishReason::None) {
        want.tokens.resize(got[i].tokens.size());
        EXPECT_EQ(got[i].tokens, want.tokens) << "left early: " << i << " of " << n;
        continue;
      }
      expect_same_answer(got[i], want);
      expect_sound_stats(got[i]);
    }
  }
}

TEST(Engine, ARowWithoutAMaximumEndsItsOwnGenerationOnly) {
  const Engine engine = toy_engine({.nan_from_pos = 30});
  Request longer = request(40);
  Request shorter = request(20);
  const auto got = together(engine, {{longer}, {shorter, 1}, {longer, 2}});
  EXPECT_NE(got[0].error.find("no finite maximum"), std::string::npos);
  EXPECT_NE(got[2].error.find("no finite maximum"), std::string::npos);
  expect_same_answer(got[1], plain_answer(toy_engine(), shorter));
}

TEST(Engine, APromptThatBeginsLikeAnEarlierTextIsNotReadAgain) {
  const ToyOptions toy = {.speech = 12, .memory = 4};
  const Engine engine = toy_engine(toy, {}, 1000);
  Request first = request(30);
  const Answer one = plain_answer(engine, first);
  EXPECT_EQ(one.stats.reused_tokens, 0);
  // The conversation goes on: prompt and answer are the beginning of the next prompt.
  Request second = request(30);
  second.prompt.insert(second.prompt.end(), one.tokens.begin(), one.tokens.end());
  second.prompt.insert(second.prompt.end(), {9, 2, 6});
  const Answer two = plain_answer(engine, second);
  EXPECT_EQ(two.stats.reused_tokens, 5 + 29) << "the last token of the answer was never read";
  const Answer fresh = plain_answer(toy_engine(toy, {}, 1000), second);
  expect_same_answer(two, fresh);
  // The same prompt again: all but its last token, whose logits are wanted.
  const Answer three = answer(engine, scripted(second, two.tokens, 4));
  EXPECT_EQ(three.stats.reused_tokens, static_cast<int>(second.prompt.size()) - 1);
  expect_same_answer(three, fresh);
}

}  // namespace
}  // namespace paceline
