"""patch and unpatch as a script meets them: folders of every kind, heads with every fault, and all
the ways of naming a model."""

import importlib.util
import json
import os
import shutil
import subprocess
import unittest

import cli_heads as heads
import cli_support as cli


def copy(source, name):
    shutil.copytree(source, cli.path(name), symlinks=True)
    return cli.path(name)


class Patch(cli.CliTest):
    def patched(self, folder, head):
        report = cli.run_json("patch", folder, "--head", head)
        there = heads.loaded(folder)
        self.assertEqual({k: v for k, v in there.items() if k.startswith("mtp.")},
                         heads.read_safetensors(head)[0])
        for file in report["files_written"]:
            self.assertTrue(os.path.exists(file), file)
        return report

    def test_there_and_back_on_every_kind_of_folder(self):
        kinds = {"one": heads.single("one"), "three": heads.sharded("three"),
                 "no index": heads.sharded("no index", index=False),
                 "old head": heads.with_head("old head"),
                 "old head in one": heads.with_head("old head in one", files=1),
                 "hub": heads.hub("hub")[0]}
        for kind, folder in kinds.items():
            with self.subTest(kind=kind):
                before = heads.state(folder)
                trunk = {k: v for k, v in heads.loaded(folder).items()
                         if not k.startswith("mtp.")}
                digest = cli.run_json("inspect", folder)["sha256"]
                first = heads.head(folder, kind + " 1.safetensors", seed=1)
                second = heads.head(folder, kind + " 2.safetensors", seed=2)
                report = self.patched(folder, first)
                self.assertEqual((report["sha256_before"], report["sha256_after"]),
                                 (digest, digest))
                patched = cli.run_json("inspect", folder)
                self.assertEqual(patched["sha256"], digest)
                self.assertEqual(report["warnings"], [])
                there = heads.loaded(folder)
                self.assertEqual({k: v for k, v in there.items() if k in trunk}, trunk)
                now = heads.state(folder)
                for name, was in before.items():  # only the index and shards of a head differ
                    if "head" not in kind and name != "model.safetensors.index.json":
                        self.assertEqual(now[name], was)
                self.patched(folder, second)  # keeps the pristine files, not those of the first
                again = cli.run_json("inspect", folder)
                self.assertEqual(again["sha256"], digest)
                self.assertNotEqual(again["head"]["sha256"], patched["head"]["sha256"])
                report = cli.run_json("unpatch", folder)
                self.assertEqual((report["sha256_after"], report["warnings"]), (digest, []))
                self.assertEqual(heads.state(folder), before)
                self.assert_refused("unpatch", folder, says="not patched")

    def test_the_head_drafts_and_changes_no_text(self):
        def run(model, *args):
            report = cli.run_json("generate", model, "--prompt-ids", "1,2,3", "--max-tokens", "40",
                                  "--ignore-eos", "--depths", "0,2", "--threads", "1", *args)
            arms = report["results"][0]["arms"]
            return [arm["token_ids"] for arm in arms], arms[1]["drafter"]

        folder = heads.sharded("drafts")
        head = heads.head(folder)
        asked = run(folder, "--head", head)
        plain = run(folder, "--drafter", "lookup")[0]
        cli.run("patch", folder, "--head", head, check=0)
        there = cli.run_json("inspect", folder)
        self.assertEqual((there["head"]["state"], there["head"]["in_checkpoint"]),
                         ("present", True))
        self.assertEqual(there["unused_tensors"], [])
        self.assertEqual(run(folder), asked)
        self.assertEqual(asked[0], plain)
        exported = cli.path("drafts exported")
        cli.run("export", folder, "--out", exported, check=0)
        self.assertEqual(run(exported), asked)
        cli.run("unpatch", folder, check=0)
        self.assertEqual(cli.run_json("inspect", folder)["head"]["state"], "absent")

    def test_the_index_and_the_shard(self):
        folder = heads.sharded("index")
        head = heads.head(folder)
        self.patched(folder, head)
        with open(os.path.join(folder, "model.safetensors.index.json"), encoding="utf-8") as text:
            index = json.load(text)
        names = heads.read_safetensors(head)[0]
        self.assertEqual({k for k, v in index["weight_map"].items() if v == "mtp.safetensors"},
                         set(names))
        self.assertEqual(index["metadata"]["note"], "n")
        self.assertEqual(index["metadata"]["total_size"],
                         sum(len(tensor[2]) for tensor in heads.loaded(folder).values()))
        with open(head, "rb") as a, open(os.path.join(folder, "mtp.safetensors"), "rb") as b:
            self.assertEqual(a.read(), b.read())
        self.assertEqual(heads.read_safetensors(os.path.join(folder, "mtp.safetensors"))[1],
                         heads.METADATA)

    def test_shards_that_lose_a_head_keep_the_rest(self):
        folder = heads.with_head("loses")
        shards = {name: heads.read_safetensors(os.path.join(folder, name))
                  for name in os.listdir(folder) if name.endswith(".safetensors")}
        report = self.patched(folder, heads.head(folder))
        self.assertEqual([os.path.basename(f) for f in report["files_removed"]],
                         ["model-mtp.safetensors"])
        for name, (tensors, metadata) in shards.items():
            if name == "model-mtp.safetensors":
                continue
            now = heads.read_safetensors(os.path.join(folder, name))
            self.assertEqual(now, ({k: v for k, v in tensors.items()
                                    if not k.startswith("mtp.")}, metadata))

    def test_every_fault_of_a_head_is_told(self):
        folder = heads.sharded("faults")
        before = heads.state(folder)

        def break_all(tensors):
            del tensors["mtp.fc.weight"]
            tensors["mtp.surplus"] = ("BF16", [2], b"\x80\x3f" * 2)
            dtype, shape, content = tensors["mtp.norm.weight"]
            tensors["mtp.norm.weight"] = (dtype, [shape[0] // 2], content[:shape[0]])
            name = "mtp.layers.0.mlp.up_proj.weight"
            tensors[name] = ("F32", tensors[name][1], tensors[name][2] * 2)
            name = "mtp.layers.0.mlp.down_proj.weight"
            tensors[name] = ("BF16", tensors[name][1], bytes(len(tensors[name][2])))
            name = "mtp.layers.0.self_attn.q_proj.weight"
            content = bytearray(tensors[name][2])
            content[6:8] = b"\xc0\x7f"
            content[8:10] = b"\x80\xff"
            tensors[name] = ("BF16", tensors[name][1], bytes(content))
            tensors[name.replace("q_proj", "k_proj")] = tensors.pop(name.replace("q_", "k_"))

        told = self.assert_refused("patch", folder, "--head",
                                   heads.head(folder, "broken", change=break_all))
        for words in ("6 faults", "'mtp.fc.weight' is missing", "'mtp.surplus' belongs to no head",
                      "'mtp.norm.weight' is [", "up_proj.weight' is F32, wanted BF16",
                      "down_proj.weight' is all zeros",
                      "q_proj.weight' holds 2 values that are not finite"):
            self.assertIn(words, told)
        self.assertEqual(heads.state(folder), before)
        for says, metadata in (("paceline.head", {"format": "pt"}),
                               ("family 'qwen3'", {**heads.METADATA, "paceline.family": "qwen3"}),
                               ("512 words", {**heads.METADATA,
                                              "paceline.draft_vocabulary": "1,2,512"}),
                               ("paceline.tap", {**heads.METADATA, "paceline.tap": "x"})):
            broken = heads.head(folder, "broken", metadata=metadata)
            self.assert_refused("patch", folder, "--head", broken, says=says)
        self.assert_refused("patch", folder, "--head", says="adds nothing", *[
            heads.head(folder, "none", change=lambda tensors: tensors.clear())])
        self.assert_refused("patch", folder, "--head", cli.path("nowhere"))
        self.assert_refused("patch", folder, "--head", folder)
        self.assert_refused("patch", folder, says="give --head")
        fine = heads.head(folder, "fine")
        self.assert_refused("patch", folder, "--head", fine, "--json", fine, says="--json")
        self.assertEqual(heads.state(folder), before)

    def test_other_settings_in_a_patched_folder_are_told_when_it_goes_back(self):
        folder = heads.single("settings")
        cli.run("patch", folder, "--head", heads.head(folder), check=0)
        config = os.path.join(folder, "config.json")
        with open(config, encoding="utf-8") as text:
            settings = json.load(text)
        with open(config, "w", encoding="utf-8") as text:
            json.dump({**settings, "rope_theta": 17.0}, text)
        report = cli.run_json("unpatch", folder)
        self.assertIn("others have changed since", report["warnings"][0])
        self.assertNotEqual(report["sha256_after"],
                            cli.run_json("inspect", cli.model("bf16"))["sha256"])

    def test_the_same_weights_with_other_words_are_another_head(self):
        folder = heads.single("words")
        digests = set()
        for words in ("1,2,3", "4,5,6", None):
            metadata = heads.METADATA if words is None else {
                **heads.METADATA, "paceline.draft_vocabulary": words}
            cli.run("patch", folder, "--head", heads.head(folder, metadata=metadata), check=0)
            digests.add(cli.run_json("inspect", folder)["head"]["sha256"])
        self.assertEqual(len(digests), 3)

    def test_what_a_file_says_of_a_head_that_it_lost_counts_no_more(self):
        """An exported shard speaks of the head that the folder held; another head takes its place."""
        folder, out = heads.single("speaks"), cli.path("speaks exported")
        words = {**heads.METADATA, "paceline.draft_vocabulary": "1,2,3"}
        cli.run("patch", folder, "--head", heads.head(folder, metadata=words), check=0)
        cli.run("export", folder, "--out", out, check=0)
        self.assertEqual(cli.run_json("inspect", out)["head"]["draft_vocabulary"], 3)
        for words, count in (("4,5,6,7", 4), ("", 512)):
            metadata = {**heads.METADATA, "paceline.draft_vocabulary": words}
            if not words:
                del metadata["paceline.draft_vocabulary"]
            cli.run("patch", out, "--head", heads.head(folder, metadata=metadata), check=0)
            self.assertEqual(cli.run_json("inspect", out)["head"]["draft_vocabulary"], count)

    def test_a_head_for_another_trunk_is_worth_a_warning(self):
        folder = heads.single("other trunk")
        digest = cli.run_json("inspect", folder)["sha256"]
        metadata = {**heads.METADATA, "paceline.trunk_sha256": digest}
        fits = heads.head(folder, "fits", metadata=metadata)
        other = heads.head(folder, "other", seed=3,
                           metadata={**metadata, "paceline.trunk_sha256": "0" * 64})
        self.assertEqual(cli.run_json("patch", folder, "--head", fits)["warnings"], [])
        self.assertIn("another trunk", cli.run_json("patch", folder, "--head", other)["warnings"][0])
        self.assertEqual(cli.run_json("patch", folder, "--head", fits)["warnings"], [])

    def test_out_makes_whole_folders_and_each_goes_back(self):
        """A to B, B with a second head to C; A is deleted."""
        for kind, a in (("shards", heads.sharded("A")), ("old", heads.with_head("A old")),
                        ("links", heads.hub("A hub")[0])):
            with self.subTest(kind=kind):
                b, c = cli.path("B " + kind), cli.path("C " + kind)
                trunk = cli.run_json("inspect", a)["sha256"]
                for name, text in (("README.md", "r"), (".hidden", "h"), ("sub/more.txt", "s")):
                    os.makedirs(os.path.dirname(os.path.join(a, name)), exist_ok=True)
                    with open(os.path.join(a, name), "w", encoding="ascii") as file:
                        file.write(text)
                first = heads.head(a, kind + " 1", seed=1)
                second = heads.head(a, kind + " 2", seed=2)
                whole = copy(a, "whole " + kind)
                before = heads.state(a)
                report = cli.run_json("patch", a, "--head", first, "--out", b + "/")
                self.assertEqual(heads.state(a), before)
                for file in report["files_written"]:
                    self.assertTrue(file.startswith(os.path.realpath(b) + os.sep), file)
                    self.assertTrue(os.path.exists(file), file)
                cli.run("patch", b, "--head", second, "--out", c, check=0)
                shutil.rmtree(a)
                for folder, head in ((b, first), (c, second)):
                    there = heads.loaded(folder)
                    self.assertEqual({k: v for k, v in there.items() if k.startswith("mtp.")},
                                     heads.read_safetensors(head)[0])
                    self.assertEqual(cli.run_json("inspect", folder)["sha256"], trunk)
                wanted = before
                if kind == "links":  # what the links led to
                    blobs = os.path.join(os.path.dirname(os.path.dirname(a)), "blobs")
                    digests = heads.state(blobs)
                    wanted = {name: digests[os.path.basename(was)] if was.startswith("link")
                              else was for name, was in before.items()}
                else:
                    self.assertEqual(heads.state(whole), before)
                for folder in (b, c):
                    cli.run("unpatch", folder, check=0)
                    self.assertEqual(heads.state(folder), wanted)
        whole = heads.sharded("whole")
        head = heads.head(whole)
        self.assert_refused("patch", whole, "--head", head, "--out", whole, says="not empty")
        self.assert_refused("patch", whole, "--head", head, "--out", whole + "/in", says="own")
        self.assertFalse(any(name.endswith(".part") for name in heads.state(cli.FOLDER)))

    def test_blobs_of_a_hub_are_never_touched(self):
        snapshot, blobs = heads.hub("blobs")
        before = heads.state(blobs)
        self.patched(snapshot, heads.head(snapshot))
        self.assertEqual(heads.state(blobs), before)
        self.assertFalse(os.path.islink(os.path.join(snapshot, "model.safetensors.index.json")))
        cli.run("unpatch", snapshot, check=0)
        self.assertTrue(os.path.islink(os.path.join(snapshot, "model.safetensors.index.json")))
        self.assertEqual(heads.state(blobs), before)

    def test_a_gguf_file_gets_a_side_file(self):
        source = cli.model("q4_0")
        for name in ("model.gguf", "hub/snapshots/1/link.gguf"):
            folder = os.path.dirname(cli.path("gguf/" + name))
            os.makedirs(folder)
            model = cli.path("gguf/" + name)
            if "hub" in name:
                blob = cli.path("gguf/hub/blobs/abc")
                os.makedirs(os.path.dirname(blob))
                shutil.copy(source, blob)
                os.symlink("../../blobs/abc", model)
            else:
                shutil.copy(source, model)
            before = heads.state(cli.path("gguf"))
            head = heads.head(cli.model("bf16"), "gguf head")
            report = cli.run_json("patch", model, "--head", head)
            self.assertEqual(report["files_written"], [model + ".mtp.safetensors"])
            self.assertEqual(cli.run_json("inspect", model)["head"]["file"],
                             model + ".mtp.safetensors")
            self.assertEqual(report["sha256_before"], report["sha256_after"])
            self.assertEqual(heads.read_safetensors(model + ".mtp.safetensors"),
                             heads.read_safetensors(head))
            cli.run("patch", model, "--head", head, check=0)
            self.assert_refused("patch", model, "--head", head, "--out", cli.path("x"),
                                says="export")
            cli.run("unpatch", model, check=0)
            self.assertEqual(heads.state(cli.path("gguf")), before)
            self.assert_refused("unpatch", model, says="nothing to take out")
            shutil.rmtree(cli.path("gguf"))
        # What lies there and is no head stays.
        os.makedirs(cli.path("gguf"))
        model = shutil.copy(source, cli.path("gguf/m.gguf"))
        cli.write("gguf/m.gguf.mtp.safetensors", "notes")
        self.assert_refused("patch", model, "--head", head, says="move it away")
        self.assert_refused("unpatch", model, says="move it away")

    def test_all_ways_of_naming_a_model(self):
        folder = heads.sharded("n\u00e4me with spaces")
        head = heads.head(folder)
        os.symlink(folder, cli.path("link"))
        before, outcome = heads.state(folder), None
        ways = [(folder, None), (folder + "/", None), (folder + "//", None),
                (cli.path("link"), None), (cli.path("link") + "/", None),
                (os.path.basename(folder), cli.FOLDER), (".", folder),
                ("./" + os.path.basename(folder) + "/.", cli.FOLDER)]
        for name, where in ways:
            def go(*args, inside=where):
                done = subprocess.run([cli.BINARY, *args], cwd=inside, capture_output=True,
                                      check=True)
                return done.stdout.decode()
            told = go("patch", name, "--head", head)
            there = heads.state(folder)
            outcome = outcome or (told, there)
            self.assertEqual((told, there), outcome, name)
            go("unpatch", name)
            self.assertEqual(heads.state(folder), before, name)
            self.assertTrue(os.path.islink(cli.path("link")))

    def test_missing_permissions_are_found_before_anything_changes(self):
        folder = heads.sharded("locked")
        head = heads.head(folder)
        index = os.path.join(folder, "model.safetensors.index.json")
        before = heads.state(folder)
        for path, mode, says in ((index, 0o444, "'model.safetensors.index.json'"),
                                 (folder, 0o555, "the folder ")):
            usual = os.stat(path).st_mode
            os.chmod(path, mode)
            told = self.assert_refused("patch", folder, "--head", head, says=says)
            self.assertIn("nothing was changed", told)
            os.chmod(path, usual)
            self.assertEqual(heads.state(folder), before)
        cli.run("patch", folder, "--head", head, check=0)

    def test_names_that_lead_out_are_refused(self):
        folder = heads.sharded("leads out")
        head = heads.head(folder)
        self.patched(folder, head)
        journal = os.path.join(folder, "paceline-patch", "journal.json")
        with open(journal, encoding="utf-8") as text:
            content = text.read()
        victim = cli.write("victim", "v")
        for bad in (content.replace("\"mtp.safetensors\"", "\"../victim\""),
                    content.replace("original/", "../../original/"), "{}", "x", ""):
            with open(journal, "w", encoding="utf-8") as text:
                text.write(bad)
            for args in (("unpatch", folder), ("inspect", folder),
                         ("patch", folder, "--head", head)):
                self.assert_refused(*args, says="journal.json")
            self.assertTrue(os.path.exists(victim))
        with open(journal, "w", encoding="utf-8") as text:
            text.write(content.replace("\"patched\"", "\"unfinished\""))
        for args in (("inspect", folder), ("patch", folder, "--head", head)):
            self.assert_refused(*args, says="unfinished patch; run: paceline unpatch ")
        cli.run("unpatch", folder, check=0)

    def test_names_that_the_journal_cannot_hold_are_refused(self):
        folder = heads.single("no utf8")
        head = heads.head(folder, "no utf8.safetensors")
        stray = os.path.join(folder.encode(), b"stray\xff.safetensors")
        shutil.copy(head.encode(), stray)
        before = heads.state(folder)
        self.assert_refused("patch", folder, "--head", head, says="stray\\xff.safetensors")
        self.assertEqual(heads.state(folder), before)
        os.rename(stray, os.path.join(folder.encode(), b"stray.safetensors"))
        before = heads.state(folder)
        cli.run("patch", folder, "--head", head, check=0)
        cli.run("unpatch", folder, check=0)
        self.assertEqual(heads.state(folder), before)

    def test_an_index_that_nests_without_end_is_refused(self):
        folder = heads.sharded("deep index")
        index = os.path.join(folder, "model.safetensors.index.json")
        with open(index, encoding="utf-8") as file:
            text = file.read()
        with open(index, "w", encoding="utf-8") as file:
            file.write('{"deep": ' + "[" * 100000 + "]" * 100000 + "," + text[1:])
        self.assert_refused("patch", folder, "--head", heads.head(folder, "deep.safetensors"),
                            says="nested deeper than 256")
        self.assertFalse(os.path.exists(os.path.join(folder, "paceline-patch")))

    def test_a_run_goes_on_while_its_model_is_patched(self):
        folder = heads.sharded("runs")
        head = heads.head(folder)
        args = ("generate", folder, "--prompt-ids", "1,2,3", "--max-tokens", "500",
                "--ignore-eos", "--drafter", "none", "--threads", "1")
        alone = cli.run(*args, check=0).stdout
        with subprocess.Popen([cli.BINARY, *args], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as run:
            beginning = run.stdout.read(40)  # it has loaded
            cli.run("patch", folder, "--head", head, check=0)
            cli.run("unpatch", folder, check=0)
            cli.run("patch", folder, "--head", head, check=0)
            text = beginning + run.stdout.read()
        self.assertEqual(run.returncode, 0)
        self.assertEqual(text, alone)

    @unittest.skipUnless(importlib.util.find_spec("safetensors"),
                         "needs the safetensors package")
    def test_the_common_library_opens_what_was_written(self):
        from safetensors import safe_open  # pylint: disable=import-outside-toplevel
        folder = heads.with_head("library")
        self.patched(folder, heads.head(folder))
        for name in os.listdir(folder):
            if name.endswith(".safetensors"):
                with safe_open(os.path.join(folder, name), framework="np") as file:
                    self.assertEqual(file.metadata()["format"], "pt")
                    self.assertEqual(set(file.keys()),
                                     set(heads.read_safetensors(os.path.join(folder, name))[0]))


if __name__ == "__main__":
    cli.main()
