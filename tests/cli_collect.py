"""Dumps: collect, generate --dump, records. The files are read here by the page of docs/formats.md alone."""

import fcntl
import filecmp
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import time

import cli_support as cli

PROMPTS = 12
COMMON = ("--raw", "--max-tokens", "24", "--ignore-eos")


def prompts_file(name="prompts.jsonl", count=PROMPTS):
    """Prompts of 1 to 60 words, the longest read in several chunks."""
    words = "one two three four five six seven eight nine ten".split()
    lines = []
    for i in range(count):
        length = 1 + i * i % 61
        text = " ".join(words[(i + 3 * k) % 10] for k in range(length))
        lines.append(json.dumps({"id": f"p{i}", "category": ["odd", "even"][i % 2], "prompt": text}))
    return cli.write(name, "\n".join(lines) + "\n")


def collect(out, *more, prompts=None, common=COMMON, model="q4_1", **kwargs):
    source = () if prompts == () else ("--prompts", prompts or prompts_file())
    return cli.run_json("collect", cli.model(model), "--out", out, *source, *common, *more, **kwargs)


def content(path):
    with open(path, "rb") as file:
        return file.read()


def padded(size, to):
    return (size + to - 1) // to * to


def read_dump(folder):
    """Header of the first shard, and every stream: its JSON, tokens, words of rounds and rows of hiddens."""
    streams = []
    header = None
    for number in range(1000):
        try:
            with open(os.path.join(folder, f"shard-{number:05}.pldump"), "rb") as file:
                shard = file.read()
        except FileNotFoundError:
            break
        assert shard[:8] == b"PLDUMP\r\n" and struct.unpack_from("<I", shard, 8) == (1,)
        json_bytes, = struct.unpack_from("<I", shard, 12)
        own = json.loads(shard[64:64 + json_bytes])
        header = header or own
        size = {"bf16": 2, "f32": 4}[own["dtype"]]
        at = padded(64 + json_bytes, 64)
        while at < len(shard):
            assert shard[at:at + 8] == b"PLSTREAM"
            total, json_bytes, n_tokens, n_words = struct.unpack_from("<QIII", shard, at + 8)
            meta = json.loads(shard[at + 64:at + 64 + json_bytes])
            place = at + 64 + padded(json_bytes, 4)
            tokens = struct.unpack_from(f"<{n_tokens}I", shard, place)
            words = struct.unpack_from(f"<{n_words}I", shard, place + 4 * n_tokens)
            place = at + padded(place - at + 4 * (n_tokens + n_words), 64)
            row = own["hidden_width"] * size
            rows = [shard[place + p * row:place + (p + 1) * row] for p in range(n_tokens - 1)]
            assert total == padded(place - at + row * (n_tokens - 1), 64)
            streams.append((meta, tokens, words, rows))
            at += total
    return header, streams


def tensor(path, name):
    """A float32 tensor of a safetensors file."""
    data = content(path)
    header_bytes, = struct.unpack_from("<Q", data)
    about = json.loads(data[8:8 + header_bytes])[name]
    assert about["dtype"] == "F32"
    begin, end = about["data_offsets"]
    return struct.unpack_from(f"<{(end - begin) // 4}f", data, 8 + header_bytes + begin)


def same_files(a, b):
    compared = filecmp.dircmp(a, b)
    return not (compared.left_only or compared.right_only or
                filecmp.cmpfiles(a, b, compared.common_files, shallow=False)[1])


class Collect(cli.CliTest):
    @classmethod
    def setUpClass(cls):
        cls.whole = cli.path("whole")
        cls.report = collect(cls.whole)

    def test_streams_are_what_generate_writes(self):
        report = self.report
        header, streams = read_dump(self.whole)
        self.assertEqual((report["streams"], report["shards"]), (PROMPTS, 1))
        self.assertEqual(report["positions"], sum(len(rows) for *_, rows in streams))
        self.assertGreater(report["tokens_per_second"], 0)
        self.assertEqual((header["tap"], header["dtype"], header["family"]), ("after", "bf16", "llama"))
        self.assertEqual(header["model_sha256"], report["model_sha256"])
        written = cli.run_json("generate", cli.model("q4_1"), "--prompts", prompts_file(), *COMMON,
                               "--depth", "0")["results"]
        for result, (meta, tokens, words, rows) in zip(written, streams, strict=True):
            self.assertEqual(meta["id"], result["id"])
            self.assertEqual(meta["n_prompt"], len(result["prompt_ids"]))
            self.assertEqual(list(tokens), result["prompt_ids"] + result["arms"][0]["token_ids"])
            self.assertEqual((meta["kind"], meta["budget"], meta["ended"]), ("answer", 24, False))
            self.assertEqual(meta["own_top1"], 24)
            self.assertEqual(len(rows), len(tokens) - 1)
            self.assertEqual(words, ())
        with open(os.path.join(self.whole, "manifest.jsonl"), encoding="utf-8") as file:
            manifest = [json.loads(line) for line in file]
        self.assertEqual([line["id"] for line in manifest], [meta["id"] for meta, *_ in streams])
        self.assertEqual([line["positions"] for line in manifest], [len(rows) for *_, rows in streams])

    def test_neighbours_and_threads_change_no_bit(self):
        for name, more in {"one": ("--batch", "1"), "three": ("--batch", "3", "--threads", "1"),
                           "many": ("--batch", "100")}.items():
            collect(cli.path(name), *more)
            self.assertTrue(same_files(self.whole, cli.path(name)), name)

    def test_lanes_change_no_bit(self):
        whole, prompts = cli.path("one lane"), prompts_file("lanes.jsonl", 150)
        report = collect(whole, "--batch", "31", "--threads", "1", prompts=prompts)
        for name, more in {"two": ("--batch", "64", "--threads", "2"), "three": ("--batch", "100", "--threads", "3"),
                           "uneven": ("--batch", "65", "--threads", "3"), "default": ("--threads", "4")}.items():
            again = collect(cli.path(f"lanes {name}"), *more, prompts=prompts)
            self.assertTrue(same_files(whole, cli.path(f"lanes {name}")), name)
            for key in ("streams", "positions", "tokens", "cyclic"):
                self.assertEqual(again[key], report[key], (name, key))

    def test_a_fault_in_a_lane_ends_the_run(self):
        """A disk that is full: files of at most 200 kB, of the 700 that it would be."""
        prompts = prompts_file("fault.jsonl", 150)
        for name, more in {"one": ("--batch", "8"), "three": ("--batch", "96", "--threads", "3")}.items():
            out = cli.path(f"full {name}")
            args = [cli.BINARY, "collect", cli.model("q4_1"), "--out", out, "--prompts", prompts, *COMMON, *more]
            limited = ["bash", "-c", 'trap "" XFSZ; ulimit -f 200; exec "$@"', "bash", *args]
            done = subprocess.run(limited, capture_output=True, check=False, timeout=60)
            told = done.stderr.decode().strip().splitlines()
            self.assertEqual((done.returncode, len(told)), (2, 1), told)
            self.assertIn("File too large", told[0])
            collect(out, *more, prompts=prompts)
            self.assertEqual([meta["id"] for meta, *_ in read_dump(out)[1]], [f"p{i}" for i in range(150)])

    def test_each_alone_has_the_rows_that_it_has_among_others(self):
        _, together = read_dump(self.whole)
        for i, line in enumerate(content(prompts_file()).splitlines()):
            alone = cli.path(f"alone {i}")
            collect(alone, prompts=cli.write("alone.jsonl", line))
            _, streams = read_dump(alone)
            self.assertEqual(streams, [together[i]])

    def test_a_second_time_there_is_nothing_to_do(self):
        again = cli.path("again")
        shutil.copytree(self.whole, again)
        report = collect(again)
        self.assertEqual((report["streams"], report["new_streams"]), (PROMPTS, 0))
        self.assertTrue(same_files(self.whole, again))

    def test_prompts_of_few_and_many_chunks(self):
        for length in (1, 2, 63, 64, 65, 340):
            ids = [(7 * i) % 50 for i in range(length)]
            out = cli.path(f"chunks {length}")
            collect(out, "--prompt-ids", ",".join(map(str, ids)), prompts=(),
                    common=("--max-tokens", "5", "--ignore-eos"))
            _, [(meta, tokens, _, rows)] = read_dump(out)
            self.assertEqual(list(tokens[:length]), ids)
            self.assertEqual((meta["n_prompt"], len(rows)), (length, length + 4))

    def test_taps_and_types(self):
        rows = {}
        for tap in ("after", "before"):
            for kind in ("bf16", "f32"):
                out = cli.path(f"{tap} {kind}")
                collect(out, "--tap", tap, "--dump-type", kind, "--limit", "2")
                header, streams = read_dump(out)
                self.assertEqual((header["tap"], header["dtype"]), (tap, kind))
                rows[tap, kind] = streams[1][3]
            for short, long in zip(rows[tap, "bf16"], rows[tap, "f32"], strict=True):
                half = struct.unpack(f"<{len(short) // 2}H", short)
                whole = struct.unpack(f"<{len(long) // 4}I", long)
                rounded = [(w + 0x7fff + (w >> 16 & 1)) >> 16 for w in whole]  # to nearest, ties to even
                self.assertEqual(list(half), rounded)

    def test_the_taps_are_a_norm_apart(self):
        """After = before / rms(before) * weight of the final norm, as the checkpoint has it."""
        rows = {}
        for tap in ("after", "before"):
            collect(cli.path(f"norm {tap}"), "--tap", tap, "--dump-type", "f32", "--limit", "3", model="f32")
            header, streams = read_dump(cli.path(f"norm {tap}"))
            width = header["hidden_width"]
            rows[tap] = [struct.unpack(f"<{width}f", row) for stream in streams for row in stream[3]]
        weight = tensor(os.path.join(cli.model("f32"), "model.safetensors"), "model.norm.weight")
        self.assertGreater(len(rows["after"]), 16)
        for before, after in zip(rows["before"], rows["after"], strict=True):
            rms = (sum(x * x for x in before) / width + 1e-5) ** 0.5
            for x, y, w in zip(before, after, weight, strict=True):
                self.assertAlmostEqual(x / rms * w, y, delta=1e-4 * max(1, abs(y)))

    def test_records(self):
        records = cli.path("records.bin")
        collect(cli.path("with records"), "--records", records)
        header, streams = read_dump(cli.path("with records"))
        width = header["hidden_width"]
        with open(records, "rb") as file:
            data = file.read()
        at = 0
        for _, tokens, _, rows in streams:
            for position, row in enumerate(rows):
                self.assertEqual(struct.unpack_from("<III", data, at), (position, position, tokens[position]))
                half = struct.unpack(f"<{width}H", row)
                self.assertEqual(struct.unpack_from(f"<{width}I", data, at + 12), tuple(h << 16 for h in half))
                at += 12 + 4 * width
        self.assertEqual(at, len(data))


class Resume(cli.CliTest):
    def killed_runs(self, out, number, *more, count=40, longest=0.25):
        """Runs that are killed at random moments; whether some were in the middle of writing."""
        rng = random.Random(1)
        args = [cli.BINARY, "collect", cli.model("q4_1"), "--out", out, "--prompts", prompts_file(count=count),
                *COMMON, *more]
        sizes = set()
        for _ in range(number):
            process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rng.uniform(0.01, longest))
            process.kill()
            process.wait()
            try:
                sizes.add(os.path.getsize(os.path.join(out, "shard-00000.pldump")))
            except FileNotFoundError:
                pass
        return len(sizes)

    def test_a_killed_run_goes_on_as_if_nothing_had_been(self):
        for name, more in {"greedy": (), "drawn": ("--temperature", "1", "--seed", "5")}.items():
            whole, killed = cli.path(f"{name} whole"), cli.path(f"{name} killed")
            collect(whole, *more, prompts=prompts_file(count=40))
            self.assertGreater(self.killed_runs(killed, 25, "--batch", "2", *more), 0)
            report = collect(killed, *more, prompts=prompts_file(count=40))
            self.assertEqual(report["streams"], 40)
            self.assertTrue(same_files(whole, killed), name)

    def test_a_killed_run_of_several_lanes_goes_on(self):
        whole, killed, lanes = cli.path("lanes whole"), cli.path("lanes killed"), ("--batch", "64", "--threads", "2")
        start = time.monotonic()
        collect(whole, *lanes, prompts=prompts_file(count=300))
        longest = time.monotonic() - start
        self.assertGreater(self.killed_runs(killed, 12, *lanes, count=300, longest=longest), 0)
        self.assertEqual(collect(killed, *lanes, prompts=prompts_file(count=300))["streams"], 300)
        self.assertTrue(same_files(whole, killed))

    def test_drawn_answers_differ_by_prompt_and_seed(self):
        out = [cli.path(f"drawn {i}") for i in range(2)]
        same = cli.write("same.jsonl", "".join(json.dumps({"id": str(i), "prompt": "one two"}) + "\n" for i in range(3)))
        for i in range(2):
            collect(out[i], "--temperature", "1", "--seed", str(i), prompts=same)
        answers = [tokens for folder in out for _, tokens, *_ in read_dump(folder)[1]]
        self.assertEqual(len(set(answers)), 6)

    def test_ctrl_c_reports_what_was_done(self):
        out = cli.path("interrupted")
        args = [cli.BINARY, "collect", cli.model("q4_1"), "--out", out, "--prompts", prompts_file("many.jsonl", 3000),
                "--raw", "--max-tokens", "200", "--ignore-eos", "--json", cli.path("interrupted.json")]
        process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while not os.path.exists(os.path.join(out, "shard-00000.pldump")):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        told = process.communicate()[1].decode()
        self.assertEqual(process.returncode, 130, told)
        self.assertIn("goes on where it was stopped", told)
        with open(cli.path("interrupted.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertTrue(report["interrupted"])
        self.assertEqual(report["streams"], len(read_dump(out)[1]))

    def test_a_dump_grows_by_other_prompts(self):
        out = cli.path("grows")
        collect(out)
        more = cli.write("more.jsonl", json.dumps({"id": "new", "prompt": "six"}) + "\n")
        report = collect(out, prompts=more)
        self.assertEqual((report["streams"], report["new_streams"], report["shards"]), (PROMPTS + 1, 1, 2))

    def test_a_cut_tail_is_dropped_and_told(self):
        out = cli.path("cut")
        collect(out)
        shard = os.path.join(out, "shard-00000.pldump")
        whole = content(shard)
        os.truncate(shard, len(whole) - 100)
        result = cli.run("collect", cli.model("q4_1"), "--out", out, "--prompts", prompts_file(), *COMMON, check=0)
        self.assertIn("were no whole stream and are dropped", result.stderr.decode())
        self.assertEqual(content(shard), whole)


class Text(cli.CliTest):
    def test_pieces_of_a_plain_text(self):
        text = cli.write("plain.txt", "one two three four five six seven eight nine ten " * 40)
        out = cli.path("plain")
        report = collect(out, "--text", text, "--context", "50", prompts=(), common=())
        header, streams = read_dump(out)
        ids = cli.run_json("tokenize", cli.model("q4_1"), "--text-file", text, "--plain")["ids"]
        self.assertEqual([token for _, tokens, *_ in streams for token in tokens], ids)
        self.assertTrue(all(len(tokens) <= 50 for _, tokens, *_ in streams))
        self.assertEqual([meta["id"] for meta, *_ in streams[:2]], ["plain#1", "plain#2"])
        self.assertEqual({meta["kind"] for meta, *_ in streams}, {"text"})
        self.assertEqual({meta["n_prompt"] for meta, *_ in streams}, {1})
        scored = sum(len(rows) for *_, rows in streams)
        self.assertAlmostEqual(report["own_top1_share"], sum(meta["own_top1"] for meta, *_ in streams) / scored)
        told = cli.run("collect", cli.model("q4_1"), "--out", cli.path("plain 2"), "--text", text, check=0).stderr.decode()
        self.assertIn("warning: that is below 80 %", told)

    def test_rows_are_those_of_a_prompt(self):
        text = "three one four one five nine two six five three five eight nine seven nine"
        prompt, given = cli.path("as prompt"), cli.path("as text")
        collect(prompt, "--prompt", text, prompts=())
        lines = cli.write("own.jsonl", json.dumps({"text": text, "id": "own", "category": "c"}) + "\n")
        report = collect(given, "--text", lines, prompts=(), common=())
        _, [(meta, tokens, _, rows)] = read_dump(given)
        _, [(answer, all_tokens, _, all_rows)] = read_dump(prompt)
        self.assertEqual((meta["id"], meta["category"]), ("own", "c"))
        self.assertEqual(tokens, all_tokens[:answer["n_prompt"]])
        self.assertEqual(rows, all_rows[:len(rows)])
        self.assertEqual(report["positions"], len(tokens) - 1)

    def test_refusals(self):
        model, out = cli.model("q4_1"), cli.path("never")
        for content, says in {'{"texts": "x"}\n': "line 1: wants a text under the key text", "[1]\n": "wants a JSON object",
                              "": "no text of two tokens", '{"text": "a b c", "id": 3}\n': "wants a text as id"}.items():
            self.assert_refused("collect", model, "--out", out, "--text", cli.write("bad.jsonl", content), says=says)
        self.assert_refused("collect", model, "--out", out, "--text", cli.path("none.txt"), says="No such file")
        self.assertFalse(os.path.exists(out))


class GenerateDump(cli.CliTest):
    def generate(self, out, *more, **kwargs):
        return cli.run_json("generate", cli.model("f32"), "--prompts", prompts_file(count=4), *COMMON, "--dump", out,
                            *more, **kwargs)

    def test_a_run_is_recorded_with_its_drafts(self):
        plain, drafted = cli.path("plain run"), cli.path("drafted run")
        first = self.generate(plain, "--depth", "0")
        self.assertEqual(first["dump"]["streams"], 4)
        tokens = [r["arms"][0]["token_ids"] for r in first["results"]]
        # Scripts that are right but for every third token.
        scripts = cli.write("scripts.jsonl", "".join(
            json.dumps([t if i % 3 else (t + 1) % 100 for i, t in enumerate(ids)]) + "\n" for ids in tokens))
        second = self.generate(drafted, "--depth", "4", "--drafter", "scripted", "--drafts", scripts)
        _, without = read_dump(plain)
        _, with_drafts = read_dump(drafted)
        for result, a, b in zip(second["results"], without, with_drafts, strict=True):
            self.assertEqual((a[1], a[3]), (b[1], b[3]))  # tokens and rows, bit for bit
            arm = result["arms"][0]
            words, n_prompt, names = list(b[2]), b[0]["n_prompt"], b[0]["sources"]
            drafted_by_depth, accepted_by_depth = [0] * 4, [0] * 4
            while words:
                row, n_drafts, n_accepted = words[:3]
                drafts, words = words[3:3 + 2 * n_drafts], words[3 + 2 * n_drafts:]
                self.assertGreaterEqual(row, n_prompt - 1)
                for depth in range(n_drafts):
                    drafted_by_depth[depth] += 1
                    token, source = drafts[2 * depth:2 * depth + 2]
                    self.assertEqual(names[source], "scripted")
                    self.assertEqual(token == b[1][row + 2 + depth] and depth <= n_accepted, depth < n_accepted)
                for depth in range(n_accepted):
                    accepted_by_depth[depth] += 1
            self.assertEqual(drafted_by_depth, arm["drafted_by_depth"])
            self.assertEqual(accepted_by_depth, arm["accepted_by_depth"])
            self.assertGreater(sum(drafted_by_depth), sum(accepted_by_depth))

    def test_sessions_follow_each_other_in_one_dump(self):
        out = cli.path("sessions")
        for _ in range(2):
            self.generate(out, "--depth", "0")
        _, streams = read_dump(out)
        self.assertEqual([meta["id"] for meta, *_ in streams],
                         ["p0", "p1", "p2", "p3", "p0.2", "p1.2", "p2.2", "p3.2"])
        self.assertEqual([s[1:] for s in streams[:4]], [s[1:] for s in streams[4:]])

    def test_refusals(self):
        args = ("generate", cli.model("f32"), "--prompt-ids", "1")
        self.assert_refused(*args, "--dump", cli.path("d"), "--depths", "0,4", says="--dump records one arm")
        for shape in (("--depth", "4", "--tree", "7"), ("--depth", "4:7")):
            self.assert_refused(*args, "--dump", cli.path("d"), *shape, says="--dump records chains")
        self.assert_refused(*args, "--tap", "before", says="go with --dump")
        self.assert_refused(*args, "--dump", "", says="--dump wants a folder")


class Refused(cli.CliTest):
    def args(self, out, *more):
        return ("collect", cli.model("q4_1"), "--prompts", prompts_file(), *COMMON, "--out", out, *more)

    def test_usage(self):
        model = cli.model("q4_1")
        self.assert_refused("collect", model, "--prompts", prompts_file(), says="--out is missing")
        self.assert_refused("collect", model, "--out", cli.path("x"), says="give one of --prompt")
        self.assert_refused(*self.args(cli.path("x")), "--text", prompts_file(), says="not both")
        self.assert_refused(*self.args(cli.path("x")), "--tap", "middle")
        twice = cli.write("twice.jsonl", '{"id": "a", "prompt": "x"}\n{"id": "a", "prompt": "y"}\n')
        self.assert_refused("collect", model, "--prompts", twice, "--out", cli.path("x"), says="the id 'a' is given twice")
        self.assertFalse(os.path.exists(cli.path("x")))

    def test_places(self):
        self.assert_refused(*self.args(cli.write("a file", "x")), says="a dump is a folder")
        self.assert_refused(*self.args("/proc/nowhere"), says="cannot be made")

    def test_a_dump_of_another_kind(self):
        out = cli.path("kind")
        cli.run(*self.args(out), check=0)
        before = content(os.path.join(out, "shard-00000.pldump"))
        self.assert_refused(*self.args(out, "--temperature", "0.5"), says="settings")
        self.assert_refused(*self.args(out, "--dump-type", "f32"), says='dtype "bf16", not "f32"')
        self.assert_refused(*self.args(out, "--tap", "before"), says='tap "after", not "before"')
        self.assert_refused(*self.args(out, "--cache", "f32"), says="cache")
        other = cli.write("other.jsonl", '{"id": "p0", "prompt": "another"}\n')
        self.assert_refused("collect", cli.model("q4_1"), "--prompts", other, *COMMON, "--out", out,
                            says="made of another prompt")
        self.assertEqual(content(os.path.join(out, "shard-00000.pldump")), before)

    def test_a_second_writer(self):
        out = cli.path("locked")
        os.makedirs(out)
        folder = os.open(out, os.O_RDONLY)
        fcntl.flock(folder, fcntl.LOCK_EX)
        self.assert_refused(*self.args(out), says="another process is writing this dump")
        os.close(folder)
        cli.run(*self.args(out), check=0)

    def test_a_full_disk(self):
        """A limit on the size of files fails writes as a full disk does."""
        out, whole = cli.path("full"), cli.path("not full")
        cli.run(*self.args(whole), check=0)
        limit = os.path.getsize(os.path.join(whole, "shard-00000.pldump")) * 2 // 3
        result = subprocess.run([cli.BINARY, *self.args(out)], capture_output=True,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        told = result.stderr.decode()
        self.assertEqual(result.returncode, 2, told)
        self.assertEqual(told.count("\n"), 1, told)
        self.assertIn("cannot be written: File too large", told)
        report = cli.run_json(*self.args(out))
        self.assertGreater(report["dropped_bytes"], 0)
        self.assertLess(report["new_streams"], PROMPTS)
        self.assertTrue(same_files(whole, out))


class Settings(cli.CliTest):
    def test_a_stop_text_that_is_no_utf8(self):
        prompts = cli.write("stop.jsonl", '{"prompt": "a b c"}\n')
        made = cli.run_json("collect", cli.model(), "--prompts", prompts, "--max-tokens", "4",
                            "--stop", b"\xff", "--out", cli.path("stop dump"))
        self.assertEqual(made["streams"], 1)


if __name__ == "__main__":
    cli.main()
