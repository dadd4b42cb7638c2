// What a trunk remembers of a sequence: rollback, neighbours, forks, windows.
#include "models/golden_support.h"
#include "models/kv_cache.h"

namespace paceline {
namespace {

class DenseState : public testing::TestWithParam<std::string> {};

// Rows that were not committed leave no trace.
TEST_P(DenseState, RollbackIsCommitOfFewerRows) {
  const fs::path folder = goldens() / GetParam();
  const Golden golden = read_golden(folder);
  const auto model = load_golden(folder, {.threads = 1});
  ASSERT_NE(model, nullptr);
  const auto expected = logits_of(*model, golden.ids, 1, CacheType::F16);
  const int vocab = model->info().vocab_size;
  const int end = static_cast<int>(golden.ids.size()) - 8;
  auto state = model->make_state(end + 8, CacheType::F16);
  auto workspace = model->make_workspace(8, 8);
  Block block(8);
  for (int pos = 0, step = 0; pos < end; ++step) {
    const int accepted = 1 + step % 4;  // right tokens, then wrong ones
    block.reset(pos);
    for (int i = 0; i < 8; ++i)
      block.add(i < accepted ? golden.ids[pos + i] : (golden.ids[pos + i] + 1) % vocab);
    const TrunkOut out = model->forward(block, **state, LogitRows::All, **workspace);
    for (int i = 0; i < accepted; ++i)
      ASSERT_EQ(std::memcmp(out.logits.row(i).data(), &expected[(pos + i) * vocab], vocab * 4), 0)
          << "position " << pos + i;
    (*state)->commit(accepted);
    pos += accepted;
    EXPECT_EQ((*state)->length(), pos);
  }
}

// Sequences that share passes, each with blocks of its own size, joining and leaving as they come;
// rows with and without logits.
TEST_P(DenseState, NeighboursInAPassChangeNothing) {
  const fs::path folder = goldens() / GetParam();
  const Golden golden = read_golden(folder);
  for (const int threads : {1, 3}) {
    const auto model = load_golden(folder, {.threads = threads});
    ASSERT_NE(model, nullptr);
    const int vocab = model->info().vocab_size;
    const int length = static_cast<int>(golden.ids.size()) - 4;
    auto workspace = *model->make_workspace(64, 64);
    struct Member {
      std::vector<TokenId> ids;
      std::vector<float> expected;
      std::unique_ptr<SequenceState> state;
      Block block{16};
      int joins = 0;
    };
    std::vector<Member> members(4);
    for (int i = 0; i < 4; ++i) {
      Member& member = members[i];
      member.ids.assign(golden.ids.begin() + i, golden.ids.begin() + length + i);
      if (i == 2) std::reverse(member.ids.begin(), member.ids.end());
      member.expected = logits_of(*model, member.ids, 1, CacheType::F16);
      member.state = *model->make_state(length, CacheType::F16);
      member.joins = 3 * i;
    }
    int compared = 0;
    for (int step = 0; step < length; ++step) {
      std::vector<PassPart> parts;
      std::vector<Member*> whose;
      for (int i = 0; i < 4; ++i) {
        Member& member = members[i];
        const int at = member.state->length();
        const int rows = std::min(1 + (step * 7 + i * 5) % 13, length - at);
        if (step < member.joins || rows == 0 || (step + i) % 5 == 0) continue;
        member.block.reset(at);
        for (int row = 0; row < rows; ++row) member.block.add(member.ids[at + row]);
        constexpr LogitRows kRows[] = {LogitRows::All, LogitRows::Last, LogitRows::None};
        parts.push_back({&member.block, member.state.get(), kRows[(step + i) % 3]});
        whose.push_back(&member);
      }
      if (parts.empty()) continue;
      model->forward(parts, *workspace);
      for (size_t p = 0; p < parts.size(); ++p) {
        Member& member = *whose[p];
        const int rows = member.block.rows();
        const int n = parts[p].n_logits();
        ASSERT_EQ(parts[p].out.logits.rows, n);
        ASSERT_EQ(parts[p].out.hidden.rows, rows);
        for (int i = 0; i < n; ++i) {
          const int64_t row = member.block.first_pos() + rows - n + i;
          ASSERT_EQ(std::memcmp(parts[p].out.logits.row(i).data(), &member.expected[row * vocab],
                                vocab * 4),
                    0)
              << "position " << row << " step " << step;
          ++compared;
        }
        // Some rows are rolled back and come again.
        member.state->commit((step + p) % 4 == 0 ? rows / 2 : rows);
      }
    }
    EXPECT_GT(compared, 200);
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, DenseState,
                         testing::Values("llama/plain", "mistral/window", "gemma3/objects"),
                         [](const auto& param) {
                           return std::string(param.param).replace(param.param.find('/'), 1, "_");
                         });

// Reads ids in blocks of seven up to position `end`; the logits must be those of `expected`, rows
// of a reader who took one token at a time.
void read_up_to(const Model& model, SequenceState& state, const std::vector<TokenId>& ids, int end,
                const std::vector<float>& expected) {
  const int vocab = model.info().vocab_size;
  auto workspace = *model.make_workspace(7, 7);
  Block block(7);
  while (state.length() < end) {
    const int at = state.length();
    block.reset(at);
    for (int i = at; i < std::min(at + 7, end); ++i) block.add(ids[i]);
    const TrunkOut out = model.forward(block, state, LogitRows::All, *workspace);
    for (int i = 0; i < block.rows(); ++i)
      ASSERT_EQ(
          std::memcmp(out.logits.row(i).data(), &expected[int64_t{at + i} * vocab], vocab * 4), 0)
          << at + i;
    state.commit(block.rows());
  }
}

// The same ids, with others from `from` on.
std::vector<TokenId> changed_from(std::vector<TokenId> ids, int from, int vocab) {
  for (size_t i = from; i < ids.size(); ++i) ids[i] = (ids[i] + 1) % vocab;
  return ids;
}

// A fork reads the shared pages and writes none of them: both go on as if alone.
TEST(DenseStates, ForksShareWholePagesCopyTheRestAndGoTheirOwnWays) {
  const Golden golden = read_golden(goldens() / "llama/plain");
  const auto model = load_golden(goldens() / "llama/plain", {.threads = 1});
  ASSERT_NE(model, nullptr);
  const std::vector<TokenId> first(golden.ids.begin(), golden.ids.begin() + 150);
  const auto other = changed_from(first, 70, model->info().vocab_size);
  const auto expected_first = logits_of(*model, first, 1, CacheType::F16);
  const auto expected_other = logits_of(*model, other, 1, CacheType::F16);
  auto state = *model->make_state(150, CacheType::F16);
  read_up_to(*model, *state, first, 100, expected_first);

  auto fork = *state->fork(150, 70);  // the tokens differ from 70 on
  EXPECT_EQ(fork->length(), 70);
  EXPECT_EQ(fork->capacity(), 150);
  read_up_to(*model, *fork, other, 120, expected_other);
  read_up_to(*model, *state, first, 150, expected_first);
  state.reset();  // the shared page outlives it
  read_up_to(*model, *fork, other, 150, expected_other);

  const auto kept = *fork->fork(0, 150);
  EXPECT_EQ(kept->length(), 128);
  EXPECT_EQ(kept->capacity(), 128);
  auto again = *kept->fork(150, 128);
  EXPECT_EQ(again->bytes(), fork->bytes());
  read_up_to(*model, *again, other, 150, expected_other);
  EXPECT_EQ((*again->fork(10, 63))->length(), 10) << "as far as its capacity goes";
  EXPECT_EQ((*again->fork(0, 63))->length(), 0);
}

// With a window of eight, a ring holds four pages: 256 positions.
TEST(DenseStates, ForksOfWindowsTakeThemAlongOrBeginAnew) {
  for (const char* name : {"gemma3/objects", "mistral/window"}) {
    SCOPED_TRACE(name);
    const Golden golden = read_golden(goldens() / name);
    const auto model = load_golden(goldens() / name, {.threads = 1});
    ASSERT_NE(model, nullptr);
    const int end = static_cast<int>(golden.ids.size());
    const auto other = changed_from(golden.ids, 280, model->info().vocab_size);
    const auto expected = logits_of(*model, golden.ids, 1, CacheType::F16);
    const auto expected_other = logits_of(*model, other, 1, CacheType::F16);
    auto state = *model->make_state(end, CacheType::F16);
    read_up_to(*model, *state, golden.ids, 300, expected);
    EXPECT_EQ(state->first_remembered(), 64);

    auto fork = *state->fork(end, 280);
    EXPECT_EQ(fork->length(), 256);
    auto kept = *state->fork(0, 290);  // as a prefix cache keeps it
    EXPECT_EQ(kept->length(), 256);
    read_up_to(*model, *fork, other, end, expected_other);
    read_up_to(*model, *state, golden.ids, end, expected);
    auto again = *kept->fork(end, 256);
    EXPECT_EQ(again->length(), 256);
    read_up_to(*model, *again, golden.ids, end, expected);

    EXPECT_EQ(state->first_remembered(), 128);
    auto earlier = *state->fork(end, 200);  // what a row at 192 sees is still there
    EXPECT_EQ(earlier->length(), 192);
    read_up_to(*model, *earlier, golden.ids, end, expected);
    auto anew = *state->fork(end, 150);  // what a row at 128 sees is not
    EXPECT_EQ(anew->length(), 0);
    read_up_to(*model, *anew, golden.ids, end, expected);
  }
}

// A window of 8 in two of three layers: memory for three pages beyond the window at most. The last
// page is for a tree at the end of the capacity.
TEST(DenseStates, MemoryOfWindowsIsBounded) {
  const auto model = load_golden(goldens() / "gemma3/objects", {});
  ASSERT_NE(model, nullptr);
  const auto bytes = [&](int capacity) {
    return (*model->make_state(capacity, CacheType::F16))->bytes();
  };
  constexpr int64_t kPage = 2 * 2 * 16 * 64;  // keys and values of a head in 64 positions
  EXPECT_EQ(bytes(64), 2 * 3 * kPage);
  EXPECT_EQ(bytes(192), 4 * 3 * kPage);
  EXPECT_EQ(bytes(512), (9 + 2 * 4) * kPage);
}

TEST(DenseStates, ContextBeyondTheModelIsRefused) {
  const auto model = load_golden(goldens() / "llama/plain", {});
  ASSERT_NE(model, nullptr);
  const auto state = model->make_state(model->info().context_length + 1, CacheType::F16);
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, ErrorCode::TooLarge);
}

}  // namespace
}  // namespace paceline
