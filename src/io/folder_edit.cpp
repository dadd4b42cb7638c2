#include "io/folder_edit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/check.h"
#include "io/file_copy.h"
#include "io/json_parse.h"
#include "io/output_file.h"
#include "io/safetensors_index.h"
#include "io/shown.h"
#include "io/utf8.h"
#include "io/weight_file.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Was = PristineFile::Was;

constexpr const char* kJournal = "journal.json";
constexpr const char* kFormat = "paceline patch 1";

Error io_error(const fs::path& path, const char* what) {
  return {ErrorCode::Io, fmt::format("{}: {}: {}", shown_path(path), what, std::strerror(errno))};
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

Result<void> remove_file(const fs::path& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return io_error(path, "cannot be removed");
}

Result<void> move_file(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return io_error(to, "cannot be put in its place");
  // Of two names of one file, rename removes neither.
  return remove_file(from);
}

Result<void> make_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return {};
  return io_error(path, "cannot be made");
}

// A second name for the file; for a link, a link with the same text. What stood there goes.
Result<void> link_away(const fs::path& from, const fs::path& to) {
  if (auto removed = remove_file(to); !removed) return removed;
  std::error_code failure;
  if (fs::is_symlink(fs::symlink_status(from, failure))) {
    const fs::path target = fs::read_symlink(from, failure);
    if (failure || ::symlink(target.c_str(), to.c_str()) != 0)
      return io_error(to, "cannot be made a link");
    return {};
  }
  if (::link(from.c_str(), to.c_str()) == 0) return {};
  const bool unknown = errno == EPERM || errno == EMLINK || errno == ENOTSUP || errno == ENOSYS;
  if (!unknown) return io_error(to, "cannot be linked");
  std::error_code no_size;
  const uint64_t size = fs::file_size(from, no_size);
  if (auto room = check_room(to.parent_path(), no_size ? 0 : size); !room) return room;
  return copy_whole_file(from, to);
}

const char* word_of(Was was) {
  return was == Was::Absent ? "absent" : was == Was::File ? "file" : "link";
}

std::string journal_text(const PatchJournal& journal) {
  Json files = Json::array();
  for (const auto& [name, file] : journal.files) {
    Json entry{{"name", name}, {"was", word_of(file.was)}};
    if (file.was == Was::File) entry["sha256"] = file.sha256;
    if (file.was == Was::Link) entry["target"] = file.target;
    if (file.was != Was::Absent) entry["kept"] = file.kept;
    files.push_back(std::move(entry));
  }
  const Json json{{"format", kFormat},
                  {"state", journal.whole ? "patched" : "unfinished"},
                  {"trunk_sha256", journal.trunk_sha256},
                  {"files", std::move(files)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<void> write_journal(const fs::path& folder, const PatchJournal& journal) {
  return write_text_file(folder / kPatchFolder / kJournal, journal_text(journal));
}

std::string text_of(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Result<PatchJournal> parse_journal(const std::string& text, const fs::path& path) {
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::BadFormat, fmt::format("{}: {}", shown_path(path), what)};
  };
  const Json json = parse_json<Json>(text);
  if (!json.is_object() || text_of(json, "format") != kFormat || !json.contains("files") ||
      !json["files"].is_array())
    return bad("no journal of a patch, or one of another version");
  PatchJournal journal;
  journal.whole = text_of(json, "state") == "patched";
  journal.trunk_sha256 = text_of(json, "trunk_sha256");
  for (const Json& entry : json["files"]) {
    const std::string name = text_of(entry, "name");
    const std::string was = text_of(entry, "was");
    PristineFile file{.was = was == "file"   ? Was::File
                             : was == "link" ? Was::Link
                                             : Was::Absent,
                      .sha256 = text_of(entry, "sha256"),
                      .target = text_of(entry, "target"),
                      .kept = text_of(entry, "kept")};
    // It says what is removed and replaced, so a damaged one must not reach out of the folder.
    const bool kept_is_fine = file.was == Was::Absent || !leaves_folder(file.kept);
    if (was != word_of(file.was) || leaves_folder(name) || !kept_is_fine)
      return bad(fmt::format("an entry {} that makes no sense", quoted_name(name)));
    journal.files[name] = std::move(file);
  }
  return journal;
}

// The folders in which these files stand reach the disk.
Result<void> sync_folders_of(const fs::path& folder, const std::set<fs::path>& files) {
  std::set<fs::path> folders{folder};
  for (const fs::path& file : files) folders.insert(file.parent_path());
  for (const fs::path& each : folders)
    if (auto synced = sync_folder(each); !synced) return synced;
  return {};
}

// Removes a folder of ours with all that is in it; what does not go stays for another time.
void remove_own(const fs::path& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

std::string unfinished_hint(const fs::path& folder) {
  return fmt::format("unfinished patch; run: paceline unpatch {}", shown_path(folder));
}

}  // namespace

Result<PatchJournal> read_patch_journal(const fs::path& folder, bool* exists) {
  const fs::path path = folder / kPatchFolder / kJournal;
  *exists = is_there(path);
  if (!*exists) return PatchJournal{};
  auto file = open_weight_file(path, kJournal);
  if (!file) return file.error();
  const auto bytes = file->map.bytes();
  return parse_journal(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                       path);
}

Result<void> refuse_unfinished(const fs::path& folder) {
  bool exists = false;
  const auto journal = read_patch_journal(folder, &exists);
  if (!journal) return journal.error();
  if (!exists || journal->whole) return {};
  return Error{ErrorCode::BadFormat,
               fmt::format("{}: {}", shown_path(folder), unfinished_hint(folder))};
}

Result<void> check_writable(const fs::path& folder, const std::vector<std::string>& names) {
  // The bits are asked too: to root everything is allowed, and a write-protected file is still
  // meant to stay as it is.
  constexpr mode_t kAnyWrite = S_IWUSR | S_IWGRP | S_IWOTH;
  std::vector<std::string> locked;
  const auto look = [&](const fs::path& path, const std::string& shown, int wanted) {
    struct stat status = {};
    if (::lstat(path.c_str(), &status) != 0 || S_ISLNK(status.st_mode)) return;
    if ((status.st_mode & kAnyWrite) == 0 || ::access(path.c_str(), wanted) != 0)
      locked.push_back(shown);
  };
  std::set<fs::path> folders{folder};
  for (const std::string& name : names) folders.insert((folder / name).parent_path());
  if (is_there(folder / kPatchFolder)) folders.insert(folder / kPatchFolder);
  for (const fs::path& each : folders) look(each, "the folder " + shown_path(each), W_OK | X_OK);
  for (const std::string& name : names) look(folder / name, quoted_name(name), W_OK);
  if (locked.empty()) return {};
  return Error{ErrorCode::Io, fmt::format("{}: no permission to write {}; nothing was changed",
                                          shown_path(folder), listed(locked, 20))};
}

// --- the lock ------------------------------------------------------------------------------------

Result<FolderLock> FolderLock::take(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return io_error(folder, "cannot be opened");
  FolderLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno == ENOTSUP || errno == ENOLCK) return lock;
  if (errno != EWOULDBLOCK) return io_error(folder, "cannot be locked");
  return Error{ErrorCode::Io,
               fmt::format("{}: another program is patching this folder", shown_path(folder))};
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

// --- an edit -------------------------------------------------------------------------------------

Result<FolderEdit> FolderEdit::begin(const fs::path& folder) {
  auto lock = FolderLock::take(folder);
  if (!lock) return lock.error();
  FolderEdit edit(folder, std::move(*lock));
  auto journal = read_patch_journal(folder, &edit.had_journal_);
  if (!journal) return journal.error();
  edit.journal_ = std::move(*journal);
  if (edit.had_journal_ && !edit.journal_.whole)
    return Error{ErrorCode::BadFormat,
                 fmt::format("{}: {}", shown_path(folder), unfinished_hint(folder))};
  return edit;
}

FolderEdit::~FolderEdit() {
  if (folder_.empty() || begun_) return;
  remove_own(own("staged"));
  remove_own(own("previous"));
  if (!had_journal_) remove_own(folder_ / kPatchFolder);
}

Result<fs::path> FolderEdit::stage(const std::string& name) {
  check(!leaves_folder(name), "an edit stays in its folder");
  if (steps_.empty() || !is_there(own("staged"))) {
    remove_own(own("staged"));  // of a killed program
    for (const fs::path& each : {folder_ / kPatchFolder, own("staged")})
      if (auto made = make_folder(each); !made) return made.error();
  }
  Step step;
  step.name = name;
  step.staged = own("staged") / fmt::format("{}.new", steps_.size());
  steps_.push_back(step);
  return step.staged;
}

void FolderEdit::remove(const std::string& name) {
  check(!leaves_folder(name), "an edit stays in its folder");
  steps_.push_back({.name = name, .staged = {}, .previous = {}, .was_there = true});
}

// The journal is JSON: names that are no UTF-8 would come back as others.
Result<void> FolderEdit::check_names() const {
  for (const Step& step : steps_) {
    std::error_code failure;
    const fs::path target = fs::read_symlink(folder_ / step.name, failure);  // empty: no link
    if (is_utf8(step.name) && is_utf8(target.native())) continue;
    return Error{ErrorCode::BadFormat,
                 fmt::format("{}: a patch would replace it, and its name or what it leads to is no "
                             "UTF-8; rename it; nothing was changed",
                             shown_path(folder_ / step.name))};
  }
  return {};
}

// Links away what steps will replace, and enters into the journal what is new there.
Result<void> FolderEdit::keep_pristine(PatchJournal& journal) {
  for (const char* name : {"original", "previous"})
    if (auto made = make_folder(own(name)); !made) return made;
  for (Step& step : steps_) {
    const fs::path live = folder_ / step.name;
    step.was_there = is_there(live);
    step.previous = own("previous") / fmt::format("{}.old", &step - steps_.data());
    if (step.was_there)
      if (auto linked = link_away(live, step.previous); !linked) return linked;
    if (journal.files.contains(step.name)) continue;
    PristineFile& entry = journal.files[step.name];
    if (!step.was_there) continue;
    std::error_code failure;
    if (fs::is_symlink(fs::symlink_status(live, failure))) {
      entry.was = Was::Link;
      entry.target = fs::read_symlink(live, failure).native();
    } else {
      const auto file = open_weight_file(live, step.name);
      if (!file) return file.error();
      entry.was = Was::File;
      entry.sha256 = cached_sha256(*file);
    }
    entry.kept = fmt::format("original/{}-{}.original", journal.files.size(),
                             fs::path(step.name).filename().native());
    if (auto linked = link_away(live, own(entry.kept)); !linked) return linked;
  }
  for (const fs::path& each :
       {own("staged"), own("original"), own("previous"), folder_ / kPatchFolder, folder_})
    if (auto synced = sync_folder(each); !synced) return synced;
  return {};
}

Result<void> FolderEdit::apply() {
  std::set<fs::path> touched;
  for (const Step& step : steps_) {
    const fs::path live = folder_ / step.name;
    auto done = step.staged.empty() ? remove_file(live) : move_file(step.staged, live);
    if (!done) return done;
    touched.insert(live);
  }
  return sync_folders_of(folder_, touched);
}

Result<void> FolderEdit::take_back() {
  std::set<fs::path> touched;
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    const fs::path live = folder_ / step->name;
    auto done = !step->was_there           ? remove_file(live)
                : is_there(step->previous) ? move_file(step->previous, live)
                                           : Result<void>();
    if (!done) return done;
    touched.insert(live);
  }
  if (auto synced = sync_folders_of(folder_, touched); !synced) return synced;
  auto done = had_journal_ ? write_journal(folder_, journal_) : remove_file(own(kJournal));
  if (done) begun_ = false;
  return done;
}

Result<void> FolderEdit::commit(const std::function<Result<void>()>& look) {
  if (auto known = check_names(); !known) return known;
  PatchJournal journal = journal_;
  if (auto kept = keep_pristine(journal); !kept) return kept;
  journal.whole = false;
  if (journal.trunk_sha256.empty()) journal.trunk_sha256 = trunk_sha256_;
  begun_ = true;  // from here on it may be on disk
  auto done = write_journal(folder_, journal);
  if (done) done = apply();
  if (done) done = look();
  if (done) {
    journal.whole = true;
    done = write_journal(folder_, journal);
  }
  if (!done) {
    if (auto back = take_back(); !back)
      return Error{done.error().code,
                   fmt::format("{}; {}", done.error().message, unfinished_hint(folder_))};
    return done;
  }
  begun_ = false;
  had_journal_ = true;
  journal_ = std::move(journal);
  return {};
}

// --- back ----------------------------------------------------------------------------------------

namespace {

Result<void> restore_file(const fs::path& folder, const std::string& name, const PristineFile& file,
                          RestoredFolder& done) {
  const fs::path live = folder / name;
  if (file.was == Was::Absent) {
    if (is_there(live)) done.removed.push_back(name);
    return remove_file(live);
  }
  const fs::path kept = folder / kPatchFolder / file.kept;
  if (!is_there(kept)) return {};  // it stands in its place already; it is looked at below
  done.restored.push_back(name);
  return move_file(kept, live);
}

Result<void> check_file(const fs::path& folder, const std::string& name, const PristineFile& file) {
  const fs::path live = folder / name;
  std::error_code failure;
  bool same = true;
  if (file.was == Was::Link) {
    same = fs::read_symlink(live, failure).native() == file.target && !failure;
  } else if (file.was == Was::File) {
    const auto opened = open_weight_file(live, name);
    same = opened && !fs::is_symlink(fs::symlink_status(live, failure)) &&
           cached_sha256(*opened) == file.sha256;
  }
  if (same) return {};
  return Error{ErrorCode::BadFormat,
               fmt::format("{}: not what it was before the patch (SHA-256 {}), and the copy kept "
                           "in {} is gone; fetch the file again",
                           shown_path(live), file.sha256, kPatchFolder)};
}

// Every file back, and looked at.
Result<void> restore_files(const fs::path& folder, const PatchJournal& journal,
                           RestoredFolder& done) {
  std::set<fs::path> touched;
  for (const auto& [name, file] : journal.files) {
    if (auto restored = restore_file(folder, name, file, done); !restored) return restored;
    touched.insert(folder / name);
  }
  if (auto synced = sync_folders_of(folder, touched); !synced) return synced;
  for (const auto& [name, file] : journal.files)
    if (auto same = check_file(folder, name, file); !same) return same;
  return remove_file(folder / kPatchFolder / kJournal);
}

}  // namespace

Result<RestoredFolder> restore_folder(const fs::path& folder) {
  auto lock = FolderLock::take(folder);
  if (!lock) return lock.error();
  bool exists = false;
  auto journal = read_patch_journal(folder, &exists);
  if (!journal) return journal.error();
  const fs::path own = folder / kPatchFolder;
  RestoredFolder done;
  if (!exists) {
    if (!is_there(own))
      return Error{
          ErrorCode::NotFound,
          fmt::format("{}: nothing to take out, this folder was not patched", shown_path(folder))};
    remove_own(own);  // of a program killed before it changed anything
    return done;
  }
  if (journal->whole) {
    journal->whole = false;
    if (auto written = write_journal(folder, *journal); !written) return written.error();
  }
  if (auto restored = restore_files(folder, *journal, done); !restored)
    return Error{restored.error().code,
                 fmt::format("{}; {}", restored.error().message, unfinished_hint(folder))};
  remove_own(own);
  (void)sync_folder(folder);
  return done;
}

}  // namespace paceline
