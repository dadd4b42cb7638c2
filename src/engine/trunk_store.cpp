#include "engine/trunk_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "engine/head_search.h"
#include "io/shown.h"

namespace paceline {
namespace fs = std::filesystem;
namespace {

fs::path learnt_folder() {
  const fs::path heads = user_heads_folder();
  return heads.empty() ? fs::path() : heads.parent_path() / "stores";
}

bool is_there(const fs::path& path) {
  std::error_code failure;
  return fs::exists(path, failure);
}

// Whether a file could be put there, its folders made where they are missing: before an answer is
// written that would be lost.
Result<void> check_can_keep(const fs::path& file) {
  std::error_code ignored;
  fs::path folder = fs::absolute(file, ignored).parent_path();
  while (folder.has_relative_path() && !is_there(folder)) folder = folder.parent_path();
  const int fault = !fs::is_directory(folder, ignored)           ? ENOTDIR
                    : ::access(folder.c_str(), W_OK | X_OK) != 0 ? errno
                                                                 : 0;
  if (fault == 0) return {};
  return Error{ErrorCode::Io,
               fmt::format("{}: what is learnt cannot be kept there: {}: {}", shown_path(file),
                           shown_path(folder), std::strerror(fault))};
}

class Search {
 public:
  Search(const Checkpoint& checkpoint, int vocab_size, std::vector<std::string>& warnings)
      : checkpoint_(checkpoint), vocab_size_(vocab_size), warnings_(warnings) {}

  Result<void> take_asked(const fs::path& file, bool learn) {
    auto store = NgramStore::open(file);
    if (!store && learn && store.error().code == ErrorCode::NotFound) return {};
    if (!store && learn)
      return Error{store.error().code,
                   store.error().message + "; name another file, or move this one away"};
    if (!store) return store.error();
    if ((*store)->vocab_size() != vocab_size_) {
      return Error{ErrorCode::BadFormat,
                   fmt::format("{}: a store for a vocabulary of {}, and this model has {} tokens",
                               shown_path(file), (*store)->vocab_size(), vocab_size_)};
    }
    if ((*store)->trunk_sha256() != sha256()) {
      const std::string made =
          fmt::format("{} holds the answers of a model with the SHA-256 {}, and this one has {}",
                      shown_path(file), (*store)->trunk_sha256(), sha256());
      if (learn) return Error{ErrorCode::BadFormat, made + "; it learns from that one alone"};
      warnings_.push_back(made + "; what it drafts may seldom stand");
    }
    found_ = {std::move(*store), file, {}, {}};
    return {};
  }

  void look_around() {
    if (is_there(learnt_folder())) take_found(learnt_store_file(sha256()));
    for (const fs::path& folder : heads_folders())
      for (const fs::path& file : files_in(folder, ".plstore"))
        if (found_.store == nullptr) take_found(file);
  }

  // The digest is computed only where somebody asks for it.
  const std::string& sha256() {
    if (sha256_.empty()) sha256_ = checkpoint_.trunk_sha256();
    return sha256_;
  }
  TrunkStore& found() { return found_; }

 private:
  void take_found(const fs::path& file) {
    if (!is_there(file)) return;
    auto store = NgramStore::open(file);
    if (!store) {
      warnings_.push_back(store.error().message + "; it is left aside");
      return;
    }
    if ((*store)->trunk_sha256() != sha256() || (*store)->vocab_size() != vocab_size_) return;
    found_ = {std::move(*store), file, {}, {}};
  }

  const Checkpoint& checkpoint_;
  int vocab_size_;
  std::vector<std::string>& warnings_;
  std::string sha256_;
  TrunkStore found_;
};

}  // namespace

fs::path learnt_store_file(const std::string& trunk_sha256) {
  const fs::path folder = learnt_folder();
  return folder.empty() ? fs::path() : folder / (trunk_sha256 + ".plstore");
}

Result<TrunkStore> open_trunk_store(const Checkpoint& checkpoint, int vocab_size,
                                    const fs::path& asked, bool learn,
                                    std::vector<std::string>& warnings) {
  Search search(checkpoint, vocab_size, warnings);
  const fs::path named = learn && asked.empty() ? learnt_store_file(search.sha256()) : asked;
  if (learn && named.empty()) {
    return Error{
        ErrorCode::NotFound,
        "there is no home folder to keep what is learnt in; name a file with --store FILE"};
  }
  if (learn)
    if (auto can = check_can_keep(named); !can) return can.error();
  if (!named.empty())
    if (auto taken = search.take_asked(named, learn); !taken) return taken.error();
  if (asked.empty() && search.found().store == nullptr) search.look_around();
  TrunkStore& found = search.found();
  if (!learn) return std::move(found);
  found.learner_file = named;
  found.learner.emplace(search.sha256(), vocab_size);
  return std::move(found);
}

}  // namespace paceline
