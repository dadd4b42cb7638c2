// Any bytes as config.json beside a file of one tensor: every family refuses them with a sentence,
// or would miss its tensors.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/check.h"
#include "models/registry.h"

namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// In memory where the system has such a folder; gone when the process ends.
class ModelFolder {
 public:
  ModelFolder() {
    const fs::path memory = "/dev/shm";
    std::string name = (fs::exists(memory) ? memory : fs::temp_directory_path()) / "fuzzXXXXXX";
    paceline::check(mkdtemp(name.data()) != nullptr, "no folder for the fuzzer");
    path = name;
    const std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    const uint64_t length = header.size();
    std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
    write(path / "model.safetensors", file + header + std::string(4, '\0'));
  }
  ~ModelFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paceline;
  static const ModelFolder folder;
  write(folder.path / "config.json", {reinterpret_cast<const char*>(data), size});
  const auto checkpoint = Checkpoint::open(folder.path);
  if (!checkpoint) return 0;  // an empty file
  const auto model = load_model(*checkpoint, {.threads = 1});
  check(!model, "a model of one tensor that no family has");
  check(!model.error().message.empty(), "an error without a sentence");
  return 0;
}
