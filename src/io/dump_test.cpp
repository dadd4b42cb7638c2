#include "io/dump.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <map>
#include <thread>

#include "io/crc32c.h"
#include "io/dump_check.h"
#include "io/dump_format.h"
#include "io/dump_writer.h"
#include "io/records.h"
#include "io/test_files.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr int kWidth = 3;
constexpr TokenId kVocabulary = 151936;

DumpHeader header(TapType type = TapType::BF16) {
  DumpHeader made;
  made.hidden_width = kWidth;
  made.type = type;
  made.family = "llama";
  made.vocab_size = kVocabulary;
  made.model_sha256 = "abc";
  made.numerics = "portable";
  made.weights = "native";
  made.cache = "f16";
  made.seed = 7;
  made.settings = "{}";
  made.prompts_sha256 = "def";
  return made;
}

// Stream i has i + 2 positions; value j of row p is i + p / 8 + j / 64, rounded to bf16.
float value(int i, int p, int j) {
  const int eighths = 8 * i + p;
  return to_f32(to_bf16(static_cast<float>(eighths) / 8 + static_cast<float>(j) / 64));
}

NewStream stream(int i, TapType type = TapType::BF16) {
  NewStream made{.id = "s" + std::to_string(i), .hiddens = HiddenRows(type, kWidth)};
  const int positions = i + 2;
  made.category = i % 2 == 0 ? "even" : "";
  made.n_prompt = 1 + i / 2;
  made.cycle_start = positions;
  made.budget = 40;
  made.ended = i % 3 == 0;
  made.own_top1 = positions + 1 - made.n_prompt;
  for (int p = 0; p <= positions; ++p)
    made.tokens.push_back(kVocabulary - 1 - 1000 * (p % 100) - i);
  for (int p = 0; p < positions; ++p) {
    const float row[kWidth] = {value(i, p, 0), value(i, p, 1), value(i, p, 2)};
    made.hiddens.append(row);
  }
  return made;
}

DumpWriterOptions shards_of(int64_t bytes) { return {.shard_bytes = bytes}; }

// A dump of streams 0 .. n - 1.
void write_dump(const fs::path& folder, int n, const DumpWriterOptions& options = {}) {
  auto writer = DumpWriter::open(folder, header(), options);
  ASSERT_TRUE(writer) << writer.error().message;
  for (int i = 0; i < n; ++i) ASSERT_TRUE(writer->add(stream(i)));
}

void expect_stream(const DumpStream& got, int i) {
  const NewStream want = stream(i);
  EXPECT_EQ(got.id, want.id);
  EXPECT_EQ(got.category, want.category);
  EXPECT_EQ(got.n_prompt, want.n_prompt);
  EXPECT_EQ(got.cycle_start, want.cycle_start);
  EXPECT_EQ(got.budget, want.budget);
  EXPECT_EQ(got.ended, want.ended);
  EXPECT_EQ(got.own_top1, want.own_top1);
  EXPECT_FALSE(got.given_text);
  ASSERT_EQ(got.positions(), i + 2);
  EXPECT_TRUE(std::ranges::equal(got.tokens, want.tokens));
  for (int p = 0; p < got.positions(); ++p) {
    float row[kWidth];
    got.hidden(p, row);
    for (int j = 0; j < kWidth; ++j) EXPECT_EQ(row[j], value(i, p, j));
  }
}

std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = read_whole(entry.path());
  return files;
}

TEST(Crc32c, IsCastagnolis) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(bytes_of("")), 0u);
  EXPECT_EQ(crc32c(bytes_of("6789"), crc32c(bytes_of("12345"))), 0xe3069283u);
}

TEST(Dump, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  write_dump(folder.path() / "dump", 5);
  const auto dump = Dump::open(folder.path() / "dump");
  ASSERT_TRUE(dump) << dump.error().message;
  EXPECT_EQ(dump->size(), 5);
  EXPECT_EQ(dump->positions(), 2 + 3 + 4 + 5 + 6);
  EXPECT_EQ(dump->shards(), 1);
  EXPECT_EQ(dump->dropped_bytes(), 0);
  EXPECT_FALSE(header_difference(dump->header(), header()));
  EXPECT_EQ(dump->header().prompts_sha256, "def");
  for (int i = 0; i < 5; ++i) expect_stream(dump->stream(i), i);
}

TEST(Dump, RoundsToItsType) {
  const TemporaryFolder folder;
  const float row[kWidth] = {1.0f + 1.0f / 512, -3.14159265f, 60000.0f};
  for (const TapType type : {TapType::BF16, TapType::F32}) {
    const fs::path path = folder.path() / to_string(type);
    auto writer = DumpWriter::open(path, header(type));
    ASSERT_TRUE(writer);
    NewStream one{.id = "x", .n_prompt = 1, .tokens = {1, 2}, .hiddens = HiddenRows(type, kWidth)};
    one.hiddens.append(row);
    ASSERT_TRUE(writer->add(one));
    const auto dump = Dump::open(path);
    ASSERT_TRUE(dump);
    float got[kWidth];
    dump->stream(0).hidden(0, got);
    for (int j = 0; j < kWidth; ++j)
      EXPECT_EQ(got[j], type == TapType::F32 ? row[j] : to_f32(to_bf16(row[j])));
  }
}

TEST(Dump, KeepsDraftsAndWhoMadeThem) {
  const TemporaryFolder folder;
  {
    auto writer = DumpWriter::open(folder.path(), header());
    ASSERT_TRUE(writer);
    NewStream one = stream(4);
    one.sources = {"lookup", "mtp"};
    one.rounds = {{.row = 1, .n_accepted = 0, .drafts = {{70000, 1}}},
                  {.row = 3, .n_accepted = 2, .drafts = {{5, 0}, {151935, 1}, {6, 0}}}};
    ASSERT_TRUE(writer->add(one));
  }
  const auto dump = Dump::open(folder.path());
  ASSERT_TRUE(dump);
  const auto rounds = dump->stream(0).rounds();
  ASSERT_EQ(rounds.size(), 2u);
  EXPECT_EQ(rounds[0].row, 1);
  EXPECT_EQ(rounds[0].n_accepted, 0);
  EXPECT_EQ(rounds[0].drafts.at(0).token, 70000);
  EXPECT_EQ(rounds[1].drafts.at(1).token, 151935);
  EXPECT_EQ(dump->stream(0).sources[rounds[1].drafts[1].source], "mtp");
}

TEST(Dump, ShardsStayBelowTheirLimit) {
  const TemporaryFolder folder;
  write_dump(folder.path(), 12, shards_of(1500));
  const auto dump = Dump::open(folder.path());
  ASSERT_TRUE(dump);
  EXPECT_EQ(dump->size(), 12);
  EXPECT_GT(dump->shards(), 3);
  for (int i = 0; i < dump->shards(); ++i)
    EXPECT_LE(fs::file_size(folder.path() / shard_name(i)), 1500u);
  for (int i = 0; i < 12; ++i) expect_stream(dump->stream(i), i);
}

TEST(Dump, OtherPromptsBeginAShard) {
  const TemporaryFolder folder;
  write_dump(folder.path(), 2);
  DumpHeader other = header();
  other.prompts_sha256 = "0123";
  {
    auto writer = DumpWriter::open(folder.path(), other);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->add(stream(2)));
    ASSERT_TRUE(writer->add(stream(3)));
  }
  const auto dump = Dump::open(folder.path());
  ASSERT_TRUE(dump);
  EXPECT_EQ(dump->shards(), 2);
  EXPECT_EQ(dump->size(), 4);
}

// The last block is cut at every byte, head and padding included: the others stay, the bytes are
// counted, and writing it again gives the file that there would have been.
TEST(Dump, CutAtAnyByteItKeepsAllOtherStreams) {
  const TemporaryFolder folder;
  write_dump(folder.path() / "two", 2);
  write_dump(folder.path() / "three", 3);
  const auto whole = files_of(folder.path() / "three");
  const std::string& shard = whole.at(shard_name(0));
  const size_t two = fs::file_size(folder.path() / "two" / shard_name(0));
  for (size_t size = two; size < shard.size(); ++size) {
    const fs::path cut = folder.path() / "cut";
    fs::remove_all(cut);
    folder.write("cut/" + shard_name(0), shard.substr(0, size));
    {
      const auto dump = Dump::open(cut);
      ASSERT_TRUE(dump) << dump.error().message;
      ASSERT_EQ(dump->size(), 2) << size;
      ASSERT_EQ(dump->dropped_bytes(), static_cast<int64_t>(size - two));
      expect_stream(dump->stream(1), 1);
    }
    auto writer = DumpWriter::open(cut, header());
    ASSERT_TRUE(writer);
    ASSERT_EQ(writer->dropped_bytes(), static_cast<int64_t>(size - two));
    ASSERT_TRUE(writer->has("s1"));
    ASSERT_FALSE(writer->has("s2"));
    ASSERT_TRUE(writer->add(stream(2)));
    ASSERT_EQ(files_of(cut), whole) << size;
  }
}

TEST(Dump, DamageCostsOneStreamAndIsCounted) {
  const TemporaryFolder folder;
  write_dump(folder.path(), 4);
  const fs::path path = folder.path() / shard_name(0);
  const std::string whole = read_whole(path);
  const auto contents = parse_shard(bytes_of(whole), "x");
  ASSERT_TRUE(contents);
  const ShardBlock& second = contents->blocks[1];
  // Behind the block's head; before it, the walk could not go on.
  for (int64_t at = second.offset + 64; at < second.offset + second.bytes; ++at) {
    std::string damaged = whole;
    damaged[static_cast<size_t>(at)] ^= 0x10;
    folder.write(shard_name(0), damaged);
    const auto dump = Dump::open(folder.path());
    ASSERT_TRUE(dump);
    ASSERT_EQ(dump->size(), 3) << at;
    ASSERT_EQ(dump->dropped_bytes(), second.bytes);
    expect_stream(dump->stream(1), 2);
  }
  for (int64_t at = second.offset; at < second.offset + 36; ++at) {
    std::string damaged = whole;
    damaged[static_cast<size_t>(at)] ^= 0x10;
    folder.write(shard_name(0), damaged);
    const auto dump = Dump::open(folder.path());
    ASSERT_TRUE(dump);
    ASSERT_EQ(dump->size(), 1) << at;
    ASSERT_EQ(dump->dropped_bytes(), static_cast<int64_t>(whole.size()) - second.offset);
  }
}

TEST(Dump, WritersThatAreKilledLeaveWholeStreams) {
  const TemporaryFolder folder;
  constexpr int kStreams = 40;
  write_dump(folder.path() / "whole", kStreams, shards_of(4096));
  const auto whole = files_of(folder.path() / "whole");
  const fs::path path = folder.path() / "killed";
  for (int attempt = 0; attempt < 50; ++attempt) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto writer = DumpWriter::open(path, header(), shards_of(4096));
      for (int i = 0; writer && i < kStreams; ++i)
        if (!writer->has("s" + std::to_string(i)) && !writer->add(stream(i))) _exit(1);
      pause();
      _exit(0);
    }
    usleep(static_cast<useconds_t>(100 + 137 * attempt % 4000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const auto dump = Dump::open(path);
    if (!dump) continue;  // killed before the first shard stood
    for (int i = 0; i < dump->size(); ++i) expect_stream(dump->stream(i), i);
  }
  {
    auto writer = DumpWriter::open(path, header(), shards_of(4096));
    ASSERT_TRUE(writer);
    for (int i = 0; i < kStreams; ++i) {
      if (writer->has("s" + std::to_string(i))) continue;
      ASSERT_TRUE(writer->add(stream(i)));
    }
  }
  EXPECT_EQ(files_of(path), whole);
}

TEST(Dump, ReadersMeetWholeStreamsWhileItIsWritten) {
  const TemporaryFolder folder;
  write_dump(folder.path(), 1, shards_of(8192));
  std::thread writing([&] {
    auto writer = DumpWriter::open(folder.path(), header(), shards_of(8192));
    ASSERT_TRUE(writer);
    for (int i = 1; i < 200; ++i) ASSERT_TRUE(writer->add(stream(i)));
  });
  int size = 0;
  while (size < 200) {
    const auto dump = Dump::open(folder.path());
    ASSERT_TRUE(dump) << dump.error().message;
    ASSERT_GE(dump->size(), size);
    size = dump->size();
    for (int i = std::max(0, size - 3); i < size; ++i) expect_stream(dump->stream(i), i);
  }
  writing.join();
}

TEST(Dump, TwoWritersAreOneTooMany) {
  const TemporaryFolder folder;
  auto first = DumpWriter::open(folder.path(), header());
  ASSERT_TRUE(first);
  expect_refused(DumpWriter::open(folder.path(), header()), ErrorCode::Io,
                 {"another process is writing this dump"});
  ASSERT_TRUE(first->add(stream(0)));
  first = DumpWriter::open(folder.path() / "other", header());
  EXPECT_TRUE(DumpWriter::open(folder.path(), header()));
}

TEST(Dump, OfAnotherKindIsNotMixedIn) {
  const TemporaryFolder folder;
  write_dump(folder.path(), 1);
  DumpHeader other = header();
  other.tap = Tap::Before;
  expect_refused(DumpWriter::open(folder.path(), other), ErrorCode::BadUsage,
                 {"tap \"after\", not \"before\""});
  other = header();
  other.model_sha256 = "xyz";
  expect_refused(DumpWriter::open(folder.path(), other), ErrorCode::BadUsage, {"model_sha256"});
  EXPECT_EQ(Dump::open(folder.path())->size(), 1);
}

TEST(Dump, PlacesThatAreNoDump) {
  const TemporaryFolder folder;
  expect_refused(Dump::open(folder.path() / "none"), ErrorCode::NotFound, {"no such folder"});
  expect_refused(Dump::open(folder.path()), ErrorCode::NotFound, {"shard-00000.pldump"});
  const fs::path file = folder.write("file", "x");
  expect_refused(DumpWriter::open(file, header()), ErrorCode::BadUsage, {"that is a file"});
  expect_refused(DumpWriter::open(file / "below", header()), ErrorCode::Io, {"cannot be made"});
  folder.write(shard_name(0), "PLDUMP");
  expect_refused(Dump::open(folder.path()), ErrorCode::BadFormat, {"too short"});
  std::string head = encode_shard_head(header());
  head[8] = 2;
  folder.write(shard_name(0), head);
  expect_refused(Dump::open(folder.path()), ErrorCode::BadFormat, {"damaged"});
}

// Version 2 with a right checksum: a program of later.
TEST(Dump, OfAnotherVersionIsRefusedByNumber) {
  const TemporaryFolder folder;
  std::string head = encode_shard_head(header());
  head[8] = 2;
  const uint32_t crc = crc32c(bytes_of(head).first(20));
  std::memcpy(head.data() + 20, &crc, sizeof(crc));
  folder.write(shard_name(0), head);
  expect_refused(Dump::open(folder.path()), ErrorCode::Unsupported, {"version 2", "version 1"});
}

// A limit on the size of files, as a full disk: one sentence, and what was written stays.
TEST(Dump, AFullDiskCostsNothingWritten) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {2000, 2000};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto writer = DumpWriter::open(folder.path(), header());
    if (!writer) _exit(1);
    for (int i = 0; i < 50; ++i) {
      const auto added = writer->add(stream(i));
      if (added) continue;
      _exit(added.error().message.find("cannot be written: File too large") != std::string::npos
                ? 0
                : 2);
    }
    _exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const auto dump = Dump::open(folder.path());
  ASSERT_TRUE(dump);
  EXPECT_GE(dump->size(), 2);
  EXPECT_GT(dump->dropped_bytes(), 0);
  for (int i = 0; i < dump->size(); ++i) expect_stream(dump->stream(i), i);
}

TEST(DumpWriter, KnowsWhatItsStreamsWereMadeOf) {
  const TemporaryFolder folder;
  auto writer = DumpWriter::open(folder.path(), header());
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->add(stream(4)));  // a prompt of 3 tokens
  const std::vector<TokenId> tokens = stream(4).tokens;
  EXPECT_TRUE(writer->has_of("s4", std::span(tokens).first(3)));
  EXPECT_FALSE(writer->has_of("s4", std::span(tokens).first(2)));
  EXPECT_FALSE(writer->has_of("s5", std::span(tokens).first(3)));
  EXPECT_EQ(writer->unused_id("s5"), "s5");
  EXPECT_EQ(writer->unused_id("s4"), "s4.2");
}

TEST(DumpWriter, RefusesNamesThatNoFileHolds) {
  const TemporaryFolder folder;
  auto writer = DumpWriter::open(folder.path(), header());
  ASSERT_TRUE(writer);
  NewStream bad = stream(0);
  bad.id = "";
  expect_refused(writer->add(bad), ErrorCode::BadUsage, {"id is empty"});
  bad.id = "\xff";
  expect_refused(writer->add(bad), ErrorCode::BadUsage, {"no UTF-8"});
  EXPECT_TRUE(writer->add(stream(0)));
}

TEST(DumpCheck, NamesStreamAndPosition) {
  const TemporaryFolder folder;
  auto writer = DumpWriter::open(folder.path(), header());
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->add(stream(3)));
  NewStream bad{.id = "bad", .n_prompt = 1, .hiddens = HiddenRows(TapType::BF16, kWidth)};
  bad.tokens = {1, 2, 3, 4, 5};
  const float inf = std::numeric_limits<float>::infinity();
  const float rows[4][kWidth] = {{1, 0, 0}, {inf, 2, 3}, {0, -0.0f, 0}, {inf, std::nanf(""), 0}};
  for (const auto& row : rows) bad.hiddens.append(row);
  ASSERT_TRUE(writer->add(bad));
  const auto dump = Dump::open(folder.path());
  ASSERT_TRUE(dump);
  EXPECT_TRUE(find_bad_rows(dump->stream(0), 3).empty());
  const DumpStream stream = dump->stream(1);
  EXPECT_EQ(find_bad_rows(stream, 3).size(), 2u);
  const auto found = find_bad_rows(stream, 4);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(sentence_of(stream, found[0]),
            "stream 'bad', position 1: the hidden holds an infinity");
  EXPECT_EQ(sentence_of(stream, found[1]), "stream 'bad', position 2: the hidden is all zeros");
  EXPECT_EQ(sentence_of(stream, found[2]), "stream 'bad', position 3: the hidden holds a NaN");
}

TEST(Records, GoOutAndComeBack) {
  const TemporaryFolder folder;
  write_dump(folder.path() / "dump", 3);
  const auto dump = Dump::open(folder.path() / "dump");
  ASSERT_TRUE(dump);
  const fs::path path = folder.path() / "records";
  ASSERT_EQ(*write_records(path, *dump), 2 + 3 + 4);
  EXPECT_EQ(fs::file_size(path), 9u * (12 + 4 * kWidth));
  const auto back = open_records(path, kWidth);
  ASSERT_TRUE(back) << back.error().message;
  ASSERT_EQ(back->size(), 3);
  EXPECT_EQ(back->positions(), 1 + 2 + 3);  // a stream's last hidden has no token behind it here
  for (int i = 0; i < 3; ++i) {
    const DumpStream got = back->stream(i);
    EXPECT_TRUE(std::ranges::equal(got.tokens, dump->stream(i).tokens.first(got.tokens.size())));
    float row[kWidth];
    got.hidden(i, row);
    EXPECT_EQ(row[1], value(i, i, 1));
  }
}

// Sessions one behind another in one file: the second begins higher than the first ended, as one
// that continues a prefix does; two others interleaved. No pair reaches over a border.
TEST(Records, AreSplitWherePositionsDoNotFollow) {
  const TemporaryFolder folder;
  std::string bytes;
  const auto put = [&](uint32_t pos, uint32_t token) {
    const uint32_t head[3] = {pos, 0, token};
    const float hidden[kWidth] = {static_cast<float>(token), 0, 1};
    bytes.append(reinterpret_cast<const char*>(head), sizeof(head));
    bytes.append(reinterpret_cast<const char*>(hidden), sizeof(hidden));
  };
  for (const uint32_t pos : {0, 1, 2}) put(pos, 100 + pos);
  for (const uint32_t pos : {10, 11}) put(pos, 200 + pos);
  put(0, 300), put(1, 301), put(40, 440), put(41, 441), put(2, 302), put(3, 303);
  bytes += "cut";
  const auto dump = open_records(folder.write("r", bytes), kWidth);
  ASSERT_TRUE(dump);
  ASSERT_EQ(dump->size(), 5);
  const std::vector<std::vector<TokenId>> want = {
      {100, 101, 102}, {210, 211}, {300, 301}, {440, 441}, {302, 303}};
  for (int i = 0; i < 5; ++i) {
    const DumpStream got = dump->stream(i);
    EXPECT_TRUE(std::ranges::equal(got.tokens, want[static_cast<size_t>(i)]));
    float row[kWidth];
    got.hidden(0, row);
    EXPECT_EQ(row[0], static_cast<float>(got.tokens[0]));
  }
  EXPECT_EQ(dump->dropped_bytes(), 3);
  expect_refused(open_records(folder.path() / "r", 2), ErrorCode::BadFormat, {"width"});
  expect_refused(open_records(folder.write("e", "abc"), kWidth), ErrorCode::BadFormat, {"3 bytes"});
}

}  // namespace
}  // namespace paceline
