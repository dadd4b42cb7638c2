// What a fuzzer does with each file of a folder, without the fuzzer. A folder of no files fails.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

// NOLINTNEXTLINE(readability-identifier-naming): the fuzzer's name for it
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int n_args, char** args) {
  int n_files = 0;
  for (int i = 1; i < n_args; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(args[i])) {
      std::printf("%s\n", entry.path().c_str());
      std::fflush(stdout);  // so that the last one named is the one that fails
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
      ++n_files;
    }
  }
  return n_files > 0 ? 0 : 1;
}
