#include "base/numerics.h"

namespace paceline {

const char* to_string(Numerics numerics) {
  return numerics == Numerics::Portable ? "portable" : "amx";
}

}  // namespace paceline
