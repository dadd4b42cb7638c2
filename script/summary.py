"""The result of `paceline bench --json FILE` in a few lines, for script/demo."""

import json
import sys


def rates(values):
    """A depth that no round reached has no rate."""
    return " ".join("-" if value is None else f"{value:.2f}" for value in values) or "-"


def main(path):
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    plain = next(arm for arm in report["arms"] if arm["depth"] == 0)
    drafted = next(arm for arm in report["arms"] if arm["depth"] != 0)
    bandwidth = report["bandwidth"]
    share = bandwidth["reached"] / bandwidth["limit"] if bandwidth["limit"] else 0.0
    ratio = "-"  # of no pair
    if drafted["speedup"] is not None:
        ratio = f"{drafted['speedup']:.2f}x"
    notes = [f"{low:.2f} to {high:.2f} {over}" for (low, high), over in (
        (drafted["speedup_interval"] or (0, 0), "when run again"),
        (drafted["speedup_interval_prompts"] or (0, 0), "over other prompts")) if high]
    if notes:
        ratio += f"  ({', '.join(notes)})"
    rows = [
        ("bytes equal", "yes" if report["identical"] else "NO"),
        ("tokens per round", f"{drafted['tokens_per_round']:.2f}"),
        ("acceptance by depth", f"{rates(drafted['conditional_acceptance'])}  (each given the last)"),
        ("plain", f"{plain['tokens_per_second']:.1f} tokens/s"),
        ("speculative", f"{drafted['tokens_per_second']:.1f} tokens/s"),
        ("ratio", ratio),
        ("bandwidth, plain", f"{bandwidth['reached']:.1f} GB/s of the {bandwidth['limit']:.1f} that "
                             f"a bare loop reaches ({100 * share:.0f} %)"),
    ]
    for name, value in rows:
        print(f"{name:20} {value}")
    if report.get("noisy"):
        print("The machine was busy: take the speeds with care.")
    return 0 if report["identical"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
