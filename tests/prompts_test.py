"""The prompts generator: the same prompts from the same seed, of every kind, and none that the evaluation set holds."""

import collections
import json
import os
import re
import sys
import unittest

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools", "prompts")
sys.path.insert(0, FOLDER)

import generate  # noqa: E402
import self_prompts  # noqa: E402

COUNT = 3000
GRAM = 8  # words


def lines(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def text_of(prompt):
    return prompt["prompt"] if "prompt" in prompt else "\n".join(m["content"] for m in prompt["messages"])


def grams(prompt):
    words = re.findall(r"\w+", text_of(prompt).lower())
    return {tuple(words[i:i + GRAM]) for i in range(len(words) - GRAM + 1)}


def overlap(made, kept):
    known = {gram: prompt["id"] for prompt in kept for gram in grams(prompt)}
    return {(prompt["id"], known[gram]) for prompt in made for gram in grams(prompt) if gram in known}


class Prompts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = list(generate.generate(1, COUNT))

    def test_a_seed_says_which(self):
        self.assertEqual(list(generate.generate(1, 50)), self.made[:50])
        others = list(generate.generate(2, 300))
        self.assertFalse({text_of(p) for p in others[:50]} & {text_of(p) for p in self.made[:50]})

    def test_they_are_many_and_varied(self):
        self.assertEqual(len({p["id"] for p in self.made}), COUNT)
        self.assertEqual(len({text_of(p) for p in self.made}), COUNT)
        by_category = collections.Counter(p["category"] for p in self.made)
        self.assertEqual(set(by_category), set(generate.CATEGORIES))
        self.assertGreater(min(by_category.values()), 80)
        lengths = sorted(len(text_of(p).split()) for p in self.made)
        self.assertLess(lengths[COUNT // 10], 12)
        self.assertGreater(lengths[-COUNT // 20], 80)
        starts = collections.Counter(" ".join(text_of(p).split()[:4]) for p in self.made)
        self.assertGreater(len(starts), COUNT // 3)
        self.assertGreater(sum(len(p.get("messages", ())) > 2 for p in self.made), 50)
        self.assertGreater(sum(not text_of(p).isascii() for p in self.made), 200)

    def test_messages_are_conversations(self):
        for prompt in self.made:
            roles = [m["role"] for m in prompt.get("messages", [{"role": "user"}])]
            turns = roles[1:] if roles[0] == "system" else roles
            self.assertEqual(turns, ["user", "assistant"] * (len(turns) // 2) + ["user"], prompt["id"])


class Evaluation(unittest.TestCase):
    def test_it_has_its_size(self):
        kept = lines("eval.jsonl")
        self.assertGreaterEqual(len(kept), 64)
        self.assertEqual(len({p["id"] for p in kept}), len(kept))
        by_category = collections.Counter(p["category"] for p in kept)
        self.assertGreaterEqual(len(by_category), 9)
        self.assertGreaterEqual(min(by_category.values()), 6)

    def test_no_eight_words_of_it_are_in_generated_prompts(self):
        made = list(generate.generate(1, COUNT))
        for name in ("eval.jsonl", "bench.jsonl", "echo.jsonl", "prose.jsonl", "demo.jsonl"):
            self.assertEqual(overlap(made, lines(name)), set(), name)

    def test_an_overlap_would_be_seen(self):
        kept = lines("eval.jsonl")
        longest = max(kept, key=lambda p: len(text_of(p)))
        planted = {"id": "planted", "prompt": "Please: " + text_of(longest)}
        self.assertEqual(overlap([planted], kept), {("planted", longest["id"])})


class SelfPrompts(unittest.TestCase):
    """What is kept of the turns that a model wrote itself."""

    def kept(self, *texts):
        prompts, why = self_prompts.pick([(str(i), "chat", text) for i, text in enumerate(texts)],
                                         self_prompts.forbidden_grams())
        return [p["prompt"] for p in prompts], {reason: n for reason, n in why.items() if reason != "kept"}

    def test_beginnings_follow_from_the_seed(self):
        begun = list(self_prompts.begin(400, 3, self_prompts.SYSTEM))
        self.assertEqual(begun, list(self_prompts.begin(500, 3, self_prompts.SYSTEM))[:400])
        self.assertEqual({b["category"] for b in begun}, set(self_prompts.OPENERS))
        self.assertGreater(len({b["opener"] for b in begun}), 120)
        for b in begun:
            self.assertTrue(b["prompt"].endswith("<|im_start|>user\n" + b["opener"]), b["id"])
        bare = next(self_prompts.begin(1, 3, ""))
        self.assertEqual(bare["prompt"], "<|im_start|>user\n" + bare["opener"])

    def test_a_turn_that_did_not_end_is_cut_behind_a_sentence(self):
        cut = self_prompts.turn_of
        self.assertEqual(cut("How do I", " boil an egg? ", True), "How do I boil an egg?")
        self.assertEqual(cut("How do I", " boil an egg in the way of my aunt? You take a pan and", False),
                         "How do I boil an egg in the way of my aunt?")
        self.assertEqual(cut("Shorten this:\n\n", "The mill has closed. It made flour for a century. Now it", False),
                         "Shorten this:\n\nThe mill has closed. It made flour for a century.")
        self.assertIsNone(cut("How do I", " boil an egg", False))

    def test_the_fixed_sets_are_kept_out(self):
        for name in self_prompts.FIXED:
            for prompt in lines(name):
                if len(grams(prompt)) > 0 and len(text_of(prompt).split()) < 60:
                    planted = "Please: " + text_of(prompt)
                    self.assertEqual(self.kept(planted)[0], [], (name, prompt["id"]))

    def test_repetition_and_doubles_are_left_out(self):
        good = "Which birds can be heard in a city park before sunrise?"
        self.assertEqual(self.kept(good, good.upper(), "Why?"),
                         ([good], {"there already": 1, "length or form": 1}))
        self.assertEqual(self.kept("The price of life. " * 6), ([], {"repeats itself": 1}))
        self.assertEqual(self.kept(None, "so <|im_end|> that is that, my dear friend"),
                         ([], {"not one sentence": 1, "length or form": 1}))
        many = [f"How do I make a paper boat number {i}?" for i in range(self_prompts.ALIKE + 3)]
        self.assertEqual(self.kept(*many), (many[:self_prompts.ALIKE], {"begins like others": 3}))


if __name__ == "__main__":
    unittest.main()
