"""Pages in a browser: drawn, quiet, asking nobody for anything, readable on a phone and at night.

Ends with 77 where there is no Chromium (script/test installs it).
"""

import json
import sys

import browser
import cli_support as cli

NASTY = "</script><script>window.broken = 1</script><img src=x onerror=\"window.broken = 1\">"

CANVAS_IS_DRAWN = """
return [...document.querySelectorAll('canvas')].map(canvas => {
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  for (let i = 0; i < pixels.length; i += 4)
    if (pixels[i + 3] > 200) colours.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
  return colours.size;
});"""

CONTRAST = """
const luminance = colour => {
  const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(part => {
    const share = part / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
};
const paper = luminance(getComputedStyle(document.body).backgroundColor);
const worst = Math.min(...[...document.querySelectorAll(
  'h1, h2, p, td, th, dt, dd, summary, .text, .text span, .key span')].map(element => {
    let behind = element;
    while (getComputedStyle(behind).backgroundColor === 'rgba(0, 0, 0, 0)' && behind.parentElement)
      behind = behind.parentElement;
    const back = getComputedStyle(behind).backgroundColor;
    const a = luminance(getComputedStyle(element).color);
    const b = back === 'rgba(0, 0, 0, 0)' ? paper : luminance(back);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }));
return [paper, worst];"""


def pages():
    """One page of every kind; name to path and the number of its plots."""
    model = cli.model()
    made = {}

    def page(name, *args, check=0):
        made[name] = cli.path(name + ".html")
        cli.run(*args, "--html", made[name], check=check)

    words = ("--raw", "--prompt", "one two three one two three one two three one two")
    prompts = cli.write("nasty.jsonl", "\n".join(
        json.dumps({"id": NASTY, "category": category, "prompt": NASTY * 3})
        for category in ("a", NASTY)))
    page("generate", "generate", model, "--raw", "--prompts", prompts, "--max-tokens", "60",
         "--ignore-eos", "--depths", "0,8")
    page("bench", "bench", model, "--raw", "--prompts", prompts, "--max-tokens", "60",
         "--ignore-eos", "--depths", "0,2,8,auto", "--repeats", "2", "--batch", "1,2")
    page("drift", "drift", model, *words, "--max-tokens", "40", "--ignore-eos", "--out",
         cli.path("page drift"))
    text = cli.write("page words.txt", " ".join(str(i * i % 97) for i in range(200)))
    for width in "15":
        cli.run("trace", model, "--text-file", text, "--prefill", "16", "--width", width, "--out",
                cli.path(width + ".trace"), check=0)
    page("trace-compare", "trace-compare", cli.path("1.trace"), cli.path("5.trace"))
    page("parity", "parity", "--quick", "--only", "rope")
    for name in "ab":
        cli.run("bench", model, *words, "--quick", "--max-tokens", "24", "--ignore-eos", "--depths",
                "0,4", "--json", cli.path(name + ".json"), check=0)
    page("report", "report", cli.path("a.json"), cli.path("b.json"))
    prompts = cli.write("page train.jsonl", "\n".join(
        json.dumps({"id": f"p{i}", "prompt": f"word {i} and {7 * i % 31}"}) for i in range(40)))
    cli.run("collect", model, "--prompts", prompts, "--max-tokens", "40", "--temperature", "1",
            "--ignore-eos", "--out", cli.path("page dump"), check=0)
    page("train", "train", model, "--dump", cli.path("page dump"), "--out", cli.path("page head"),
         "--new", "--steps", "8", "--evaluate-every", "4", "--batch", "4", "--shortlist", "64")
    gaps = cli.path("page gaps.jsonl")
    cli.run("generate", model, *words, "--max-tokens", "60", "--ignore-eos", "--depth", "4",
            "--gap-log", gaps, check=0)
    page("guard", "guard", gaps, cli.path("1.trace"), cli.path("5.trace"))
    history = [{"step": step, "loss": 3 / (1 + step / 100), "expected": 0.2 + step / 1000,
                "joint_acceptance": [0.4 + step / 4000, 0.2 + step / 4000]}
               for step in range(0, 1000, 100)]
    train = cli.write("train.json", json.dumps({
        "report": 2, "command": "train", "model": NASTY, "steps": 900, "positions": 123456,
        "seconds": 600, "history": history, "baseline": history[0], "best": history[-1]}))
    page("train drawn later", "report", train)
    return made


PLOTS = {"generate": 2, "bench": 6, "drift": 3, "trace-compare": 3, "parity": 2, "report": 3,
         "train": 4, "guard": 2, "train drawn later": 4}


class Pages(cli.CliTest):
    @classmethod
    def setUpClass(cls):
        cls.pages = pages()
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()

    def each(self, **how):
        for name, path in self.pages.items():
            with self.subTest(page=name):
                self.browser.open(path, **how)
                yield name

    def test_plots_are_drawn_and_nobody_is_asked(self):
        for name in self.each():
            colours = self.browser.run(CANVAS_IS_DRAWN)
            self.assertEqual(len(colours), PLOTS[name])
            self.assertGreater(min(colours), 8)  # axes, grid and lines, and what lies between
            self.assertEqual(self.browser.run("return document.body.dataset.drawn"),
                             str(PLOTS[name]))
            self.assertEqual(self.browser.logs("browser"), [])
            self.assertEqual([url for url in self.browser.requests()
                              if not url.startswith(("file://", "data:"))], [])
            self.assertIsNone(self.browser.run("return window.broken ?? null"))
            # The numbers stand beside every plot, and how it was run below.
            rows = self.browser.run("return [...document.querySelectorAll('figure')].map("
                                    "figure => figure.querySelectorAll('tbody tr').length)")
            self.assertEqual(len(rows), PLOTS[name])
            self.assertGreater(min(rows), 0)
            if name != "train drawn later":  # made here, without a head
                self.assertIn("binary_sha256", self.browser.run("return document.body.textContent"))

    def test_a_phone_has_room(self):
        for _ in self.each(width=360, height=740):
            self.assertLessEqual(
                self.browser.run("return document.documentElement.scrollWidth"), 360)
            widths = self.browser.run("return [...document.querySelectorAll('canvas')].map("
                                      "canvas => canvas.getBoundingClientRect().right)")
            self.assertLessEqual(max(widths), 360)

    def test_night_and_day_can_be_read(self):
        for dark in (False, True):
            for _ in self.each(dark=dark):
                paper, worst = self.browser.run(CONTRAST)
                self.assertEqual(paper < 0.1, dark)
                self.assertGreaterEqual(worst, 4.5)  # WCAG 2, level AA

    def test_plots_follow_the_colour_scheme(self):
        self.browser.open(self.pages["bench"])
        axis = ("const c = document.querySelector('canvas'); const seen = new Set();"
                "const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                "for (let i = 0; i < p.length; i += 4) if (p[i + 3] === 255)"
                "  seen.add(p[i] << 16 | p[i + 1] << 8 | p[i + 2]); return [...seen].sort()")
        day = self.browser.run(axis)
        self.browser.dark(True)
        night = self.browser.until(axis, lambda colours: colours != day)
        self.assertNotEqual(night, day)

    def test_drafted_tokens_are_coloured(self):
        self.browser.open(self.pages["generate"])
        texts = self.browser.run("return [...document.querySelectorAll('.text')].map("
                                 "e => [e.textContent, e.querySelectorAll('span').length])")
        # Of every prompt: itself, the plain arm, the drafting arm.
        self.assertEqual(len(texts), 6)
        self.assertIn("</script>", texts[0][0])
        self.assertEqual(texts[1][0], texts[2][0])
        self.assertEqual((texts[0][1], texts[1][1]), (0, 0))
        self.assertGreater(texts[2][1] + texts[5][1], 0)


if __name__ == "__main__":
    if not browser.found():
        print("there is no chromium with chromedriver here")
        sys.exit(77)
    cli.main()
