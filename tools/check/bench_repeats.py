#!/usr/bin/env python3
"""Whether `paceline bench` repeats: runs of the same program and settings, held against each other.

    bench_repeats.py [--pairs N] [--out FOLDER] PACELINE ARGS...

Runs `PACELINE bench ARGS...` twice N times (10) and pairs the runs, the first with the second, the
third with the fourth. Of every pair and every arm that drafts: both speedups with their intervals
over the prompts that were run, whether they agree, as `paceline report` judges it, and the wider
half-width. Two runs between which the machine changed, so that a pass of a few rows cost more in
one (`same_state` of `paceline report`), are named and judged like all others. Exit status 0 where
every arm agrees in at least 9 of 10 pairs and no interval is wider than ± 5 %, 1 where not or where
a run has no interval (--repeats 1), 2 where a run fails or its arms wrote different texts. FOLDER
keeps the reports.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

AGREE = 0.9
WIDEST = 0.05


class Failed(Exception):
    pass


def run_bench(program, args, target):
    done = subprocess.run([program, "bench", *args, "--json", str(target)], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    # Exit status 1 is a verdict (floors, --strict), and then there is a report as well.
    if done.returncode not in (0, 1) or not target.is_file():
        said = done.stderr.strip() or "it wrote no report"
        raise Failed(f"bench: exit {done.returncode}: {said}")
    report = json.loads(target.read_text(encoding="utf-8"))
    if report.get("identical") is False:
        raise Failed("bench: arms wrote different texts, so their speeds are of different work")
    return report


def arms_side_by_side(program, first, second):
    done = subprocess.run([program, "report", str(first), str(second), "--json", "-"], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failed(f"report: exit {done.returncode}: {done.stderr.strip()}")
    both = json.loads(done.stdout)
    return both["same_state"], [arm for arm in both["arms"] if arm["depth"] != 0]


def name_of(arm):
    return f"{arm['depth']}" + ("" if arm["tree"] == "auto" else f":{arm['tree']}")


def half_width(speedup, interval):
    return (interval[1] - interval[0]) / 2 / speedup


def shown(speedup, interval):
    if speedup is None:
        return "-"
    return f"{speedup:.3f} " + (f"[{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "-")


def percent(width):
    return "-" if math.isinf(width) else f"±{100 * width:.1f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], allow_abbrev=False)
    parser.add_argument("--pairs", type=int, default=10, metavar="N")
    parser.add_argument("--out", metavar="FOLDER")
    parser.add_argument("program", metavar="PACELINE")
    parser.add_argument("args", nargs=argparse.REMAINDER, metavar="ARGS")
    given = parser.parse_args()
    if given.pairs < 1:
        parser.error("--pairs wants a number from 1 on")
    with tempfile.TemporaryDirectory(prefix="paceline repeats ") as temporary:
        folder = pathlib.Path(given.out or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        return repeat(given, folder)


def repeat(given, folder):
    agreed, widest = {}, {}
    print(f"{'pair':<6}{'depth':<9}{'first':<25}{'second':<25}{'agree':<13}wider")
    for pair in range(1, given.pairs + 1):
        files = [folder / f"{pair:03}-{which}.json" for which in ("a", "b")]
        noisy = [run_bench(given.program, given.args, file)["noisy"] for file in files]
        same_state, arms = arms_side_by_side(given.program, *files)
        if not arms:
            raise Failed("no arm drafts; give --depths with more than 0")
        for arm in arms:
            name, agrees = name_of(arm), arm["agree"]
            both = list(zip(arm["speedup"], arm["speedup_interval"]))
            # A pair that cannot be judged does not agree, and its interval has no end.
            width = (max(half_width(*one) for one in both)
                     if all(interval for _, interval in both) else math.inf)
            verdict = {True: "yes", False: "NO", None: "no interval"}[agrees]
            agreed.setdefault(name, 0)
            widest.setdefault(name, 0)
            agreed[name] += agrees is True
            widest[name] = max(widest[name], width)
            print(f"{pair:<6}{name:<9}{shown(*both[0]):<25}{shown(*both[1]):<25}{verdict:<13}"
                  f"{percent(width)}{'  machine changed' if same_state is False else ''}"
                  f"{'  noisy' if any(noisy) else ''}", flush=True)
    good = True
    for name, count in agreed.items():
        enough = count >= AGREE * given.pairs
        narrow = widest[name] <= WIDEST
        good = good and enough and narrow
        print(f"depth {name}: {count} of {given.pairs} pairs agree, widest interval "
              f"{percent(widest[name])}: {'good' if enough and narrow else 'NOT GOOD'}")
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("bench_repeats.py: interrupted", file=sys.stderr)
        sys.exit(130)
    except (Failed, OSError, ValueError) as fault:
        print(f"bench_repeats.py: {fault}", file=sys.stderr)
        sys.exit(2)
