// Changes to a model folder that appear together and can be taken back to the byte.
//
// What belongs to it lies in FOLDER/paceline-patch, out of reach of loaders that take every
// *.safetensors of the folder:
//   journal.json   the files that differ from the pristine folder, what each of them was, its
//                  SHA-256, and whether the change is whole ("patched") or not ("unfinished")
//   original/      the pristine files: hard links (copies where there are none), or the links that
//                  they were; a second edit never touches them
//   staged/        new files before they are put in their place
//   previous/      what an edit replaces, until it is whole
//
// Order of an edit: new files are written and synced; pristine and replaced files are linked away;
// the journal says "unfinished"; files are renamed into place, one by one; the journal says
// "patched". A loader refuses the folder while the journal says "unfinished"
// (io/folder.h), so at every moment, and wherever power goes, the folder is what it was, what it
// shall be, or refused; and restore_folder() brings the pristine one back. Files are replaced by
// rename alone: programs that mapped one keep it, and links are replaced, not followed.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace paceline {

inline constexpr const char* kPatchFolder = "paceline-patch";

// What a file of a patched folder was before.
struct PristineFile {
  enum class Was { Absent, File, Link };

  Was was = Was::Absent;
  std::string sha256;  // of a File
  std::string target;  // of a Link
  std::string kept;    // where it lies below kPatchFolder
};

struct PatchJournal {
  bool whole = false;
  std::string trunk_sha256;                   // as the editor gave it at the first edit
  std::map<std::string, PristineFile> files;  // by name in the folder
};

// None where the folder was never edited. BadFormat for a journal that is not one of ours.
Result<PatchJournal> read_patch_journal(const std::filesystem::path& folder, bool* exists);

// BadFormat, with what to do, while an edit of the folder is not whole.
Result<void> refuse_unfinished(const std::filesystem::path& folder);

// Io, naming all that stand in the way, where the folder or files in it may not be replaced. Links
// do not: it is not what they lead to that changes.
Result<void> check_writable(const std::filesystem::path& folder,
                            const std::vector<std::string>& names);

// Holds a folder against a second editor while it lives; killed, it holds nothing.
class FolderLock {
 public:
  static Result<FolderLock> take(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

class FolderEdit {
 public:
  // Refuses a folder whose edit is not whole, and one that another program edits. Removes what a
  // killed one has staged.
  static Result<FolderEdit> begin(const std::filesystem::path& folder);
  ~FolderEdit();
  FolderEdit(FolderEdit&&) noexcept = default;
  FolderEdit& operator=(FolderEdit&&) noexcept = default;

  const PatchJournal& journal() const { return journal_; }
  // For the journal.
  void set_trunk_sha256(std::string sha256) { trunk_sha256_ = std::move(sha256); }

  // Where the new file `name` is to be written; it takes its place in commit(), in the order of
  // these calls and of remove().
  Result<std::filesystem::path> stage(const std::string& name);
  void remove(const std::string& name);
  // All of it, or nothing: any failure, that of `check` too, takes everything back. `check` looks
  // at the folder as it will be.
  Result<void> commit(const std::function<Result<void>()>& check);

 private:
  struct Step {
    std::string name;
    std::filesystem::path staged;  // empty: the file goes
    std::filesystem::path previous;
    bool was_there = false;
  };

  FolderEdit(std::filesystem::path folder, FolderLock lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}

  std::filesystem::path own(const std::string& name) const { return folder_ / kPatchFolder / name; }
  Result<void> check_names() const;
  Result<void> keep_pristine(PatchJournal& journal);
  Result<void> apply();
  Result<void> take_back();

  std::filesystem::path folder_;
  FolderLock lock_;
  PatchJournal journal_;  // as it was on disk
  std::string trunk_sha256_;
  bool had_journal_ = false;
  bool begun_ = false;  // the journal on disk is "unfinished"
  std::vector<Step> steps_;
};

struct RestoredFolder {
  std::vector<std::string> restored, removed;  // names in the folder
};

// Brings the pristine folder back, whether the edit was whole or not, compares every file with the
// digest recorded before the first edit, and removes kPatchFolder. NotFound where nothing was
// edited. May be repeated after a failure or a kill.
Result<RestoredFolder> restore_folder(const std::filesystem::path& folder);

}  // namespace paceline
