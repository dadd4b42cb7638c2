"""patch, unpatch and export with every call that changes a file made to fail, or the program to end
there: afterwards a folder is what it was, or patched, or refused until `unpatch` brings it back."""

import os
import shutil
import sys

import cli_heads as heads
import cli_support as cli

SHIM = None


def run_failing(n, how, *args):
    env = {"LD_PRELOAD": SHIM, "PACELINE_FAIL_AT": str(n), "PACELINE_FAIL_HOW": how,
           "ASAN_OPTIONS": "verify_asan_link_order=0", "XDG_CACHE_HOME": "/dev/null"}
    return cli.run(*args, env=env)


def count_calls(*args):
    file = cli.path("calls")
    cli.run(*args, check=0, env={"LD_PRELOAD": SHIM, "PACELINE_FAIL_COUNT": file,
                                 "ASAN_OPTIONS": "verify_asan_link_order=0",
                                 "XDG_CACHE_HOME": "/dev/null"})
    with open(file, encoding="ascii") as text:
        return int(text.read())


def copy(source, to):
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(source, to, symlinks=True)


class Faults(cli.CliTest):
    def go_through(self, start, command, pristine, outcomes):
        """Every call of `command` on copies of `start`. outcomes: what may be loaded afterwards.
        pristine: what unpatch must bring back."""
        folder = cli.path("victim")
        args = [folder if arg is None else arg for arg in command]
        copy(start, folder)
        n_calls = count_calls(*args)
        self.assertGreater(n_calls, 8)
        refused = 0
        for how in ("kill", "fail", "all"):
            for n in range(1, n_calls + 1):
                with self.subTest(how=how, n=n, command=command[0]):
                    copy(start, folder)
                    result = run_failing(n, how, *args)
                    told = result.stderr.decode()
                    self.assertIn(result.returncode, (137,) if how == "kill" else (0, 2), told)
                    self.assertLess(told.count("\n"), 2, told)
                    there = heads.loaded(folder)
                    if there is None:
                        refused += 1
                        self.assertNotEqual(result.returncode, 0)
                        if how != "kill":
                            self.assertIn("unfinished patch", told)
                    else:
                        self.assertIn(there, outcomes)
                    if how == "fail" and result.returncode == 2 and command[0] == "patch":
                        # One failure is taken back by the program itself.
                        self.assertEqual(there, outcomes[0])
                    # Whatever happened, the pristine folder can be had. Where nothing was patched
                    # there may be nothing to do.
                    back = cli.run("unpatch", folder)
                    if back.returncode != 0:
                        self.assertIn("not patched", back.stderr.decode())
                    left = heads.state(folder)
                    strays = [name for name in left if name.endswith(".part")]
                    self.assertEqual({k: v for k, v in left.items() if k not in strays}, pristine)
                    self.assertLessEqual(len(strays), 0 if how != "kill" else 1)
        return refused

    def check(self, start):
        head = heads.head(start, "head.safetensors", seed=1)
        pristine = heads.state(start)
        original = heads.loaded(start)
        patched_folder = start + " patched"
        copy(start, patched_folder)
        cli.run("patch", patched_folder, "--head", head, check=0)
        patched = heads.loaded(patched_folder)
        self.assertEqual({k: v for k, v in patched.items() if k.startswith("mtp.")},
                         heads.read_safetensors(head)[0])
        refused = self.go_through(start, ("patch", None, "--head", head), pristine,
                                  (original, patched))
        refused += self.go_through(patched_folder, ("unpatch", None), pristine,
                                   (original, patched))
        self.assertGreater(refused, 4)  # kills in the middle do leave a folder that is refused
        return patched_folder, pristine, original, patched

    def test_one_file(self):
        self.check(heads.single("single"))

    def test_shards_and_a_second_patch(self):
        first, pristine, original, patched = self.check(heads.sharded("sharded"))
        second_head = heads.head(first, "second.safetensors", seed=2)
        both = first + " twice"
        copy(first, both)
        cli.run("patch", both, "--head", second_head, check=0)
        twice = heads.loaded(both)
        self.assertNotEqual(twice, patched)
        self.go_through(first, ("patch", None, "--head", second_head), pristine,
                        (patched, twice, original))

    def test_shards_that_hold_a_head(self):
        self.check(heads.with_head("old head"))

    def test_one_file_that_holds_a_head(self):
        self.check(heads.with_head("old head in one", files=1))

    def test_links_of_a_hub(self):
        snapshot, blobs = heads.hub("hub")
        head = heads.head(snapshot, "hub.safetensors")
        before, blobs_before = heads.state(snapshot), heads.state(blobs)
        n_calls = count_calls("patch", snapshot, "--head", head)
        cli.run("unpatch", snapshot, check=0)
        for n in range(1, n_calls + 1):
            run_failing(n, "kill", "patch", snapshot, "--head", head)
            cli.run("unpatch", snapshot)
            left = {k: v for k, v in heads.state(snapshot).items() if not k.endswith(".part")}
            self.assertEqual(left, before)
            self.assertEqual(heads.state(blobs), blobs_before)

    def test_a_side_file(self):
        model = cli.model("q8_0")
        folder = os.path.dirname(model)
        before = heads.state(folder)
        head = heads.head(cli.model("bf16"), "side.safetensors")
        side = model + ".mtp.safetensors"
        n_calls = count_calls("patch", model, "--head", head)
        cli.run("unpatch", model, check=0)
        for how in ("kill", "fail", "all"):
            for n in range(1, n_calls + 1):
                result = run_failing(n, how, "patch", model, "--head", head)
                if os.path.exists(side):
                    self.assertEqual(heads.read_safetensors(side), heads.read_safetensors(head))
                    cli.run("unpatch", model, check=0)
                else:
                    self.assertNotEqual(result.returncode, 0)
                for name in os.listdir(folder):
                    if name.endswith(".part"):
                        self.assertNotEqual(how, "fail")
                        os.remove(os.path.join(folder, name))
                self.assertEqual(heads.state(folder), before)

    def test_an_export_is_whole_or_not_there(self):
        model, out = cli.model("q4_0"), cli.path("export of faults")
        n_calls = count_calls("export", model, "--out", out)
        whole = heads.state(out)
        for how in ("kill", "fail", "all"):
            for n in range(1, n_calls + 1):
                shutil.rmtree(out, ignore_errors=True)
                result = run_failing(n, how, "export", model, "--out", out)
                self.assertEqual(heads.state(out), whole if os.path.exists(out) else {})
                if result.returncode == 0:
                    self.assertEqual(heads.state(out), whole)
                for name in os.listdir(cli.FOLDER):
                    if name.startswith(".export") and name.endswith(".part"):
                        self.assertNotEqual(how, "fail", n)
                        shutil.rmtree(cli.path(name))

    def test_too_little_room_is_found_before_anything_changes(self):
        folder = heads.sharded("no room")
        head = heads.head(folder, "room.safetensors")
        before = heads.state(folder)
        env = {"LD_PRELOAD": SHIM, "PACELINE_FAKE_FREE": "100000",
               "ASAN_OPTIONS": "verify_asan_link_order=0"}
        for args in (("patch", folder, "--head", head),
                     ("patch", folder, "--head", head, "--out", cli.path("roomy")),
                     ("export", folder, "--out", cli.path("roomy"))):
            self.assert_refused(*args, env=env, says="bytes are needed")
            self.assertEqual(heads.state(folder), before)
            self.assertFalse(os.path.exists(cli.path("roomy")))


if __name__ == "__main__":
    SHIM = os.path.abspath(sys.argv.pop(2))
    cli.main()
