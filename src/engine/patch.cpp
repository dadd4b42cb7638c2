#include "engine/patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "engine/head_search.h"
#include "engine/patch_plan.h"
#include "io/checkpoint.h"
#include "io/file_copy.h"
#include "io/folder_edit.h"
#include "io/output_file.h"
#include "io/shown.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

Error error_at(const fs::path& path, ErrorCode code, const std::string& what) {
  return {code, fmt::format("{}: {}", shown_path(path), what)};
}

// The folder itself, through links and without a slash at the end.
Result<fs::path> real_folder(const fs::path& path) {
  std::error_code failure;
  fs::path folder = fs::canonical(path, failure);
  if (failure) return error_at(path, ErrorCode::Io, failure.message());
  return folder;
}

Result<std::string> trunk_of(const fs::path& model) {
  const auto checkpoint = Checkpoint::open(model);
  if (!checkpoint) return checkpoint.error();
  return checkpoint->trunk_sha256();
}

Result<void> stage_files(const FolderPatch& patch, const CheckedHead& head,
                         const std::function<bool()>& stop, FolderEdit& edit) {
  const auto shard = edit.stage(kHeadShard);
  if (!shard) return shard.error();
  if (auto done = copy_whole_file(head.file.path, *shard, stop); !done) return done;
  // The index before the shards that lose a head, so that other loaders, which know no journal,
  // never miss a tensor.
  const auto index = edit.stage(kIndexName);
  if (!index) return index.error();
  if (auto done = write_text_file(*index, patch.index_text); !done) return done;
  for (const RewrittenShard& rewritten : patch.rewritten) {
    if (stop && stop()) return Error{ErrorCode::Interrupted, "interrupted; nothing was changed"};
    const auto to = edit.stage(rewritten.name);
    if (!to) return to.error();
    if (auto done = write_rewritten(*to, rewritten); !done) return done;
  }
  for (const std::string& name : patch.removed) edit.remove(name);
  return {};
}

// `folder` is no link. The paths of the summary lie in it.
Result<PatchSummary> patch_in_place(const fs::path& folder, const PatchOptions& options) {
  auto edit = FolderEdit::begin(folder);
  if (!edit) return edit.error();
  const auto before = open_folder(folder);
  if (!before) return before.error();
  const auto checkpoint = Checkpoint::open(folder);
  if (!checkpoint) return checkpoint.error();
  const auto head = check_head_file(options.head, *checkpoint);
  if (!head) return head.error();
  const auto patch = plan_folder_patch(folder, *before, *head);
  if (!patch) return patch.error();
  if (auto allowed = check_writable(folder, patch->names()); !allowed) return allowed.error();
  if (auto room = check_room(folder, patch->bytes_to_write(*head)); !room) return room.error();

  PatchSummary summary;
  summary.sha256_before = checkpoint->trunk_sha256();
  edit->set_trunk_sha256(summary.sha256_before);
  if (auto staged = stage_files(*patch, *head, options.stop, *edit); !staged) return staged.error();
  auto done = edit->commit([&] { return check_patched(folder, *before, *head); });
  if (!done) return done.error();

  summary.head_sha256 = head->sha256;
  auto after = trunk_of(folder);
  if (!after) return after.error();
  summary.sha256_after = std::move(*after);
  for (const std::string& name : {std::string(kHeadShard), std::string(kIndexName)})
    summary.files_written.push_back(folder / name);
  for (const RewrittenShard& shard : patch->rewritten)
    summary.files_written.push_back(folder / shard.name);
  for (const std::string& name : patch->removed) summary.files_removed.push_back(folder / name);
  summary.warnings = head->warnings;
  summary.warnings.insert(summary.warnings.end(), patch->warnings.begin(), patch->warnings.end());
  return summary;
}

// --- a whole new folder --------------------------------------------------------------------------

struct CopiedFile {
  fs::path from;
  fs::path name;  // in the new folder
};

// All files as they were before any patch, links as what they lead to.
Result<std::vector<CopiedFile>> pristine_files(const fs::path& folder) {
  bool exists = false;
  const auto journal = read_patch_journal(folder, &exists);
  if (!journal) return journal.error();
  std::vector<CopiedFile> files;
  std::error_code failure;
  for (auto entry = fs::recursive_directory_iterator(folder, failure);
       !failure && entry != fs::recursive_directory_iterator(); entry.increment(failure)) {
    const fs::path name = entry->path().lexically_relative(folder);
    if (*name.begin() == kPatchFolder) {
      entry.disable_recursion_pending();
      continue;
    }
    std::error_code ignored;
    if (fs::is_regular_file(entry->path(), ignored) && !journal->files.contains(name.native()))
      files.push_back({entry->path(), name});
  }
  if (failure) return error_at(folder, ErrorCode::Io, failure.message());
  for (const auto& [name, file] : journal->files) {
    if (file.was == PristineFile::Was::File)
      files.push_back({folder / kPatchFolder / file.kept, name});
    if (file.was == PristineFile::Was::Link)
      files.push_back({(folder / name).parent_path() / file.target, name});
  }
  return files;
}

Result<void> copy_pristine(const fs::path& folder, const PatchOptions& options,
                           const fs::path& to) {
  const auto files = pristine_files(folder);
  if (!files) return files.error();
  uint64_t bytes = uint64_t{1} << 20;
  std::error_code ignored;
  for (const CopiedFile& file : *files) bytes += fs::file_size(file.from, ignored);
  if (auto room = check_room(to, bytes); !room) return room;
  for (const CopiedFile& file : *files) {
    fs::create_directories((to / file.name).parent_path(), ignored);
    if (auto done = copy_whole_file(file.from, to / file.name, options.stop); !done) return done;
  }
  return {};
}

Result<PatchSummary> patch_to_new_folder(const fs::path& folder, const PatchOptions& options) {
  if (auto whole = refuse_unfinished(folder); !whole) return whole.error();
  {
    // Before gigabytes are copied.
    const auto checkpoint = Checkpoint::open(folder);
    if (!checkpoint) return checkpoint.error();
    if (auto head = check_head_file(options.head, *checkpoint); !head) return head.error();
  }
  auto out = OutputFolder::create(options.out, "--out");
  if (!out) return out.error();
  const fs::path inside = out->path().lexically_relative(folder);
  if (!inside.empty() && *inside.begin() != "..")
    return error_at(options.out, ErrorCode::BadUsage, "--out lies in the model's own folder");
  if (auto copied = copy_pristine(folder, options, out->temporary()); !copied)
    return copied.error();
  auto summary = patch_in_place(out->temporary(), options);
  if (!summary) return summary;
  if (auto done = out->commit(); !done) return done.error();
  for (auto* paths : {&summary->files_written, &summary->files_removed})
    for (std::string& path : *paths)
      path = out->path() / fs::path(path).lexically_relative(out->temporary());
  return summary;
}

// --- GGUF ----------------------------------------------------------------------------------------

Result<void> refuse_foreign(const fs::path& side) {
  const auto config = read_head_config(side);
  if (config) return {};
  return error_at(side, ErrorCode::BadUsage,
                  "stands in the place of a draft head and is none; move it away");
}

Result<PatchSummary> patch_gguf(const PatchOptions& options) {
  if (!options.out.empty())
    return error_at(options.model, ErrorCode::BadUsage,
                    "a GGUF file gets its head as a side file; for a folder, export it first and "
                    "patch that");
  const auto checkpoint = Checkpoint::open(options.model);
  if (!checkpoint) return checkpoint.error();
  const auto head = check_head_file(options.head, *checkpoint);
  if (!head) return head.error();
  const fs::path side = head_side_file(options.model);
  const fs::path folder = side.has_parent_path() ? side.parent_path() : fs::path(".");
  std::error_code ignored;
  if (fs::exists(side, ignored))
    if (auto ours = refuse_foreign(side); !ours) return ours.error();
  if (auto allowed = check_writable(folder, {side.filename().native()}); !allowed)
    return allowed.error();
  if (auto room = check_room(folder, head->file.map.bytes().size()); !room) return room.error();
  if (auto done = copy_whole_file(head->file.path, side, options.stop); !done) return done.error();
  const std::string trunk = checkpoint->trunk_sha256();
  return PatchSummary{.files_written = {side.native()},
                      .files_removed = {},
                      .sha256_before = trunk,
                      .sha256_after = trunk,
                      .head_sha256 = head->sha256,
                      .warnings = head->warnings};
}

Result<PatchSummary> unpatch_gguf(const fs::path& model) {
  const fs::path side = head_side_file(model);
  std::error_code failure;
  if (!fs::exists(side, failure))
    return error_at(model, ErrorCode::NotFound,
                    fmt::format("nothing to take out, there is no {}", shown_path(side)));
  if (auto ours = refuse_foreign(side); !ours) return ours.error();
  auto trunk = trunk_of(model);
  if (!trunk) return trunk.error();
  if (!fs::remove(side, failure) || failure)
    return error_at(side, ErrorCode::Io, "cannot be removed: " + failure.message());
  (void)sync_folder(side.parent_path());
  return PatchSummary{.files_written = {},
                      .files_removed = {side.native()},
                      .sha256_before = *trunk,
                      .sha256_after = *trunk,
                      .head_sha256 = {},
                      .warnings = {}};
}

Result<PatchSummary> unpatch_folder(const fs::path& given) {
  const auto folder = real_folder(given);
  if (!folder) return folder.error();
  bool exists = false;
  const auto journal = read_patch_journal(*folder, &exists);
  PatchSummary summary;
  if (journal && exists && journal->whole) summary.sha256_before = trunk_of(*folder).value_or("");
  const auto done = restore_folder(*folder);
  if (!done) return done.error();
  for (const std::string& name : done->restored) summary.files_written.push_back(*folder / name);
  for (const std::string& name : done->removed) summary.files_removed.push_back(*folder / name);
  summary.sha256_after = trunk_of(*folder).value_or("");
  if (journal && !journal->trunk_sha256.empty() && summary.sha256_after != journal->trunk_sha256)
    summary.warnings.push_back(fmt::format(
        "{}: the patched files are what they were, others have changed since (the trunk's SHA-256 "
        "was {} before the patch)",
        shown_path(*folder), journal->trunk_sha256));
  return summary;
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

}  // namespace

Result<PatchSummary> patch_model(const PatchOptions& options) {
  if (!is_folder(options.model)) return patch_gguf(options);
  const auto folder = real_folder(options.model);
  if (!folder) return folder.error();
  return options.out.empty() ? patch_in_place(*folder, options)
                             : patch_to_new_folder(*folder, options);
}

Result<PatchSummary> unpatch_model(const fs::path& model) {
  return is_folder(model) ? unpatch_folder(model) : unpatch_gguf(model);
}

}  // namespace paceline
