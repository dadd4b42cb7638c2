"""Traces: a text read in blocks of several widths, and what two traces differ in."""

import json
import os
import stat

import cli_support as cli


def words(n):
    return " ".join(str(i * i % 97) for i in range(n))


class Trace(cli.CliTest):
    def trace(self, name, *flags, model=None, check=0):
        report = cli.run_json("trace", model or cli.model("q4_1"), "--text-file",
                              cli.write("trace text.txt", words(400)), "--prefill", "16",
                              "--context", "300", "--out", cli.path(name), *flags, check=check)
        self.assertEqual(report["file"], cli.path(name))
        return cli.path(name), report

    def test_blocks_equal_chains(self):
        plain, report = self.trace("plain.trace", "--width", "1")
        self.assertGreater(report["positions"], 300)
        self.assertGreater(report["perplexity"], 1)
        blocks, other = self.trace("blocks.trace", "--width", "5")
        self.assertEqual(report["perplexity"], other["perplexity"])
        found = cli.run_json("trace-compare", plain, blocks)
        self.assertEqual(found["verdict"], "same")
        self.assertEqual(found["positions"], report["positions"])
        self.assertEqual(found["delta_quantiles"]["max"], 0)
        self.assertEqual(found["moved"], 0)
        self.assertEqual(found["kl"], 0)
        self.assertEqual(found["disagreement"], 0)
        self.assertEqual(found["rank_of_reference"][0], report["positions"])
        # Bits stand beside decimals.
        with open(plain) as file:
            header, row = (json.loads(next(file)) for _ in range(2))
        self.assertEqual(header["trace"], 1)
        self.assertEqual(header["configuration"]["width"], 1)
        self.assertEqual((row["piece"], row["position"], len(row["top"])), (0, 15, 16))
        self.assertEqual(len(row["top"][0][2]), 8)

    def test_the_control_is_found(self):
        """Products that are summed in another order for several rows move logits."""
        plain, _ = self.trace("plain2.trace", "--width", "1", "--kernels", "wide")
        wide, _ = self.trace("wide.trace", "--width", "5", "--kernels", "wide")
        found = cli.run_json("trace-compare", plain, wide, check=None)
        self.assertGreater(found["delta_quantiles"]["max"], 0)
        self.assertGreater(found["moved"], found["positions"] / 2)
        self.assertGreater(found["kl"], 0)

    def test_exit_status_says_how_decided(self):
        def trace(name, *gaps):
            with open(cli.path(name), "w") as file:
                file.write(json.dumps({"trace": 1, "configuration": {"name": name}}) + "\n")
                for i, (best, gap) in enumerate(gaps):
                    top = [[best, 5.0], [7, 5.0 - gap]]
                    file.write(json.dumps({"piece": 0, "position": i, "next": 1, "nll": 1.0,
                                           "top": top}) + "\n")
            return cli.path(name)

        reference = trace("r.trace", (3, 0.25), (4, 3.0))
        near = trace("near.trace", (2, 0.25), (4, 3.0))
        far = trace("far.trace", (3, 0.25), (2, 3.0))
        found = cli.run_json("trace-compare", reference, near, check=3)
        self.assertEqual(found["verdict"], "undecided")
        self.assertIsNone(found["kl"])  # the sum of all logits is not there
        self.assertEqual(found["rank_of_reference"], [1, 0, 1])
        found = cli.run_json("trace-compare", reference, far, check=1)
        self.assertEqual(found["disagreement_decided"], 1.0)

    def test_a_guard_is_weighed(self):
        plain, _ = self.trace("plain4.trace", "--width", "1", "--kernels", "wide")
        wide, _ = self.trace("wide4.trace", "--width", "5", "--kernels", "wide")
        gaps = cli.path("gaps.jsonl")
        report = cli.run_json("generate", cli.model("q4_1"), "--raw", "--prompt", words(30),
                              "--max-tokens", "60", "--ignore-eos", "--depth", "4", "--gap-log",
                              gaps)
        arm = report["results"][0]["arms"][0]
        with open(gaps) as file:
            rows = [json.loads(line) for line in file][1:]
        self.assertEqual([row["token"] for row in rows], arm["token_ids"])
        self.assertEqual([row["top1"] for row in rows], arm["token_ids"])  # greedy
        first = len(report["results"][0]["prompt_ids"]) - 1
        self.assertEqual([row["position"] for row in rows], list(range(first, first + 60)))
        self.assertEqual(rows[-1]["round"] + 1, arm["rounds"] + 1)  # and the prefill's own

        found = cli.run_json("guard", gaps, plain, wide, "--thresholds", "0.5,1e-9,1000")
        self.assertEqual([row["threshold"] > 0 for row in found["rows"]], [True] * 3)
        self.assertEqual(found["rounds"], arm["rounds"] + 1)
        self.assertEqual(found["rows"][2]["coverage"], 1)
        self.assertEqual(found["rows"][2]["ambiguous"], 1)
        self.assertIsNone(found["rows"][2]["break_even"])
        self.assertGreater(found["largest_movement"], 0)
        self.assertLess(found["rows"][0]["coverage"], 1)

        self.assert_refused("guard", plain, plain, wide, says="line 1")
        self.assert_refused("guard", gaps, gaps, wide, says="line 1")
        self.assert_refused("guard", gaps, plain, wide, "--thresholds", "1,-2", says="gaps of 0")
        self.assert_refused("generate", cli.model(), "--raw", "--prompt", "a", "--depths", "0,4",
                            "--gap-log", gaps, says="one arm")
        self.assert_refused("guard", gaps, plain, plain, says="same configuration")

    def test_places_that_cannot_be_written_are_refused_at_once(self):
        pipe = cli.path("a pipe")
        os.mkfifo(pipe)
        run = ("generate", cli.model(), "--raw", "--prompt", "a", "--max-tokens", "4", "--gap-log")
        for place in ("", "-", cli.FOLDER, cli.path("nowhere/gaps"), cli.model()):
            self.assert_refused(*run, place, says="--gap-log")
        text = cli.write("places.txt", words(40))
        gguf = cli.model("q4_1")
        with open(gguf, "rb") as file:
            before = file.read()
        for place in (gguf, text):
            self.assert_refused("trace", gguf, "--text-file", text, "--prefill", "8", "--out",
                                place, says="that is what is to be read")
        self.assert_refused("trace", gguf, "--text-file", text, "--prefill", "8", "--out",
                            cli.path("t"), "--json", text, says="that is what is to be read")
        with open(gguf, "rb") as file:
            self.assertEqual(file.read(), before)
        trace = ("trace", cli.model(), "--text-file", text, "--prefill", "8", "--out")
        for place in ("", cli.FOLDER, cli.FOLDER + "/", cli.path("nowhere/trace"), pipe):
            self.assert_refused(*trace, place)
        self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))

    def test_a_logit_of_minus_nothing_reads_back(self):
        def trace(name, last):
            row = {"piece": 0, "position": 0, "next": 1, "nll": 1.0, "log_sum": None,
                   "top": [[1, 2.0, "40000000"], [2, 0, last]]}
            text = json.dumps({"trace": 1, "configuration": {"name": name}}) + "\n"
            return cli.write(name, text + json.dumps(row).replace("[2, 0", "[2, -0") + "\n")
        minus, plus = trace("minus.trace", "80000000"), trace("plus.trace", "00000000")
        self.assertEqual(cli.run_json("trace-compare", minus, plus)["verdict"], "same")
        self.assert_refused("trace-compare", minus, trace("one.trace", "3f800000"), says="its bits")

    def test_what_is_no_trace(self):
        plain, _ = self.trace("plain3.trace", "--width", "1")
        self.assert_refused("trace-compare", plain, plain, says="same configuration")
        banner = cli.write("banner.trace", "loading ...\n")
        self.assert_refused("trace-compare", plain, banner, says="line 1")
        with open(plain) as file:
            lines = file.read().splitlines(keepends=True)
        short = cli.write("short.trace", "".join(lines[:5]).replace('"width":1', '"width":2'))
        self.assert_refused("trace-compare", plain, short, says="same rows")
        row = json.loads(lines[1])
        row["top"][0][1] += 1
        bent = cli.write("bent.trace", lines[0] + json.dumps(row) + "\n")
        self.assert_refused("trace-compare", plain, bent, says="line 2: a logit and its bits")
        text = cli.write("tiny.txt", "a b c")
        self.assert_refused("trace", cli.model(), "--text-file", text, "--out", cli.path("x"),
                            says="leaves nothing to trace")
        self.assert_refused("trace", cli.model(), "--out", cli.path("x"), says="--text-file FILE")
        self.assert_refused("trace", cli.model(), "--text-file", text, says="--out FILE")


if __name__ == "__main__":
    cli.main()
