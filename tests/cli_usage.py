"""Help, version, and what is refused before anything is done."""

import json
import os
import shutil
import subprocess

import cli_support as cli

COMMANDS = ["generate", "chat", "bench", "collect", "train", "replay", "store", "drift", "trace",
            "trace-compare", "guard", "report", "inspect", "tokenize", "parity", "export", "patch",
            "unpatch", "synth"]


class Help(cli.CliTest):
    def test_version_and_help(self):
        self.assertRegex(cli.run("--version", check=0).stdout.decode(), r"^paceline \d+\.\d+\.\d+ ")
        listing = cli.run("--help", check=0).stdout.decode()
        for command in COMMANDS:
            self.assertIn(command, listing)
            told = cli.run(command, "--help", check=0)
            self.assertEqual(told.stderr, b"")
            self.assertIn("Example:\n  paceline " + command, told.stdout.decode())

    def test_no_and_unknown_command(self):
        self.assert_refused()
        self.assert_refused("generat", says="'generat'")
        self.assert_refused("generate\n--x")


class BadFlags(cli.CliTest):
    def test_values_out_of_range(self):
        model = cli.model()
        for flag, bad in [
                ("--depth", ["99", "17", "-1", "nan", "", "4.0", "Auto", "1e1"]),
                ("--depths", ["0,99", "", "0,,4", "0 4", ",0"]),
                ("--threads", ["0", "-2", "x", "257", "99999999999999999999"]),
                ("--max-tokens", ["0", "-5", "ten", "inf"]),
                ("--context", ["0", "1", "-1", "x"]),
                ("--cache", ["q8", "F16", ""]),
                ("--weights", ["int4", ""]),
                ("--prompt-ids", ["", "1,,2", "a", "-1", "1,2,", "4294967296", "1.5"]),
                ("--logprobs", ["-1", "x", "99999"]),
                ("--seed", ["-1", "x"]),
                ("--color", ["red"]),
                ("--stop", [""]),
                ("--drafter", ["best"]),
                ("--temperature", ["nan", "inf", "-1", "1e-7", "1e400", "", "hot"]),
                ("--top-k", ["-1", "1.5", ""]), ("--top-p", ["0", "1.5", "-0.1", "nan"]),
                ("--min-p", ["-0.1", "1.1", "x"]),
                ("--repetition-penalty", ["0", "-1", "1e9"]),
                ("--presence-penalty", ["1e9", "inf"]), ("--frequency-penalty", ["-1e9", "nan"]),
                ("--logit-bias", ["", "5", "5:1", "5=", "=1", "-1=1", "5=nan", "5=inf", "5=1e31",
                                  "5=1,", "5=1,6"]),
                ("--numerics", ["fast", ""]), ("--kernels", ["fast"]), ("--tree", ["32", "-1", "two"]),
                ("--head", [""]), ("--store", [""])]:
            for value in bad:
                prompt = [] if flag == "--prompt-ids" else ["--prompt-ids", "1,2"]
                self.assert_refused("generate", model, *prompt, flag, value, says=flag)

    def test_the_sentence(self):
        told = self.assert_refused("generate", cli.model(), "--prompt", "a", "--depth", "99")
        self.assertEqual(told, "paceline generate: --depth wants 0 to 16 or auto, not '99'\n")

    def test_values_that_mean_off(self):
        report = cli.run_json(
            "generate", cli.model(), "--prompt-ids", "1,2", "--max-tokens", "2", "--temperature",
            "0", "--top-k", "0", "--top-p", "1.0", "--min-p", "0", "--repetition-penalty", "1",
            "--presence-penalty", "0", "--frequency-penalty", "0", "--numerics", "portable",
            "--kernels", "exact", "--tree", "0", "--seed", "7")
        self.assertEqual(report["seed"], 7)

    def test_flags_that_do_not_fit(self):
        model = cli.model()
        for args in (["--nonsense"], ["-q"], ["surplus"],
                     ["--depth"], ["--depth", "1", "--depth", "2"],
                     ["--depth", "1", "--depths", "0,1"], ["--drafter", "scripted"],
                     ["--drafts", "nowhere"], ["--system", "s"],
                     ["--prompt", "a"]):
            self.assert_refused("generate", model, "--prompt-ids", "1", *args)
        self.assert_refused("generate", model)
        self.assert_refused("generate", "--prompt", "a", says="MODEL is missing")
        self.assert_refused("generate", model, "--prompt", "")
        self.assert_refused("chat", model, "--depths", "0,4")
        self.assert_refused("bench", model, "--seconds", "nan", says="--seconds")
        self.assert_refused("bench", model, "--repeats", "0", says="--repeats")
        self.assert_refused("tokenize", model)
        self.assert_refused("tokenize", model, "--text", "a", "--ids", "1")
        self.assert_refused("tokenize", model, "--ids", "1,99999999", says="99999999")

    def test_instruction_sets(self):
        args = ("generate", cli.model(), "--prompt-ids", "1", "--max-tokens", "1")
        self.assert_refused(*args, env={"PACELINE_ISA": "sse9"}, says="sse9")
        report = cli.run_json(*args, env={"PACELINE_ISA": "scalar"})
        self.assertEqual(report["instruction_set"], "scalar")
        self.assertEqual(report["numerics"], "portable")

    def test_numerics(self):
        args = ("generate", cli.model(), "--prompt-ids", "1", "--max-tokens", "1")
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = file.read()
        self.assert_refused(*args, "--numerics", "amx", env={"PACELINE_ISA": "scalar"},
                            says="no amx numerics")
        report = cli.run_json(*args, "--numerics", "portable")
        self.assertEqual(report["numerics"], "portable")
        if "amx_bf16" not in flags:
            self.assert_refused(*args, "--numerics", "amx", says="portable")
            self.assert_refused(*args, env={"PACELINE_ISA": "amx"}, says="PACELINE_ISA=amx")
            self.assertEqual(cli.run_json(*args)["numerics"], "portable")
        if "avx2" in flags:
            report = cli.run_json(*args, env={"PACELINE_ISA": "amx-emulated"})
            self.assertEqual(report["numerics"], "amx")
            self.assertEqual(report["instruction_set"], "amx-emulated")


class BadInput(cli.CliTest):
    def test_models_that_are_none(self):
        for command, more in (("generate", ["--prompt", "a"]), ("inspect", []), ("chat", []),
                              ("tokenize", ["--text", "a"]), ("bench", [])):
            self.assert_refused(command, cli.path("nowhere"), *more, says="nowhere")
            self.assert_refused(command, cli.write("empty.gguf", b""), *more)
            self.assert_refused(command, cli.write("text.gguf", b"not a model" * 100), *more)
        os.makedirs(cli.path("empty folder"), exist_ok=True)
        self.assert_refused("inspect", cli.path("empty folder"))

    def test_prompt_files(self):
        model = cli.model()
        for name, text in (("a.jsonl", '{"prompt": 3}'), ("b.jsonl", '{"prompt": "a"}\n{"x": 1}'),
                           ("c.jsonl", '{"prompt": "a"'), ("d.jsonl", ""), ("e.txt", "\n\n"),
                           ("f.jsonl", b'{"prompt": "\xff"}'), ("g.jsonl", '{"messages": [{}]}'),
                           ("h.jsonl", '{"prompt": "\\ud800"}'), ("i.jsonl", "[" * 100000)):
            self.assert_refused("generate", model, "--prompts", cli.write(name, text), says=name)
        self.assert_refused("generate", model, "--prompts", cli.path("missing"), says="missing")
        self.assert_refused("generate", model, "--prompts", cli.FOLDER)
        self.assert_refused("generate", model, "--prompts", "-", says="standard input")
        told = self.assert_refused("generate", model, "--prompts",
                                   cli.write("j.jsonl", '{"prompt": "a"}\n\n{"prompt": 3}\n'))
        self.assertIn("j.jsonl line 3: prompt wants a text", told)

    def test_ids_outside_the_vocabulary_and_the_context(self):
        model = cli.model()
        self.assert_refused("generate", model, "--prompt-ids", "1,512", says="512")
        told = self.assert_refused("generate", model, "--prompt-ids", ",".join(["1"] * 30),
                                   "--context", "20")
        self.assertIn("30", told)
        self.assertIn("20", told)

    def test_scripts_of_drafts(self):
        args = ("generate", cli.model(), "--prompt-ids", "1", "--drafter", "scripted", "--drafts")
        for text in ("", "1,x", "[1, -2]", '{"ids": [1]}', "[1", "1,2\n3\n", "[1.5]"):
            self.assert_refused(*args, cli.write("drafts", text))
        self.assert_refused(*args, cli.path("missing"))

    def test_places_for_json(self):
        args = ("generate", cli.model(), "--prompt-ids", "1", "--json")
        self.assert_refused(*args, cli.FOLDER)
        self.assert_refused(*args, cli.path("no/such/folder.json"))
        self.assert_refused(*args, "")
        if os.path.isdir("/proc/self"):  # writable by its mode, and yet it takes no files
            self.assert_refused(*args, "/proc/report.json", says="/proc/report.json")
        # What is read is not written over.
        kept = cli.write("kept.gguf", b"GGUF")
        self.assert_refused("inspect", kept, "--json", kept, says="is to be read")
        # A link keeps pointing where it pointed, to nothing yet as well.
        link = cli.path("link.json")
        os.symlink("behind the link.json", link)
        self.assertEqual(cli.run(*args, link, "--max-tokens", "1").returncode, 0)
        self.assertTrue(os.path.islink(link))
        self.assertTrue(os.path.exists(cli.path("behind the link.json")))

    def test_synth(self):
        good = {"--family": "llama", "--size": "tiny", "--type": "f32",
                "--out": cli.path("synth bad")}
        for flag, value in (("--family", "gpt"), ("--family", "gemma3_text"), ("--size", "7b"), ("--type", "q2"),
                            ("--out", cli.model()), ("--out", cli.write("a file", b"x")),
                            ("--out", ""), ("--family", None), ("--out", None), ("--type", None)):
            flags = dict(good, **{flag: value})
            args = [word for f, v in flags.items() if v is not None for word in (f, v)]
            self.assert_refused("synth", *args, says=flag)
            self.assertFalse(os.path.exists(good["--out"]))

    def test_a_model_without_tokenizer_takes_ids_only(self):
        folder = cli.path("no tokenizer")
        shutil.copytree(cli.model(), folder)
        os.remove(os.path.join(folder, "tokenizer.json"))
        self.assert_refused("generate", folder, "--prompt", "a", says="--prompt-ids")
        self.assert_refused("tokenize", folder, "--text", "a", says="no tokenizer")
        self.assert_refused("chat", folder)
        report = cli.run_json("generate", folder, "--prompt-ids", "5,6", "--max-tokens", "3",
                              "--ignore-eos")
        self.assertEqual(len(report["results"][0]["arms"][0]["token_ids"]), 3)
        self.assertIsNone(cli.run_json("inspect", folder)["tokenizer"])


class Streams(cli.CliTest):
    """Nobody has to read what the program says; its exit status holds all the same."""

    def status(self, redirections, *args):
        command = ["sh", "-c", f'exec "$0" "$@" {redirections}', cli.BINARY, *args]
        return subprocess.run(command, capture_output=True, timeout=300, check=False)

    def test_closed(self):
        target = cli.path("closed.json")
        args = ("generate", cli.model(), "--prompt-ids", "1", "--max-tokens", "4", "--ignore-eos")
        self.assertEqual(self.status("2>&-", *args).returncode, 0)
        self.assertEqual(self.status("2>&-", "generate", "--nonsense").returncode, 2)
        self.status("<&- >&- 2>&-", *args, "--json", target)
        with open(target, encoding="utf-8") as file:  # no text got into it
            self.assertEqual(len(json.load(file)["results"][0]["arms"][0]["token_ids"]), 4)
        self.assertEqual(self.status(">&-", *args, "--json", "-").returncode, 2)
        self.assertEqual(self.status("<&-", "generate", cli.model(), "--prompts", "-").returncode, 2)

    def test_full(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        told = self.status(">/dev/full", "tokenize", cli.model(), "--text", "a")
        self.assertEqual(told.returncode, 2)
        self.assertEqual(told.stderr, b"paceline: standard output cannot be written\n")
        self.assertEqual(self.status("2>/dev/full", "generate", cli.model(), "--prompt-ids", "1",
                                     "--max-tokens", "4").returncode, 0)


class Outputs(cli.CliTest):
    def test_what_is_read_is_never_written_over(self):
        prompts = cli.write("kept.jsonl", '{"prompt": "a b c"}\n')
        script = cli.write("kept drafts.txt", "1,2,3\n")
        floors = cli.write("kept floors.json", '{"speedup": {"*": 0}}')
        model = cli.model()
        run = (model, "--raw", "--prompts", prompts, "--max-tokens", "4", "--depths", "0,2")
        scripted = ("--drafter", "scripted", "--drafts", script)
        for command, flag, place in (
                (("generate", *run), "--json", prompts), (("generate", *run), "--html", prompts),
                (("bench", *run), "--json", prompts), (("bench", *run), "--html", prompts),
                (("generate", *run, *scripted), "--json", script),
                (("bench", *run, "--floors", floors), "--json", floors),
                (("drift", *run, "--out", cli.path("never")), "--json", prompts),
                (("collect", model, "--prompts", prompts, "--out", cli.path("never")), "--json",
                 prompts)):
            self.assert_refused(*command, flag, place, says="that is what is to be read")
        both = cli.path("both")
        one = ("generate", model, "--raw", "--prompt", "a", "--max-tokens", "4", "--depth", "0")
        self.assert_refused(*one, "--json", both, "--html", both, says="where --html goes")
        self.assert_refused(*one, "--gap-log", both, "--json", both, says="where --gap-log goes")
        self.assertFalse(os.path.exists(both))
        self.assertFalse(os.path.exists(cli.path("never")))
        for path, text in ((prompts, '{"prompt": "a b c"}\n'), (script, "1,2,3\n")):
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), text)


if __name__ == "__main__":
    cli.main()
