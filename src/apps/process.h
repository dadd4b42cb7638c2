// What the program owes its surroundings before and after a command.
#pragma once

namespace paceline::apps {

// Occupies closed standard streams, so that no file of ours becomes one of them and no text lands
// in that file: reads and writes keep failing. A mapped file that is cut short while it is read
// ends the program with one sentence and exit 2 instead of a crash.
void prepare_process();

// Writes out what standard output still holds. The status, or that of an error where it was success
// and not all text could be written.
int finish_output(int status);

}  // namespace paceline::apps
