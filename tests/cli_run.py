"""What the commands do, on tiny models with random weights."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import time

import cli_support as cli

HEADER = ["version", "commit", "model_sha256", "numerics", "instruction_set", "threads",
          "page_size", "machine_load", "seed", "cpu", "drafter"]


class Synth(cli.CliTest):
    def test_files_and_counts(self):
        for kind in ("f32", "bf16", "q8_0", "q4_0", "q4_1"):
            folder = cli.path("synth " + kind)
            args = ("synth", "--family", "llama", "--size", "tiny", "--type", kind)
            report = cli.run_json(*args, "--out", folder)
            # 512 * 64 + 2 * (2 * 64 + 64 * 64 * 2 + 2 * 32 * 64 + 3 * 160 * 64) + 64
            self.assertEqual(report["parameters"], 119104)
            self.assertEqual(sorted(report["files"]),
                             sorted(os.path.join(folder, f) for f in os.listdir(folder)))
            cli.run(*args, "--out", folder + " again", check=0)
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), "rb") as a, \
                        open(os.path.join(folder + " again", name), "rb") as b:
                    self.assertEqual(a.read(), b.read(), name)

    def test_another_seed_gives_another_model(self):
        folder = cli.path("seed 2")
        cli.run("synth", "--family", "llama", "--size", "tiny", "--type", "f32", "--seed", "2",
                "--out", folder, check=0)
        self.assertNotEqual(cli.run_json("inspect", folder)["sha256"],
                            cli.run_json("inspect", cli.model())["sha256"])

    def test_both_formats_hold_the_same_model(self):
        """Q8_0 keeps about three digits, so the first logits of both files are close."""
        def first(kind):
            report = cli.run_json("generate", cli.model(kind), "--prompt-ids", "10,200,30,4",
                                  "--max-tokens", "1", "--logprobs", "512")
            return dict(report["results"][0]["arms"][0]["logprobs"][0]["top"])
        exact, rounded = first("f32"), first("q8_0")
        self.assertEqual(len(exact), 512)
        spread = max(exact.values()) - min(exact.values())
        worst = max(abs(exact[id] - rounded[id]) for id in exact)
        self.assertLess(worst, 0.15 * spread)

    def test_qwen3_has_its_own_tensors(self):
        folder = cli.path("qwen")
        report = cli.run_json("synth", "--family", "qwen3", "--size", "tiny", "--type", "bf16",
                              "--out", folder)
        with open(os.path.join(folder, "model.safetensors"), "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        self.assertEqual(header["model.layers.1.self_attn.q_norm.weight"]["shape"], [32])
        self.assertEqual(header["model.layers.0.self_attn.q_proj.weight"]["shape"], [128, 64])
        self.assertIn(os.path.join(folder, "config.json"), report["files"])


class Inspect(cli.CliTest):
    def test_fields(self):
        report = cli.run_json("inspect", cli.model("q4_1"))
        self.assertEqual(report["family"], "llama")
        self.assertEqual(report["parameters"], 119104)
        self.assertEqual(report["types"], {"F32": 5, "Q4_1": 14, "Q8_0": 1})
        self.assertEqual(report["head"]["state"], "absent")
        self.assertEqual(report["converted"], [])
        self.assertEqual(report["unused_tensors"], [])
        self.assertRegex(report["sha256"], "^[0-9a-f]{64}$")
        self.assertEqual(report["tokenizer"]["vocab_size"], 512)
        for field in HEADER:
            self.assertIn(field, report)
        self.assertIn("119,104", cli.run("inspect", cli.model("q4_1"), check=0).stdout.decode())


class Tokenize(cli.CliTest):
    def test_there_and_back(self):
        text = "Gr\u00fc\u00dfe,  \u4e16\u754c 7\n\U0001f600"
        there = cli.run_json("tokenize", cli.model(), "--text", text)
        self.assertEqual(there["text"], text)
        ids = ",".join(map(str, there["ids"]))
        self.assertEqual(cli.run_json("tokenize", cli.model(), "--ids", ids)["text"], text)
        from_file = cli.run_json("tokenize", cli.model(), "--text-file", cli.write("t", text))
        self.assertEqual(from_file["ids"], there["ids"])
        from_stdin = cli.run_json("tokenize", cli.model(), "--text-file", "-", stdin=text.encode())
        self.assertEqual(from_stdin["ids"], there["ids"])
        shown = cli.run("tokenize", cli.model(), "--text", text, check=0).stdout.decode()
        self.assertEqual(shown, ids + "\n")

    def test_no_weights_are_needed(self):
        ids = cli.run_json("tokenize", cli.model(), "--text", "a b")["ids"]
        folder = cli.path("tokenizer alone")
        os.makedirs(folder, exist_ok=True)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(os.path.join(cli.model(), name), folder)
        for model in (folder, os.path.join(folder, "tokenizer.json")):
            self.assertEqual(cli.run_json("tokenize", model, "--text", "a b")["ids"], ids)

    def test_many_at_once(self):
        folder = cli.path("tokenizer with template")
        os.makedirs(folder, exist_ok=True)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(os.path.join(cli.model(), name), folder)
        with open(os.path.join(folder, "chat_template.jinja"), "w", encoding="utf-8") as file:
            file.write("{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}"
                       "{% endif %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}>{% endif %}")
        talk = [{"role": "user", "content": "x\ny"}]
        lines = ["a\nb", [1, 2], {"messages": talk}, {"messages": talk, "add_generation_prompt": False},
                 {"messages": [{"role": "tool", "content": ""}]}]
        out = cli.run("tokenize", folder, "--lines",
                      cli.write("lines", "".join(json.dumps(line) + "\n" for line in lines)),
                      check=0).stdout
        ids, text, with_prompt, without, refused = map(json.loads, out.splitlines())
        self.assertEqual(ids, cli.run_json("tokenize", folder, "--text", "a\nb")["ids"])
        self.assertEqual(text, cli.run_json("tokenize", folder, "--ids", "1,2")["text"])
        self.assertEqual(with_prompt["text"], "x\ny>")
        self.assertEqual(without["text"], "x\ny")
        self.assertEqual(cli.run_json("tokenize", folder, "--text", "x\ny")["ids"], without["ids"])
        self.assertIn("no tools", refused["error"])
        for bad in ("x", "[-1]", "[99999999]", "[1.5]", "3", "{}", '{"messages": 1}',
                    '{"messages": [{"role": "user"}]}', '{"messages": [], "add_generation_prompt": 1}'):
            self.assert_refused("tokenize", folder, "--lines", cli.write("bad", '"a"\n' + bad + "\n"),
                                says="line 2")

    def test_json_is_utf8_whatever_the_bytes(self):
        report = cli.run_json("tokenize", cli.model(), "--text-file",
                              cli.write("bad", b"a\xff\xc0\x80\xed\xa0\x80 b\x00c\xe4\xb8"))
        self.assertTrue(report["text"].startswith("a\ufffd"))
        self.assertTrue(report["ids"])


class Generate(cli.CliTest):
    def test_arms_write_the_same(self):
        for kind in ("f32", "bf16", "q8_0", "q4_0", "q4_1"):
            report = cli.run_json("generate", cli.model(kind), "--prompt",
                                  "one two three one two three one two", "--raw", "--max-tokens",
                                  "48", "--ignore-eos", "--depths", "0,4,auto")
            result = report["results"][0]
            self.assertTrue(result["identical"])
            self.assertTrue(report["identical"])
            self.assertEqual([arm["depth"] for arm in result["arms"]], [0, 4, "auto"])
            for arm in result["arms"]:
                self.assertEqual(len(arm["token_ids"]), 48)
                self.assertEqual(arm["token_ids"], result["arms"][0]["token_ids"])
                self.assertEqual(arm["finish_reason"], "length")
            self.assertEqual(len(result["arms"][1]["drafted_by_depth"]), 4)
            self.assertEqual(result["arms"][0]["rounds"], 47)
            for field in HEADER:
                self.assertIn(field, report)

    def test_scripted_drafts_are_counted(self):
        args = ("generate", cli.model(), "--prompt-ids", "7,8,9", "--max-tokens", "13",
                "--ignore-eos")
        plain = cli.run_json(*args, "--depth", "0")["results"][0]["arms"][0]["token_ids"]
        drafts = cli.write("right", ",".join(map(str, plain)))
        arm = cli.run_json(*args, "--depth", "3", "--drafter", "scripted", "--drafts",
                           drafts)["results"][0]["arms"][0]
        self.assertEqual(arm["token_ids"], plain)
        self.assertEqual(arm["drafter"], "scripted")
        # 1 token from the prefill and 12 from rounds of 4
        self.assertEqual(arm["rounds"], 3)
        self.assertEqual(arm["proposed"], 9)
        self.assertEqual(arm["drafted_by_depth"], [3, 3, 3])
        self.assertEqual(arm["accepted_by_depth"], [3, 3, 3])
        self.assertEqual(arm["accepted_by_source"]["scripted"], 9)
        wrong = cli.write("wrong", json.dumps([(id + 1) % 512 for id in plain]))
        arm = cli.run_json(*args, "--depth", "3", "--drafter", "scripted", "--drafts",
                           wrong)["results"][0]["arms"][0]
        self.assertEqual(arm["token_ids"], plain)
        self.assertEqual(arm["accepted_by_depth"], [0, 0, 0])

    def test_prompts_from_files_and_standard_input(self):
        lines = '{"prompt": "hello", "id": "x"}\n\n{"messages": [{"role": "user", "content": "hi"}]}\n'
        args = ("--max-tokens", "4", "--ignore-eos")
        by_file = cli.run_json("generate", cli.model(), "--prompts", cli.write("p q.jsonl", lines),
                               *args)
        self.assertEqual([r["id"] for r in by_file["results"]], ["x", "3"])
        by_stdin = cli.run_json("generate", cli.model(), "--prompts", "-", *args,
                                stdin=lines.encode())
        plain = cli.run_json("generate", cli.model(), "--prompts", "-", *args, stdin=b"hello\nhi\n")
        for a, b, c in zip(by_file["results"], by_stdin["results"], plain["results"]):
            self.assertEqual(a["prompt_ids"], b["prompt_ids"])
            self.assertEqual(a["prompt_ids"], c["prompt_ids"])
            self.assertEqual(a["arms"][0]["token_ids"], c["arms"][0]["token_ids"])

    def test_text_and_json_go_to_their_places(self):
        args = ("generate", cli.model(), "--prompt", "hello", "--max-tokens", "20")
        target = cli.write("report.json", "old")
        result = cli.run(*args, "--json", target, check=0)
        with open(target, encoding="utf-8") as file:
            report = json.load(file)
        arm = report["results"][0]["arms"][0]
        self.assertEqual(result.stdout.decode("utf-8").rstrip("\n"), arm["text"].rstrip("\n"))
        self.assertNotIn(b"\x1b", result.stdout)
        self.assertIn(b"tokens/s", result.stderr)
        colored = cli.run(*args, "--color", "always", check=0)
        self.assertEqual(len(report["results"]), 1)
        self.assertGreaterEqual(len(colored.stdout), len(result.stdout))
        leftovers = [f for f in os.listdir(cli.FOLDER) if f.startswith("report.json") and
                     f != "report.json"]
        self.assertEqual(leftovers, [])

    def test_logprobs(self):
        report = cli.run_json("generate", cli.model(), "--prompt-ids", "3,4", "--max-tokens", "5",
                              "--ignore-eos", "--logprobs", "3", "--depths", "0,2")
        self.assertTrue(report["identical"])
        for arm in report["results"][0]["arms"]:
            self.assertEqual([entry["id"] for entry in arm["logprobs"]], arm["token_ids"])
            for entry in arm["logprobs"]:
                self.assertEqual(len(entry["top"]), 3)
                self.assertEqual(entry["top"][0], [entry["id"], entry["logprob"]])
                self.assertLess(entry["logprob"], 0)

    def test_a_broken_row_rule_is_noticed(self):
        """The negative control: with --kernels wide arms differ in the last bits, and exit is 1."""
        args = ("generate", cli.model(), "--prompt-ids", "7,8,9", "--max-tokens", "24",
                "--ignore-eos")
        plain = cli.run_json(*args, "--depth", "0")["results"][0]["arms"][0]["token_ids"]
        drafts = cli.write("control", json.dumps(plain))
        args += ("--depths", "0,6", "--drafter", "scripted", "--drafts", drafts, "--logprobs", "5")
        self.assertTrue(cli.run_json(*args)["identical"])
        self.assertFalse(cli.run_json(*args, "--kernels", "wide", "--allow-inexact",
                                      check=1)["identical"])

    def test_unwritable_output_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        result = cli.run("generate", cli.model(), "--prompt-ids", "1", "--max-tokens", "2", "--json",
                         "/dev/full")
        self.assertEqual(result.returncode, 2)


class Interrupt(cli.CliTest):
    def test_ctrl_c_reports_what_was_done(self):
        target = cli.path("interrupted.json")
        # Enough work for minutes; the first text is the sign that it is under way.
        lines = cli.write("many.txt", "hello\n" * 2000)
        process = subprocess.Popen([cli.BINARY, "generate", cli.model(), "--prompts", lines,
                                    "--max-tokens", "1000", "--ignore-eos", "--json", target],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertTrue(select.select([process.stdout], [], [], 120)[0])
        process.stdout.read1(1)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, told)
        self.assertIn(b"tokens/s", told)
        self.assertIn(b"interrupted", told)
        with open(target, encoding="utf-8") as file:
            report = json.load(file)
        self.assertTrue(report["interrupted"])
        self.assertEqual(report["results"][-1]["arms"][-1]["finish_reason"], "interrupted")


class Chat(cli.CliTest):
    def test_turns_come_from_standard_input(self):
        report = cli.run_json("chat", cli.model(), "--max-tokens", "5", "--system", "be brief",
                              stdin=b"hello\n\n/reset\nhi\nagain")
        roles = [message["role"] for message in report["messages"]]
        self.assertEqual(roles, ["system", "user", "assistant", "user", "assistant"])
        self.assertEqual(report["messages"][1]["content"], "hi")
        said = cli.run("chat", cli.model(), "--max-tokens", "5", stdin=b"hi\n/quit\nmore\n", check=0)
        self.assertEqual(said.stdout.count(b"> "), 0)

    def test_on_a_terminal(self):
        ours, theirs = pty.openpty()
        process = subprocess.Popen([cli.BINARY, "chat", cli.model(), "--max-tokens", "4"],
                                   stdin=theirs, stdout=theirs, stderr=theirs,
                                   env=dict(os.environ, TERM="xterm"))
        os.close(theirs)
        shown = b""
        deadline = time.time() + 60
        def wait_for(text):
            nonlocal shown
            while text not in shown and time.time() < deadline:
                if select.select([ours], [], [], 1)[0]:
                    shown += os.read(ours, 4096)
            self.assertIn(text, shown)
        wait_for(b"> ")
        os.write(ours, b"hello\n")
        wait_for(b"tokens/round")
        os.write(ours, b"/quit\n")
        self.assertEqual(process.wait(timeout=60), 0)
        os.close(ours)


class Bench(cli.CliTest):
    def test_the_summary_of_a_run_in_which_no_draft_stood(self):
        """Depths that no round reached have no rate; the demo's last lines say "-" there."""
        drafts = cli.write("wrong.txt", "511,510,509,508\n")
        report = cli.path("summary.json")
        cli.run("bench", cli.model(), "--raw", "--prompt", "one two", "--max-tokens", "12",
                "--quick", "--drafter", "scripted", "--drafts", drafts, "--depths", "0,4",
                "--json", report, check=0)
        with open(report) as file:
            self.assertIn(None, json.load(file)["arms"][1]["conditional_acceptance"])
        script = os.path.join(os.path.dirname(__file__), "..", "script", "summary.py")
        shown = subprocess.run(["python3", "-B", script, report], capture_output=True, text=True)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("acceptance by depth", shown.stdout)

    def test_fields(self):
        prompts = cli.write("bench.jsonl", "".join(
            '{"prompt": "%s", "category": "%s"}\n' % (p, c)
            for p, c in (("one two one two", "echo"), ("far away", "prose"), ("a b a b", "echo"))))
        report = cli.run_json("bench", cli.model(), "--prompts", prompts, "--depths", "4,auto",
                              "--max-tokens", "24", "--ignore-eos", "--repeats", "2")
        self.assertTrue(report["identical"])
        self.assertTrue(report["complete"])
        self.assertEqual([arm["depth"] for arm in report["arms"]], [0, 4, "auto"])
        for arm in report["arms"]:
            self.assertEqual(arm["tokens"], 3 * 2 * 24)
            self.assertEqual(arm["pairs"], 6)
            for value in ("speedup", "speedup_overall"):
                for over in ("interval", "interval_prompts"):
                    low, high = arm[f"{value}_{over}"]
                    self.assertTrue(0 < low <= arm[value] <= high)
            self.assertGreater(arm["predicted_tokens_per_second"], 0)
            self.assertEqual(set(arm["round_ms"]), {"draft", "verify", "other"})
            self.assertAlmostEqual(arm["expected_accepted"], sum(
                accepted for accepted in arm["accepted_by_depth"]) / arm["rounds"])
        plain = report["arms"][0]
        for value in ("speedup", "speedup_overall"):
            self.assertEqual([plain[value], *plain[value + "_interval"]], [1, 1, 1])
        # Two prompts and one say nothing of others.
        for arm in report["by_category"]["echo"] + report["by_category"]["prose"]:
            self.assertIsNotNone(arm["speedup_interval"])
            self.assertIsNone(arm["speedup_interval_prompts"])
        self.assertEqual(len(report["arms"][1]["joint_acceptance"]), 4)
        self.assertEqual(set(report["by_category"]), {"echo", "prose"})
        self.assertEqual(set(report["verify_multiplier"]), set("1 2 3 4 5 6 8 16".split()))
        self.assertEqual(report["verify_multiplier"]["1"], 1)
        self.assertEqual(report["verify_position"], 256)
        self.assertGreater(report["bandwidth"]["limit"], 0)
        self.assertGreater(report["bandwidth"]["reached"], 0)
        self.assertGreaterEqual(report["draft_cost"], 0)
        self.assertIn("4", report["break_even"])
        self.assertIsInstance(report["noisy"], bool)

    def test_one_repeat_says_nothing_of_the_next_run(self):
        args = ("bench", cli.model(), "--raw", "--prompt", "one two one two", "--max-tokens", "12",
                "--depths", "0,4", "--repeats")
        once = cli.run_json(*args, "1")["arms"][1]
        self.assertIsNone(once["speedup_interval"])
        self.assertIsNone(once["speedup_overall_interval"])
        self.assertGreater(once["speedup"], 0)
        self.assertIn("give --repeats 2 or more", cli.run(*args, "1", check=0).stdout.decode())
        self.assertNotIn("give --repeats", cli.run(*args, "2", check=0).stdout.decode())

    def test_floors_of_categories(self):
        prompts = cli.write("floors.jsonl", "".join(
            '{"prompt": "%s", "category": "%s"}\n' % (p, c)
            for p, c in (("one two one two", "echo"), ("far away", "prose"))))
        args = ("bench", cli.model(), "--prompts", prompts, "--depths", "0,2,4", "--max-tokens",
                "16", "--ignore-eos", "--quick", "--floors")
        low = cli.write("low.json", '{"speedup": {"*": 0.0001}, "tokens_per_round": {"echo": 1}}')
        report = cli.run_json(*args, low)
        self.assertEqual([(f["category"], f["depth"], f["measure"]) for f in report["floors"]],
                         [("echo", 2, "speedup"), ("echo", 4, "speedup"),
                          ("echo", 2, "tokens_per_round"), ("echo", 4, "tokens_per_round"),
                          ("prose", 2, "speedup"), ("prose", 4, "speedup")])
        self.assertTrue(all(f["holds"] and f["found"] >= f["floor"] for f in report["floors"]))
        high = cli.write("high.json", '{"tokens_per_round": {"*": 1, "prose": 99}}')
        report = cli.run_json(*args, high, check=1)
        self.assertEqual([f["holds"] for f in report["floors"]], [True, True, False, False])
        told = cli.run(*args, high, check=1).stdout.decode()
        self.assertIn("floors: 2 of 4 hold", told)
        self.assertIn("prose, depth 4: tokens_per_round", told)
        for bad, says in (("[]", "not a JSON object"), ("{}", "names no floor"),
                          ('{"tau": {"*": 1}}', "'tau'"), ('{"speedup": 1}', "object"),
                          ('{"speedup": {"maths": 1}}', "category 'maths'"),
                          ('{"speedup": {"*": -1}}', "number"), ('{"speedup": {"*": "1"}}', "*")):
            self.assert_refused(*args, cli.write("bad.json", bad), says=says)
        self.assert_refused(*args, cli.path("nowhere.json"), says="--floors")

    def test_the_built_in_prompts(self):
        told = cli.run("bench", cli.model(), "--quick", "--max-tokens", "8", "--seconds", "20",
                       check=0)
        self.assertIn(b"identical: yes", told.stdout)
        self.assertEqual(told.stderr, b"")


if __name__ == "__main__":
    cli.main()
