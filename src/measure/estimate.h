// What was measured several times over each of several prompts: what it comes to, and how far that
// can be trusted.
//
// Two questions have two answers, both with 95 % confidence:
//   interval          where the value lies over these very prompts: what other runs of the same
//                     measurement would give. It comes from how the repeats of a prompt differ,
//                     each by itself, and from how the rounds over all prompts differ, the first
//                     repeats of all, the second ones and so on: a shared machine is for seconds at
//                     a time another one, and what is measured meanwhile moves together.
//   interval_prompts  where it lies over other prompts like these. It comes from how the prompts
//                     differ; a prompt counts once, however often it was repeated.
// Neither sees what is the same for a whole process and different in the next one, such as where
// its memory lies. Where they come from rounds, prompts are to be measured in turn: A B C A B C.
//
// Intervals are value * exp(-t s) to value * exp(t s). s is the standard error of the logarithm,
// with the n - 1 that spreads of few values need: resampling n values as they are is too narrow by
// sqrt((n - 1) / n), by 1.41 times with two repeats (Hesterberg 2015, "narrowness bias"), so
// residuals are widened by its inverse (Davison and Hinkley 1997, 3.3). t is Student's with the
// degrees of freedom that s has (Satterthwaite 1946), because s of two repeats of a few prompts is
// itself only roughly known. What a round has in common adds the variance between rounds, as far as
// it is above that of repeats that know nothing of each other (a component of variance: Searle,
// Casella and McCulloch 1992, chapter 3), with one degree of freedom less than there are rounds.
// Simulated coverage stands in the test.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "measure/statistics.h"

namespace paceline::measure {

struct Estimate {
  double value = 0;
  std::optional<Interval> interval;          // none where a prompt was measured only once
  std::optional<Interval> interval_prompts;  // none of one or two prompts, which say too little
};

// Half the width of an interval, as a share of what it surrounds.
double half_width(const Interval& interval, double value);

template <class T>
using ByPrompt = std::vector<std::vector<T>>;  // repeats of each prompt, at least one

// The median over prompts of the median of each prompt's values, which are above 0: both smooth
// (smooth_median_weights), of logarithms, so that the median of twice as fast and half as fast is
// as fast. s is the standard deviation of 2,000 resamples drawn from the seed: of the repeats
// within every prompt (and then the rounds), or of whole prompts.
Estimate median_of_prompts(const ByPrompt<double>& values, uint64_t seed);

// What was written in some time.
struct Timed {
  double tokens = 0;
  double seconds = 0;
};
struct TimedPair {
  Timed run;
  Timed plain;  // right beside it
};

// All tokens over all seconds of the runs, over the same of the plain ones: long answers and slow
// ones weigh more. s is that of the ratio made linear (Cochran 1977, chapter 6), over repeats
// within prompts and rounds, or over prompts.
Estimate rate_ratio(const ByPrompt<TimedPair>& pairs);

}  // namespace paceline::measure
