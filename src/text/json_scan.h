// Reading the two long lists of tokenizer.json in place: a quarter of a million tokens and half a
// million merges. A document of nodes would take ten times the file's size and a second; this takes
// neither. Everything short in that file is read as a document (nlohmann).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace paceline {

// A place in a JSON text. Each step returns false, or nothing, at text that is no JSON, and then
// the scan has failed for good; a caller looks once, at the end.
class JsonScan {
 public:
  // Views that text() returns point into `source`, or into this object where there were escapes.
  explicit JsonScan(std::string_view source) : source_(source) {}
  JsonScan(const JsonScan&) = delete;
  JsonScan& operator=(const JsonScan&) = delete;

  bool failed() const { return failed_; }
  bool at_end();   // nothing but white space is left
  bool is_text();  // what comes is a string
  bool is_list();  // what comes is a list
  bool is_object();

  // Behind enter('{') or enter('['), next() is true before each entry and false behind the last;
  // the entry of an object begins with key().
  bool enter(char bracket);
  bool next(char closing);
  std::string_view key();
  // The string here without its escapes; surrogates without a partner become U+FFFD.
  std::string_view text();
  // Lets the texts that had escapes live on in `texts` when this object is gone.
  void give_texts_to(std::deque<std::string>& texts) { texts.swap(unescaped_); }
  // The integer here; nothing for any other value, which is then skipped.
  std::optional<int64_t> integer();
  // The text of the value here, which is skipped; brackets and strings in it are well formed.
  std::string_view value();

 private:
  void skip_blanks();
  bool stands(char c);  // behind blanks
  bool expect(char c);
  bool skip_string();
  bool unescape(std::string_view escaped, std::string& out);
  std::string_view fail();

  std::string_view source_;
  size_t pos_ = 0;
  bool failed_ = false;
  bool first_ = true;  // the next entry is the first of its list
  std::deque<std::string> unescaped_;
};

}  // namespace paceline
