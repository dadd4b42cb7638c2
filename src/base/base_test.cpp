#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>
#include <thread>

#include "base/mapped_file.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "base/threads.h"
#include "base/types.h"

namespace paceline {
namespace {

TEST(Types, EveryBf16PatternComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float wide = to_f32(bf16{static_cast<uint16_t>(bits)});
    if (std::isnan(wide))
      EXPECT_TRUE(std::isnan(to_f32(to_bf16(wide)))) << bits;
    else
      EXPECT_EQ(to_bf16(wide).bits, bits);
  }
}

TEST(Types, EveryF16PatternComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float wide = to_f32(f16{static_cast<uint16_t>(bits)});
    if (std::isnan(wide))
      EXPECT_TRUE(std::isnan(to_f32(to_f16(wide)))) << bits;
    else
      EXPECT_EQ(to_f16(wide).bits, bits);
  }
}

TEST(Types, F16RoundsToNearestEven) {
  EXPECT_EQ(to_f16(1.0f).bits, 0x3c00);
  EXPECT_EQ(to_f16(1.0f + 0x1p-11f).bits, 0x3c00);  // half-way: the even neighbour is below
  EXPECT_EQ(to_f16(1.0f + 0x3p-11f).bits, 0x3c02);  // half-way: the even neighbour is above
  EXPECT_EQ(to_f16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(to_f16(65519.996f).bits, 0x7bff);
  EXPECT_EQ(to_f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_f16(0x1p-24f).bits, 0x0001);
  EXPECT_EQ(to_f16(0x1p-25f).bits, 0x0000);
  EXPECT_EQ(to_f16(0x1.8p-25f).bits, 0x0001);
  EXPECT_EQ(to_f16(-0.0f).bits, 0x8000);
}

TEST(Threads, EveryPieceRunsOnceAndResultsAreSeen) {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    for (int i = 0; i < 3000; ++i) {
      const int pieces = 1 + i % 7;
      std::array<int, 7> calls = {};
      pool.run(pieces, [&](int thread, int piece) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
        ++calls[piece];
      });
      for (int piece = 0; piece < 7; ++piece) ASSERT_EQ(calls[piece], piece < pieces ? 1 : 0);
    }
  }
}

TEST(Threads, ParkedThreadsComeBack) {
  ThreadPool pool(2);
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than they spin
    int sum = 0;
    std::array<int, 64> out = {};
    pool.run(64, [&](int, int piece) { out[piece] = piece; });
    for (const int x : out) sum += x;
    EXPECT_EQ(sum, 63 * 64 / 2);
  }
}

// Pieces that wait for all others: whoever has them is put aside, and the rest must not wait. Many
// times, since the caller itself may be put aside wherever it hands out.
TEST(Threads, OthersTakeThePiecesOfAThreadThatIsPutAside) {
  for (const int threads : {2, 3}) {
    ThreadPool pool(threads);
    for (int i = 0; i < 600; ++i) {
      const int stuck = i % 12;
      std::atomic<int> done{0};
      pool.run(12, [&](int, int piece) {
        while (piece == stuck && done < 11) std::this_thread::yield();
        ++done;
      });
      ASSERT_EQ(done, 12) << stuck;
    }
  }
}

// Runs that begin just when the others park; pieces that all threads must be there for.
TEST(Threads, AThreadThatIsAboutToParkIsWoken) {
  for (const int threads : {2, 3}) {
    ThreadPool pool(threads);
    for (int i = 0; i < 500; ++i) {
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(190 + i % 20);
      while (std::chrono::steady_clock::now() < until) {
      }
      std::atomic<int> here{0};
      pool.run(threads, [&](int, int) {
        ++here;
        while (here < threads) std::this_thread::yield();
      });
      ASSERT_EQ(here, threads);
    }
  }
}

TEST(Threads, ACallerThatParksIsWoken) {
  ThreadPool pool(3);
  for (int i = 0; i < 10; ++i) {
    std::array<int, 3> out = {};
    pool.run(3, [&](int, int piece) {
      if (piece > 0) std::this_thread::sleep_for(std::chrono::milliseconds(piece));
      out[piece] = 1;
    });
    ASSERT_EQ(out, (std::array<int, 3>{1, 1, 1}));
  }
}

TEST(Threads, SplitCoversEverythingOnce) {
  ThreadPool pool(3);
  for (const int64_t n : {0, 1, 15, 16, 17, 48, 1000}) {
    std::array<int, 1000> seen = {};
    pool.split(n, 16, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(begin % 16, 0);
      for (int64_t i = begin; i < end; ++i) ++seen[i];
    });
    EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), n);
  }
}

TEST(Threads, FloatControlIsDefaultOnEveryThread) {
  ThreadPool pool(2);
  std::array<std::atomic<bool>, 2> is_default = {};
  // Pieces that wait for each other: both threads must take one.
  std::atomic<int> arrived{0};
  pool.run(2, [&](int thread, int) {
    is_default[thread] = float_control_is_default();
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  EXPECT_TRUE(is_default[0]);
  EXPECT_TRUE(is_default[1]);
}

TEST(Memory, IsZeroedAlignedAndMovable) {
  auto buffer = HugeBuffer::allocate(3 << 20);
  ASSERT_TRUE(buffer);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % (2 << 20), 0u);
  EXPECT_EQ(buffer->data()[(3 << 20) - 1], std::byte{0});
  HugeBuffer other = std::move(*buffer);
  EXPECT_EQ(other.size(), size_t{3} << 20);
  EXPECT_LE(other.huge_bytes(), size_t{4} << 20);
}

TEST(Memory, AbsurdSizesAreRefused) {
  EXPECT_FALSE(HugeBuffer::allocate(std::numeric_limits<size_t>::max()));
  EXPECT_FALSE(HugeBuffer::allocate(size_t{1} << 60));
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  EXPECT_EQ(MappedFile::open("/nonexistent/file").error().code, ErrorCode::NotFound);
  EXPECT_EQ(MappedFile::open("/").error().code, ErrorCode::Io);
}

TEST(MappedFile, ReleasedPagesComeBackTheSame) {
  const auto path = std::filesystem::temp_directory_path() / "paceline_released_pages";
  std::ofstream(path, std::ios::binary) << std::string(5 * 4096 + 17, 'w');
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file);
  const auto bytes = file->bytes();
  ASSERT_EQ(bytes[3 * 4096], std::byte{'w'});
  release_pages(bytes.subspan(100, 3 * 4096));  // two whole pages lie inside
  release_pages(bytes.subspan(4096, 10));       // none does
  for (const std::byte byte : bytes) ASSERT_EQ(byte, std::byte{'w'});
  std::filesystem::remove(path);
}

TEST(Sha256, KnownDigests) {  // FIPS 180-4 examples
  EXPECT_EQ(sha256({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const char* abc = "abc";
  EXPECT_EQ(sha256(std::as_bytes(std::span(abc, 3))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(ThreadPool, UsesNoMoreThreadsThanItIsTold) {
  ThreadPool pool(4);
  for (const int threads : {1, 2, 3, 4, 0}) {
    pool.use(threads);
    EXPECT_EQ(pool.size(), threads == 0 ? 4 : threads);
    for (int run = 0; run < 50; ++run) {
      std::atomic<int> pieces{0};
      std::atomic<int> strangers{0};
      pool.run(64, [&](int thread, int) {
        ++pieces;
        if (thread >= pool.size()) ++strangers;
      });
      ASSERT_EQ(pieces, 64);
      ASSERT_EQ(strangers, 0);
    }
  }
}

}  // namespace
}  // namespace paceline
