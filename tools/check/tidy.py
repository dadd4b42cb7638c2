#!/usr/bin/env python3
"""clang-tidy over the sources of a build folder; what has not changed since it passed is skipped.

    tidy.py BUILD_FOLDER [FILE...]

A file passed once with the same text, the same headers of this repository, the same flags and the
same .clang-tidy is not looked at again.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIDY = "clang-tidy-14"
INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
# Of gcc's options, those that clang does not know.
EXTRA = ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-ignored-optimization-argument"]


def with_headers(path, seen):
    """The file and every header of ours that it reaches."""
    if path in seen:
        return
    seen.add(path)
    for name in INCLUDE.findall(path.read_bytes()):
        for folder in (ROOT / "src", path.parent):
            header = folder / name.decode()
            if header.is_file():
                with_headers(header, seen)
                break


def key_of(entry):
    seen = set()
    with_headers(Path(entry["file"]), seen)
    sha = hashlib.sha256(entry["command"].encode())
    for path in [ROOT / ".clang-tidy", Path(__file__), *sorted(seen)]:
        sha.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return sha.hexdigest()


def main(folder, *only):
    folder = Path(folder)
    entries = json.loads((folder / "compile_commands.json").read_text())
    passed = folder / "tidy"
    passed.mkdir(exist_ok=True)
    wanted = {str(Path(name).resolve()) for name in only}
    work = {}
    for entry in entries:
        path = Path(entry["file"])
        ours = path.is_relative_to(ROOT / "src") and not path.name.endswith("_test.cpp")
        if str(path) in wanted or (ours and not wanted):
            # The kernels stand once per instruction set in the list; clang-tidy takes the first.
            work.setdefault(path, passed / key_of(entry))
    todo = [(path, stamp) for path, stamp in work.items() if not stamp.exists()]

    def tidy(item):
        path, stamp = item
        run = subprocess.run([TIDY, "--quiet", "-p", folder, *EXTRA, path], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if run.returncode == 0:
            stamp.touch()
            return True
        # stderr only counts warnings, unless clang-tidy itself could not go on.
        print(run.stdout.strip() or run.stderr.strip(), file=sys.stderr, flush=True)
        return False

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = []
        for (path, _), passed_now in zip(todo, pool.map(tidy, todo)):
            results.append(passed_now)
            if sys.stderr.isatty():
                sys.stderr.write(f"\r\033[Kclang-tidy {len(results)}/{len(todo)} {path.name} ")
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
    print(f"clang-tidy: {len(work)} files, {len(todo)} looked at, {results.count(False)} with faults",
          file=sys.stderr)
    return 1 if False in results or not work else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
