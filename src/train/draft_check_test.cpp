#include "train/draft_check.h"

#include <gtest/gtest.h>

#include "spec/dump_text.h"
#include "spec/head_drafter.h"
#include "spec/replay.h"
#include "train/test_support.h"
#include "train/trunk_side.h"

namespace paceline::train {
namespace {

constexpr int kVocab = 24;
const char* const kHead = "5ca1ab1e";

// Hands on what a head drafts in rounds, and keeps it as a recorder does: a draft of another's in
// front of every third round's.
class Recorded final : public Drafter {
 public:
  Recorded(HeadDrafter& head, NewStream& stream) : head_(head), stream_(stream) {}
  Tap tap() const override { return head_.tap(); }
  void begin(std::span<const TokenId> prompt, int capacity) override {
    n_text_ = static_cast<int>(prompt.size());
    head_.begin(prompt, capacity);
  }
  void prefill(std::span<const TokenId> next, Mat<const float> hidden) override {
    head_.prefill(next, hidden);
  }
  void observe(std::span<const TokenId> tokens, Mat<const float> hidden) override {
    n_text_ += static_cast<int>(tokens.size());
    head_.observe(tokens, hidden);
  }
  int draft(std::span<Draft> out) override {
    if (out.empty()) return 0;
    head_.start();
    DumpRound round{.row = n_text_ - 2, .n_accepted = 0, .drafts = {}};
    for (int i = 0; i < static_cast<int>(out.size()); ++i) {
      Draft& draft = out[i];
      if (i == 0 && round.row % 3 == 0)
        draft = {.token = round.row % kVocab, .source = DraftSource::Lookup, .evidence = 1};
      else
        head_.guess(out.first(i), i - 1, {&draft, 1});
      round.drafts.push_back({draft.token, static_cast<uint32_t>(draft.source)});
    }
    stream_.rounds.push_back(std::move(round));
    return static_cast<int>(out.size());
  }

 private:
  HeadDrafter& head_;
  NewStream& stream_;
  int n_text_ = 0;
};

class DraftCheck : public ::testing::Test {
 protected:
  DraftCheck()
      : model_(toy_model(folder_, kVocab)),
        text_(toy_dump(folder_, "text", kVocab, noise(words_from(4, 16)))) {
    auto trunk = TrunkSide::of(*model_);
    HeadConfig config;
    config.modules = 2;
    head_ = trunk->new_head(config, 5);
    other_ = trunk->new_head(config, 6);
  }

  // The text's streams with what the head drafts over them at depth 3.
  Dump record(const std::string& name, const std::function<void(NewStream&)>& edit = {}) {
    auto head = *model_->make_head(head_);
    auto workspace = *head->make_workspace(HeadDrafter::kWorkspaceRows);
    HeadDrafter drafter(*head, *workspace, CacheType::F32);
    {
      auto writer = DumpWriter::open(folder_.path() / name, text_.header());
      EXPECT_TRUE(writer.has_value());
      for (int i = 0; i < text_.size(); ++i) {
        const DumpStream from = text_.stream(i);
        NewStream stream{.id = std::string(from.id),
                         .n_prompt = from.n_prompt,
                         .cycle_start = from.cycle_start,
                         .budget = from.budget,
                         .tokens = {from.tokens.begin(), from.tokens.end()},
                         .hiddens = HiddenRows(TapType::BF16, kToyDim)};
        std::vector<float> row(kToyDim);
        for (int r = 0; r < from.positions(); ++r) {
          from.hidden(r, row);
          stream.hiddens.append(row);
        }
        for (int source = 0; source < kDraftSources; ++source)
          stream.sources.emplace_back(to_string(static_cast<DraftSource>(source)));
        stream.head_sha256 = kHead;
        Recorded recorded(drafter, stream);
        replay_stream(*recorded_text(from), recorded, {.limit = 3});
        if (edit) edit(stream);
        auto added = writer->add(stream);
        EXPECT_TRUE(added.has_value()) << added.error().message;
      }
    }
    auto dump = Dump::open(folder_.path() / name);
    EXPECT_TRUE(dump.has_value());
    return std::move(*dump);
  }
  Result<int64_t> look(const HeadTensors& head, const Dump& dump, std::string_view digest = kHead) {
    return check_recorded_drafts(*model_, head, digest, dump, CacheType::F32, 1 << 20);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Model> model_;
  Dump text_;
  HeadTensors head_, other_;
};

TEST_F(DraftCheck, EveryDraftOfTheHeadIsMadeAgain) {
  const Dump dump = record("own");
  int64_t own = 0;
  for (int i = 0; i < dump.size(); ++i)
    for (const DumpRound& round : dump.stream(i).rounds())
      for (const DumpDraft& draft : round.drafts)
        own += draft.source == static_cast<uint32_t>(DraftSource::Mtp) ? 1 : 0;
  EXPECT_GT(own, 2000);
  const auto compared = look(head_, dump);
  ASSERT_TRUE(compared.has_value()) << compared.error().message;
  EXPECT_EQ(*compared, own);
  EXPECT_EQ(dump.stream(3).head_sha256, kHead);
}

TEST_F(DraftCheck, ADraftThatIsNotTheHeadsIsNamed) {
  const Dump dump = record("one wrong", [](NewStream& stream) {
    if (stream.id != "s2") return;
    TokenId& token = stream.rounds[7].drafts[2].token;
    token = (token + 1) % kVocab;
  });
  const int row = dump.stream(2).rounds()[7].row;
  const auto compared = look(head_, dump);
  ASSERT_FALSE(compared.has_value());
  const std::string& told = compared.error().message;
  EXPECT_NE(told.find("stream 's2', row " + std::to_string(row) + ":"), std::string::npos) << told;
  EXPECT_NE(told.find("at depth 3"), std::string::npos) << told;
}

TEST_F(DraftCheck, AnotherHeadUnderTheSameNameIsFound) {
  EXPECT_FALSE(look(other_, record("other")).has_value());
}

TEST_F(DraftCheck, WhatNamesNoHeadOrAnotherIsNotCompared) {
  EXPECT_EQ(*look(other_, record("named otherwise"), "another"), 0);
  EXPECT_EQ(*look(other_, text_), 0);
  EXPECT_EQ(*look(other_, record("a new head"), ""), 0);
}

}  // namespace
}  // namespace paceline::train
