"""The texts that the tokenizer is tried on: seeds in many scripts, and lines made of them."""
import random

SCRIPTS = [
    "The quick brown fox doesn't jump over the lazy dog; it's tired, we've seen, they'll say I'm "
    "wrong and you'd agree they're right.",
    "Falsches Üben von Xylophonmusik quält jeden größeren Zwerg – „ja“, sagte er.",
    "Voix ambiguë d’un cœur qui au zéphyr préfère les jattes de kiwis… n'est-ce pas ?",
    "El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia. ¿Cuánto cuesta? ¡Mucho!",
    "Cửa Việt là một thị trấn ven biển; tiếng Việt có nhiều dấu thanh.",
    "Съешь ещё этих мягких французских булок, да выпей чаю. Нещо на Български.",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία· ἐν ἀρχῇ ἦν ὁ λόγος.",
    "صِف خَلقَ خَودِ كَمِثلِ الشَمسِ إِذ بَزَغَت، السعر ١٢٣٤ ريال؟",
    "دֿשגגה קטנה: עטלף אבק נס דרך מזגן שהתפוצץ כי חם, שָׁלוֹם.",
    "بر خلافِ می‌روم، نیم‌فاصله دارد و ۱۲۳ عدد است.",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश। मूल्य १२३४ रुपये",
    "আমার সোনার বাংলা, আমি তোমায় ভালোবাসি। ১২৩",
    "யாமறிந்த மொழிகளிலே தமிழ்மொழி போல் இனிதாவது எங்கும் காணோம்",
    "నేను తెలుగు మాట్లాడతాను ౧౨౩",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน ๑๒๓",
    "ខ្ញុំស្រឡាញ់ភាសាខ្មែរ ១២៣",
    "မြန်မာဘာသာစကား ၁၂၃",
    "天地玄黃,宇宙洪荒。日月盈昃,辰宿列張。一二三四五,百千萬。",
    "我们今天学习了3个新词:“人工智能”、“模型”和“数据”!",
    "いろはにほへと ちりぬるを、吾輩は猫である。名前はまだ無い。カタカナ・ヒラガナ。",
    "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다.",
    "ქართული ენა ძალიან ლამაზია",
    "Այբ Բեն Գիմ — հայոց լեզուն",
    "ሰላም ለዓለም ፩፪፫",
    "བོད་སྐད་ནི་སྐད་ཡིག་ཅིག་ཡིན།",
    "ᚠᛇᚻ᛫ᛒᛦᚦ᛫ᚠᚱᚩᚠᚢᚱ ᓀᐦᐃᔭᐍᐏᐣ ᏣᎳᎩ",
    "𐌰𐍄𐍄𐌰 𒀭𒂗𒆤 𓂀𓃭 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛 𞤀𞤁",
]

OTHER = [
    "👩‍👩‍👧‍👦 family 👨🏽‍💻 coder 🏳️‍🌈 flag 🇩🇪🇯🇵 keycap 1️⃣ heart ❤️ ❤ face 🥹🫠",
    "e\u0301 é n\u0303 ñ A\u030a Å q\u0323\u0307 Z\u0351\u036b\u0343\u036aalgo \u1100\u1161\u11a8",
    "tab\there\r\nnew line\n\n\nthree\x0b\x0c\u0085\u2028\u2029end",
    "no\u00a0break thin\u2009space zero\u200bwidth\u200c\u200d\u2060\ufeff ideographic\u3000space",
    "controls \x00\x01\x02\x03\x05\x07\x08\x0e\x1b[31m\x7f\x80\x9f",
    "long — dash – en ‒ figure − minus ‐ hyphen … “quotes” ‘single’ «guillemets»",
    "0 12 345 6789 3.14159 -2.5e-10 0xDEADBEEF 1,234,567 ½ ¾ ² ³ ⅷ Ⅻ ① ㊿ 〇 1st 2nd 7",
    "∀x∈ℝ: ⌈x⌉ = −⌊−x⌋, α ∧ ¬β = ¬(¬α ∨ β), ∑ᵢ₌₁ⁿ i² ≠ ∞ → √2 ≈ 1.41421",
    "def f(x):\n    if x > 10:\n        return {'a': [1, 2], \"b\": None}\n\treturn x ** 2  # ok\n",
    "#include <stdio.h>\nint main(void) { printf(\"%d\\n\", 42); return 0; } // end",
    "SELECT * FROM users WHERE id=1 AND name LIKE '%x_%'; -- comment",
    "<div class=\"a b\"><p>Hello&nbsp;&amp; bye</p></div><!-- c -->",
    "https://example.org/path?q=1&r=%20a#frag user.name+tag@mail.example.com C:\\dir\\file.txt",
    "{\"key\": [1, 2.5, true, null], \"nested\": {\"a\\u00e9\": \"b\\n\"}}",
    "'s 't 're 've 'm 'll 'd 'S 'T 'RE 'VE 'M 'LL 'D 'ſ '' ''' 'x' don''t O'Neill's y'all'd've",
    "!!!!!! ...... ------ ====== ?!?! ((())) [[]] {{}} %%% $$$ @@@ ### *** ___ ~~~ ^^^ ```",
    "CamelCaseWords snake_case_words SCREAMING_CASE kebab-case mixed123numbers456inside",
    "Ġ Ċ ĉ ▁ are written as they are; so is \ufffd and \ufffe",
    "  two   three    four     five      six  trailing   ",
    "   \n  \n \t \n\n   x \n",
    "do n't , ok . 'x' [ a ] ( b )",
]

SPECIAL = [
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<repo_name>", "<file_sep>", "<|im_start|",
    "a<|im_end|>b", " <|im_start|> user", "<|im_start|><|im_end|><|endoftext|>",
    "<<|im_end|>>", "<|im_<|im_end|>start|>", "<|im_start|>user\n42<|im_end|>\n",
]


def edge_lines():
    lines = ["", " ", "  ", "\n", "\t", "\r\n", "a", "7", "  7", "  77", " 7 7", "7  ", "\u00a0", "'"]
    for n in (1, 2, 3, 5, 8, 13, 31, 32, 33, 47, 48, 49, 50, 64, 100, 1000):
        lines += [" " * n, " " * n + "x", "\n" * n, "\t" * n + "x", "\u3000" * n + "x", "a" * n,
                  "9" * n, "-" * n, "e\u0301" * n, "ab" * n, "\U0001F600" * n]
    lines += ["a" * 10000, " " * 10000, "ab cd" * 2000]
    return lines


def mixed_lines(n, seed=7):
    rng = random.Random(seed)
    pool = SCRIPTS + OTHER
    blanks = ["", " ", "  ", "\n", "\t", "\r\n", "   ", "\u00a0", "7", "12", "'s", ", "]
    codes = list(range(0x20, 0x250)) + [0x378, 0x1c89, 0x1c8a, 0x2c2f, 0xa7cb, 0x10d40, 0x10d4a,
                                        0x1e5d0, 0x11de0, 0x16ff4, 0x2ebf0, 0x323b0, 0x31350]
    lines = []
    while len(lines) < n:
        kind = rng.randrange(4)
        if kind == 0:  # a cut of one seed
            text = rng.choice(pool)
            a = rng.randrange(len(text))
            lines.append(text[a:a + rng.randrange(1, 60)])
        elif kind == 1:  # words of two, joined at random
            words = (rng.choice(pool).split(" ")[:9], rng.choice(pool).split(" ")[-9:])
            picked = [rng.choice(rng.choice(words)) for _ in range(rng.randrange(1, 8))]
            lines.append("".join(w + rng.choice(blanks) for w in picked))
        elif kind == 2:  # characters of many
            lines.append("".join(rng.choice(rng.choice(pool)) for _ in range(rng.randrange(1, 30))))
        else:  # any characters
            lines.append("".join(chr(rng.choice(codes)) for _ in range(rng.randrange(1, 16))))
    return lines


def all_lines():
    return SCRIPTS + OTHER + edge_lines() + mixed_lines(2000)
