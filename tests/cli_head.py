"""Draft heads on the command line: where they are found, what is said of them, what is refused."""

import array
import json
import os
import random
import shutil
import unittest

import cli_support as cli



def read_header(file):
    with open(file, "rb") as f:
        return json.loads(f.read(int.from_bytes(f.read(8), "little")))


def bf16(values):
    words = array.array("I", array.array("f", values).tobytes())
    return array.array("H", [(w + 0x7FFF + ((w >> 16) & 1)) >> 16 for w in words]).tobytes()


def head_shapes(folder, prefix="mtp."):
    """Names and shapes of a head for the trunk in this folder."""
    header = read_header(os.path.join(folder, "model.safetensors"))
    dim = header["model.norm.weight"]["shape"][0]
    shapes = {prefix + "fc.weight": [dim, 2 * dim], prefix + "norm.weight": [dim],
              prefix + "pre_fc_norm_embedding.weight": [dim],
              prefix + "pre_fc_norm_hidden.weight": [dim]}
    for name, tensor in header.items():
        if name.startswith("model.layers.0."):
            shapes[prefix + "layers.0." + name.removeprefix("model.layers.0.")] = tensor["shape"]
    return shapes


def write_head(name, shapes, metadata=None, seed=1, size=1):
    """A head with random values times `size`, as `paceline.head` 1 unless metadata say otherwise."""
    rng = random.Random(seed)
    header = {"__metadata__": {"paceline.head": "1", **(metadata or {})}}
    data = b""
    for tensor, shape in shapes.items():
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        norm = "norm" in tensor
        values = bf16([size * ((1 if norm else 0) + rng.gauss(0, 0.2)) for _ in range(n)])
        header[tensor] = {"dtype": "BF16", "shape": shape,
                          "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    return cli.write(name, len(text).to_bytes(8, "little") + text + data)


def run_arms(model, *args, **kwargs):
    return cli.run_json("generate", model, "--prompt-ids", "1,2,3,4,5", "--max-tokens", "40",
                        "--ignore-eos", "--depths", "0,1,4,auto", *args, **kwargs)


class Head(cli.CliTest):
    def setUp(self):
        self.env = {"XDG_DATA_HOME": cli.path("data")}
        self.heads = cli.path("data/paceline/heads")
        os.makedirs(self.heads, exist_ok=True)
        self.model = cli.model("bf16")
        self.addCleanup(shutil.rmtree, cli.path("data"))

    def head(self, name="head.safetensors", **kwargs):
        return write_head(name, head_shapes(self.model), **kwargs)

    def test_a_named_head_drafts_and_changes_no_byte(self):
        head = self.head(metadata={"paceline.modules": "1"})
        for drafter, name in (("auto", "union"), ("mtp", "mtp")):
            report = run_arms(self.model, "--drafter", drafter, "--head", head, env=self.env)
            self.assertTrue(report["identical"])
            self.assertEqual(len(report["head_sha256"]), 64)
            arms = report["results"][0]["arms"]
            self.assertEqual([arm["drafter"] for arm in arms], ["none", name, name, name])
            self.assertGreater(arms[2]["drafted_by_depth"][3], 5)
            self.assertIn("mtp", arms[2]["accepted_by_source"])

    def test_the_head_is_named_once(self):
        head = self.head()
        told = cli.run("generate", self.model, "--prompt-ids", "1,2", "--max-tokens", "8",
                       "--depths", "0,2", "--head", head, env=self.env, check=0)
        self.assertEqual(told.stderr.decode().count(f"draft head: {head}\n"), 1)
        for other in (["--drafter", "lookup"], ["--depth", "0"], ["--drafter", "none"]):
            told = cli.run("generate", self.model, "--prompt-ids", "1,2", "--max-tokens", "8",
                           *other, env=self.env, check=0)
            self.assertNotIn(b"draft head", told.stderr)

    def test_a_head_is_found_by_the_models_digest(self):
        sha256 = cli.run_json("inspect", self.model, env=self.env)["sha256"]
        shutil.copy(self.head(metadata={"paceline.trunk_sha256": sha256}), self.heads)
        shutil.copy(self.head("aa.safetensors", metadata={"paceline.trunk_sha256": "0" * 64}),
                    self.heads)
        found = cli.run_json("inspect", self.model, env=self.env)["head"]
        self.assertEqual(found["state"], "present")
        self.assertEqual(found["file"], os.path.join(self.heads, "head.safetensors"))
        self.assertEqual(found["trunk_sha256"], sha256)
        report = run_arms(self.model, env=self.env)
        self.assertEqual(report["results"][0]["arms"][1]["drafter"], "union")
        self.assertEqual(report["head_sha256"], found["sha256"])
        self.assertTrue(report["identical"])
        report = run_arms(self.model, "--drafter", "lookup", env=self.env)
        self.assertEqual(report["results"][0]["arms"][1]["drafter"], "lookup")
        self.assertIsNone(report["head_sha256"])

    def test_beside_a_gguf_file(self):
        gguf = cli.model("q8_0")
        side = gguf + ".mtp.safetensors"
        shutil.copy(self.head(), side)
        self.addCleanup(os.remove, side)
        head = cli.run_json("inspect", gguf, env=self.env)["head"]
        self.assertEqual((head["state"], head["file"]), ("present", side))
        self.assertEqual((head["layer_type"], head["output_type"]), ("q8_0", "q8_0"))
        self.assertTrue(run_arms(gguf, "--drafter", "mtp", env=self.env)["identical"])

    def test_inside_the_checkpoint_and_incomplete_there(self):
        folder = cli.path("with a head")
        shutil.copytree(self.model, folder)
        self.addCleanup(shutil.rmtree, folder)
        os.rename(os.path.join(folder, "model.safetensors"),
                  os.path.join(folder, "model-00001-of-00002.safetensors"))
        second = os.path.join(folder, "model-00002-of-00002.safetensors")
        shapes = head_shapes(self.model)
        shapes.update(head_shapes(self.model, "mtp.modules.1."))
        shutil.copy(self.head_of(shapes, {"paceline.modules": "2", "paceline.tap": "before"}),
                    second)
        report = cli.run_json("inspect", folder, env=self.env)
        head = report["head"]
        self.assertEqual(head["state"], "present")
        self.assertTrue(head["in_checkpoint"])
        self.assertEqual((head["modules"], head["tap"]), (2, "before"))
        self.assertEqual({t["name"]: t["shape"] for t in head["tensors"]}, shapes)
        self.assertEqual({t["type"] for t in head["tensors"]}, {"BF16"})
        self.assertEqual(report["unused_tensors"], [])
        self.assertTrue(run_arms(folder, "--drafter", "mtp", env=self.env)["identical"])
        for depth, beyond in (("2", False), ("3", True)):
            told = cli.run("generate", folder, "--prompt-ids", "1", "--max-tokens", "4", "--depth",
                           depth, env=self.env, check=0).stderr.decode()
            self.assertIn(", 2 modules", told)
            self.assertEqual("the last of which drafts all deeper ones" in told, beyond)

        gone = ["mtp.fc.weight", "mtp.modules.1.norm.weight"]
        for name in gone:
            del shapes[name]
        shapes["mtp.surplus"] = [4]
        shutil.copy(self.head_of(shapes, {"paceline.modules": "2"}), second)
        head = cli.run_json("inspect", folder, env=self.env)["head"]
        self.assertEqual(head["state"], "incomplete")
        for name in gone + ["mtp.surplus"]:
            self.assertIn(name, head["reason"])
        told = self.assert_refused("generate", folder, "--prompt-ids", "1", "--drafter", "mtp",
                                   env=self.env)
        for name in gone + ["mtp.surplus"]:
            self.assertIn(name, told)
        plain = cli.run("generate", folder, "--prompt-ids", "1", "--max-tokens", "4", env=self.env,
                        check=0)
        self.assertEqual(plain.stderr.decode().count("warning: "), 1)

    def head_of(self, shapes, metadata):
        return write_head("of shapes.safetensors", shapes, metadata)

    def test_none_is_absent_and_asked_for_by_name_refused(self):
        head = cli.run_json("inspect", self.model, env=self.env)["head"]
        self.assertEqual(head["state"], "absent")
        told = self.assert_refused("generate", self.model, "--prompt-ids", "1", "--drafter", "mtp",
                                   env=self.env)
        for place in ("mtp.* tensors", "heads", self.heads, "share/paceline/heads", "--head FILE"):
            self.assertIn(place, told)
        plain = cli.run("generate", self.model, "--prompt-ids", "1", "--max-tokens", "4",
                        env=self.env, check=0)
        self.assertNotIn(b"warning", plain.stderr)

    def test_heads_that_do_not_fit(self):
        shapes = head_shapes(self.model)
        dim = shapes["mtp.norm.weight"][0]
        wrong = dict(shapes, **{"mtp.norm.weight": [dim + 1]})
        told = self.assert_refused("generate", self.model, "--prompt-ids", "1", "--head",
                                   self.head_of(wrong, {}), env=self.env)
        self.assertIn(f"mtp.norm.weight is [{dim + 1}], wanted [{dim}]", told)
        for metadata, says in (({"paceline.head": "7"}, "version '7'"),
                               ({"paceline.tap": "under"}, "after or before"),
                               ({"paceline.draft_vocabulary": "5,4"}, "ascending"),
                               ({"paceline.draft_vocabulary": "5,999999"}, "999999")):
            self.assert_refused("generate", self.model, "--prompt-ids", "1", "--head",
                                self.head_of(shapes, metadata), env=self.env, says=says)
        for name in ("none.safetensors", "."):
            self.assert_refused("generate", self.model, "--prompt-ids", "1", "--head",
                                cli.path(name), env=self.env)
        self.assert_refused("generate", self.model, "--prompt-ids", "1", "--head",
                            os.path.join(self.model, "model.safetensors"), env=self.env,
                            says="no draft head")

    def test_shapes_are_looked_at_before_a_tensor_is_read(self):
        """A tensor of 64 GiB, all hole, is refused for its shape; reading it would take a minute."""
        shapes = head_shapes(self.model)
        huge = [1 << 20, 1 << 15]
        header, at = {"__metadata__": {"paceline.head": "1"}}, 0
        for name, shape in (shapes | {"mtp.fc.weight": huge}).items():
            n_bytes = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + n_bytes]}
            at += n_bytes
        text = json.dumps(header).encode()
        head = cli.write("huge.safetensors", len(text).to_bytes(8, "little") + text)
        os.truncate(head, 8 + len(text) + at)
        self.addCleanup(os.remove, head)
        for command in (["generate", self.model, "--prompt-ids", "1"], ["inspect", self.model]):
            told = self.assert_refused(*command, "--head", head, env=self.env, timeout=30)
            self.assertIn(f"mtp.fc.weight is {huge}, wanted {shapes['mtp.fc.weight']}", told)

    def test_the_size_of_a_head_is_told(self):
        head = self.head()
        told = cli.run("inspect", self.model, "--head", head, env=self.env, check=0)
        size = os.path.getsize(head)
        self.assertIn(f"head.safetensors, {size:,} bytes, ", told.stdout.decode())
        found = cli.run_json("inspect", self.model, "--head", head, env=self.env)
        self.assertEqual(found["head"]["file_bytes"], size)

    def test_heads_that_are_of_no_use_are_named(self):
        check = ("inspect", self.model, "--check-head", "--head")
        zeros = write_head("zeros.safetensors", head_shapes(self.model), size=0)
        told = cli.run(*check, zeros, env=self.env, check=1)
        self.assertIn(b"useless: its output is constant, it drafts token 0 alone", told.stdout)
        report = cli.run_json(*check, zeros, env=self.env, check=1)
        self.assertEqual(report["head"]["check"]["verdict"], "constant")
        self.assertEqual(report["head"]["check"]["constant"], 0)
        found = cli.run_json(*check, self.head(), env=self.env, check=1)["head"]["check"]
        self.assertEqual(found["verdict"], "useless")
        self.assertLess(found["accepted"], found["drafted"] / 4)
        self.assert_refused("inspect", self.model, "--check-head", env=self.env,
                            says="no draft head was found")

    def test_a_head_of_another_model_is_a_warning(self):
        head = self.head(metadata={"paceline.trunk_sha256": "0" * 64})
        told = cli.run("generate", self.model, "--prompt-ids", "1", "--max-tokens", "4", "--head",
                       head, env=self.env, check=0)
        self.assertEqual(told.stderr.decode().count("warning: "), 1)
        self.assertIn(b"0" * 64, told.stderr)
        head = self.head(metadata={"paceline.trunk_sha256": "\x1b[31m\nno digest"})
        told = cli.run("generate", self.model, "--prompt-ids", "1", "--max-tokens", "4", "--head",
                       head, env=self.env, check=0)
        self.assertNotIn(b"\x1b", told.stderr)
        self.assertIn(b"SHA-256  [31m no digest, and", told.stderr)


if __name__ == "__main__":
    cli.main()
