"""Runs the program the way a script does, on tiny models that it made itself."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

BINARY = None
FOLDER = None  # of this test program; its name has a space and a letter beyond ASCII


def run(*args, stdin=b"", env=None, check=None, timeout=300):
    """Result of `paceline ARGS`; output as bytes. check: the exit status it must have."""
    full_env = dict(os.environ, **(env or {}))
    result = subprocess.run([BINARY, *args], input=stdin, capture_output=True, env=full_env,
                            timeout=timeout)
    if check is not None and result.returncode != check:
        raise AssertionError(f"{args}: exit {result.returncode}, not {check}\n"
                             f"{result.stderr.decode(errors='replace')}")
    return result


def run_json(*args, check=0, **kwargs):
    """The JSON that `paceline ARGS --json -` writes; standard output must hold nothing else."""
    result = run(*args, "--json", "-", check=check, **kwargs)
    return json.loads(result.stdout.decode("utf-8"))


def path(name):
    return os.path.join(FOLDER, name)


def write(name, content):
    if isinstance(content, str):
        content = content.encode()
    with open(path(name), "wb") as file:
        file.write(content)
    return path(name)


def model(kind="f32", family="llama"):
    """A tiny checkpoint, made at first use."""
    folder = path(f"{family} {kind} \u00e4")
    if not os.path.isdir(folder):
        run("synth", "--family", family, "--size", "tiny", "--type", kind, "--out", folder, check=0)
    if kind in ("f32", "bf16"):
        return folder
    return os.path.join(folder, next(f for f in os.listdir(folder) if f.endswith(".gguf")))


def safetensors(file):
    """Header and data of a safetensors file, checked as the format's text has it."""
    with open(file, "rb") as opened:
        content = opened.read()
    length = int.from_bytes(content[:8], "little")
    assert content[8:9] == b"{" and length % 8 == 0 and 8 + length <= len(content), file
    header, data = json.loads(content[8:8 + length]), content[8 + length:]
    sizes = {"F32": 4, "BF16": 2, "F16": 2}
    end = 0
    tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
    for name, entry in sorted(tensors.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = entry["data_offsets"]
        n_bytes = sizes[entry["dtype"]]
        for extent in entry["shape"]:
            n_bytes *= extent
        assert first == end and last - first == n_bytes, (file, name)
        assert first % sizes[entry["dtype"]] == 0, (file, name)
        end = last
    assert end == len(data), file
    return header, data


class CliTest(unittest.TestCase):
    def assert_refused(self, *args, says=None, **kwargs):
        """Exit 2, one line on standard error, nothing on standard output."""
        result = run(*args, **kwargs)
        told = result.stderr.decode("utf-8")
        with self.subTest(args=args):
            self.assertEqual(result.returncode, 2, told)
            self.assertEqual(result.stdout, b"")
            self.assertEqual(told.count("\n"), 1, told)
            self.assertTrue(told.endswith("\n"))
            if says is not None:
                self.assertIn(says, told)
        return told


def main():
    global BINARY, FOLDER
    BINARY = os.path.abspath(sys.argv.pop(1))
    FOLDER = tempfile.mkdtemp(prefix="paceline cli \u00fc ")
    try:
        program = unittest.main(module="__main__", exit=False)
    finally:
        shutil.rmtree(FOLDER)
    sys.exit(0 if program.result.wasSuccessful() and program.result.testsRun > 0 else 1)
