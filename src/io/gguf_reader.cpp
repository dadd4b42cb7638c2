#include "io/gguf_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "io/shown.h"

namespace paceline {
namespace {

using gguf::ValueType;

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

constexpr uint64_t kSmallestEntry = 8 + 1 + 4 + 1;        // key of one byte, value of one byte
constexpr uint64_t kSmallestTensorInfo = 8 + 1 + 4 + 12;  // name of one byte, no dimensions
constexpr const char* kReadable = "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1 and Q2_K to Q6_K";

class GgufReader {
 public:
  GgufReader(std::span<const std::byte> file, const std::string& name) : file_(file), name_(name) {}

  Result<GgufContents> read() {
    if (auto step = read_counts(); !step) return step.error();
    if (auto step = read_entries(); !step) return step.error();
    if (auto step = check_metadata(); !step) return step.error();
    if (auto step = read_tensors(); !step) return step.error();
    if (auto step = place_tensors(); !step) return step.error();
    if (auto step = check_tensor_names(); !step) return step.error();
    return std::move(contents_);
  }

 private:
  uint64_t left() const { return file_.size() - at_; }

  Error bad(const std::string& what) const {
    return {ErrorCode::BadFormat, fmt::format("{}: {}", name_, what)};
  }
  Error unsupported(const std::string& what) const {
    return {ErrorCode::Unsupported, fmt::format("{}: {}", name_, what)};
  }
  Error cut(const std::string& where) const {
    return bad(
        fmt::format("the file ends at byte {} within {}; it is damaged or was cut short, "
                    "fetch it again",
                    file_.size(), where));
  }

  template <class T>
  bool take(T& value) {
    if (left() < sizeof(T)) return false;
    std::memcpy(&value, file_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }

  // A string of at most `longest` bytes; `what` names it in errors.
  Result<std::string_view> take_text(uint64_t longest, const std::string& what) {
    uint64_t length = 0;
    if (!take(length)) return cut(what);
    if (length > left()) {
      return bad(
          fmt::format("{} claims {} bytes where the file has {} left", what, length, left()));
    }
    if (length > longest) {
      return bad(fmt::format("{} has {} bytes, at most {} are allowed", what, length, longest));
    }
    const std::string_view text(reinterpret_cast<const char*>(file_.data() + at_), length);
    at_ += length;
    return text;
  }

  Result<void> read_counts() {
    if (left() < 4 || std::memcmp(file_.data(), "GGUF", 4) != 0) {
      return bad("not a GGUF file: its first four bytes are not 'GGUF'");
    }
    at_ = 4;
    uint32_t version = 0;
    if (!take(version)) return cut("the header");
    if (version != 0 && (version & 0xffffu) == 0) {
      return unsupported(fmt::format(
          "a big-endian GGUF file (its version reads as 0x{:08x}); little-endian is read",
          version));
    }
    if (version == 1) return unsupported("GGUF version 1, with 32-bit counts; 2 and 3 are read");
    if (version != 2 && version != 3) {
      return unsupported(fmt::format("GGUF version {}; 2 and 3 are read", version));
    }
    if (!take(n_tensors_) || !take(n_entries_)) return cut("the header");
    if (n_tensors_ > left() / kSmallestTensorInfo) {
      return bad(fmt::format("claims {} tensors, more than a file of {} bytes can hold", n_tensors_,
                             file_.size()));
    }
    if (n_entries_ > left() / kSmallestEntry) {
      return bad(fmt::format("claims {} metadata keys, more than a file of {} bytes can hold",
                             n_entries_, file_.size()));
    }
    return {};
  }

  Result<void> read_entries() {
    std::vector<GgufEntry> entries;
    for (uint64_t i = 0; i < n_entries_; ++i) {
      auto key = take_text(gguf::kLongestKey, fmt::format("metadata key {}", i));
      if (!key) return key.error();
      if (key->empty()) return bad(fmt::format("metadata key {} is empty", i));
      if (key->find('\0') != std::string_view::npos) {
        return bad(fmt::format("metadata key {} contains a zero byte", quoted_name(*key)));
      }
      auto entry = read_value(*key);
      if (!entry) return entry.error();
      entries.push_back(*entry);
    }
    std::ranges::sort(entries, {}, &GgufEntry::key);
    const auto twice = std::ranges::adjacent_find(entries, {}, &GgufEntry::key);
    if (twice != entries.end()) {
      return bad(fmt::format("metadata key {} stands there twice", quoted_name(twice->key)));
    }
    contents_.metadata = GgufMetadata(std::move(entries));
    return {};
  }

  Result<GgufEntry> read_value(std::string_view key) {
    const std::string what = fmt::format("the value of metadata key {}", quoted_name(key));
    GgufEntry entry;
    entry.key = key;
    uint32_t type = 0;
    if (!take(type)) return cut(what);
    entry.is_array = type == static_cast<uint32_t>(ValueType::Array);
    if (entry.is_array && (!take(type) || !take(entry.count))) return cut(what);
    if (type > static_cast<uint32_t>(ValueType::F64)) {
      return bad(fmt::format("{} has type {}, types are 0 to 12", what, type));
    }
    entry.type = static_cast<ValueType>(type);
    if (entry.type == ValueType::Array) {
      return unsupported(fmt::format("{} is an array of arrays, which is not read", what));
    }
    const uint64_t start = at_;
    if (entry.type == ValueType::String) {
      if (auto step = skip_texts(entry.count, what); !step) return step.error();
    } else {
      const auto size = static_cast<uint64_t>(gguf::value_bytes(entry.type));
      if (entry.count > left() / size) return too_many(entry.count, what);
      at_ += entry.count * size;
    }
    entry.bytes = file_.subspan(start, at_ - start);
    if (entry.type == ValueType::Bool &&
        std::ranges::any_of(entry.bytes, [](std::byte b) { return b > std::byte{1}; })) {
      return bad(fmt::format("{} is a bool that is neither 0 nor 1", what));
    }
    return entry;
  }

  Error too_many(uint64_t count, const std::string& what) const {
    if (count == 1) return cut(what);
    return bad(
        fmt::format("{} claims {} elements where the file has {} bytes left", what, count, left()));
  }

  Result<void> skip_texts(uint64_t count, const std::string& what) {
    if (count > left() / sizeof(uint64_t)) return too_many(count, what);
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t length = 0;
      if (!take(length)) return cut(what);
      if (length > left()) {
        return bad(
            fmt::format("{} claims {} bytes where the file has {} left", what, length, left()));
      }
      at_ += length;
    }
    return {};
  }

  Result<void> check_metadata() {
    const GgufMetadata& metadata = contents_.metadata;
    if (const GgufEntry* entry = metadata.find("general.alignment"); entry != nullptr) {
      const auto value = metadata.integer("general.alignment");
      if (entry->is_array || entry->type != ValueType::U32) {
        return bad("general.alignment is not a 32-bit unsigned integer");
      }
      if (*value % 8 != 0 || !std::has_single_bit(static_cast<uint64_t>(*value))) {
        return bad(fmt::format(
            "general.alignment is {}, it must be a power of two and a multiple of 8", *value));
      }
      alignment_ = static_cast<uint64_t>(*value);
    }
    return read_split();
  }

  Result<void> read_split() {
    const GgufMetadata& metadata = contents_.metadata;
    const int64_t count = metadata.integer("split.count").value_or(1);
    if (count == 1 || count == 0) return {};
    const auto number = metadata.integer("split.no");
    const auto n_tensors = metadata.integer("split.tensors.count");
    if (count < 0 || count > gguf::kMostParts) {
      return bad(
          fmt::format("split.count is {}, a model has at most {} parts", count, gguf::kMostParts));
    }
    if (!number || *number < 0 || *number >= count) {
      return bad(fmt::format("a part of a split model wants split.no from 0 to {}, found {}",
                             count - 1, number ? std::to_string(*number) : "none"));
    }
    if (!n_tensors) return bad("a part of a split model wants split.tensors.count, found none");
    contents_.split = GgufSplit{.number = *number, .count = count, .n_tensors = *n_tensors};
    return {};
  }

  Result<void> read_tensors() {
    for (uint64_t i = 0; i < n_tensors_; ++i) {
      auto name = take_text(gguf::kLongestTensorName, fmt::format("the name of tensor {}", i));
      if (!name) return name.error();
      if (name->empty()) return bad(fmt::format("tensor {} has an empty name", i));
      if (auto step = read_tensor(*name); !step) return step.error();
    }
    return {};
  }

  Result<void> read_tensor(std::string_view name) {
    const std::string what = fmt::format("tensor {}", quoted_name(name));
    uint32_t n_dims = 0;
    if (!take(n_dims)) return cut(what);
    if (n_dims > gguf::kMaxDims) {
      return bad(fmt::format("{} has {} dimensions, at most {} are allowed", what, n_dims,
                             gguf::kMaxDims));
    }
    Tensor tensor;
    tensor.name = name;
    tensor.shape.resize(n_dims);
    int64_t product = 1;  // without zeros, so that it is small enough in any order
    bool is_empty = false;
    for (uint32_t i = 0; i < n_dims; ++i) {
      int64_t length = 0;
      if (!take(length)) return cut(what);
      if (length < 0) return bad(fmt::format("{} has a dimension of {}", what, length));
      is_empty = is_empty || length == 0;
      if (__builtin_mul_overflow(product, std::max<int64_t>(length, 1), &product)) {
        return bad(fmt::format("{} has more elements than 64 bits can count", what));
      }
      tensor.shape[n_dims - 1 - i] = length;  // the file tells the contiguous dimension first
    }
    const int64_t elements = is_empty ? 0 : product;
    uint32_t type = 0;
    uint64_t offset = 0;
    if (!take(type) || !take(offset)) return cut(what);
    const auto dtype = gguf::type_of(type);
    if (!dtype) {
      return unsupported(
          fmt::format("{} is {}; {} are read", what, gguf::type_name(type), kReadable));
    }
    tensor.type = *dtype;
    const int64_t row = n_dims == 0 ? 1 : tensor.shape.back();
    const int64_t block = block_length(*dtype);
    if (row % block != 0) {
      return bad(fmt::format("{} has rows of {} elements, which are no whole {} blocks of {}", what,
                             row, to_string(*dtype), block));
    }
    int64_t bytes = 0;
    if (__builtin_mul_overflow(elements / block, int64_t{block_bytes(*dtype)}, &bytes) ||
        static_cast<uint64_t>(bytes) > file_.size()) {
      return bad(fmt::format("{} claims {} elements, more than a file of {} bytes can hold", what,
                             elements, file_.size()));
    }
    places_.push_back({offset, static_cast<uint64_t>(bytes)});
    contents_.tensors.push_back(std::move(tensor));
    return {};
  }

  uint64_t padded(uint64_t offset) const { return (offset + alignment_ - 1) & ~(alignment_ - 1); }

  // Gives each tensor its bytes. Offsets count from the first aligned byte behind the infos and
  // must be the sums of the padded sizes before them, which rules out overlap as well.
  Result<void> place_tensors() {
    const uint64_t start = padded(at_);
    const uint64_t available = file_.size() > start ? file_.size() - start : 0;
    uint64_t expected = 0;  // at most twice the file's size: every sum is checked against it
    uint64_t end = 0;
    for (size_t i = 0; i < places_.size(); ++i) {
      Tensor& tensor = contents_.tensors[i];
      const auto [offset, bytes] = places_[i];
      if (offset != expected) {
        return bad(
            fmt::format("tensor {} lies at offset {} where {} was expected: tensors follow "
                        "one another without gaps, aligned to {} bytes",
                        quoted_name(tensor.name), offset, expected, alignment_));
      }
      if (bytes > 0 && (offset > available || bytes > available - offset)) {
        return bad(
            fmt::format("the file has {} bytes, but tensor {} ends at byte {}; it is damaged "
                        "or was cut short, fetch it again",
                        file_.size(), quoted_name(tensor.name), start + offset + bytes));
      }
      if (bytes > 0) tensor.data = file_.subspan(start + offset, bytes);
      end = offset + bytes;
      expected = padded(end);
    }
    if (available > expected) {
      contents_.warnings.push_back(
          fmt::format("{}: {} bytes follow the last tensor and are not "
                      "used",
                      name_, available - expected));
    }
    return {};
  }

  Result<void> check_tensor_names() {
    std::vector<std::string_view> names;
    names.reserve(contents_.tensors.size());
    for (const Tensor& tensor : contents_.tensors) names.push_back(tensor.name);
    std::ranges::sort(names);
    const auto twice = std::ranges::adjacent_find(names);
    if (twice != names.end()) {
      return bad(fmt::format("tensor {} stands there twice", quoted_name(*twice)));
    }
    return {};
  }

  struct Place {
    uint64_t offset;  // in the data section
    uint64_t bytes;
  };

  std::span<const std::byte> file_;
  const std::string& name_;
  uint64_t at_ = 0;
  uint64_t n_tensors_ = 0;
  uint64_t n_entries_ = 0;
  uint64_t alignment_ = gguf::kDefaultAlignment;
  std::vector<Place> places_;
  GgufContents contents_;
};

}  // namespace

Result<GgufContents> read_gguf(std::span<const std::byte> file, const std::string& name) {
  return GgufReader(file, name).read();
}

}  // namespace paceline
