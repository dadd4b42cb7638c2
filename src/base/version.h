// What this build is called.
#pragma once

namespace paceline {

const char* version();  // "0.1.0"
const char* commit();   // short hash, "-dirty" behind it where the tree had changes

}  // namespace paceline
