"""Reports: the head that all of them share, runs side by side, and what a bench says of itself."""

import hashlib
import json
import os
import shlex
import subprocess
import sys

import cli_heads as heads
import cli_support as cli

HEAD = ["report", "command", "version", "commit", "binary_sha256", "model", "model_sha256",
        "head_sha256", "prompts_sha256", "numerics", "kernels", "instruction_set", "threads",
        "page_size", "cpu", "cpus", "machine_load", "seed"]
PROMPT = ("--raw", "--prompt", "one two three one two three one two three one")


def bench(name, *flags, model=None, threads="1", arms="0,4", check=0):
    cli.run("bench", model or cli.model(), *PROMPT, "--quick", "--max-tokens", "24", "--ignore-eos",
            "--depths", arms, "--threads", threads, "--json", cli.path(name), *flags, check=check)
    with open(cli.path(name)) as file:
        return cli.path(name), json.load(file)


class Head(cli.CliTest):
    def test_every_report_has_it(self):
        model = cli.model()
        words = cli.write("words.txt", " ".join(str(i * i % 97) for i in range(80)))
        for width in "12":
            cli.run("trace", model, "--text-file", words, "--prefill", "8", "--width", width,
                    "--out", cli.path(width + ".trace"), check=0)
        traces = (cli.path("1.trace"), cli.path("2.trace"))
        cli.run("generate", model, *PROMPT, "--max-tokens", "8", "--depth", "2", "--gap-log",
                cli.path("gaps"), check=0)
        drift = ("drift", model, *PROMPT, "--max-tokens", "8", "--out", cli.path("head drift"))
        cli.run(*drift, check=0)
        streams = [os.path.join(cli.path("head drift"), name) for name in ("a.jsonl", "b.jsonl")]
        synth = cli.path("head synth")
        for args in (("synth", "--family", "llama", "--size", "tiny", "--type", "f32", "--out",
                      synth),
                     ("inspect", model), ("tokenize", model, "--text", "a"),
                     ("generate", model, *PROMPT, "--max-tokens", "2"), drift,
                     ("drift", *streams), ("probe", model),
                     ("trace", model, "--text-file", words, "--prefill", "8", "--out",
                      cli.path("3.trace")),
                     ("trace-compare", *traces), ("guard", cli.path("gaps"), *traces),
                     ("parity", "--quick", "--only", "rope")):
            with self.subTest(command=args[0]):
                report = cli.run_json(*args)
                self.assertEqual([name for name in HEAD if name not in report], [])
                self.assertEqual(report["report"], 2)
                self.assertEqual(report["command"], args[0])
                with open(cli.BINARY, "rb") as file:
                    digest = hashlib.sha256(file.read()).hexdigest()
                self.assertEqual(report["binary_sha256"], digest)
                if args[0] in ("inspect", "tokenize", "generate", "probe", "trace"):
                    self.assertRegex(report["model_sha256"], "^[0-9a-f]{64}$")

    def test_prompts_have_a_digest(self):
        args = ("generate", cli.model(), "--max-tokens", "1")
        report = cli.run_json(*args, "--prompt-ids", "1,22,333")
        self.assertEqual(report["prompts_sha256"], hashlib.sha256(b"1,22,333\n").hexdigest())
        other = cli.run_json(*args, "--prompt-ids", "1,22")
        self.assertNotEqual(report["prompts_sha256"], other["prompts_sha256"])


class Bench(cli.CliTest):
    def test_what_it_counts_over_positions(self):
        _, report = bench("positions.json")
        for arm in report["arms"]:
            self.assertEqual(sum(arm["by_position"]["rounds"]), arm["rounds"])
            self.assertEqual(sum(arm["by_position"]["tokens"]), arm["tokens"] - 1)  # the prefill's
        self.assertEqual(report["round_cost"]["rows"], list(range(1, 18)))
        self.assertGreater(report["bandwidth"]["bytes_per_round"], 0)
        seen = report["watched"]
        self.assertTrue(0 < seen["low"] <= seen["high"] and seen["rows"] == 4, seen)
        one_thread = report["threads"] == 1
        crossing = seen["crossing_ns"]  # also null where others kept the CPUs busy
        self.assertTrue(crossing is None or (not one_thread and crossing > 0), seen)
        use = report["machine_use"]
        self.assertTrue(0 <= use["steal"] <= 1 and use["others"] >= 0 and use["seconds"] > 0)
        self.assertEqual(report["noisy"], len(report["noisy_because"]) > 0)

    def test_arms_that_did_the_same_are_named(self):
        _, report = bench("alike.json", "--drafter", "none")
        self.assertEqual(report["arms_alike"], [[0, 4]])
        _, report = bench("scripted.json", "--drafter", "scripted", "--drafts",
                          cli.write("drafts", "1,2,3,4,5\n"))
        self.assertEqual(report["arms_alike"], [])

    def test_strict_says_no(self):
        """Two arms that did the same are refused on a quiet machine too."""
        _, report = bench("strict.json", "--drafter", "none", "--strict", check=1)
        self.assertTrue(report.get("arms_alike") or report["noisy"])
        told = cli.run("bench", cli.model(), *PROMPT, "--quick", "--drafter", "none", "--depths",
                       "0,4", "--strict", check=1).stderr.decode()
        self.assertIn("refused by --strict", told)


class SideBySide(cli.CliTest):
    def test_two_runs(self):
        a, first = bench("a.json")
        b, second = bench("b.json")
        report = cli.run_json("report", a, b)
        self.assertEqual((report["fair"], report["unfair"], report["compared"]), (True, [], "bench"))
        self.assertEqual([arm["depth"] for arm in report["arms"]], [0, 4])
        drafting = report["arms"][1]
        self.assertEqual(drafting["speedup"],
                         [run["arms"][1]["speedup"] for run in (first, second)])
        self.assertEqual(drafting["tokens_per_round"][0], drafting["tokens_per_round"][1])
        names = [measure["name"] for measure in report["measures"]]
        self.assertIn("bandwidth.reached", names)
        self.assertNotIn("threads", names)
        shown = cli.run("report", a, b, check=0).stdout.decode()
        self.assertIn("depth 4 speedup", shown)
        # --quick runs each prompt once, so nobody can tell what another run would give.
        self.assertEqual(drafting["speedup_interval"], [None, None])
        self.assertIsNone(drafting["agree"])
        self.assertIn("not judged without repeats", shown)
        self.assertIn("a.json", shown)

    def test_a_bench_without_intervals_says_why(self):
        def says(*args):
            return cli.run("bench", cli.model(), *PROMPT, "--ignore-eos", "--depths", "0,4", *args,
                           check=0).stdout.decode()
        short = says("--max-tokens", "1", "--repeats", "2")
        self.assertIn("more --max-tokens", short)
        self.assertIn("nothing was decoded plainly", short)
        self.assertIn("--repeats 2 or more", says("--max-tokens", "8", "--repeats", "1"))
        many = cli.write("many.txt", "".join(f"one two {i}\n" for i in range(50)))
        shown = cli.run("bench", cli.model(), "--raw", "--prompts", many, "--ignore-eos", "--depths",
                        "0,4", "--max-tokens", "200", "--repeats", "2", "--seconds", "0.1", check=0)
        self.assertIn("more --seconds", shown.stdout.decode())
        self.assertNotIn("nobody can tell", says("--max-tokens", "8", "--repeats", "2"))

    def test_runs_agree_by_what_another_run_of_these_prompts_gives(self):
        """Not by how other prompts would do, and not where one run has no such interval."""
        _, run = bench("repeated.json", "--repeats", "2")
        arm = {**run["arms"][1], "speedup_interval_prompts": [1, 9]}
        def verdict(*intervals):
            files = [cli.write(f"agree {i}.json", json.dumps(
                {**run, "arms": [run["arms"][0], {**arm, "speedup_interval": interval}]}))
                for i, interval in enumerate(intervals)]
            return cli.run_json("report", *files)["arms"][1]["agree"]
        self.assertIs(verdict([1.9, 2.0], [1.98, 2.1]), True)
        self.assertIs(verdict([1.9, 2.0], [2.01, 2.1]), False)
        self.assertIsNone(verdict([1.9, 2.0], None))

    def test_arms_of_one_depth_are_told_apart_by_their_trees(self):
        runs = [bench(name, "--drafter", "lookup", arms="0,4:2,4:15,4,auto:0")
                for name in ("a trees.json", "b trees.json")]
        report = cli.run_json("report", *(path for path, _ in runs))
        self.assertEqual([(arm["depth"], arm["tree"]) for arm in report["arms"]],
                         [(0, "auto"), (4, 2), (4, 15), (4, "auto"), ("auto", 0)])
        for i, arm in enumerate(report["arms"]):
            self.assertEqual(arm["tokens_per_second"],
                             [run["arms"][i]["tokens_per_second"] for _, run in runs])
        self.assertIn("depth 4:15 speedup",
                      cli.run("report", *(path for path, _ in runs), check=0).stdout.decode())

    def test_unfair_pairs_are_refused_and_named(self):
        a, report = bench("fair.json")
        for field, value in (("model_sha256", "ff"), ("head_sha256", "12"), ("threads", 2),
                             ("prompts_sha256", "0"), ("cpu", "another"), ("numerics", "amx"),
                             ("instruction_set", "none")):
            b = cli.write("unfair.json", json.dumps({**report, field: value}))
            self.assert_refused("report", a, b, says=field)
            told = cli.run_json("report", a, b, "--allow-unfair")
            self.assertFalse(told["fair"])
            self.assertEqual([one["field"] for one in told["unfair"]], [field])
        self.assert_refused("report", a, bench("two.json", threads="2")[0], says="threads")

    def test_a_stock_folder_against_a_patched_one_is_unfair_by_its_head(self):
        folder = heads.single("stock")
        runs = [bench("stock.json", model=folder)]
        for seed in (1, 2):
            cli.run("patch", folder, "--head", heads.head(folder, seed=seed), check=0)
            runs.append(bench(f"patched {seed}.json", model=folder))
        self.assertEqual(len({report["model_sha256"] for _, report in runs}), 1)
        self.assertEqual(len({report["head_sha256"] for _, report in runs}), 3)
        (stock, _), (first, _), (second, _) = runs
        for pair in ((stock, first), (first, second)):
            self.assert_refused("report", *pair, says="head_sha256 (another draft head, or none: "
                                                      "stock against patched")

    def test_what_is_no_report(self):
        a, report = bench("good.json")
        self.assert_refused("report", says="REPORT is missing")
        self.assert_refused("report", a, says="two reports")
        self.assert_refused("report", a, a, says="twice")
        both = cli.path("both")
        self.assert_refused("report", a, "--json", both, "--html", both, says="where --html goes")
        self.assert_refused("report", a, cli.path("nowhere"), says="nowhere")
        self.assert_refused("report", a, cli.write("t.json", "text"), says="t.json")
        self.assert_refused("report", a, cli.write("u.json", "{}"), says="u.json")
        later = cli.write("later.json", json.dumps({**report, "report": 3}))
        self.assert_refused("report", a, later, says="form 3")
        other = cli.write("other.json", json.dumps({**report, "command": "drift"}))
        self.assert_refused("report", a, other, says="'drift'")
        self.assert_refused("report", a, later, "--html", a, says="that is what is to be read")
        deep = json.dumps(report)[:-1] + ', "deep": ' + "[" * 100000 + "]" * 100000 + "}"
        self.assert_refused("report", cli.write("deep.json", deep), "--html", cli.path("page.html"),
                            says="deep.json")
        inspected = cli.write("inspect.json", json.dumps(cli.run_json("inspect", cli.model())))
        self.assert_refused("report", inspected, "--html", cli.path("page.html"), says="'inspect'")

    def test_html_wants_a_file(self):
        args = ("generate", cli.model(), *PROMPT, "--html")
        self.assert_refused(*args, "-", says="--html")
        self.assert_refused(*args, "", says="--html")
        self.assert_refused(*args, cli.FOLDER, says="folder")
        self.assert_refused(*args, cli.path("no/where.html"), says="--html")


class BenchRepeats(cli.CliTest):
    """tools/check/bench_repeats.py, with a program whose benches give what the test says."""

    SCRIPT = os.path.join(os.path.dirname(__file__), "..", "tools", "check", "bench_repeats.py")

    def repeats(self, *args):
        return subprocess.run([sys.executable, "-B", self.SCRIPT, *args], capture_output=True,
                              text=True, timeout=300)

    def program(self, intervals, identical=True):
        """Like paceline, but the next bench has the next of these intervals, and behind them what a
        pass of four rows cost. Where its arms wrote different texts it says so, and ends with exit
        status 1."""
        path, _ = bench("repeats.json", "--repeats", "2")
        todo = cli.write("todo.json", json.dumps(intervals))
        fake = cli.write("fake paceline", f"""#!/bin/sh
test "$1" = bench || exec {shlex.quote(cli.BINARY)} "$@"
exec {shlex.quote(sys.executable)} - {shlex.quote(path)} {shlex.quote(todo)} "$@" <<'END'
import json, sys
report, todo = (json.load(open(name)) for name in sys.argv[1:3])
report["arms"][1]["speedup_interval"] = todo[0][:2] if todo[0] else None
report["arms"][1]["speedup"] = sum(todo[0][:2]) / 2 if todo[0] else 2
cost = todo[0][2] if todo[0] and len(todo[0]) > 2 else 1.2
report["watched"] = {{"rows": 4, "looks": 20, "mean": cost, "low": cost, "high": cost}}
json.dump(todo[1:], open(sys.argv[2], "w"))
report["identical"] = {identical}
json.dump(report, open(sys.argv[sys.argv.index("--json") + 1], "w"))
sys.exit(not {identical})
END
""")
        os.chmod(fake, 0o755)
        return fake

    def test_nine_of_ten_pairs_and_five_per_cent(self):
        same, apart, wide = [[1.96, 2.04], [2.0, 2.08]], [[1.9, 2.0], [2.1, 2.2]], [[1.8, 2.2]] * 2
        for pairs, good, says in ((9 * same + apart, 0, "depth 4: 9 of 10 pairs agree"),
                                  (8 * same + 2 * apart, 1, "depth 4: 8 of 10 pairs agree"),
                                  (9 * same + wide, 1, "10 of 10 pairs agree, widest interval ±10.0"),
                                  (9 * same + [[1.96, 2.04], None], 1, "no interval")):
            result = self.repeats(self.program(pairs), "model", "--depths", "0,4")
            self.assertEqual(result.returncode, good, result.stdout + result.stderr)
            self.assertIn(says, result.stdout)

    def test_pairs_that_a_machine_changed_between_are_named_and_judged(self):
        changed, same = [[1.96, 2.04, 1.4], [2.5, 2.6, 1.1]], [[1.96, 2.04, 1.1], [2.0, 2.08, 1.15]]
        result = self.repeats("--pairs", "2", self.program(changed + same), "model", "--depths", "0,4")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertEqual(result.stdout.count("machine changed"), 1, result.stdout)
        self.assertIn("depth 4: 1 of 2 pairs agree", result.stdout)

    def test_runs_that_the_machine_changed_between_are_told(self):
        path, run = bench("changed.json")
        def state(*seen):
            files = [cli.write(f"state {i}.json", json.dumps({**run, "watched": watched}))
                     for i, watched in enumerate(seen)]
            shown = cli.run("report", *files, check=0).stdout.decode()
            same = cli.run_json("report", *files)["same_state"]
            self.assertEqual("the machine changed" in shown, same is False, shown)
            return same
        steady = {"rows": 4, "looks": 10, "mean": 1.12, "low": 1.1, "high": 1.15}
        self.assertIs(state(steady, {**steady, "mean": 1.19}), True)
        self.assertIs(state(steady, {**steady, "mean": 1.21}), False)
        self.assertIs(state(steady, {**steady, "high": 1.4}), True)  # noisy, but alike
        self.assertIsNone(state(steady, None))

    def test_arms_that_write_different_texts_are_no_comparison(self):
        fake = self.program([[1.96, 2.04]] * 2, identical=False)
        result = self.repeats("--pairs", "1", fake, "model", "--depths", "0,4")
        self.assertEqual(result.returncode, 2)
        self.assertIn("arms wrote different texts", result.stderr)

    def test_the_program_itself(self):
        kept = cli.path("kept reports")
        result = self.repeats("--pairs", "1", "--out", kept, cli.BINARY, cli.model(), *PROMPT,
                              "--max-tokens", "24", "--ignore-eos", "--depths", "0,4:0,4:8")
        self.assertIn(result.returncode, (0, 1), result.stderr)  # the machine may be busy
        self.assertIn("depth 4:8: ", result.stdout)
        self.assertEqual(sorted(os.listdir(kept))[:2], ["001-a.json", "001-b.json"])
        for name in os.listdir(kept):
            with open(os.path.join(kept, name)) as file:
                report = json.load(file)
            self.assertEqual(report["repeats"], 3)
            self.assertIsNotNone(report["arms"][1]["speedup_interval"])
        result = self.repeats("--pairs", "1", cli.BINARY, cli.path("nowhere"))
        self.assertEqual(result.returncode, 2)
        self.assertIn("nowhere", result.stderr)


class DriftPrompts(cli.CliTest):
    def test_a_set_is_built_in(self):
        report = cli.run_json("drift", cli.model(), "--max-tokens", "3", "--out",
                              cli.path("built in"))
        self.assertEqual({prompt["category"] for prompt in report["prompts"]},
                         {"english", "japanese", "chinese", "code", "json", "emoji"})
        self.assertEqual(report["outcome"], "same")


if __name__ == "__main__":
    cli.main()
