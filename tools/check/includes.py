#!/usr/bin/env python3
"""A file includes from its own box and from boxes below it; docs/design.md draws the picture."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEVELS = [{"base"}, {"kernels", "io", "text"}, {"models"}, {"spec"}, {"engine"},
          {"serve", "measure", "train"}, {"apps"}]
LEVEL = {box: level for level, boxes in enumerate(LEVELS) for box in boxes}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
MAX_LINES = 800


def faults_of(path):
    text = path.read_text()
    where = path.relative_to(ROOT)
    parts = where.parts
    box = parts[1] if parts[0] == "src" else None
    if path.suffix in {".h", ".cpp"} and text.count("\n") > MAX_LINES:
        yield f"{where}: more than {MAX_LINES} lines"
    if box is not None and box not in LEVEL:
        yield f"{where}: the box {box} has no place in the layout"
        return
    for included in INCLUDE.findall(text):
        other = included.split("/")[0]
        if box is None:
            if parts[0] == "examples" and other == "apps":
                yield f"{where}: an example uses the library alone, not \"{included}\""
        elif other == "tests":
            if not path.name.endswith("_test.cpp"):
                yield f"{where}: \"{included}\" is for tests alone"
        elif other in LEVEL and other != box and LEVEL[other] >= LEVEL[box]:
            yield f"{where}: {box} must not include \"{included}\", {other} does not lie below it"


def main():
    files = [p for folder in ("src", "tests", "bench", "examples")
             for p in sorted((ROOT / folder).rglob("*")) if p.suffix in {".h", ".cpp", ".inc"}]
    faults = [fault for path in files for fault in faults_of(path)]
    print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
