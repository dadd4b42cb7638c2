// JSON from files, as a document that may be copied, compared and written.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace paceline {

inline constexpr int kDeepestNesting = 256;  // known files stay below 20

// Whether brackets stand in more others than that. Reading such a text need not take stack;
// copying, comparing and writing its document does, and 100,000 levels take more than there is.
bool nests_too_deep(std::string_view json);

// Discarded where the text is no JSON or nests too deep.
template <class Json>
Json parse_json(std::string_view text) {
  if (nests_too_deep(text)) return Json(Json::value_t::discarded);
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

}  // namespace paceline
