// A command's flags: each binds to a field, with its help beside it. A wrapper over CLI11 from
// which no exception escapes and in which every fault is one sentence.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace paceline::apps {

class Flags {
 public:
  // command: "generate"; example: a command line that works, shown below the help.
  Flags(std::string command, const std::string& what, const std::string& example);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  // The flags that follow stand under this heading.
  void group(std::string heading);
  // An argument without a name. It must be given.
  void positional(std::string name, std::string& field, const std::string& help);
  // One that may be left away, behind those that must be given.
  void optional_positional(std::string name, std::optional<std::string>& field,
                           const std::string& help);
  // At least one, and as many more as are given.
  void positionals(std::string name, std::vector<std::string>& field, const std::string& help);
  // Present or not.
  void flag(const std::string& name, bool& field, const std::string& help);
  // Any text, the empty one too.
  void text(const std::string& name, std::string placeholder, std::optional<std::string>& field,
            const std::string& help);
  // The same, and it may be given several times.
  void texts(const std::string& name, std::string placeholder, std::vector<std::string>& field,
             const std::string& help);
  // A value that `take` reads; its error is the sentence behind the flag's name: "wants ...".
  void value(const std::string& name, std::string placeholder,
             std::function<Result<void>(std::string_view)> take, const std::string& help);
  // A whole number in [lowest, highest].
  void integer(const std::string& name, int& field, int lowest, int highest,
               const std::string& help);
  // One of a few words; the field becomes the index of the word.
  void choice(const std::string& name, std::vector<std::string> words, int& field,
              const std::string& help);
  // A flag without value that this version lacks.
  void absent(const std::string& name, std::string why, const std::string& help);

  enum class Outcome { Run, HelpShown };
  Result<Outcome> parse(std::span<const char* const> args);

  const std::string& command() const { return command_; }

 private:
  struct State;

  std::string command_;
  std::unique_ptr<State> state_;
};

}  // namespace paceline::apps
