#include "io/dump_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/mapped_file.h"
#include "io/crc32c.h"
#include "io/dump_format.h"
#include "io/output_file.h"
#include "io/shown.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

Error failed(const fs::path& path, const char* what) {
  return {ErrorCode::Io, fmt::format("{}: {}: {}", shown_path(path), what, std::strerror(errno))};
}

// An open file or folder, closed when it goes.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

Result<void> write_all(int fd, std::span<const std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed(path, "cannot be written");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

std::span<const std::byte> raw(std::string_view text) { return std::as_bytes(std::span(text)); }

Result<void> write_whole(const fs::path& path, std::span<const std::byte> bytes) {
  auto file = OutputFile::create(path);
  if (!file) return file.error();
  if (auto written = file->write(bytes); !written) return written;
  return file->commit();
}

// The lock is the folder's, so that nothing stands in it that is no data.
Result<Descriptor> lock_folder(const fs::path& folder) {
  Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return failed(folder, "cannot be opened as a folder");
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed(folder, "cannot be locked");
    return Error{ErrorCode::Io, fmt::format("{}: another process is writing this dump; wait for "
                                            "it, or give another folder",
                                            shown_path(folder))};
  }
  return fd;
}

// What a killed writer had begun beside its files.
void remove_parts(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> parts;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".part") parts.push_back(entry->path());
  }
  for (const fs::path& part : parts) fs::remove(part, error);
}

// The tokens that a stream was made of, by checksum.
struct Origin {
  size_t n_tokens = 0;
  uint32_t crc = 0;
  bool operator==(const Origin&) const = default;
};

Origin origin_of(std::span<const TokenId> tokens) {
  return {tokens.size(), crc32c(std::as_bytes(tokens))};
}

}  // namespace

void HiddenRows::reserve(int rows) {
  bytes_.reserve(static_cast<size_t>(rows) * static_cast<size_t>(width_ * bytes_of(type_)));
}

void HiddenRows::append(std::span<const float> values) {
  check(values.size() % static_cast<size_t>(width_) == 0, "hiddens come in whole rows");
  const size_t before = bytes_.size();
  bytes_.resize(before + values.size() * static_cast<size_t>(bytes_of(type_)));
  std::byte* to = bytes_.data() + before;
  if (type_ == TapType::F32) {
    std::memcpy(to, values.data(), values.size_bytes());
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const bf16 rounded = to_bf16(values[i]);
    std::memcpy(to + 2 * i, &rounded, sizeof(rounded));
  }
}

int HiddenRows::rows() const {
  return static_cast<int>(bytes_.size() / static_cast<size_t>(width_ * bytes_of(type_)));
}

struct DumpWriter::State {
  fs::path folder;
  DumpHeader header;
  DumpWriterOptions options;
  Descriptor lock;
  Descriptor shard;  // the last one, open for appending; none before the first stream
  Descriptor manifest;
  int n_shards = 0;
  int64_t shard_bytes = 0;                          // of the last shard
  int64_t shard_streams = 0;                        // in it
  std::string last_shard_prompts;                   // its header's hash of the prompts
  std::unordered_map<std::string, Origin> origins;  // of every stream, by id
  int64_t positions = 0;
  int64_t dropped_bytes = 0;
  bool broken = false;

  fs::path shard_path() const { return folder / shard_name(n_shards - 1); }
  Result<void> take_up();
  Result<void> begin_shard();
  Result<void> open_manifest(const std::string& lines);
  void remember(const StreamMeta& meta, std::span<const TokenId> tokens);
};

void DumpWriter::State::remember(const StreamMeta& meta, std::span<const TokenId> tokens) {
  const size_t n_given = meta.given_text ? tokens.size() : static_cast<size_t>(meta.n_prompt);
  origins[meta.id] = origin_of(tokens.first(n_given));
  positions += static_cast<int64_t>(tokens.size()) - 1;
}

// Reads what is there, drops what is not whole at the end, and writes the manifest anew.
Result<void> DumpWriter::State::take_up() {
  remove_parts(folder);
  std::string lines;
  const std::vector<fs::path> shards = find_shards(folder);
  for (const fs::path& path : shards) {
    const auto file = MappedFile::open(path);
    if (!file) return file.error();
    const auto contents = parse_shard(file->bytes(), shown_path(path));
    if (!contents) return contents.error();
    if (const auto differs = header_difference(contents->header, header)) {
      return Error{ErrorCode::BadUsage,
                   fmt::format("{}: a dump of another kind is in there: it has {}; give another "
                               "folder",
                               shown_path(folder), *differs)};
    }
    const std::string name = path.filename().string();
    for (const ShardBlock& block : contents->blocks) {
      const StreamBlock& stream = block.stream;
      remember(stream.meta, stream.tokens);
      lines += manifest_line(stream.meta, static_cast<int>(stream.tokens.size()) - 1, name,
                             block.offset, block.bytes);
    }
    dropped_bytes += contents->dropped_bytes;
    ++n_shards;
    if (n_shards < static_cast<int>(shards.size())) continue;
    shard_bytes = contents->end;
    shard_streams = static_cast<int64_t>(contents->blocks.size());
    last_shard_prompts = contents->header.prompts_sha256;
    // A new file in its place: the old one may be mapped by a reader, under whom it must not
    // shrink.
    if (contents->end < static_cast<int64_t>(file->bytes().size())) {
      auto kept = write_whole(path, file->bytes().first(static_cast<size_t>(contents->end)));
      if (!kept) return kept;
    }
    shard = Descriptor(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (shard.get() < 0) return failed(path, "cannot be opened for writing");
  }
  return open_manifest(lines);
}

Result<void> DumpWriter::State::open_manifest(const std::string& lines) {
  const fs::path path = folder / kManifestName;
  if (auto written = write_whole(path, raw(lines)); !written) return written;
  manifest = Descriptor(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (manifest.get() < 0) return failed(path, "cannot be opened for writing");
  return {};
}

// A shard appears with its whole head.
Result<void> DumpWriter::State::begin_shard() {
  if (shard.get() >= 0 && ::fdatasync(shard.get()) != 0)
    return failed(shard_path(), "cannot be written to disk");
  const std::string head = encode_shard_head(header);
  const fs::path path = folder / shard_name(n_shards);
  if (auto written = write_whole(path, raw(head)); !written) return written;
  ++n_shards;
  shard = Descriptor(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (shard.get() < 0) return failed(path, "cannot be opened for writing");
  shard_bytes = static_cast<int64_t>(head.size());
  shard_streams = 0;
  last_shard_prompts = header.prompts_sha256;
  return {};
}

Result<DumpWriter> DumpWriter::open(const fs::path& folder, const DumpHeader& header,
                                    const DumpWriterOptions& options) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error)) {
    return Error{ErrorCode::BadUsage,
                 fmt::format("{}: that is a file; a dump is a folder", shown_path(folder))};
  }
  fs::create_directories(folder, error);
  if (error) {
    return Error{ErrorCode::Io,
                 fmt::format("{}: cannot be made: {}", shown_path(folder), error.message())};
  }
  auto lock = lock_folder(folder);
  if (!lock) return lock.error();
  auto state = std::make_unique<State>();
  state->folder = folder;
  state->header = header;
  state->options = options;
  state->lock = *std::move(lock);
  if (auto taken_up = state->take_up(); !taken_up) return taken_up.error();
  return DumpWriter(std::move(state));
}

Result<void> DumpWriter::add(const NewStream& stream) {
  State& state = *state_;
  check(!state.broken, "a dump is no longer written to after an error");
  if (auto ok = check_stream(stream, state.header); !ok) return ok;
  check(!has(stream.id), "a stream's id is new to its dump");
  const EncodedBlock block = encode_block(stream);
  const bool fits =
      state.shard_streams == 0 || state.shard_bytes + block.bytes <= state.options.shard_bytes;
  const bool same_prompts = state.last_shard_prompts == state.header.prompts_sha256;
  state.broken = true;  // until all is written
  if (state.n_shards == 0 || !fits || !same_prompts) {
    if (auto begun = state.begin_shard(); !begun) return begun;
  }
  const int64_t offset = state.shard_bytes;
  const fs::path path = state.shard_path();
  const std::span<const std::byte> parts[] = {raw(block.front), stream.hiddens.bytes(),
                                              raw(block.padding)};
  for (const auto part : parts) {
    if (auto written = write_all(state.shard.get(), part, path); !written) return written;
  }
  state.shard_bytes += block.bytes;
  ++state.shard_streams;
  const StreamMeta meta = meta_of(stream);
  state.remember(meta, stream.tokens);
  const std::string line =
      manifest_line(meta, stream.hiddens.rows(), path.filename().string(), offset, block.bytes);
  auto listed = write_all(state.manifest.get(), raw(line), state.folder / kManifestName);
  state.broken = !listed;
  return listed;
}

Result<void> DumpWriter::sync() {
  if (state_->shard.get() >= 0 && ::fdatasync(state_->shard.get()) != 0)
    return failed(state_->shard_path(), "cannot be written to disk");
  if (::fdatasync(state_->manifest.get()) != 0)
    return failed(state_->folder / kManifestName, "cannot be written to disk");
  return {};
}

bool DumpWriter::has(std::string_view id) const {
  return state_->origins.contains(std::string(id));
}

bool DumpWriter::has_of(std::string_view id, std::span<const TokenId> given) const {
  const auto found = state_->origins.find(std::string(id));
  return found != state_->origins.end() && found->second == origin_of(given);
}

std::string DumpWriter::unused_id(std::string_view wanted) const {
  std::string id(wanted);
  for (int i = 2; has(id); ++i) id = fmt::format("{}.{}", wanted, i);
  return id;
}

int64_t DumpWriter::streams() const { return static_cast<int64_t>(state_->origins.size()); }
int64_t DumpWriter::positions() const { return state_->positions; }
int DumpWriter::shards() const { return state_->n_shards; }
int64_t DumpWriter::dropped_bytes() const { return state_->dropped_bytes; }

DumpWriter::DumpWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
DumpWriter::~DumpWriter() = default;
DumpWriter::DumpWriter(DumpWriter&&) noexcept = default;
DumpWriter& DumpWriter::operator=(DumpWriter&&) noexcept = default;

}  // namespace paceline
