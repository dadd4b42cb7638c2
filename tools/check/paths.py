#!/usr/bin/env python3
"""No file of the repository names a folder that exists on one person's machine only."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PERSONAL = re.compile(rb"(?<![\w.~-])/(?:home|root|work|Users)/[\w.-]+")


def main():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard"], check=True, capture_output=True).stdout
    n_faults = 0
    for name in filter(None, listed.decode().split("\0")):
        path = ROOT / name
        if not path.is_file():
            continue
        data = path.read_bytes()
        if b"\0" in data:  # weights and the like
            continue
        for number, line in enumerate(data.split(b"\n"), 1):
            if found := PERSONAL.search(line):
                print(f"{name}:{number}: {found[0].decode()}", file=sys.stderr)
                n_faults += 1
    return 1 if n_faults else 0


if __name__ == "__main__":
    sys.exit(main())
