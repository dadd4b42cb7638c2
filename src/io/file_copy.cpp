#include "io/file_copy.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/output_file.h"
#include "io/shown.h"
#include "io/weight_file.h"

namespace paceline {

Result<void> copy_whole_file(const std::filesystem::path& from, const std::filesystem::path& to,
                             const std::function<bool()>& stop) {
  constexpr size_t kPiece = size_t{4} << 20;
  const auto source = open_weight_file(from, from.filename().native());
  if (!source) return source.error();
  const auto bytes = source->map.bytes();
  auto file = OutputFile::create(to);
  if (!file) return file.error();
  for (size_t at = 0; at < bytes.size(); at += kPiece) {
    if (stop && stop()) return Error{ErrorCode::Interrupted, "interrupted; nothing was changed"};
    const auto piece = bytes.subspan(at, std::min(kPiece, bytes.size() - at));
    if (auto written = file->write(piece); !written) return written;
  }
  if (auto done = file->commit(); !done) return done;
  const auto copy = open_weight_file(to, to.filename().native());
  if (!copy) return copy.error();
  if (std::ranges::equal(copy->map.bytes(), bytes)) return {};
  return Error{ErrorCode::Io,
               fmt::format("{}: reads back other than it was written", shown_path(to))};
}

}  // namespace paceline
