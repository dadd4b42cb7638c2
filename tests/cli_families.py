"""Every family with weights of every type: what speculation writes is what the plain run writes,
far past the end of a window and of the memory that it is kept in."""

import itertools
import json
import os

import cli_support as cli

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "gemma3")
TYPES = ("f32", "bf16", "q8_0", "q4_0", "q4_1")
EVERY = list(itertools.product(FAMILIES, TYPES))
TOKENS = 280  # a window of 24 is kept in 256 positions
DEPTHS = ",".join(map(str, range(9)))


def generate(model, *args):
    return cli.run_json("generate", model, "--raw", "--max-tokens", str(TOKENS), "--ignore-eos",
                        "--threads", "1", *args)


def ids_of(report, result=0):
    return [arm["token_ids"] for arm in report["results"][result]["arms"]]


class Families(cli.CliTest):
    def test_speculation_writes_the_plain_text(self):
        for family, kind in EVERY:
            with self.subTest(family=family, kind=kind):
                model = cli.model(kind, family)
                report = generate(model, "--prompt", "one two three one two three", "--depths",
                                  DEPTHS)
                self.assertEqual(report["gate"]["verdict"], "exact")
                plain = ids_of(report)[0]
                self.assertEqual(len(plain), TOKENS)
                for arm in ids_of(report):
                    self.assertEqual(arm, plain)
                # Right drafts with wrong ones between, at changing distances: rejects everywhere.
                script, at, gap = list(plain), 2, 1
                while at < TOKENS:
                    script[at] = (script[at] + 1) % 512
                    at, gap = at + gap, gap % 11 + 1
                drafts = cli.write("drafts", json.dumps(script))
                report = generate(model, "--prompt", "one two three one two three", "--depths",
                                  DEPTHS, "--drafter", "scripted", "--drafts", drafts)
                for arm in ids_of(report):
                    self.assertEqual(arm, plain)
                self.assertGreater(report["results"][0]["arms"][8]["accepted_by_depth"][3], 0)

    def test_sampled_text_and_other_weights_and_caches(self):
        for family in FAMILIES:
            for more in (("--temperature", "0.8", "--seed", "5"), ("--weights", "f32"),
                         ("--weights", "bf16", "--cache", "f32")):
                with self.subTest(family=family, more=more):
                    arms = ids_of(generate(cli.model("q4_1", family), "--prompt", "a b a b",
                                           "--depths", "0,3,8", *more))
                    self.assertEqual(arms[1:], arms[:1] * 2)

    def test_prefixes_are_shared_past_windows(self):
        """Prompts that begin alike, read behind each other and each by itself."""
        for family in ("mistral", "qwen3", "gemma3"):
            model = cli.model("bf16", family)
            start = "the riders take turns, " * 30
            prompts = [start, start + "one by one", start + "one by one " * 12, "the riders"]
            file = cli.write("prompts.jsonl",
                             "".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts))
            together = generate(model, "--prompts", file, "--depths", "0,4")
            for i, prompt in enumerate(prompts):
                alone = generate(model, "--prompt", prompt, "--depths", "0")
                self.assertEqual(ids_of(together, i), ids_of(alone) * 2, (family, i))

    def test_the_probe_finds_them_exact(self):
        for family in FAMILIES:
            more = ("--long",) if family == "gemma3" else ()
            report = cli.run_json("probe", cli.model("q8_0", family), "--threads", "1", *more)
            self.assertEqual(report["verdict"], "exact")
            self.assertGreater(report["positions"], 2000 if more else 255)
        report = cli.run_json("probe", cli.model("f32", "gemma3"), "--kernels", "wide", check=1)
        self.assertEqual(report["verdict"], "inexact")

    def test_both_formats_hold_the_same_model(self):
        """Q8_0 keeps about three digits, so the first logits of both files are close."""
        def first(kind, family):
            report = cli.run_json("generate", cli.model(kind, family), "--prompt-ids",
                                  "10,200,30,4", "--max-tokens", "1", "--logprobs", "512",
                                  "--weights", "f32")
            return dict(report["results"][0]["arms"][0]["logprobs"][0]["top"])
        for family in FAMILIES:
            exact, rounded = first("f32", family), first("q8_0", family)
            spread = max(exact.values()) - min(exact.values())
            worst = max(abs(exact[id] - rounded[id]) for id in exact)
            self.assertLess(worst, 0.15 * spread, family)

    def test_names_of_the_files_and_tokenizers(self):
        text = "Gr\u00fc\u00dfe,  \u4e16\u754c 7\n\U0001f600"
        for family, kind in EVERY:
            model = cli.model(kind, family)
            # GGUF knows no Mistral of its own.
            wanted = "llama" if family == "mistral" and model.endswith(".gguf") else family
            report = cli.run_json("inspect", model)
            self.assertEqual(report["family"], wanted)
            self.assertEqual(report["unused_tensors"], [])
            sliding = {"gemma3": 3, "mistral": 2}.get(report["family"], 0)
            self.assertEqual(report["sliding_layers"], sliding)
            self.assertEqual(report["window"], 24 if sliding else 0)
            there = cli.run_json("tokenize", model, "--text", text)
            self.assertEqual(there["text"], text)

    def test_an_unknown_family_is_refused_with_the_known_ones(self):
        folder = cli.path("unknown family")
        cli.run("synth", "--family", "qwen3", "--size", "tiny", "--type", "bf16", "--out", folder,
                check=0)
        path = os.path.join(folder, "config.json")
        with open(path) as file:
            config = json.load(file)
        with open(path, "w") as file:
            json.dump(dict(config, model_type="qwen9"), file)
        told = self.assert_refused("inspect", folder, says="'qwen9'")
        for family in FAMILIES:
            self.assertIn(family, told)


if __name__ == "__main__":
    cli.main()
