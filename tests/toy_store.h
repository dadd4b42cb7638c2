// A store of a toy trunk's own answers.
#pragma once

#include <filesystem>
#include <memory>

#include "base/check.h"
#include "spec/store_builder.h"
#include "tests/toy_engine.h"

namespace paceline {

// Of `n` answers to prompts of one token, 100 tokens each.
inline std::shared_ptr<const NgramStore> toy_store(const Engine& engine, int n = 8) {
  StoreBuilder builder("", engine.model().info().vocab_size);
  for (TokenId first = 0; first < n; ++first)
    builder.add(plain_answer(engine, {.prompt = {first}, .max_tokens = 100}).tokens);
  std::string folder = (std::filesystem::temp_directory_path() / "toy store XXXXXX").native();
  check(mkdtemp(folder.data()) != nullptr, "a temporary folder can be made");
  const auto path = std::filesystem::path(folder) / "toy.plstore";
  check(builder.save(path).has_value(), "a toy's store is saved");
  auto store = NgramStore::open(path);
  check(store.has_value(), "a toy's store opens");
  std::filesystem::remove_all(folder);  // what is mapped stays
  return *store;
}

}  // namespace paceline
