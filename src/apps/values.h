// Values as people write them on a command line, and the exit statuses that scripts rely on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace paceline::apps {

inline constexpr int kExitSuccess = 0;
inline constexpr int kExitCheckFailed = 1;    // a check said no
inline constexpr int kExitBadInput = 2;       // bad usage, a bad file
inline constexpr int kExitUndecided = 3;      // of trace-compare alone
inline constexpr int kExitInterrupted = 130;  // Ctrl-C

// Prints one line, "warning: ..."; what a file says of itself cannot move the cursor.
void warn(std::string_view text);
// Prints one line, "paceline COMMAND: sentence", and returns the exit status of the error's kind.
int fail(std::string_view command, const Error& error);

// "wants 0 to 16, not '99'": the second half of a sentence that begins with a flag.
Error wants(std::string_view wanted, std::string_view found);

// A whole number in [lowest, highest], nothing before or behind it.
Result<int64_t> parse_integer(std::string_view text, int64_t lowest, int64_t highest);
// A finite number in [lowest, highest].
Result<double> parse_number(std::string_view text, double lowest, double highest);
// Token ids, separated by commas, spaces allowed: "1, 2, 3". At least one.
Result<std::vector<TokenId>> parse_ids(std::string_view text);

// "1,2,3"
std::string join_ids(const std::vector<TokenId>& ids);

}  // namespace paceline::apps
