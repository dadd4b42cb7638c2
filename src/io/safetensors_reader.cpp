#include "io/safetensors_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "io/shown.h"

namespace paceline {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

constexpr size_t kMaxDims = 8;
constexpr const char* kMetadataKey = "__metadata__";

// What the header says of one tensor, not yet compared with the file.
struct HeaderEntry {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::array<uint64_t, 2> offsets = {};  // [begin, end) in the data section
};

// Takes the header apart as it is parsed, so that a key that comes twice is seen, nothing recurses
// and nothing is kept that is not an entry. The parser calls one function a JSON token and stops
// when one returns false; error() then says why.
class HeaderHandler : public json::json_sax_t {
 public:
  std::vector<HeaderEntry> entries;
  std::vector<std::pair<std::string, std::string>> metadata;

  const std::string& error() const { return error_; }

  bool null() override {
    if (at_ == At::EntryValue && in_metadata_name_) {
      at_ = At::Names;
      return true;
    }
    return unexpected("null");
  }
  bool boolean(bool) override { return unexpected("a bool"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return unexpected("a number that is no 64-bit whole number");
  }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (at_ == At::Shape) {
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return fail(fmt::format("tensor {} has a dimension of {}", tensor(), value));
      }
      if (entry().shape.size() == kMaxDims) {
        return fail(fmt::format("tensor {} has more than {} dimensions", tensor(), kMaxDims));
      }
      entry().shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (at_ == At::Offsets && n_offsets_ < 2) {
      entry().offsets[n_offsets_++] = value;
      return true;
    }
    return unexpected("a number");
  }

  bool string(string_t& value) override {
    if (at_ == At::FieldValue && field_ == kDtype) {
      entry().dtype = std::move(value);
      at_ = At::Fields;
      return true;
    }
    if (at_ == At::MetadataValue) {
      metadata.back().second = std::move(value);
      at_ = At::Metadata;
      return true;
    }
    return unexpected("a string");
  }

  bool start_object(std::size_t) override {
    if (at_ == At::Start) {
      at_ = At::Names;
    } else if (at_ == At::EntryValue && in_metadata_name_) {
      at_ = At::Metadata;
    } else if (at_ == At::EntryValue) {
      at_ = At::Fields;
      seen_ = {};
    } else {
      return unexpected("an object");
    }
    return true;
  }

  bool key(string_t& name) override {
    if (at_ == At::Names) return start_entry(name);
    if (at_ == At::Metadata) {
      metadata.emplace_back(std::move(name), "");
      at_ = At::MetadataValue;
      return true;
    }
    return start_field(name);
  }

  bool end_object() override {
    if (at_ == At::Fields) {
      for (size_t i = 0; i < seen_.size(); ++i) {
        if (!seen_[i]) return fail(fmt::format("tensor {} has no {}", tensor(), kFieldNames[i]));
      }
      at_ = At::Names;
    } else if (at_ == At::Metadata) {
      at_ = At::Names;
    } else {
      at_ = At::End;
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (at_ != At::FieldValue || field_ == kDtype) return unexpected("an array");
    at_ = field_ == kShape ? At::Shape : At::Offsets;
    n_offsets_ = 0;
    return true;
  }

  bool end_array() override {
    if (at_ == At::Offsets && n_offsets_ != 2) return unexpected("the end of the array");
    at_ = At::Fields;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    return fail(fmt::format("the header is no valid JSON at its byte {}", position));
  }

 private:
  enum class At {
    Start,
    Names,
    EntryValue,
    Fields,
    FieldValue,
    Shape,
    Offsets,
    Metadata,
    MetadataValue,
    End
  };
  static constexpr size_t kDtype = 0;
  static constexpr size_t kShape = 1;
  static constexpr std::array<const char*, 3> kFieldNames = {"dtype", "shape", "data_offsets"};

  HeaderEntry& entry() { return entries.back(); }
  std::string tensor() { return quoted_name(entry().name); }

  bool fail(std::string why) {
    error_ = std::move(why);
    return false;
  }

  bool unexpected(const char* what) {
    switch (at_) {
      case At::Start:
      case At::End:
        return fail(fmt::format("the header is {}, not an object", what));
      case At::EntryValue:
        if (!in_metadata_name_) return fail(fmt::format("tensor {} is {}", tensor(), what));
        [[fallthrough]];
      case At::Metadata:
      case At::MetadataValue:
        return fail(fmt::format("__metadata__ must map strings to strings, found {}", what));
      case At::Offsets:
        return fail(fmt::format("data_offsets of tensor {} must be two whole numbers, found {}",
                                tensor(), what));
      default:
        return fail(
            fmt::format("{} of tensor {} is or holds {}", kFieldNames[field_], tensor(), what));
    }
  }

  bool start_entry(std::string& name) {
    in_metadata_name_ = name == kMetadataKey;
    if (in_metadata_name_) {
      if (std::exchange(metadata_seen_, true)) return fail("__metadata__ stands there twice");
    } else if (name.empty()) {
      return fail("a tensor has an empty name");
    } else {
      entries.emplace_back();
      entry().name = std::move(name);
    }
    at_ = At::EntryValue;
    return true;
  }

  bool start_field(const std::string& name) {
    const auto* found = std::ranges::find(kFieldNames, name);
    if (found == kFieldNames.end()) {
      return fail(
          fmt::format("tensor {} has a field {}, which is not known", tensor(), quoted_name(name)));
    }
    field_ = static_cast<size_t>(found - kFieldNames.begin());
    if (std::exchange(seen_[field_], true)) {
      return fail(fmt::format("tensor {} has {} twice", tensor(), name));
    }
    at_ = At::FieldValue;
    return true;
  }

  At at_ = At::Start;
  bool in_metadata_name_ = false;
  bool metadata_seen_ = false;
  size_t field_ = 0;
  size_t n_offsets_ = 0;
  std::array<bool, 3> seen_ = {};
  std::string error_;
};

std::optional<DType> dtype_of(std::string_view name) {
  for (const DType type : {DType::F32, DType::F16, DType::BF16}) {
    if (name == to_string(type)) return type;
  }
  return std::nullopt;
}

class SafetensorsReader {
 public:
  SafetensorsReader(std::span<const std::byte> file, const std::string& name)
      : file_(file), name_(name) {}

  Result<SafetensorsContents> read() {
    auto header = header_text();
    if (!header) return header.error();
    HeaderHandler handler;
    if (!json::sax_parse(header->begin(), header->end(), &handler)) return bad(handler.error());
    if (auto step = check_names(handler); !step) return step.error();
    if (auto step = place_tensors(handler.entries); !step) return step.error();
    contents_.metadata = std::move(handler.metadata);
    return std::move(contents_);
  }

 private:
  Error bad(const std::string& what) const {
    return {ErrorCode::BadFormat, fmt::format("{}: {}", name_, what)};
  }

  Result<std::string_view> header_text() {
    constexpr uint64_t kLengthBytes = 8;
    uint64_t length = 0;
    if (file_.size() < kLengthBytes) {
      return bad(fmt::format("the file has {} bytes, a safetensors file has at least {}",
                             file_.size(), kLengthBytes + 2));
    }
    std::memcpy(&length, file_.data(), kLengthBytes);
    if (length > kLongestSafetensorsHeader) {
      return Error{
          ErrorCode::TooLarge,
          fmt::format("{}: claims a header of {} bytes, the limit is {}; not a safetensors "
                      "file, or a damaged one",
                      name_, length, kLongestSafetensorsHeader)};
    }
    if (length > file_.size() - kLengthBytes) {
      return bad(
          fmt::format("the file has {} bytes, its header alone ends at byte {}; it is damaged "
                      "or was cut short, fetch it again",
                      file_.size(), kLengthBytes + length));
    }
    data_ = file_.subspan(kLengthBytes + length);
    const std::string_view text(reinterpret_cast<const char*>(file_.data() + kLengthBytes), length);
    // The parser would take a zero byte for the end of its input.
    if (text.empty() || text.front() != '{' || text.find('\0') != std::string_view::npos) {
      return bad(fmt::format("the header of {} bytes is no JSON object", length));
    }
    return text;
  }

  Result<void> check_names(HeaderHandler& handler) const {
    std::ranges::sort(handler.metadata);
    const auto key = &std::pair<std::string, std::string>::first;
    const auto twice = std::ranges::adjacent_find(handler.metadata, {}, key);
    if (twice != handler.metadata.end()) {
      return bad(fmt::format("__metadata__ has {} twice", quoted_name(twice->first)));
    }
    std::vector<std::string_view> names;
    names.reserve(handler.entries.size());
    for (const HeaderEntry& entry : handler.entries) names.push_back(entry.name);
    std::ranges::sort(names);
    const auto again = std::ranges::adjacent_find(names);
    if (again != names.end()) {
      return bad(fmt::format("tensor {} stands there twice", quoted_name(*again)));
    }
    return {};
  }

  Result<Tensor> checked(HeaderEntry& entry) const {
    const auto what = [&] { return fmt::format("tensor {}", quoted_name(entry.name)); };
    const auto [begin, end] = entry.offsets;
    const auto type = dtype_of(entry.dtype);
    if (!type) {
      return Error{ErrorCode::Unsupported,
                   fmt::format("{}: {} has dtype {}; F32, F16 and BF16 are read", name_, what(),
                               quoted_name(entry.dtype))};
    }
    int64_t bytes = block_bytes(*type);
    for (const int64_t length : entry.shape) {
      if (__builtin_mul_overflow(bytes, length, &bytes)) {
        return bad(fmt::format("{} has more bytes than 64 bits can count", what()));
      }
    }
    if (begin > end) {
      return bad(fmt::format("{} has data_offsets [{}, {}], the end before the beginning", what(),
                             begin, end));
    }
    if (end - begin != static_cast<uint64_t>(bytes)) {
      return bad(fmt::format("{} has {} bytes of data where dtype and shape ask for {}", what(),
                             end - begin, bytes));
    }
    if (end > data_.size()) {
      const uint64_t start = file_.size() - data_.size();
      const uint64_t room = std::numeric_limits<uint64_t>::max() - start;
      return bad(
          fmt::format("the file has {} bytes, but {} ends at byte {}; it is damaged or was "
                      "cut short, fetch it again",
                      file_.size(), what(), start + std::min(end, room)));
    }
    Tensor tensor;
    tensor.name = std::move(entry.name);
    tensor.type = *type;
    tensor.shape = std::move(entry.shape);
    if (bytes > 0) tensor.data = data_.subspan(begin, end - begin);
    return tensor;
  }

  Result<void> place_tensors(std::vector<HeaderEntry>& entries) {
    std::ranges::sort(entries, [](const HeaderEntry& a, const HeaderEntry& b) {
      return std::tie(a.offsets, a.name) < std::tie(b.offsets, b.name);
    });
    uint64_t covered = 0;
    for (HeaderEntry& entry : entries) {
      auto tensor = checked(entry);
      if (!tensor) return tensor.error();
      if (entry.offsets[0] != covered) {
        return bad(
            fmt::format("tensor {} begins at data byte {} where {} was expected: tensors "
                        "must neither overlap nor leave holes",
                        quoted_name(tensor->name), entry.offsets[0], covered));
      }
      covered = entry.offsets[1];
      contents_.tensors.push_back(std::move(*tensor));
    }
    if (covered != data_.size()) {
      return bad(
          fmt::format("{} bytes follow the last tensor: the file has {} bytes, its header "
                      "describes {}",
                      data_.size() - covered, file_.size(), file_.size() - data_.size() + covered));
    }
    return {};
  }

  std::span<const std::byte> file_;
  std::span<const std::byte> data_;
  const std::string& name_;
  SafetensorsContents contents_;
};

}  // namespace

Result<SafetensorsContents> read_safetensors(std::span<const std::byte> file,
                                             const std::string& name) {
  return SafetensorsReader(file, name).read();
}

}  // namespace paceline
