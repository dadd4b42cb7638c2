// The AMX instructions on a processor without them, for tests: each raises SIGILL, and the handler
// does what the manual says. So the instructions themselves are tested everywhere: which register
// is which operand, strides, configuration, release.
#pragma once

#include <cstdint>

namespace paceline {

// Installs the handler, once; it answers AMX instructions on any thread. Where the processor has
// AMX nothing is ever raised. Other illegal instructions end the program as before.
void answer_amx_traps();

// How many AMX instructions this thread has raised, and whether it holds configured tiles now.
int64_t amx_traps_answered();
bool amx_tiles_are_configured();

}  // namespace paceline
