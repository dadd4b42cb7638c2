"""Drift: two runs of one model, and two streams of any origin."""

import json
import os
import shutil

import cli_support as cli


def lines(name, *runs):
    """A file of {"prompt", "token_ids"} lines."""
    with open(cli.path(name), "w") as file:
        for prompt, ids in runs:
            file.write(json.dumps({"prompt": prompt, "token_ids": ids}) + "\n")
    return cli.path(name)


class Drift(cli.CliTest):
    def test_two_arms_of_one_model(self):
        out = cli.path("drift")
        arms = ("drift", cli.model(), "--raw", "--prompt", "one two three one two three one two",
                "--max-tokens", "40", "--ignore-eos", "--depths", "0,4", "--out", out)
        report = cli.run_json(*arms)
        self.assertEqual(report["outcome"], "same")
        self.assertEqual(report["flip_rate"], 0)
        self.assertEqual(report["teacher_forced_rate"], 0)
        self.assertEqual(report["teacher_forced_positions"], 40)
        self.assertEqual(report["teacher_forced_moved"], 0)
        self.assertEqual(sum(row["positions"] for row in report["by_gap"]), 40)
        self.assertEqual(report["widths"], [1, 5])
        self.assertIsNone(report["first_flip"])
        self.assertEqual(len(report["accepted_by_depth"][1]), 4)

        # The files stand for themselves: same ids, other configurations.
        a, b = (os.path.join(out, name) for name in ("a.jsonl", "b.jsonl"))
        self.assertEqual(cli.run_json("drift", a, b)["outcome"], "same")
        self.assert_refused("drift", a, a, says="same configuration")
        with open(os.path.join(out, "drift.json")) as file:
            self.assertEqual(json.load(file)["outcome"], "same")

        # So does a report of generate, over the same prompt.
        cli.run("generate", *arms[1:-4], "--depth", "2", "--json", cli.path("generate.json"),
                check=0)
        self.assertEqual(cli.run_json("drift", a, cli.path("generate.json"))["outcome"], "same")

    def test_the_control_drifts(self):
        """Teacher-forced on the text of its own first arm, so that no cascade is counted."""
        report = None
        for seed in range(1, 9):
            words = " ".join(str(seed * i % 97) for i in range(60))
            report = cli.run_json(
                "drift", cli.model("q4_1"), "--raw", "--prompt", words, "--max-tokens", "1500",
                "--ignore-eos", "--depths", "0,4", "--temperature", "1.5", "--seed", str(seed),
                "--kernels", "wide", "--allow-inexact", "--out", cli.path("wide"), check=None)
            if report["teacher_forced_rate"] > 0:
                break
        self.assertGreater(report["teacher_forced_rate"], 0)
        flip = report["first_forced_flip"]
        self.assertNotEqual(flip["a"], flip["b"])
        self.assertGreaterEqual(flip["rank_of_a_in_b"], 1)
        self.assertGreaterEqual(flip["rank_of_b_in_a"], 1)
        self.assertLess(flip["gap"], 0.5)

    def test_streams(self):
        plain = lines("plain.jsonl", ("p", [1, 2, 3]), ("q", [4, 5, 6]))
        longer = lines("longer.jsonl", ("p", [1, 2, 3]), ("q", [4, 5, 6, 7]))
        other = lines("other.jsonl", ("p", [1, 2, 3]), ("q", [4, 9, 6]))
        self.assertEqual(cli.run_json("drift", plain, plain)["outcome"], "same")  # bare: compared
        self.assertEqual(cli.run_json("drift", plain, longer, check=1)["outcome"], "same_prefix")
        report = cli.run_json("drift", plain, other, check=1)
        self.assertEqual(report["outcome"], "different")
        self.assertEqual(report["first_flip"], {"prompt": 1, "position": 1, "a": 5, "b": 9})
        self.assertAlmostEqual(report["flip_rate"], 1 / 6)

    def test_a_model_whose_name_is_no_text(self):
        model = os.path.join(cli.FOLDER.encode(), b"model \xff")
        shutil.copytree(cli.model().encode(), model)
        report = cli.run_json("drift", model, "--prompt-ids", "1,2", "--max-tokens", "4", "--out",
                              cli.path("no text"))
        self.assertEqual(report["outcome"], "same")
        self.assertTrue(report["model"].endswith("model \ufffd"))

    def test_input_that_is_refused_leaves_no_folder(self):
        self.assert_refused("drift", cli.model(), "--prompt-ids", "1,99999", "--out",
                            cli.path("left alone"))
        self.assertFalse(os.path.exists(cli.path("left alone")))

    def test_what_is_no_stream(self):
        plain = lines("plain2.jsonl", ("p", [1, 2, 3]))
        empty = lines("empty.jsonl", ("p", []))
        banner = cli.path("banner.jsonl")
        with open(banner, "w") as file:
            file.write('loading model ...\n{"prompt": "p", "token_ids": [1]}\n')
        self.assert_refused("drift", plain, empty, says="wrote no token")
        self.assert_refused("drift", plain, banner, says="line 1")
        self.assert_refused("drift", plain, lines("q.jsonl", ("q", [1])), says="prompt 1")
        self.assert_refused("drift", plain, plain, "--out", cli.path("x"), says="--out")
        self.assert_refused("drift", cli.model(), "--prompt", "a", says="--out DIR")
        self.assert_refused("drift", cli.model(), "--prompt", "a", "--out", cli.path("x"),
                            "--depths", "4,4", says="comparing a run with itself")
        self.assert_refused("drift", cli.model(), "--prompt", "a", "--out", cli.path("x"),
                            "--depths", "0,2,4", says="two arms")


if __name__ == "__main__":
    cli.main()
