// SHA-256 (FIPS 180-4), to tell which bytes a model is made of.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace paceline {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes);
  // The digest of all bytes so far, as 64 lower-case hex digits. Ends the object's use.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256(std::span<const std::byte> bytes);

}  // namespace paceline
