// Runs a fuzzer's function over the files of a folder: seeds, and whatever a fuzzer once found. Any
// compiler builds it, so that these run with every test.
//   replay_NAME FOLDER
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

// libFuzzer's name. NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: replay_NAME FOLDER\n");
    return 2;
  }
  int n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)),
                                  std::istreambuf_iterator<char>());
    std::fprintf(stderr, "%s\n", entry.path().c_str());  // the last one named is the one at fault
    (void)LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    ++n_files;
  }
  if (n_files == 0) std::fprintf(stderr, "%s: no files\n", argv[1]);
  return n_files == 0 ? 1 : 0;
}
