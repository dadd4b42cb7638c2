#include "apps/flags.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <limits>

#include "apps/say.h"
#include "apps/values.h"
#include "io/shown.h"

namespace paceline::apps {
namespace {

constexpr int kMostPositionals = 64;

}  // namespace

// What was given for one flag, read after CLI11 has sorted the arguments.
struct Flags::State {
  struct Bound {
    std::string name;
    CLI::Option* option = nullptr;
    bool repeatable = false;
    std::function<Result<void>(std::string_view)> take;
  };

  CLI::App app;
  std::string heading = "Options";
  std::vector<Bound> bound;
  std::vector<std::string> required;  // names of positionals

  CLI::Option* add(const std::string& name, std::string placeholder, const std::string& help) {
    auto* option = app.add_option(
        name, [](const CLI::results_t&) { return true; }, help);
    option->type_name(std::move(placeholder))->type_size(1)->expected(1)->allow_extra_args(false);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->group(heading);
    return option;
  }
};

Flags::Flags(std::string command, const std::string& what, const std::string& example)
    : command_(std::move(command)), state_(std::make_unique<State>()) {
  CLI::App& app = state_->app;
  app.name("paceline " + command_);
  app.description(what);
  app.footer("Example:\n  " + example);
  app.set_help_flag("-h,--help", "show this text");
  app.get_formatter()->column_width(34);
  app.allow_extras(true);  // we say ourselves what is not known
}

Flags::~Flags() = default;

void Flags::group(std::string heading) { state_->heading = std::move(heading); }

void Flags::positional(std::string name, std::string& field, const std::string& help) {
  auto* option = state_->add(name, "", help);
  option->group("Arguments");
  state_->required.push_back(name);
  state_->bound.push_back({std::move(name), option, false, [&field](std::string_view given) {
                             field = given;
                             return Result<void>();
                           }});
}

void Flags::optional_positional(std::string name, std::optional<std::string>& field,
                                const std::string& help) {
  auto* option = state_->add(name, "", help);
  option->group("Arguments");
  state_->bound.push_back({std::move(name), option, false, [&field](std::string_view given) {
                             field = given;
                             return Result<void>();
                           }});
}

void Flags::positionals(std::string name, std::vector<std::string>& field,
                        const std::string& help) {
  auto* option = state_->add(name, "...", help);
  option->group("Arguments");
  option->expected(1, kMostPositionals)->allow_extra_args(true);
  state_->required.push_back(name);
  state_->bound.push_back({std::move(name), option, true, [&field](std::string_view given) {
                             field.emplace_back(given);
                             return Result<void>();
                           }});
}

void Flags::flag(const std::string& name, bool& field, const std::string& help) {
  field = false;
  state_->app.add_flag(name, field, help)->group(state_->heading);
}

void Flags::text(const std::string& name, std::string placeholder,
                 std::optional<std::string>& field, const std::string& help) {
  value(
      name, std::move(placeholder),
      [&field](std::string_view given) {
        field = given;
        return Result<void>();
      },
      help);
}

void Flags::texts(const std::string& name, std::string placeholder, std::vector<std::string>& field,
                  const std::string& help) {
  auto* option = state_->add(name, std::move(placeholder), help);
  state_->bound.push_back({name, option, true, [&field](std::string_view given) {
                             field.emplace_back(given);
                             return Result<void>();
                           }});
}

void Flags::value(const std::string& name, std::string placeholder,
                  std::function<Result<void>(std::string_view)> take, const std::string& help) {
  auto* option = state_->add(name, std::move(placeholder), help);
  state_->bound.push_back({name, option, false, std::move(take)});
}

void Flags::integer(const std::string& name, int& field, int lowest, int highest,
                    const std::string& help) {
  value(
      name, "N",
      [&field, lowest, highest](std::string_view given) -> Result<void> {
        const int64_t top = highest == std::numeric_limits<int>::max()
                                ? std::numeric_limits<int64_t>::max()
                                : highest;
        const auto number = parse_integer(given, lowest, top);
        if (!number) return number.error();
        field = static_cast<int>(std::min<int64_t>(*number, highest));
        return {};
      },
      help);
}

void Flags::choice(const std::string& name, std::vector<std::string> words, int& field,
                   const std::string& help) {
  std::string placeholder = fmt::format("{}", fmt::join(words, "|"));
  value(
      name, std::move(placeholder),
      [&field, words = std::move(words)](std::string_view given) -> Result<void> {
        for (size_t i = 0; i < words.size(); ++i) {
          if (given == words[i]) {
            field = static_cast<int>(i);
            return {};
          }
        }
        return wants(fmt::format("one of {}", fmt::join(words, ", ")), given);
      },
      help);
}

void Flags::absent(const std::string& name, std::string why, const std::string& help) {
  auto* option = state_->app.add_flag(name, help)->group(state_->heading);
  state_->bound.push_back(
      {name, option, true, [why = std::move(why)](std::string_view) {
         return Result<void>(Error{ErrorCode::Unsupported, "cannot be: " + why});
       }});
}

Result<Flags::Outcome> Flags::parse(std::span<const char* const> args) {
  CLI::App& app = state_->app;
  std::vector<std::string> words;  // last first, as CLI11 wants them
  bool only_positionals = false;
  for (const char* arg : args) {
    const std::string word = arg;
    only_positionals = only_positionals || word == "--";
    if (!only_positionals && word.size() > 3 && word.starts_with("--") && word.ends_with('=') &&
        word.find('=') == word.size() - 1) {
      // CLI11 would take the next argument for the value of "--name=".
      words.push_back(word.substr(0, word.size() - 1));
      words.emplace_back();
    } else {
      words.push_back(word);
    }
  }
  std::reverse(words.begin(), words.end());
  const std::string see = fmt::format("; see paceline {} --help", command_);
  try {
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    say("{}", app.help());
    return Outcome::HelpShown;
  } catch (const CLI::ArgumentMismatch& mismatch) {
    const std::string text = mismatch.what();
    return Error{ErrorCode::BadUsage, text.substr(0, text.find(':')) + " wants a value" + see};
  } catch (const std::exception& fault) {
    return Error{ErrorCode::BadUsage, std::string(fault.what()) + see};
  }

  for (const std::string& extra : app.remaining()) {
    if (extra == "--") continue;
    const bool is_flag = extra.size() > 1 && extra[0] == '-';
    return Error{ErrorCode::BadUsage,
                 fmt::format("{} {}{}", is_flag ? "there is no flag" : "cannot use the argument",
                             quoted_name(extra), see)};
  }
  for (const State::Bound& bound : state_->bound) {
    const std::vector<std::string>& given = bound.option->results();
    if (given.size() > 1 && !bound.repeatable) {
      return Error{ErrorCode::BadUsage, bound.name + " is given more than once"};
    }
    for (const std::string& text : given) {
      if (auto taken = bound.take(text); !taken) {
        return Error{taken.error().code, bound.name + " " + taken.error().message};
      }
    }
  }
  for (const State::Bound& bound : state_->bound) {
    for (const std::string& name : state_->required) {
      if (bound.name == name && bound.option->results().empty()) {
        return Error{ErrorCode::BadUsage, fmt::format("{} is missing{}", name, see)};
      }
    }
  }
  return Outcome::Run;
}

}  // namespace paceline::apps
