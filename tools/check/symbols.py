#!/usr/bin/env python3
"""Kernel objects compiled for an instruction set share no code with the rest of the program.

    symbols.py BUILD_FOLDER

An inline function compiled for AVX-512 may be the copy that the linker keeps for everyone, and then
the program dies on a machine without it. Such functions are weak symbols, so every weak symbol of
these objects must lie in the namespace of its instruction set.
"""

import re
import subprocess
import sys
from pathlib import Path

WEAK = set("WVwvu")


def faults_of(path):
    namespace = re.search(r"kernels_(\w+)\.dir", str(path))[1]
    listing = subprocess.run(["nm", "-C", "--defined-only", path], check=True, text=True,
                             capture_output=True).stdout
    symbols = [line.split(maxsplit=2)[1:] for line in listing.splitlines() if len(line.split()) > 2]
    if not any(f"{namespace}::" in name for _, name in symbols):
        yield f"{path}: defines nothing in a namespace {namespace}"
    for kind, name in symbols:
        if kind in WEAK and f"{namespace}::" not in name:
            yield f"{path}: shares {name}, which lies outside the namespace {namespace}"


def main(folder):
    objects = sorted(path for box in ("kernels", "train")
                     for path in Path(folder).glob(f"src/{box}/CMakeFiles/kernels_*.dir/isa/*.o"))
    if not objects:
        print(f"{folder}: no kernel objects there, build it first", file=sys.stderr)
        return 1
    faults = [fault for path in objects for fault in faults_of(path)]
    print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
