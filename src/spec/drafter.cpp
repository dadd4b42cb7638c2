#include "spec/drafter.h"

namespace paceline {

const char* to_string(DraftSource source) {
  switch (source) {
    case DraftSource::Lookup:
      return "lookup";
    case DraftSource::Scripted:
      return "scripted";
    case DraftSource::Mtp:
      return "mtp";
  }
  return "unknown";
}

}  // namespace paceline
