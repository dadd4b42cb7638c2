"""Stores of n-grams, learning, and replay, as scripts use them."""

import hashlib
import json
import os
import shutil
import subprocess

import cli_head
import cli_support as cli

RUN = ("--max-tokens", "60", "--ignore-eos", "--raw")


def sha256_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Store(cli.CliTest):
    def setUp(self):
        self.data = cli.path("data")
        os.makedirs(self.data, exist_ok=True)
        self.env = {"XDG_DATA_HOME": self.data}
        self.model = cli.model("q8_0")
        self.addCleanup(shutil.rmtree, self.data)

    def generate(self, *args, **kwargs):
        return cli.run_json("generate", self.model, "--prompt-ids", "5,6,7", *RUN, *args,
                            env=self.env, **kwargs)

    def learnt(self):
        sha256 = cli.run_json("inspect", self.model, env=self.env)["sha256"]
        return os.path.join(self.data, "paceline", "stores", sha256 + ".plstore")

    def test_what_was_learnt_is_found_and_drafted_from(self):
        before = self.generate("--depth", "4")
        self.assertIsNone(before["store_sha256"])
        self.assertFalse(os.path.exists(self.learnt()), "nothing is learnt unless asked for")
        told = cli.run("generate", self.model, "--prompt-ids", "5,6,7", *RUN, "--depths", "0,4",
                       "--learn", env=self.env, check=0).stderr.decode()
        self.assertIn(f"learnt 60 tokens; to forget all that was learnt, remove {self.learnt()}\n",
                      told)
        after = self.generate("--depths", "4,0,auto")
        arm = after["results"][0]["arms"][0]
        self.assertEqual(arm["drafter"], "union")
        self.assertEqual(after["store_sha256"], sha256_of(self.learnt()))
        self.assertEqual(after["store_bytes"], os.path.getsize(self.learnt()))
        inspected = cli.run_json("inspect", self.model, env=self.env)["store"]
        self.assertEqual((inspected["file"], inspected["file_bytes"], inspected["tokens"]),
                         (self.learnt(), os.path.getsize(self.learnt()), 60))
        told = cli.run("inspect", self.model, env=self.env, check=0).stdout.decode()
        self.assertIn(f"store           {self.learnt()}, ", told)
        self.assertTrue(after["identical"])
        self.assertEqual(arm["token_ids"], before["results"][0]["arms"][0]["token_ids"])
        self.assertGreater(arm["accepted_by_source"]["store"], 20, "it knows this answer")
        self.assertEqual(sum(arm["accepted_by_source"].values()), sum(arm["accepted_by_depth"]))
        self.assertGreater(arm["tokens_per_round"],
                           before["results"][0]["arms"][0]["tokens_per_round"])
        os.remove(self.learnt())
        self.assertIsNone(self.generate("--depth", "4")["store_sha256"])

    def test_a_named_file_begins_grows_and_holds_answers_alone(self):
        store = cli.path("data/own.plstore")
        self.assert_refused("generate", self.model, "--prompt-ids", "1", "--store", store,
                            says=store, env=self.env)
        self.generate("--depth", "4", "--store", store, "--learn")
        first = sha256_of(store)
        told = cli.run("generate", self.model, "--prompt-ids", ",".join(["9"] * 300), *RUN,
                       "--store", store, "--learn", env=self.env, check=0).stderr
        self.assertIn(b"learnt 60 tokens", told)
        self.assertNotEqual(sha256_of(store), first)
        self.assertFalse(os.path.exists(self.learnt()))

    def test_learners_at_the_same_time_lose_nothing(self):
        store = cli.path("data/both.plstore")
        command = [cli.BINARY, "generate", self.model, *RUN, "--store", store, "--learn",
                   "--prompt-ids"]
        environment = dict(os.environ, **self.env)
        runs = [subprocess.Popen(command + [ids], env=environment, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL) for ids in ("1", "2", "3", "4")]
        self.assertEqual([run.wait(timeout=300) for run in runs], [0] * 4)
        # Header: magic 8, vocabulary 4, entries 4, tokens 8.
        with open(store, "rb") as file:
            self.assertEqual(int.from_bytes(file.read(24)[16:24], "little"), 4 * 60)

    def test_a_damaged_store_is_refused_by_name_and_left_aside_when_found(self):
        self.generate("--depth", "4", "--learn")
        with open(self.learnt(), "r+b") as file:
            file.seek(5000)
            file.write(b"damage")
        told = cli.run("generate", self.model, "--prompt-ids", "1", *RUN, env=self.env, check=0)
        self.assertEqual(told.stderr.decode().count("warning: " + self.learnt()), 1)
        self.assertIn("checksum", told.stderr.decode())
        self.assert_refused("generate", self.model, "--prompt-ids", "1", "--store", self.learnt(),
                            says="checksum", env=self.env)
        report = self.generate("--depth", "4", "--drafter", "union")
        self.assertEqual(report["results"][0]["arms"][0]["drafter"], "union")

    def test_what_could_not_be_kept_is_said_before_a_word_is_written(self):
        self.generate("--learn")
        with open(self.learnt(), "r+b") as file:
            file.truncate(1000)
        learn = ("generate", self.model, "--prompt-ids", "1", *RUN, "--learn")
        told = self.assert_refused(*learn, says=self.learnt(), env=self.env)
        self.assertIn("move this one away", told)
        self.assertEqual(os.path.getsize(self.learnt()), 1000)
        self.assert_refused(*learn, "--store", os.path.join(self.learnt(), "x"),
                            says="Not a directory", env=self.env)
        self.assert_refused(*learn, env={"XDG_DATA_HOME": cli.write("no folder", "")},
                            says="Not a directory")

    def test_a_pipe_is_no_store(self):
        folder = os.path.join(self.data, "paceline/heads")
        os.makedirs(folder)
        pipe = os.path.join(folder, "a.plstore")
        os.mkfifo(pipe)
        os.mkfifo(os.path.join(folder, "a.safetensors"))
        run = ("generate", self.model, "--prompt-ids", "1", *RUN)
        self.assert_refused(*run, "--store", pipe, says="not a regular file", env=self.env,
                            timeout=60)
        told = cli.run(*run, env=self.env, check=0, timeout=60).stderr.decode()
        self.assertEqual(told.count("warning: " + pipe), 1)

    def test_learning_through_a_link_keeps_it(self):
        store, link = cli.path("data/real.plstore"), cli.path("data/link.plstore")
        self.generate("--learn", "--store", store)
        first = sha256_of(store)
        os.symlink("real.plstore", link)
        self.generate("--learn", "--store", link)
        self.assertTrue(os.path.islink(link))
        self.assertNotEqual(sha256_of(store), first)

    def test_another_models_store(self):
        store = cli.path("data/other.plstore")
        cli.run("generate", cli.model("f32"), "--prompt-ids", "1", *RUN, "--store", store, "--learn",
                env=self.env, check=0)
        told = cli.run("generate", self.model, "--prompt-ids", "1", *RUN, "--store", store,
                       env=self.env, check=0)
        self.assertIn(b"holds the answers of a model with the SHA-256", told.stderr)
        self.assert_refused("generate", self.model, "--prompt-ids", "1", "--store", store, "--learn",
                            says="learns from that one alone", env=self.env)

    def test_faults_of_use(self):
        for command in ("bench", "drift"):
            more = ("--prompt", "a", "--depths", "0,4", "--out", cli.path("x"))
            self.assert_refused(command, self.model, "--learn", *(more if command == "drift" else ()),
                                says="--learn", env=self.env)
        self.assert_refused("generate", self.model, "--prompt-ids", "1", "--store", "",
                            says="--store", env=self.env)
        self.assert_refused("store", cli.path("nowhere"), "--out", cli.path("s"), says="nowhere")
        self.assert_refused("store", cli.path("nowhere"), says="--out")


class Replay(cli.CliTest):
    def setUp(self):
        self.env = {"XDG_DATA_HOME": cli.path("nothing")}
        self.model = cli.model("bf16")
        prompts = [{"id": f"p{i}", "category": "ab"[i % 2], "prompt": " ".join(["one two"] * i + ["x"])}
                   for i in range(9)]
        self.prompts = cli.write("replay.jsonl", "\n".join(json.dumps(p) for p in prompts) + "\n")
        self.made = []
        self.addCleanup(lambda: [shutil.rmtree(folder) for folder in self.made])

    def dump(self, name, *args):
        folder = cli.path(name)
        self.made.append(folder)
        return folder, cli.run_json("generate", self.model, "--prompts", self.prompts, "--raw",
                                    "--dump", folder, *args, env=self.env)

    def assert_equal_counts(self, live, replayed):
        arms = [result["arms"][0] for result in live["results"]]
        self.assertEqual(replayed["rounds"], sum(arm["rounds"] for arm in arms))
        for name in ("drafted_by_depth", "accepted_by_depth"):
            self.assertEqual(replayed[name], [sum(column) for column in zip(*(a[name] for a in arms))])
        for name in ("drafted_by_source", "accepted_by_source"):
            for source in arms[0][name]:
                self.assertEqual(replayed[name][source], sum(arm[name][source] for arm in arms))

    def test_replay_counts_what_the_live_run_counted(self):
        head = cli_head.write_head("replay head.safetensors", cli_head.head_shapes(self.model))
        answers, _ = self.dump("answers", "--max-tokens", "80", "--depth", "0")
        store = cli.path("replay.plstore")
        made = cli.run_json("store", answers, "--out", store)
        self.assertEqual(made["store_sha256"], sha256_of(store))
        self.assertEqual(made["answers"], 9)
        sampled = ("--temperature", "0.9", "--seed", "3")
        cases = [("lookup", 4, (), ()), ("lookup", 1, (), sampled),
                 ("union", 8, ("--store", store), ()), ("union", 3, ("--store", store), sampled),
                 ("mtp", 3, ("--head", head), ()),
                 ("union", 4, ("--head", head, "--store", store), sampled)]
        accepted = 0
        for i, (drafter, depth, files, more) in enumerate(cases):
            flags = ("--drafter", drafter, "--depth", str(depth), *files)
            folder, live = self.dump(f"live {i}", "--max-tokens", str(30 + 7 * i), *flags, *more)
            replayed = cli.run_json("replay", self.model, "--dump", folder, "--cycles", *flags,
                                    env=self.env)
            with self.subTest(drafter=drafter, depth=depth):
                self.assert_equal_counts(live, replayed)
                self.assertEqual(sorted(replayed["arms"][0]["by_category"]), ["a", "b"])
                self.assertEqual(len(replayed["joint_acceptance"]), depth)
            accepted += sum(replayed["accepted_by_depth"])
        self.assertGreater(accepted, 50)

    def test_several_arms_and_short_cycles(self):
        folder, live = self.dump("cycles", "--max-tokens", "200", "--ignore-eos", "--depth", "0")
        whole = cli.run_json("replay", self.model, "--dump", folder, "--cycles", "--depths", "0,2,8",
                             "--drafter", "lookup", env=self.env)
        self.assertEqual([arm["depth"] for arm in whole["arms"]], [0, 2, 8])
        self.assertEqual(whole["arms"][0]["tokens_per_round"], 1)
        self.assertEqual(whole["arms"][0]["rounds"], 9 * 199)
        cut = cli.run_json("replay", self.model, "--dump", folder, "--depths", "0,2,8", "--drafter",
                           "lookup", env=self.env)
        with open(os.path.join(folder, "manifest.jsonl"), encoding="utf-8") as manifest:
            streams = [json.loads(line) for line in manifest]
        walked = sum(max(0, s["cycle_start"] - s["n_prompt"] - 1) if s["cycle_start"] < s["positions"]
                     else s["positions"] - s["n_prompt"] for s in streams)
        self.assertEqual(cut["arms"][0]["rounds"], walked)

    def test_faults_of_use(self):
        folder, _ = self.dump("faults", "--max-tokens", "4", "--depth", "0")
        self.assert_refused("replay", self.model, "--depth", "4", says="--dump", env=self.env)
        self.assert_refused("replay", self.model, "--dump", cli.path("no dump"), says="no dump",
                            env=self.env)
        self.assert_refused("replay", cli.model("f32"), "--dump", folder, says="SHA-256", env=self.env)
        self.assert_refused("replay", self.model, "--dump", folder, "--drafter", "mtp", says="--head",
                            env=self.env)
        head = cli_head.write_head("before.safetensors", cli_head.head_shapes(self.model),
                                   metadata={"paceline.tap": "before"})
        self.assert_refused("replay", self.model, "--dump", folder, "--head", head, says="--tap before",
                            env=self.env)


if __name__ == "__main__":
    cli.main()
