// The commands of the program, a file each. Every one takes its own arguments, without program and
// command name, and returns the exit status.
#pragma once

#include <span>

namespace paceline::apps {

using Args = std::span<const char* const>;

int generate(Args args);
int chat(Args args);
int collect(Args args);
int bench(Args args);
int drift(Args args);
int guard(Args args);
int trace(Args args);
int trace_compare(Args args);
int inspect(Args args);
int probe(Args args);
int replay(Args args);
int store(Args args);
int tokenize(Args args);
int train(Args args);
int parity(Args args);
int synth(Args args);
int run_export(Args args);  // export is a word of the language
int patch(Args args);
int unpatch(Args args);

}  // namespace paceline::apps
