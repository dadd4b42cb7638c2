"""Exported folders as a script meets them: the same tokenizer, the same ids, whole or not there."""

import json
import os
import signal
import subprocess
import time

import cli_support as cli

FAMILIES = ("llama", "qwen2", "qwen3", "gemma3")
TEXT = "Gr\u00fc\u00dfe,  one two 1234\n\n\t\u4e16\u754c \U0001f600 <|im_start|>user\nhi<|im_end|>"


def ids(model, *args):
    report = cli.run_json("generate", model, "--max-tokens", "40", "--drafter", "none", *args)
    return report["results"][0]["prompt_ids"], report["results"][0]["arms"][0]["token_ids"]


class Export(cli.CliTest):
    def test_a_folder_writes_what_the_file_writes(self):
        for family in FAMILIES:
            for more in ((), ("--shard-size", "20KB")):
                source = cli.model("q4_1", family)
                out = cli.path(f"{family} exported {len(more)}")
                report = cli.run_json("export", source, "--out", out, *more)
                self.assertEqual(sorted(report["files"]),
                                 sorted(os.path.join(os.path.realpath(out), name)
                                        for name in os.listdir(out)))
                self.assertEqual(report["family"], family)
                self.assertEqual(os.path.exists(os.path.join(out, "model.safetensors")), not more)
                self.assertEqual(cli.run_json("tokenize", source, "--text", TEXT)["ids"],
                                 cli.run_json("tokenize", out, "--text", TEXT)["ids"])
                there = cli.run_json("inspect", out)
                self.assertEqual(there["unused_tensors"], [])
                self.assertEqual(there["warnings"], [])
                for key in ("family", "parameters", "end_ids", "chat_template"):
                    self.assertEqual(there[key], cli.run_json("inspect", source)[key], key)
                if family != "gemma3":  # its folders round the scale of their embeddings
                    prompt = ("--prompt", "one two three")
                    self.assertEqual(ids(source, "--weights", "bf16", *prompt), ids(out, *prompt))

    def test_index_and_headers_as_the_format_has_them(self):
        out = cli.path("shards")
        cli.run("export", cli.model("q8_0"), "--out", out, "--shard-size", "100000", check=0)
        with open(os.path.join(out, "model.safetensors.index.json"), encoding="utf-8") as file:
            index = json.load(file)
        total = 0
        for name in sorted(set(index["weight_map"].values())):
            header, data = cli.safetensors(os.path.join(out, name))
            self.assertEqual(header.pop("__metadata__"), {"format": "pt"})
            self.assertEqual(sorted(header), sorted(
                tensor for tensor, file in index["weight_map"].items() if file == name))
            total += len(data)
        self.assertEqual(index["metadata"]["total_size"], total)
        self.assertNotIn("lm_head.weight", index["weight_map"])

    def test_an_interrupt_leaves_nothing(self):
        big = cli.path("big")
        cli.run("synth", "--family", "llama", "--size", "135m", "--type", "q8_0", "--out", big,
                check=0)
        source = os.path.join(big, os.listdir(big)[0])
        before = sorted(os.listdir(cli.FOLDER))
        for wait in (0.02, 0.1, 0.2):
            with subprocess.Popen([cli.BINARY, "export", source, "--out", cli.path("never"),
                                   "--threads", "1"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE) as program:
                time.sleep(wait)
                program.send_signal(signal.SIGINT)
                told = program.communicate()[1].decode()
            if program.returncode == 0:
                break  # it was done before
            self.assertIn(program.returncode, (130, -signal.SIGINT), told)
            self.assertEqual(sorted(os.listdir(cli.FOLDER)), before)

    def test_what_is_refused(self):
        model = cli.model("q4_0")
        self.assert_refused("export", model, says="give --out")
        self.assert_refused("export", cli.path("nowhere.gguf"), "--out", cli.path("x"))
        self.assert_refused("export", model, "--out", cli.FOLDER, says="not empty")
        self.assert_refused("export", model, "--out", cli.path("no/where"), says="does not exist")
        for size in ("0", "-1", "5TB", "x", "", "99999999999GB", "1.5GB"):
            self.assert_refused("export", model, "--out", cli.path("x"), "--shard-size", size,
                                says="--shard-size")
        self.assertFalse(os.path.exists(cli.path("x")))


if __name__ == "__main__":
    cli.main()
