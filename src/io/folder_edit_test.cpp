#include "io/folder_edit.h"

#include "io/folder.h"
#include "io/output_file.h"
#include "io/test_files.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

const std::string kWeights =
    safetensors_bytes(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "four");

// Names below the folder and what the files hold.
std::map<std::string, std::string> contents_of(const fs::path& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      contents[entry.path().lexically_relative(folder).native()] = read_whole(entry.path());
  return contents;
}

// new: "2"; old: "1" before, goes; kept: "1" to "2".
Result<void> edit_three(const fs::path& folder, const std::function<Result<void>()>& look) {
  auto edit = FolderEdit::begin(folder);
  if (!edit) return edit.error();
  for (const char* name : {"new", "kept"}) {
    const auto staged = edit->stage(name);
    if (!staged) return staged.error();
    if (auto written = write_text_file(*staged, "2"); !written) return written;
  }
  edit->remove("old");
  return edit->commit(look);
}

struct EditedFolder {
  TemporaryFolder folder;
  std::map<std::string, std::string> before;

  EditedFolder() {
    folder.write("kept", "1");
    folder.write("old", "1");
    folder.write("model.safetensors", kWeights);
    before = contents_of(folder.path());
  }
};

TEST(FolderEdit, FilesChangeTogetherAndGoBack) {
  const EditedFolder at;
  bool looked = false;
  const auto done = edit_three(at.folder.path(), [&]() -> Result<void> {
    looked = true;
    EXPECT_EQ(read_whole(at.folder.path() / "new"), "2");
    EXPECT_EQ(read_whole(at.folder.path() / "kept"), "2");
    EXPECT_FALSE(fs::exists(at.folder.path() / "old"));
    // Nobody else loads it meanwhile.
    expect_refused(open_folder(at.folder.path()), ErrorCode::BadFormat, {"unfinished", "unpatch"});
    EXPECT_TRUE(open_folder(at.folder.path(), Unfinished::Allowed));
    return {};
  });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(looked);
  EXPECT_TRUE(open_folder(at.folder.path()));
  bool exists = false;
  const auto journal = read_patch_journal(at.folder.path(), &exists);
  ASSERT_TRUE(journal);
  EXPECT_TRUE(exists && journal->whole);
  EXPECT_EQ(journal->files.size(), 3u);
  EXPECT_EQ(journal->files.at("new").was, PristineFile::Was::Absent);

  const auto restored = restore_folder(at.folder.path());
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->restored, (std::vector<std::string>{"kept", "old"}));
  EXPECT_EQ(restored->removed, (std::vector<std::string>{"new"}));
  EXPECT_EQ(contents_of(at.folder.path()), at.before);
  EXPECT_FALSE(fs::exists(at.folder.path() / kPatchFolder));
}

TEST(FolderEdit, ALookThatFindsFaultTakesEverythingBack) {
  const EditedFolder at;
  const auto no = []() -> Result<void> { return Error{ErrorCode::BadFormat, "it looks wrong"}; };
  expect_refused(edit_three(at.folder.path(), no), ErrorCode::BadFormat, {"it looks wrong"});
  EXPECT_EQ(contents_of(at.folder.path()), at.before);

  // A second edit goes back to the first, not further.
  ASSERT_TRUE(edit_three(at.folder.path(), [] { return Result<void>(); }));
  at.folder.write("old", "3");
  const auto first = contents_of(at.folder.path());
  EXPECT_FALSE(edit_three(at.folder.path(), no));
  EXPECT_EQ(contents_of(at.folder.path()), first);
  ASSERT_TRUE(restore_folder(at.folder.path()));
  EXPECT_EQ(contents_of(at.folder.path()), at.before);
}

TEST(FolderEdit, OneEditorAtATime) {
  const EditedFolder at;
  const auto held = FolderLock::take(at.folder.path());
  ASSERT_TRUE(held);
  const auto nothing = [] { return Result<void>(); };
  expect_refused(edit_three(at.folder.path(), nothing), ErrorCode::Io, {"another program"});
  expect_refused(restore_folder(at.folder.path()), ErrorCode::Io, {"another program"});
  EXPECT_EQ(contents_of(at.folder.path()), at.before);
}

TEST(FolderEdit, AKeptFileThatChangedIsTold) {
  const EditedFolder at;
  ASSERT_TRUE(edit_three(at.folder.path(), [] { return Result<void>(); }));
  bool exists = false;
  const auto journal = read_patch_journal(at.folder.path(), &exists);
  fs::remove(at.folder.path() / kPatchFolder / journal->files.at("kept").kept);
  expect_refused(restore_folder(at.folder.path()), ErrorCode::BadFormat,
                 {"kept: not what it was", "unfinished patch"});
  expect_refused(open_folder(at.folder.path()), ErrorCode::BadFormat, {"unfinished patch"});
  at.folder.write("kept", "1");  // fetched again
  EXPECT_TRUE(restore_folder(at.folder.path()));
  EXPECT_EQ(contents_of(at.folder.path()), at.before);
}

}  // namespace
}  // namespace paceline
