"""Runs the commands that README.md and docs/*.md show, as a reader would: every `sh` block, in a folder
of its own that looks like the repository.

usage: docs_commands.py REPOSITORY BUILD_FOLDER PACELINE
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

# What these do, tests of their own do; run from here they would build and test within a test.
NOT_RUN = ("script/demo", "script/test", "build/ci/tests/equality_cover")


def blocks(page):
    return re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)


def prepare(folder, repository, build, paceline):
    for entry in repository.iterdir():
        if entry.name not in (".git", "build"):
            (folder / entry.name).symlink_to(entry)
    tools = folder / ".tools"
    tools.mkdir()
    (tools / "paceline").symlink_to(paceline)
    # The pages name a preset; the tests of this very build folder are meant.
    ctest = tools / "ctest"
    ctest.write_text("#!/bin/bash\n"
                     'args=("$@")\n'
                     f'for i in "${{!args[@]}}"; do [[ ${{args[i]}} == --preset ]] && '
                     f'args[i]=--test-dir && args[i+1]="{build}"; done\n'
                     'exec "$(PATH=${PATH#*:} command -v ctest)" "${args[@]}"\n')
    ctest.chmod(0o755)
    return {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}


def main():
    repository, build, paceline = (pathlib.Path(arg).resolve() for arg in sys.argv[1:4])
    n_run = 0
    for page in [repository / "README.md", *sorted((repository / "docs").glob("*.md"))]:
        for block in blocks(page):
            lines = [line for line in block.splitlines() if not line.startswith(NOT_RUN)]
            if not any(lines):
                continue
            with tempfile.TemporaryDirectory(prefix="paceline docs ") as name:
                folder = pathlib.Path(name)
                environment = prepare(folder, repository, build, paceline)
                done = subprocess.run(["bash", "-euo", "pipefail", "-c", "\n".join(lines)],
                                      cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, check=False)
            n_run += 1
            if done.returncode != 0:
                print(f"{page.name}: exit {done.returncode} from\n{block}\n{done.stdout}{done.stderr}")
                return 1
            print(f"{page.name}: {len(lines)} lines ran")
    if n_run < 3:
        print(f"only {n_run} blocks were found: are the pages still there?")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
