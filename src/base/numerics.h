// Which rules the arithmetic follows; docs/numerics.md. Within one of them all bits are the same
// whatever the instruction set, the rows side by side and the threads.
#pragma once

namespace paceline {

enum class Numerics {
  Portable,  // the same bits on every machine
  Amx,       // products with bf16 weights as AMX tiles sum them; everything else as in Portable
};

const char* to_string(Numerics numerics);  // "portable"

}  // namespace paceline
