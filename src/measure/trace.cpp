#include "measure/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/softmax.h"
#include "kernels/top_logits.h"
#include "measure/reading.h"
#include "models/dense_layer.h"

namespace paceline::measure {
namespace {

// Where `id` stands among the logits kept; as many as there are where it does not.
size_t rank_of(const TracePoint& point, TokenId id) {
  const auto at = std::find_if(point.top.begin(), point.top.end(),
                               [&](const auto& entry) { return entry.first == id; });
  return static_cast<size_t>(at - point.top.begin());
}

// Whether a logit that both kept differs, or the sum of all where both have one.
bool moves(const TracePoint& a, const TracePoint& b) {
  const size_t kept = std::min(a.top.size(), b.top.size());
  return !std::equal(a.top.begin(), a.top.begin() + static_cast<ptrdiff_t>(kept), b.top.begin()) ||
         (std::isfinite(a.log_sum) && std::isfinite(b.log_sum) && a.log_sum != b.log_sum);
}

struct Divergence {
  double nats = 0;
  double share = 0;
};

// Over the tokens that both kept, and one more that stands for all others.
Divergence divergence(const TracePoint& reference, const TracePoint& candidate) {
  Divergence result;
  double other_share = 0;
  for (const auto& [id, logit] : reference.top) {
    const size_t rank = rank_of(candidate, id);
    if (rank == candidate.top.size()) continue;
    const double log_p = static_cast<double>(logit) - reference.log_sum;
    const double log_q = static_cast<double>(candidate.top[rank].second) - candidate.log_sum;
    result.nats += std::exp(log_p) * (log_p - log_q);
    result.share += std::exp(log_p);
    other_share += std::exp(log_q);
  }
  constexpr double kLeast = 1e-12;  // below it the rest is rounding
  const double p = 1 - result.share;
  const double q = std::max(1 - other_share, kLeast);
  if (p > kLeast) result.nats += p * std::log(p / q);
  return result;
}

}  // namespace

float TracePoint::gap() const {
  return top.size() > 1 ? top[0].second - top[1].second : std::numeric_limits<float>::infinity();
}

Result<void> trace_text(const Engine& engine, std::span<const TokenId> text,
                        const TraceOptions& options,
                        const std::function<Result<void>(const TracePoint&)>& take) {
  const auto piece = static_cast<size_t>(options.piece > 0 ? options.piece : engine.context());
  if (piece > static_cast<size_t>(engine.context()))
    return Error{ErrorCode::BadUsage, fmt::format("pieces of {} tokens are longer than the context "
                                                  "of {}",
                                                  piece, engine.context())};
  const auto shortest = static_cast<size_t>(options.prefill) + 1;
  if (std::min(piece, text.size()) < shortest)
    return Error{ErrorCode::BadUsage,
                 fmt::format("a prefill of {} tokens leaves nothing to trace of a text of {} in "
                             "pieces of {}",
                             options.prefill, text.size(), piece)};
  // The rows of a block are looked at on the threads that the trunk computes on.
  const DenseTrunk* trunk = engine.model().dense_trunk();
  ThreadPool* const pool = trunk != nullptr ? trunk->pool.get() : nullptr;
  std::vector<TracePoint> points(static_cast<size_t>(options.width));
  std::optional<Error> fault;
  int piece_index = 0;
  for (size_t begin = 0; begin < text.size() && !fault; begin += piece, ++piece_index) {
    const auto ids = text.subspan(begin, std::min(piece, text.size() - begin));
    if (ids.size() < shortest) break;
    const auto see = [&](int first, const TrunkOut& out) {
      if (fault) return;
      const auto look = [&](int row) {
        const auto logits = out.logits.row(row);
        TracePoint& point = points[row];
        top_logits(logits, options.top, point.top);
        point.piece = piece_index;
        point.position = first + row;
        point.next = ids[first + row + 1];
        point.log_sum = static_cast<double>(log_sum_exp(logits));
        point.nll = point.log_sum - static_cast<double>(logits[point.next]);
      };
      const int rows = out.logits.rows;
      if (pool != nullptr)
        pool->run(rows, [&](int /*thread*/, int row) { look(row); });
      else
        for (int row = 0; row < rows; ++row) look(row);
      for (const TracePoint& point : std::span(points).first(rows)) {
        if (point.top.empty() || !std::isfinite(point.top[0].second)) {
          fault = Error{ErrorCode::BadFormat,
                        fmt::format("the logits behind token {} of the text have no finite maximum",
                                    begin + static_cast<size_t>(point.position))};
        } else if (auto taken = take(point); !taken) {
          fault = taken.error();
        }
        if (fault) return;
      }
    };
    const auto stop = [&] {
      if (options.progress)
        options.progress(static_cast<double>(begin) / static_cast<double>(text.size()));
      return fault || (options.stop && options.stop());
    };
    const ReadingOptions reading = {.first = std::max(options.prefill - 1, 0),
                                    .width = options.width,
                                    .drafts_fall = true,
                                    .stop = stop};
    auto read = read_blocks(engine, ids, reading, see);
    if (!read && !fault) return read;
  }
  if (fault) return *fault;
  return {};
}

double TraceComparison::disagreement() const {
  return positions > 0 ? static_cast<double>(differing) / static_cast<double>(positions) : 0;
}

double TraceComparison::disagreement_decided() const {
  return decided > 0 ? static_cast<double>(differing_decided) / static_cast<double>(decided) : 0;
}

double TraceComparison::quantile(double share) const {
  if (deltas.empty()) return 0;
  const auto last = static_cast<double>(deltas.size() - 1);
  return static_cast<double>(deltas[static_cast<size_t>(std::ceil(share * last))]);
}

TraceComparison::Verdict TraceComparison::verdict() const {
  if (differing == 0) return Verdict::Same;
  return differing_decided == 0 ? Verdict::Undecided : Verdict::Decided;
}

const char* to_string(TraceComparison::Verdict verdict) {
  switch (verdict) {
    case TraceComparison::Verdict::Same:
      return "same";
    case TraceComparison::Verdict::Undecided:
      return "undecided";
    case TraceComparison::Verdict::Decided:
      return "decided";
  }
  return "unknown";
}

Result<TraceComparison> compare_traces(const std::vector<TracePoint>& reference,
                                       const std::vector<TracePoint>& candidate) {
  if (reference.size() != candidate.size() || reference.empty())
    return Error{ErrorCode::BadUsage,
                 fmt::format("traces over the same rows are compared, not {} and {} rows",
                             reference.size(), candidate.size())};
  TraceComparison result;
  size_t kept = 0;
  for (const TracePoint& point : candidate) kept = std::max(kept, point.top.size());
  result.rank_of_reference.assign(kept + 1, 0);
  bool sums = true;
  double kl = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const TracePoint& a = reference[i];
    const TracePoint& b = candidate[i];
    if (a.piece != b.piece || a.position != b.position || a.next != b.next)
      return Error{ErrorCode::BadUsage,
                   fmt::format("row {} of the traces is not the same: piece {} position {} before "
                               "token {}, and piece {} position {} before token {}",
                               i + 1, a.piece, a.position, a.next, b.piece, b.position, b.next)};
    const float gap = a.gap();
    const auto above =
        std::upper_bound(TraceComparison::kGaps.begin(), TraceComparison::kGaps.end(), gap);
    const auto bucket =
        static_cast<size_t>(std::max<ptrdiff_t>(above - TraceComparison::kGaps.begin() - 1, 0));
    const bool decided = gap >= TraceComparison::kDecided;
    const bool differs = a.top[0].first != b.top[0].first;
    ++result.positions;
    if (moves(a, b)) ++result.moved;
    ++result.by_gap[bucket];
    if (decided) ++result.decided;
    if (differs) {
      ++result.differing;
      ++result.differing_by_gap[bucket];
      if (decided) ++result.differing_decided;
    }
    const size_t rank = rank_of(b, a.top[0].first);
    const bool found = rank < b.top.size();
    ++result.rank_of_reference[found ? rank : kept];
    if (found) result.deltas.push_back(std::fabs(a.top[0].second - b.top[rank].second));
    result.reference_nll += a.nll;
    result.candidate_nll += b.nll;
    sums = sums && std::isfinite(a.log_sum) && std::isfinite(b.log_sum);
    if (!sums) continue;
    const Divergence row = divergence(a, b);
    kl += row.nats;
    result.kl_share += row.share;
  }
  std::sort(result.deltas.begin(), result.deltas.end());
  const auto rows = static_cast<double>(result.positions);
  result.kl_share = sums ? result.kl_share / rows : 0;
  if (sums) result.kl = std::max(kl / rows, 0.0);
  return result;
}

}  // namespace paceline::measure
