"""paceline parity, on parts small enough for a test."""

import cli_support as cli

SMALL = ("parity", "--quick", "--threads", "2")


class Parity(cli.CliTest):
    def test_fields(self):
        report = cli.run_json(*SMALL, "--only", "product 96 -> 35")
        self.assertEqual(report["bytes_different"], 0)
        self.assertTrue(report["complete"])
        self.assertEqual(report["threads"], [1, 2, 3])
        self.assertGreater(len(report["rows"]), 0)
        for row in report["rows"]:
            for field in ("op", "shape", "type", "isa", "numerics", "width", "outputs",
                          "bytes_different", "bytes"):
                self.assertIn(field, row)
            self.assertNotIn("first", row)
        self.assertEqual(sum(row["bytes"] for row in report["rows"]), report["bytes"])
        self.assertEqual({row["isa"] for row in report["rows"]}, set(report["instruction_sets"]))
        self.assertEqual({row["type"] for row in report["rows"]},
                         {"f32", "bf16", "f16", "q8_0", "q4_0", "q4_1"})
        for field in ("version", "commit", "numerics", "machine_load", "cpu", "not_run"):
            self.assertIn(field, report)

    def test_the_control_is_caught(self):
        report = cli.run_json(*SMALL, "--only", "product 576 -> 192 q4_1", "--kernels", "wide",
                              check=1)
        self.assertEqual(report["kernels"], "wide")
        self.assertGreater(report["bytes_different"], 0)
        wrong = [row for row in report["rows"] if row["bytes_different"] > 0]
        self.assertEqual(sum(row["bytes_different"] for row in wrong), report["bytes_different"])
        self.assertEqual({row["isa"] for row in wrong}, set(report["instruction_sets"]))
        self.assertTrue(any(row["first"]["against"] == "alone" for row in wrong))
        told = cli.run(*SMALL, "--only", "product 576 -> 192 q4_1", "--kernels", "wide", check=1)
        self.assertIn("width 5", told.stdout.decode())

    def test_one_instruction_set(self):
        report = cli.run_json(*SMALL, "--only", "rms_norm 80", env={"PACELINE_ISA": "scalar"})
        self.assertEqual(report["instruction_sets"], ["scalar"])
        self.assertIn("scalar", report["not_run"][0])
        self.assert_refused(*SMALL, env={"PACELINE_ISA": "mmx"}, says="mmx")

    def test_refusals(self):
        self.assert_refused("parity", "--quick", "--full", says="not both")
        self.assert_refused(*SMALL, "--only", "no such part", says="no such part")
        self.assert_refused("parity", "model.gguf", says="model.gguf")
        self.assert_refused(*SMALL, "--json", cli.path("no folder/a.json"))


if __name__ == "__main__":
    cli.main()
