// Ctrl-C: the first sets a flag that loops look at between steps; the second ends the program.
#pragma once

namespace paceline::apps {

// From now on; calling it again forgets an earlier Ctrl-C and arms anew.
void catch_interrupts();
// Whether Ctrl-C was pressed since.
bool interrupted();

}  // namespace paceline::apps
