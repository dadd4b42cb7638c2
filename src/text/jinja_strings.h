// Python's string operations, with the origin of every byte kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "text/jinja_builtins.h"
#include "text/jinja_value.h"

namespace paceline::jinja {

enum class Side { Left, Right, Both };

// Without the characters of `chars` at its ends; no `chars`: without white space.
Text stripped(const Text& text, std::optional<std::string_view> chars, Side side);

// Character by character, so that the German sharp s, whose capital form is two letters, stays as
// it is. Title is the method of Python, a capital behind whatever is no letter; Words is the filter
// of Jinja, a capital behind white space, hyphens and opening brackets.
enum class Case { Upper, Lower, Title, Words, Capitalize };
Text with_case(const Text& text, Case which);

// The first `limit` places of `from`, or all; an empty `from` stands between all characters.
Text replaced(Context& context, const Text& text, const Text& from, const Text& to,
              std::optional<int64_t> limit);

// Cut at `separator` (at runs of white space without one), at most `limit` times.
Value split(Context& context, const Text& text, std::optional<std::string_view> separator,
            std::optional<int64_t> limit);
Value split_lines(Context& context, const Text& text);

}  // namespace paceline::jinja
