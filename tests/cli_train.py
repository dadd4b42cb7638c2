"""collect, train and replay as a script runs them, on tiny models."""

import hashlib
import json
import os
import shutil
import signal
import struct
import subprocess
import unittest

import cli_support
from cli_support import CliTest, model, path, run, run_json, write

MASK = (1 << 64) - 1


def is_held_out(name, share=0.1):
    """As src/train/data.cpp: FNV-1a, then SplitMix64."""
    z = 0xCBF29CE484222325
    for byte in name.encode():
        z = (z ^ byte) * 0x100000001B3 & MASK
    z = z + 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    z ^= z >> 31
    return (z >> 11) * 2.0**-53 < share


def prompts(n_held_out, n_training):
    """A file of prompts, those first that are held out."""
    names = [f"p{i}" for i in range(10000)]
    held_out = [n for n in names if is_held_out(n)][:n_held_out]
    training = [n for n in names if not is_held_out(n)][:n_training]
    lines = [json.dumps({"id": n, "prompt": f"word {n} and {int(n[1:]) * 7 % 31}"})
             for n in held_out + training]
    return write(f"prompts-{n_held_out}-{n_training}.jsonl", "\n".join(lines) + "\n")


def dump(family, kind="f32"):
    folder = path(f"dump {family} {kind}")
    if not os.path.isdir(folder):
        run("collect", model(kind, family), "--prompts", prompts(4, 20), "--max-tokens", "40",
            "--temperature", "1", "--ignore-eos", "--out", folder, check=0)
    return folder


def manifest(folder):
    with open(os.path.join(folder, "manifest.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def patterned(name, first, count):
    """A dump of texts in which every character follows from the one before."""
    folder = path("patterned " + name)
    if not os.path.isdir(folder):
        letters = "qwertyuiopasdfghjklzxcvbnmMNBVCXZLKJHGFDSAPOIUYTREWQ5938172640"
        lines = [json.dumps({"id": f"{name}{i}", "category": "ab"[i % 2],
                             "text": (letters * 4)[i:i + 150]})
                 for i in range(first, first + count)]
        run("collect", model(), "--text", write(name + ".jsonl", "\n".join(lines) + "\n"), "--out",
            folder, check=0)
    return folder


SHORT = ["--new", "--steps", "8", "--evaluate-every", "4", "--batch", "4", "--shortlist", "64"]


class TrainTest(CliTest):
    def test_every_family_that_it_knows(self):
        for family in ("llama", "mistral", "qwen2", "qwen3"):
            with self.subTest(family=family):
                head = path(f"{family}.safetensors")
                report = run_json("train", model(family=family), "--dump", dump(family), "--out",
                                  head, *SHORT, "--modules", "2", "--depths", "3", "--targets",
                                  "mixed", "--first-depth", "0")
                self.assertEqual(report["steps"], 8)
                self.assertEqual([entry["step"] for entry in report["history"]], [0, 4, 8])
                self.assertLess(report["history"][-1]["loss"], report["history"][1]["loss"] + 0.1)
                self.assertLess(max(report["distance_to_serving"]), 0.1)
                self.assertGreater(report["positions"], 0)
                with open(head + ".svg", encoding="utf-8") as svg:
                    self.assertIn("</svg>", svg.read())

    def test_replay_counts_what_the_trainer_counted(self):
        head = path("replayed.safetensors")
        trained = run_json("train", model(), "--dump", dump("llama"), "--out", head, *SHORT,
                           "--depths", "3")
        replayed = run_json("replay", model(), "--dump", dump("llama"), "--head", head,
                            "--drafter", "mtp", "--depth", "3", "--limit", "4")
        self.assertEqual(replayed["rounds"], trained["best"]["rounds"])
        self.assertEqual(replayed["joint_acceptance"], trained["best"]["joint_acceptance"])

    def test_drafts_of_the_engine_are_made_again(self):
        """What a dump says that this head drafted, the trainer drafts before its first step."""
        head, folder = path("drafting.safetensors"), path("dump with drafts")
        run_json("train", model(), "--dump", dump("llama"), "--out", head, *SHORT)
        run("collect", model(), "--prompts", prompts(4, 20), "--max-tokens", "40", "--temperature",
            "1", "--ignore-eos", "--head", head, "--depth", "3", "--out", folder, check=0)
        plain, drafted = (manifest(name) for name in (dump("llama"), folder))
        with open(head, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        self.assertEqual({stream["head_sha256"] for stream in drafted}, {digest})
        self.assertEqual([stream["positions"] for stream in drafted],
                         [stream["positions"] for stream in plain])
        tune = ["--steps", "1", "--batch", "2", "--out", path("tuned.safetensors")]
        html = path("train.html")
        report = run_json("train", model(), "--dump", folder, "--head", head, *tune, "--html", html)
        self.assertGreater(report["drafts_compared"], 500)
        with open(html, encoding="utf-8") as page:
            self.assertIn("Acceptance over steps", page.read())
        # Another head says nothing of those drafts, nor does a dump without them.
        other = path("other.safetensors")
        run_json("train", model(), "--dump", dump("llama"), "--out", other, *SHORT, "--seed", "2")
        report = run_json("train", model(), "--dump", folder, "--head", other, *tune)
        self.assertEqual(report["drafts_compared"], 0)
        plain = run_json("train", model(), "--dump", dump("llama"), "--head", head, *tune)
        self.assertEqual(plain["drafts_compared"], 0)

    def test_some_answers_are_probed_where_there_is_a_head(self):
        head, folder = path("probing.safetensors"), path("probed dump")
        run_json("train", model(), "--dump", dump("llama"), "--out", head, *SHORT)
        made = []
        for i, extra in enumerate(([], ["--head", head], ["--head", head, "--depth", "0"])):
            run("collect", model(), "--prompts", prompts(40, 160), "--max-tokens", "8",
                "--ignore-eos", *extra, "--out", f"{folder} {i}", check=0)
            made.append(manifest(f"{folder} {i}"))
        plain, probed, none = made
        self.assertEqual(none, plain)
        drafts = {"head_sha256": None, "sources": None, "offset": None, "bytes": None}
        self.assertEqual([{**stream, **drafts} for stream in probed],
                         [{**stream, **drafts} for stream in plain])
        with_drafts = [stream for stream in probed if "head_sha256" in stream]
        self.assertTrue(0 < len(with_drafts) < 20, len(with_drafts))  # one in 64 of 200, by their ids
        self.assertEqual([stream["sources"].count("mtp") for stream in with_drafts],
                         [1] * len(with_drafts))
        self.assert_refused("collect", model(), "--prompts", prompts(4, 20), "--depth", "2", "--out",
                            path("no head"), says="no draft head was found")
        self.assertFalse(os.path.exists(path("no head")))

    def test_a_dump_without_a_whole_stream_is_not_replayed(self):
        folder = path("cut dump")
        shutil.copytree(dump("llama"), folder)
        shard = os.path.join(folder, "shard-00000.pldump")
        with open(shard, "rb") as file:
            header = int.from_bytes(file.read(16)[12:], "little")
        os.truncate(shard, (64 + header + 63) // 64 * 64 + 100)
        self.assert_refused("replay", model(), "--dump", folder, "--depth", "2",
                            says="no whole stream")

    def test_fine_tuning_begins_with_the_head_that_it_is_given(self):
        first = path("first.safetensors")
        trained = run_json("train", model(), "--dump", dump("llama"), "--out", first, *SHORT)
        again = run_json("train", model(), "--dump", dump("llama"), "--out", path("2.safetensors"),
                         "--head", first, "--steps", "2", "--batch", "2", "--freeze", "fc,norms")
        self.assertEqual(again["baseline"]["joint_acceptance"],
                         trained["best"]["joint_acceptance"])
        self.assertGreaterEqual(again["best"]["expected"], again["baseline"]["expected"])

    def test_a_head_takes_another_shortlist(self):
        head, shorter = path("64 words.safetensors"), path("24 words.safetensors")
        run("train", model(), "--dump", dump("llama"), "--out", head, *SHORT, check=0)
        given = ["train", model(), "--dump", dump("llama"), "--head", head, "--steps", "1", "--lr",
                 "0", "--out", shorter]
        kept = run_json(*given)
        self.assertEqual(kept["data"]["draft_vocabulary"], 64)
        cut = run_json(*given, "--shortlist", "24")
        self.assertEqual(cut["data"]["draft_vocabulary"], 24)
        self.assertLess(cut["data"]["coverage"], kept["data"]["coverage"])
        tensors = []
        for name in (head, shorter):
            with open(name, "rb") as file:
                length, = struct.unpack("<Q", file.read(8))
                file.seek(8 + length)
                tensors.append(file.read())
        self.assertEqual(tensors[0], tensors[1])  # the words alone have changed

    def test_the_head_in_a_checkpoint_is_improved_and_patched_in_its_place(self):
        stock, better, folder = path("stock.safetensors"), path("better.safetensors"), path("stocked")
        shutil.copytree(model(), folder)
        run("train", model(), "--dump", dump("llama"), "--out", stock, *SHORT, check=0)
        run("patch", folder, "--head", stock, check=0)
        own = path("own answers")
        run("collect", folder, "--prompts", prompts(4, 20), "--max-tokens", "40", "--temperature",
            "1", "--ignore-eos", "--out", own, check=0)
        trained = run_json("train", folder, "--dump", own, "--out", better, "--steps", "6", "--batch",
                           "4", "--lr", "0.01")
        replayed = run_json("replay", folder, "--dump", own, "--drafter", "mtp", "--depth", "4",
                            "--limit", "4")
        self.assertEqual(replayed["joint_acceptance"], trained["baseline"]["joint_acceptance"])
        replayed = run_json("replay", folder, "--dump", own, "--drafter", "mtp", "--depth", "4",
                            "--limit", "4", "--head", better)
        self.assertEqual(replayed["joint_acceptance"], trained["best"]["joint_acceptance"])
        # A head is for the trunk, and a dump of it, whatever head lies in the folder.
        again = run("patch", folder, "--head", better, check=0)
        self.assertNotIn("another trunk", again.stderr.decode())
        patched = run_json("replay", folder, "--dump", own, "--drafter", "mtp", "--depth", "4",
                           "--limit", "4")
        self.assertEqual(patched["joint_acceptance"], replayed["joint_acceptance"])
        run("unpatch", folder, check=0)
        self.assertEqual(sorted(os.listdir(folder)), sorted(os.listdir(model())))
        plain = run_json("replay", folder, "--dump", own, "--drafter", "mtp", "--depth", "4",
                         "--limit", "4", "--head", better)
        self.assertEqual(plain["joint_acceptance"], replayed["joint_acceptance"])
        with open(os.path.join(folder, "config.json"), "a", encoding="utf-8") as config:
            config.write(" ")
        self.assert_refused("replay", folder, "--dump", own, "--drafter", "lookup",
                            says="a model of SHA-256")

    def test_a_head_that_is_no_better_is_not_promoted(self):
        head = path("kept.safetensors")
        run_json("train", model(), "--dump", dump("llama"), "--out", head, *SHORT)
        with open(head, "rb") as file:
            before = file.read()
        report = run_json("train", model(), "--dump", dump("llama"), "--out", head, "--head", head,
                          "--steps", "1", "--lr", "0", "--promote", check=1)
        self.assertFalse(report["promotion"]["promoted"])
        with open(head, "rb") as file:
            self.assertEqual(file.read(), before)
        self.assertTrue(os.path.exists(head + ".rejected"))
        self.assertFalse(os.path.exists(head + ".candidate"))

    def test_heads_are_judged_over_a_dump_of_their_own(self):
        """What train --promote says over it is what replay says of the two heads, number by
        number."""
        train = ["train", model(), "--dump", patterned("taught", 0, 40)]
        judge = ["--promote", "--judge", patterned("judged", 40, 12)]
        weak, strong, same = (path(name + ".safetensors") for name in ("weak", "strong", "same"))
        run(*train, "--out", weak, "--new", "--shortlist", "0", "--steps", "1", "--lr", "0", check=0)
        learnt = run_json(*train, *judge, "--head", weak, "--out", strong, "--steps", "60",
                          "--lr", "0.01", "--targets", "hard", "--evaluate-every", "20")
        promotion = learnt["promotion"]
        self.assertTrue(promotion["promoted"])
        self.assertEqual(learnt["options"]["judge"], judge[2])
        self.assertEqual(promotion["all"]["prompts"], 12)
        self.assertEqual([(c["category"], c["prompts"]) for c in promotion["categories"]],
                         [("a", 6), ("b", 6)])
        self.assertGreater(promotion["all"]["interval"][0], 0)
        equal = run_json(*train, *judge, "--head", strong, "--out", same, "--steps", "1", "--lr",
                         "0", check=1)["promotion"]
        self.assertFalse(equal["promoted"])
        self.assertEqual(equal["expected_before"], promotion["expected_after"])
        self.assertFalse(os.path.exists(same))

        def against(head, other, *flags, check=0):
            return run_json("replay", model(), "--dump", judge[2], "--head", head, "--against",
                            other, *flags, check=check)
        mtp = ("--drafter", "mtp", "--depth", "4")
        report = against(strong, weak, *mtp)
        self.assertEqual(report["promotion"], promotion)
        self.assertEqual(report["arms"][0]["promotion"], promotion)
        self.assertEqual(report["expected"], promotion["expected_after"])
        worse = report["arms"][0]["against"]
        alone = run_json("replay", model(), "--dump", judge[2], "--head", weak, *mtp)
        self.assertEqual({key: worse[key] for key in alone["arms"][0]}, alone["arms"][0])
        self.assertEqual(report["against_sha256"], alone["head_sha256"])
        self.assertEqual(against(same + ".rejected", strong, *mtp, check=1)["promotion"], equal)
        down = against(weak, strong, *mtp, check=1)["promotion"]
        self.assertIn("falls from", down["reason"])
        self.assertLess(down["all"]["interval"][1], 0)

        # Beside lookup and a store, at several depths; and a head that a folder holds.
        store, folder = path("judge.plstore"), path("judge folder")
        run("store", dump("llama"), "--out", store, check=0)
        arms = ("--drafter", "union", "--store", store, "--depths", "2,4,4:8")
        union = against(strong, weak, *arms)["arms"]
        self.assertEqual([arm["promotion"]["promoted"] for arm in union], [True] * 3)
        self.assertGreater(union[1]["accepted_by_source"]["lookup"], 0)
        self.assertGreater(union[1]["against"]["accepted_by_source"]["lookup"], 0)
        shutil.copytree(model(), folder)
        self.assert_refused("replay", folder, "--dump", judge[2], "--head", strong, "--against",
                            folder, says="no mtp.* tensors in this folder")
        run("patch", folder, "--head", weak, check=0)
        self.assertEqual(against(strong, folder, *arms)["arms"], union)
        told = run("replay", folder, "--dump", judge[2], "--against", strong, *mtp,
                   check=1).stdout.decode()
        self.assertIn("not promoted: the category a falls", told)
        self.assertIn("12 prompts", told)

    def test_what_cannot_judge_heads_is_refused(self):
        taught, head = patterned("taught", 0, 40), path("unjudged.safetensors")
        train = ["train", model(), "--dump", taught, "--new", "--steps", "1", "--out", head]
        judged = patterned("judged", 40, 12)
        self.assert_refused(*train, "--judge", judged, says="goes with --promote")
        self.assert_refused(*train, "--promote", "--judge", "", says="--judge")
        self.assert_refused(*train, "--promote", "--judge", path("no dump"), says="no dump")
        self.assert_refused(*train, "--promote", "--judge", taught,
                            says="the id of its stream 'taught0' is in the training dump as well")
        self.assert_refused(*train, "--promote", "--judge", patterned("again", 39, 3),
                            says="the prompt of its stream 'again39' is in the training dump")
        self.assert_refused(*train, "--promote", "--judge", dump("qwen2"), says="made with a model")
        self.assert_refused(*train, "--promote", "--judge", judged, "--json",
                            os.path.join(judged, "manifest.jsonl"), says="--json")
        # Prompts of answers, under other names.
        with open(prompts(4, 20), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        renamed = write("renamed.jsonl", "".join(json.dumps({**line, "id": "q" + line["id"]}) + "\n"
                                                 for line in lines[:2]))
        run("collect", model(), "--prompts", renamed, "--max-tokens", "8", "--out", path("renamed"),
            check=0)
        self.assert_refused("train", model(), "--dump", dump("llama"), "--new", "--steps", "1",
                            "--out", head, "--promote", "--judge", path("renamed"),
                            says="the prompt of its stream 'q" + lines[0]["id"])
        self.assertFalse(os.path.exists(head + ".candidate"))

        replay = ["replay", model(), "--dump", judged]
        for drafter in ("lookup", "none"):
            self.assert_refused(*replay, "--against", head, "--drafter", drafter,
                                says=f"--drafter {drafter} asks none")
        self.assert_refused(*replay, "--against", head, says="no draft head was found")
        run(*train, check=0)
        self.assert_refused(*replay, "--head", head, "--against", path("none"), says="none")
        other = path("qwen2 head.safetensors")
        run("train", model(family="qwen2"), "--dump", dump("qwen2"), "--out", other, *SHORT, check=0)
        self.assert_refused(*replay, "--head", head, "--against", other, says="qwen2 head")

    def test_a_head_stays_as_it_was_while_one_that_is_to_be_promoted_trains(self):
        head = path("held.safetensors")
        run_json("train", model(), "--dump", dump("llama"), "--out", head, *SHORT)
        with open(head, "rb") as file:
            before = file.read()
        process = subprocess.Popen(
            [cli_support.BINARY, "train", model(), "--dump", dump("llama"), "--out", head,
             "--head", head, "--minutes", "5", "--evaluate-every", "1", "--promote"],
            stderr=subprocess.PIPE, text=True)
        while not process.stderr.readline().startswith("step      3"):
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130)
        self.assertIn("--resume", said)
        with open(head, "rb") as file:
            self.assertEqual(file.read(), before)
        self.assertTrue(os.path.exists(head + ".candidate.run"))

    def test_a_run_whose_gradients_are_not_finite_fails_and_keeps_the_head_it_began_with(self):
        head = path("huge.safetensors")
        run("train", model(), "--dump", dump("llama"), "--out", head, *SHORT, check=0)
        with open(head, "r+b") as file:
            length, = struct.unpack("<Q", file.read(8))
            first, last = json.loads(file.read(length))["mtp.norm.weight"]["data_offsets"]
            file.seek(8 + length + first)
            file.write(b"\x49\x71" * ((last - first) // 2))  # 1e30, whose square no float32 holds
        given = ["train", model(), "--dump", dump("llama"), "--head", head, "--steps", "8", "--out",
                 path("diverged.safetensors")]
        report = run_json(*given, check=1)
        self.assertEqual(report["end"], "not finite")
        self.assertEqual((report["skipped_steps"], report["best"]["step"]), (3, 0))
        said = run(*given, check=1).stderr.decode()
        self.assertIn("holds the head of step 0", said)

    def test_a_file_of_records_trains_too(self):
        records = path("records")
        run("collect", model(), "--prompts", prompts(4, 20), "--max-tokens", "40", "--temperature",
            "1", "--ignore-eos", "--out", path("dump of records"), "--records", records, check=0)
        report = run_json("train", model(), "--dump", records, "--out", path("r.safetensors"),
                          *SHORT, "--targets", "hard")
        self.assertEqual(report["steps"], 8)
        self.assert_refused("train", model(), "--dump", records, "--out", path("r.safetensors"),
                            *SHORT, "--promote", "--judge", patterned("judged", 40, 12),
                            says="a file of records does not say whose prompts")

    def test_the_same_command_gives_the_same_head_whatever_the_threads(self):
        files = []
        for threads in ("1", "2"):
            head = path(f"threads{threads}.safetensors")
            run("train", model(), "--dump", dump("llama"), "--out", head, *SHORT, "--threads",
                threads, check=0)
            with open(head, "rb") as file:
                files.append(file.read())
        self.assertEqual(files[0], files[1])

    def test_what_makes_no_sense_is_refused(self):
        head = path("none.safetensors")
        given = ["train", model(), "--dump", dump("llama"), "--out", head]
        self.assert_refused("train", model(), "--out", head, "--new", "--steps", "1", says="--dump")
        self.assert_refused(*given, "--new", says="--steps or --minutes")
        self.assert_refused(*given, "--steps", "1", says="--new")
        self.assert_refused(*given, "--new", "--steps", "1", "--freeze", "fc,heads", says="heads")
        self.assert_refused(*given, "--new", "--steps", "1", "--tap", "before",
                            says="taken after the final norm")
        self.assert_refused(*given, "--new", "--steps", "1", "--modules", "3", "--depths", "2",
                            says="--depths 2")
        self.assert_refused(*given, "--new", "--steps", "1", "--resume", says="no run to resume")
        stranger = write("stranger", (b"\0\0\0\0" + b"\0\0\0\0" + b"\0\0\x20\0") + bytes(4 * 64))
        self.assert_refused("train", model(), "--dump", stranger, "--out", head, "--new",
                            "--steps", "1", says="stranger")
        self.assert_refused("train", model(family="gemma3"), "--dump", dump("llama"), "--out", head,
                            "--new", "--steps", "1", says="pre-norm decoders with SwiGLU")
        for flag in (("--modules", "2"), ("--tap", "after")):
            self.assert_refused(*given, "--head", path("no head"), "--steps", "1", *flag,
                                says=flag[0] + " is of a new head")
        self.assertFalse(os.path.exists(head))

    def test_a_dump_of_other_numbers_is_refused(self):
        for flag in (("--weights", "bf16"), ("--cache", "f32")):
            for command in (["train", "--new", "--steps", "1", "--out", path("none.safetensors")],
                            ["replay", "--drafter", "lookup"]):
                self.assert_refused(command[0], model("q4_1"), "--dump", dump("llama", "q4_1"),
                                    *command[1:], *flag, says=f"made with {flag[0]} ")

    def test_damage_in_a_dump_is_told(self):
        damaged = path("damaged dump")
        shutil.copytree(dump("llama"), damaged)
        with open(os.path.join(damaged, "shard-00000.pldump"), "r+b") as shard:
            shard.seek(-1, os.SEEK_END)
            last = shard.read(1)[0]
            shard.seek(-1, os.SEEK_END)
            shard.write(bytes([last ^ 1]))
        with open(os.path.join(damaged, "manifest.jsonl"), encoding="utf-8") as manifest:
            dropped = json.loads(manifest.readlines()[-1])["bytes"]
        report = run_json("replay", model(), "--dump", damaged, "--drafter", "lookup")
        self.assertEqual(report["dropped_bytes"], dropped)
        for command in (["replay", model(), "--dump", damaged, "--drafter", "lookup"],
                        ["store", damaged, "--out", path("damaged.plstore")],
                        ["train", model(), "--dump", damaged, "--out", path("d.safetensors"),
                         *SHORT]):
            self.assertIn(f"{dropped} bytes are damaged", run(*command, check=0).stderr.decode())

    def test_what_is_read_is_not_written_over(self):
        trunk = os.path.join(model(), "model.safetensors")
        shard = os.path.join(dump("llama"), "shard-00000.pldump")
        for out in (trunk, shard, path("no such folder/head"), path("."), "/dev/null", ""):
            with self.subTest(out=out):
                self.assert_refused("train", model(), "--dump", dump("llama"), "--out", out, "--new",
                                    "--steps", "1", says="--out")
        for report in (shard, os.path.join(dump("llama"), "manifest.jsonl"), path("one")):
            with self.subTest(json=report):
                self.assert_refused("train", model(), "--dump", dump("llama"), "--out", path("one"),
                                    "--new", "--steps", "1", "--json", report, says="--json")
        self.assert_refused("replay", model(), "--dump", dump("llama"), "--json", shard,
                            says="--json")
        self.assert_refused("store", dump("llama"), "--out", shard, says="--out")
        for out in (trunk, shard, prompts(4, 20), path("no such folder/records"), path("."), ""):
            with self.subTest(records=out):
                self.assert_refused("collect", model(), "--prompts", prompts(4, 20), "--out",
                                    dump("llama"), "--records", out, says="--records")


if __name__ == "__main__":
    cli_support.main()
