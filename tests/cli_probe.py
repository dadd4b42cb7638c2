"""The probe, and the gate that decides by it."""

import os

import cli_support as cli


def cache(name):
    """An environment in which nothing is remembered yet."""
    folder = cli.path(name)
    os.makedirs(folder, exist_ok=True)
    return {"XDG_CACHE_HOME": folder}


GENERATE = ("generate", "--prompt", "one two three one two three one two", "--raw",
            "--max-tokens", "40", "--ignore-eos", "--depths", "0,4")


def generate(kind, *more, **kwargs):
    return cli.run_json(GENERATE[0], cli.model(kind), *GENERATE[1:], *more, **kwargs)


class Probe(cli.CliTest):
    def test_exact_kernels_are_exact(self):
        for kind in ("f32", "bf16", "q8_0", "q4_0", "q4_1"):
            report = cli.run_json("probe", cli.model(kind), env=cache("probe"))
            self.assertEqual(report["verdict"], "exact")
            self.assertEqual(report["widths"], [2, 3, 5, 8, 16])
            self.assertGreaterEqual(report["positions"], 256)
            self.assertIsNone(report["first_difference"])
            self.assertGreater(report["trees"], 10)
            self.assertGreater(report["tree_rows"], 10 * report["trees"])
        shown = cli.run("probe", cli.model(), "--threads", "1", check=0).stdout.decode()
        self.assertIn("verdict: exact", shown)

    def test_long(self):
        report = cli.run_json("probe", cli.model("q4_0"), "--long", "--context", "200")
        self.assertEqual(report["verdict"], "exact")
        self.assertEqual(report["widths"], list(range(1, 17)))
        self.assertGreater(report["positions"], 300)

    def test_the_control_is_caught(self):
        report = cli.run_json("probe", cli.model(), "--kernels", "wide", check=1)
        self.assertEqual(report["verdict"], "inexact")
        first = report["first_difference"]
        self.assertNotEqual(first["wanted"], first["found"])
        self.assertIn(first["reader"], report["readers"])

    def test_no_model_no_probe(self):
        self.assert_refused("probe", cli.path("nothing here"), says="no such file")


class ShortContexts(cli.CliTest):
    def test_prove_nothing(self):
        for context in ("2", "3", "20", "63"):
            report = cli.run_json("probe", cli.model(), "--context", context, "--kernels", "wide",
                                  check=1)
            self.assertEqual(report["verdict"], "not_run")
            self.assertIn("too short", report["reason"])
            self.assertEqual(report["readers"], [])

    def test_leave_the_gate_as_it_is(self):
        """The gate walks as far as it wants, whatever context a run asks for."""
        env = cache("short")
        wide = ("--kernels", "wide", "--context", "3", "--max-tokens", "1", "--depth", "4")
        first = cli.run_json("generate", cli.model(), "--prompt-ids", "1", *wide, env=env)["gate"]
        self.assertEqual((first["verdict"], first["cached"]), ("inexact", False))
        cli.run_json("probe", cli.model(), "--kernels", "wide", "--context", "3", env=env, check=1)
        again = cli.run_json("generate", cli.model(), "--prompt-ids", "1", *wide, env=env)["gate"]
        self.assertEqual((again["verdict"], again["cached"]), ("inexact", True))
        exact = cli.run_json("generate", cli.model(), "--prompt-ids", "1", *wide[2:], env=env)
        self.assertEqual(exact["gate"]["verdict"], "exact")


class Gate(cli.CliTest):
    def test_a_verdict_is_remembered(self):
        env = cache("gate")
        first = generate("q4_1", env=env)["gate"]
        self.assertEqual((first["verdict"], first["cached"]), ("exact", False))
        again = generate("q4_1", env=env)["gate"]
        self.assertEqual((again["verdict"], again["cached"]), ("exact", True))
        # Another number of threads, another cache type: another question.
        self.assertFalse(generate("q4_1", "--threads", "1", env=env)["gate"]["cached"])
        self.assertFalse(generate("q4_1", "--cache", "f32", env=env)["gate"]["cached"])

    def test_a_damaged_memory_is_no_memory(self):
        env = cache("damaged")
        generate("f32", env=env)
        folder = os.path.join(env["XDG_CACHE_HOME"], "paceline", "gate")
        for name in os.listdir(folder):
            for content in (b"", b"exact", b"certainly\n", b"\x00" * 100):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(content)
                gate = generate("f32", env=env)["gate"]
                self.assertEqual((gate["verdict"], gate["cached"]), ("exact", False), content)

    def test_probe_decides_for_the_gate(self):
        env = cache("decides")
        cli.run("probe", cli.model("q8_0"), env=env, check=0)
        self.assertTrue(generate("q8_0", env=env)["gate"]["cached"])

    def test_without_a_cache_folder_it_is_asked_each_time(self):
        for _ in range(2):
            gate = generate("f32", env={"XDG_CACHE_HOME": "/dev/null/x", "HOME": ""})["gate"]
            self.assertEqual((gate["verdict"], gate["cached"]), ("exact", False))

    def test_inexact_kernels_run_plain(self):
        result = cli.run(GENERATE[0], cli.model(), *GENERATE[1:], "--kernels", "wide",
                         "--json", cli.path("wide.json"))
        told = result.stderr.decode()
        self.assertEqual(told.count("speculation is off"), 1, told)
        report = generate("f32", "--kernels", "wide")
        self.assertEqual(report["gate"]["verdict"], "inexact")
        self.assertNotEqual(report["gate"]["reason"], "")
        self.assertFalse(report["allow_inexact"])
        arms = report["results"][0]["arms"]
        self.assertEqual([arm["drafter"] for arm in arms], ["none", "none"])
        self.assertTrue(report["identical"])

    def test_it_can_be_overruled(self):
        report = generate("f32", "--kernels", "wide", "--allow-inexact", check=None)
        self.assertTrue(report["allow_inexact"])
        self.assertEqual(report["results"][0]["arms"][1]["drafter"], "lookup")

    def test_plain_runs_are_not_probed(self):
        for more in (("--depths", "0"), ("--drafter", "none")):
            report = cli.run_json("generate", cli.model(), "--prompt-ids", "1,2,3",
                                  "--max-tokens", "4", *more, env=cache("plain"))
            self.assertIsNone(report["gate"])
        self.assertFalse(os.path.exists(
            os.path.join(cli.path("plain"), "paceline", "gate")))


if __name__ == "__main__":
    cli.main()
