"""Prompts about language and the world: explanation, chat, creative writing, extraction, summaries, translation,
lists, editing, questions on passages, forms, and other languages than English."""

from passages import (FACTUAL, event, incident, letter, long_passage, mail, meeting, news, order, passage, person, phone,
                      product)
from words import (ADJECTIVES, ALL_TOPICS, ANIMALS, AUDIENCES, CITIES, DAYS, FOODS, GENRES, JOBS, LENGTHS, MOODS, MONTHS,
                   NAMES, OBJECTS, PLACES, PRODUCTS, TONES, TOPICS, split)


def explanation(rng):
    topic, other = rng.sample(ALL_TOPICS, 2)
    length, audience = rng.choice(LENGTHS), rng.choice(AUDIENCES)
    near = rng.sample(TOPICS[rng.choice(sorted(TOPICS))], 2)
    return rng.choice([
        f"Explain {topic} to {audience}.", f"Explain {topic} {length}.", f"What should everybody know about {topic}?",
        f"Tell me about {topic} {length}.", f"What are the most common misunderstandings about {topic}?",
        f"Why does {topic} matter today?", f"How has our view of {topic} changed over time?",
        f"Compare {near[0]} and {near[1]} {length}.", f"What has {topic} to do with {other}?",
        f"I have a talk about {topic} on {rng.choice(DAYS)}. Give me an outline.", f"Ask me five questions about {topic} and answer them.",
        f"Write an introduction to {topic} for {audience}, {length}.", f"Give an analogy that makes {topic} clear.",
        f"What are the advantages and disadvantages of {topic}?", f"What would change if there were no {topic}?",
        f"Describe {topic} as an encyclopaedia would, {length}.", f"Which three facts about {topic} would surprise {audience}?",
        f"How does one begin to study {topic}?", f"Correct me if I am wrong: {topic} is the same as {other}.",
        f"Summarise what is known about {topic} {length}."])


PROBLEMS = split("""cannot fall asleep | have too many e-mails | forget names at once | spend too much money on {food} | never finish books |
    am afraid of talking on the phone | have lost my {object} | want to learn to swim | have to write a speech for {name} |
    moved to {city} and know nobody | quarrel with my neighbour about a {animal} | want to become a {job} | am bored at work |
    have only {food} and {food2} in the kitchen | must pack for a week in {city} | want to surprise {name} on {day} |
    broke a {product} that belongs to {name} | want to exercise without a gym | need a name for my {animal} |
    have an interview as a {job} on {day} | feel tired every afternoon | want to write a letter to {name} after ten years |
    have to cancel dinner with {name} | cannot decide between {city} and {city2} | want to give up sugar | must wait four hours at
    an airport | want to sell my {product} | would like to read about {topic} | have to teach a class about {topic}""")


def fill(rng, text):
    values = {"food": FOODS, "food2": FOODS, "object": OBJECTS, "name": NAMES, "city": CITIES, "city2": CITIES, "animal": ANIMALS,
              "job": JOBS, "day": DAYS, "product": PRODUCTS, "topic": ALL_TOPICS}
    return text.format(**{key: rng.choice(bank) for key, bank in values.items()})


def chat(rng):
    problem = fill(rng, rng.choice(PROBLEMS))
    name, city, topic = rng.choice(NAMES), rng.choice(CITIES), rng.choice(ALL_TOPICS)
    return rng.choice([
        f"I {problem}. What can I do?", f"I {problem}. Any ideas?", f"Hello! I {problem}. Can you help me?", f"My friend {name} says: \"I {problem}.\" What should I answer?",
        f"What do you think about {topic}?", f"Recommend three books about {topic}.", f"What could I do on a {rng.choice(['rainy', 'hot', 'cold', 'free'])} {rng.choice(DAYS)} in {city}?",
        f"Which gift suits a {rng.choice(JOBS)} who loves {topic}?", f"Tell me a joke about a {rng.choice(JOBS)} and a {rng.choice(ANIMALS)}.",
        f"Let us talk about {topic}. You begin.", f"Is {city} worth a visit in {rng.choice(MONTHS)}?", f"What does a {rng.choice(JOBS)} do all day?",
        f"How do I get from being a {rng.choice(JOBS)} to being a {rng.choice(JOBS)}?", f"Give me a reason to get up on a {rng.choice(DAYS)}.",
        f"What would you ask {name}, a {rng.choice(JOBS)} from {city}?", f"I cooked {rng.choice(FOODS)} with {rng.choice(FOODS)} and it tasted bland. Why?",
        f"Good morning! Please plan my day: I am a {rng.choice(JOBS)}, and I {problem}.",
        f"Convince me that {topic} is interesting.", f"Pretend that you are a {rng.choice(ADJECTIVES)} {rng.choice(ANIMALS)} and answer: how was your day?",
        f"Play a {rng.choice(JOBS)} whom I ask about {topic}. Greet me first."])


def creative(rng):
    genre, place, mood = rng.choice(GENRES), rng.choice(PLACES), rng.choice(MOODS)
    name, thing, animal, topic = rng.choice(NAMES), rng.choice(OBJECTS), rng.choice(ANIMALS), rng.choice(ALL_TOPICS)
    adjective, job = rng.choice(ADJECTIVES), rng.choice(JOBS)
    return rng.choice([
        f"Write a {mood} {genre} set in {place}.", f"Write a short {genre} about a {adjective} {animal} and a {thing}.",
        f"Tell a {mood} story in which {name}, a {job}, finds a {adjective} {thing} in {place}.", f"Write a poem about {topic}.",
        f"Write a {mood} poem about a {thing}, {rng.randint(3, 6)} stanzas.", f"Write a haiku about {topic} and explain it.",
        f"Write a dialogue between a {job} and a {rng.choice(JOBS)} in {place}.", f"Invent a legend that explains why the {animal} is {adjective}.",
        f"Write the first page of a novel that begins in {place} on a {rng.choice(DAYS)}.", f"Describe {place} {rng.choice(LENGTHS)}.",
        f"Write a song text about {name} and the {thing}.", f"Continue this story: \"The {adjective} {thing} had been in {place} for years when {name} opened the door.\"",
        f"Continue: \"Nobody in {rng.choice(CITIES)} believed the {job} until the {animal} spoke.\"", f"Write a limerick about a {job} from {rng.choice(CITIES)}.",
        f"Write a bedtime story about a {animal} who wants to become a {job}.", f"Write a letter from a {thing} to its owner.",
        f"Write a short play with three characters: {name}, a {animal} and a {job}.", f"Invent a holiday about {topic} and describe how it is celebrated.",
        f"Write an advertisement for a {adjective} {thing}.", f"Retell the story of a lost {thing} from the view of a {animal}.",
        f"Write a {genre} that ends with the words \"and the {thing} was gone\".", f"Write a riddle whose answer is a {thing}."])


KEYS = ["name", "date", "place", "price", "people", "numbers", "time", "amount", "reason", "next_step"]


def extraction(rng):
    kind = rng.choice(["json", "json", "json", "list", "table", "contacts", "sort"])
    if kind == "json":
        keys = rng.sample(KEYS, rng.randint(3, 5))
        ask = rng.choice([f"Extract {', '.join(keys)} as JSON from this text:", f"Turn this into a JSON object with the keys {', '.join(keys)}:",
                          f"Read the text and fill in {{{', '.join(chr(34) + key + chr(34) + ': null' for key in keys)}}}. Print JSON only.",
                          f"Which {', '.join(keys)} are named here? Answer with valid JSON; use null where nothing is said."])
        return f"{ask}\n\n{passage(rng, FACTUAL)}"
    if kind == "list":
        return (rng.choice(["List all names and numbers in this text:", "Which places are named in this text? One a line.", "List every date and time in this text:",
                            "Pull all amounts of money out of this text and add them up:", "List who has to do what according to this text:"]) +
                f"\n\n{passage(rng, FACTUAL)}")
    if kind == "table":
        rows = "; ".join(f"{person(rng)} {rng.choice(['from', 'in'])} {rng.choice(CITIES)} {rng.choice(['bought', 'ordered', 'returned'])} {rng.randint(1, 30)} {rng.choice(PRODUCTS)}s"
                         for _ in range(rng.randint(3, 6)))
        return f"{rng.choice(['Make a Markdown table of this', 'Write this as CSV with a header', 'Write this as a JSON array of objects'])}: {rows}."
    if kind == "contacts":
        people = [person(rng) for _ in range(rng.randint(2, 4))]
        text = " ".join(f"{rng.choice(['Ask', 'You can reach', 'For questions write to'])} {name} ({rng.choice(JOBS)}), {mail(rng, name)} or {phone(rng)}." for name in people)
        return f"{rng.choice(['Extract the contacts as JSON', 'List name, job, e-mail and phone, one person a line', 'Make a table of these contacts'])}:\n\n{text}"
    items = rng.sample(FOODS + ANIMALS + OBJECTS + JOBS + CITIES, rng.randint(8, 14))
    return f"{rng.choice(['Sort these words into groups and name the groups', 'Put these into alphabetical order', 'Which of these are animals, which are jobs? Answer as JSON', 'Count how many of these can be eaten, and list them'])}: {', '.join(items)}."


def summary(rng):
    text = long_passage(rng) if rng.random() < 0.35 else passage(rng)
    ask = rng.choice([f"Summarise this {rng.choice(LENGTHS)}:", "What is the main point of this text?", "Give this text a headline and a one-sentence summary:",
                      "Shorten this to half its length:", f"Explain to {rng.choice(AUDIENCES)} what this says:", "TL;DR of the following, please:",
                      "List the three most important points:", "Summarise this for somebody who missed it:", "What was decided, and what is still open?",
                      f"Write a {rng.choice(TONES)} summary of this:"])
    return f"{ask}\n\n{text}" if rng.random() < 0.8 else f"{text}\n\n{ask.rstrip(':')}"


TARGETS = split("French | German | Spanish | Italian | Portuguese | Dutch | Swedish | Polish | Latin | Japanese | Russian | Turkish | Danish")
PHRASES = split("""Where is the nearest {place}? | I would like {n} kilos of {food}, please. | The {animal} sleeps under the {object}. | My train to {city} leaves at {time}. |
    {name} has lost the {object} in {city}. | We open on {day} at {time}. | The {product} is out of stock until {month}. | Can you recommend a {job}? | It rained the whole {day}, so we stayed at home. |
    Thank you for the {object}; it is very beautiful. | I am allergic to {food} and {food2}. | My sister works as a {job} in {city}. | How much is this {product}? | The meeting is moved to {day}. |
    Please send the invoice to {name}. | We have known each other since {month}. | A {animal} and a {animal2} live in our garden. | I do not understand the {job}. | Turn left behind the bridge. |
    If it snows in {month}, we will go to {city}.""")


def phrase(rng):
    return rng.choice(PHRASES).format(
        place=rng.choice(["pharmacy", "station", "bakery", "museum", "post office", "hospital"]), n=rng.randint(1, 9), food=rng.choice(FOODS),
        food2=rng.choice(FOODS), animal=rng.choice(ANIMALS), animal2=rng.choice(ANIMALS), object=rng.choice(OBJECTS), city=rng.choice(CITIES),
        time=f"{rng.randint(6, 22)}:{rng.choice(['05', '15', '30', '45'])}", name=rng.choice(NAMES), day=rng.choice(DAYS), product=rng.choice(PRODUCTS),
        month=rng.choice(MONTHS), job=rng.choice(JOBS))


def translation(rng):
    target, n = rng.choice(TARGETS), rng.randint(1, 4)
    text = " ".join(phrase(rng) for _ in range(n)) if rng.random() < 0.7 else passage(rng, [letter, news, event])
    return rng.choice([f"Translate into {target}: {text}", f"How do I say this in {target}? {text}", f"Please translate this to {target} and explain difficult words:\n\n{text}",
                       f"Give me a {rng.choice(['formal', 'casual', 'word-for-word'])} {target} translation of: {text}",
                       f"Translate into {target} and into {rng.choice(TARGETS)}:\n{text}",
                       f"Make a vocabulary list English - {target} for the words in: {text}"])


def lists(rng):
    topic, n = rng.choice(ALL_TOPICS), rng.randint(3, 12)
    return rng.choice([
        f"List {n} facts about {topic}.", f"Give me {n} ideas for a {rng.choice(['school project', 'blog post', 'podcast', 'workshop', 'poster'])} on {topic}.",
        f"Name {n} things that belong to {topic}.", f"Write a packing list for {n} days in {rng.choice(CITIES)} in {rng.choice(MONTHS)}.",
        f"Write a shopping list for a dinner with {rng.choice(FOODS)} and {rng.choice(FOODS)} for {n} people.",
        f"List {n} names for a {rng.choice(ADJECTIVES)} {rng.choice(ANIMALS)}.", f"Rank {n} jobs by how much they have to do with {topic}.",
        f"Make a checklist for {topic}.", f"Give {n} arguments for and {n} against {topic}.", f"Write a timeline of {topic} with {n} entries.",
        f"List {n} questions one could ask a {rng.choice(JOBS)}.", f"Write {n} slogans for a {rng.choice(PRODUCTS)}.",
        f"Make a weekly plan: one hour of {topic} every {rng.choice(DAYS)} for {n} weeks.", f"Write a glossary of {n} words around {topic}.",
        f"Write a quiz with {n} questions about {topic}; answers at the end.", f"Number the steps: how does one prepare {rng.choice(FOODS)} with {rng.choice(FOODS)}?"])


def editing(rng):
    text = passage(rng, [letter, news, meeting, product, incident])
    a, b = rng.sample(CITIES, 2)
    return rng.choice([
        f"Rewrite this in a {rng.choice(TONES)} tone:", f"Correct spelling and grammar:", f"Make this shorter without losing facts:",
        f"Rewrite this so that everything happens in {a}:", f"Change the past tense to the present tense:", f"Turn this into bullet points:",
        f"Rewrite this for {rng.choice(AUDIENCES)}:", f"Replace all names by letters and print the text again:", f"Repeat this text, but with the sentences numbered:",
        f"Turn this into a formal e-mail:", f"Add a closing sentence that mentions {b}:", f"Write the opposite of this text:",
        f"Rewrite this as direct speech:", "Print this text again with the most important words in bold:"]) + "\n\n" + (
            text if rng.random() < 0.7 else misspelt(rng, text))


def misspelt(rng, text):
    words = text.split(" ")
    for _ in range(max(2, len(words) // 9)):
        at = rng.randrange(len(words))
        word = words[at]
        if len(word) > 3 and word.isalpha():
            cut = rng.randrange(1, len(word) - 1)
            words[at] = rng.choice([word[:cut] + word[cut + 1] + word[cut] + word[cut + 2:], word[:cut] + word[cut + 1:], word[:cut] + word[cut] + word[cut:]])
    return " ".join(words)


def questions(rng):
    text = passage(rng, FACTUAL) if rng.random() < 0.7 else long_passage(rng)
    ask = rng.choice(["Who is named in the text, and what do they do?", "What happened, and when?", "How much money or how many people are mentioned?",
                      "What is planned next?", "Is there anything in this text that seems odd?", "Which question does the text leave open?",
                      "Answer with yes or no and one sentence: is this good news?", "What is the date that matters most here?",
                      "Write three questions about this text and answer them.", "Quote the sentence with the largest number.",
                      f"Does the text say anything about {rng.choice(CITIES)}? Quote it if so.", "What would you ask the author?"])
    return rng.choice([f"{text}\n\nQuestion: {ask}", f"Read this:\n\n{text}\n\n{ask}", f"{ask}\n\nText: {text}", f"Answer from the text alone.\n\n{text}\n\n{ask}"])


def forms(rng):
    topic, name = rng.choice(ALL_TOPICS), person(rng)
    return rng.choice([
        f"Write an e-mail from {name} to a {rng.choice(JOBS)} about {topic}, in a {rng.choice(TONES)} tone.",
        f"Write an invitation to a {rng.choice(['party', 'lecture', 'picnic', 'wedding', 'farewell'])} in {rng.choice(CITIES)} on {rng.choice(DAYS)}.",
        f"Write a cover letter of {name} for a job as a {rng.choice(JOBS)}.", f"Write a product description for a {rng.choice(PRODUCTS)} in a {rng.choice(TONES)} tone.",
        f"Write a complaint about a {rng.choice(PRODUCTS)} that broke after {rng.randint(2, 40)} days.", f"Write a recipe with {rng.choice(FOODS)}, {rng.choice(FOODS)} and {rng.choice(FOODS)}.",
        f"Write a speech of one minute about {topic}.", f"Write a press release: a {rng.choice(JOBS)} from {rng.choice(CITIES)} wins a prize for work on {topic}.",
        f"Write minutes of a meeting about {topic}.", f"Write a user manual for a {rng.choice(ADJECTIVES)} {rng.choice(OBJECTS)}.", f"Write a review of a book about {topic}.",
        f"Write a job advertisement for a {rng.choice(JOBS)} in {rng.choice(CITIES)}.", f"Write a travel guide to {rng.choice(CITIES)} {rng.choice(LENGTHS)}.",
        f"Write a debate between {rng.choice(NAMES)}, who is for, and {rng.choice(NAMES)}, who is against {topic}.", f"Write a text message that cancels a date on {rng.choice(DAYS)} because of {topic}.",
        f"Write a lesson plan about {topic} for {rng.randint(30, 90)} minutes.", f"Write a FAQ about {topic} with {rng.randint(3, 7)} entries.",
        f"Write a toast for {rng.choice(NAMES)}, a {rng.choice(JOBS)} who retires.", f"Write a short biography of {name}, an invented {rng.choice(JOBS)} from {rng.choice(CITIES)}."])


# Requests in other languages, with words of theirs. {t}: topic, {a}: animal or thing, {c}: city.
OTHER = {
    "fr": (split("""Explique simplement {t}. | Raconte une histoire sur {a} à {c}. | Donne-moi cinq conseils sur {t}. | Qu'est-ce que {t} ? | Écris un poème sur {a}. |
        Que peut-on visiter à {c} en {n} jours ? | Écris une lettre à un ami de {c} au sujet de {t}. | Quels sont les avantages de {t} ? | Décris {a} en trois phrases. |
        Invente un dialogue entre deux voisins à propos de {t}."""),
           split("la photosynthèse | le vélo en ville | la cuisine italienne | le sommeil | les volcans | l'énergie solaire | la lecture | le jardinage | la musique classique | les abeilles | la politesse | le recyclage | les vacances | la mer | l'histoire du pain"),
           split("un chat gris | un vieux phare | une lanterne | un renard | une montre cassée | un boulanger | une petite barque | un hibou | une clé rouillée | un jardin secret")),
    "de": (split("""Erkläre mir {t} in einfachen Worten. | Erzähle eine Geschichte über {a} in {c}. | Gib mir fünf Tipps zu {t}. | Was versteht man unter {t}? | Schreibe ein Gedicht über {a}. |
        Was kann man in {c} in {n} Tagen sehen? | Schreibe einen Brief an eine Freundin in {c} über {t}. | Welche Vorteile hat {t}? | Beschreibe {a} in drei Sätzen. |
        Erfinde ein Gespräch zwischen zwei Nachbarn über {t}."""),
           split("die Photosynthese | das Radfahren | gesunde Ernährung | die Pünktlichkeit | das Wetter | die Solarenergie | das Lesen | der Garten | das Brotbacken | die Müllabfuhr | der Urlaub am Meer | das Schachspiel | die Bienen | der Schlaf | das Sparen"),
           split("eine graue Katze | einen alten Leuchtturm | eine Laterne | einen Fuchs | eine kaputte Uhr | einen Bäcker | ein kleines Boot | eine Eule | einen rostigen Schlüssel | einen Drachen")),
    "es": (split("""Explica {t} de forma sencilla. | Cuenta una historia sobre {a} en {c}. | Dame cinco consejos sobre {t}. | ¿Qué es {t}? | Escribe un poema sobre {a}. |
        ¿Qué se puede ver en {c} en {n} días? | Escribe una carta a un amigo de {c} sobre {t}. | ¿Qué ventajas tiene {t}? | Describe {a} en tres frases. | Inventa un diálogo entre dos vecinos sobre {t}."""),
           split("la fotosíntesis | la bicicleta | la cocina casera | el sueño | los volcanes | la energía solar | la lectura | la jardinería | el ajedrez | las abejas | el ahorro | el reciclaje | las vacaciones | el mar | la historia del café"),
           split("un gato gris | un viejo faro | una linterna | un zorro | un reloj roto | un panadero | una barca pequeña | un búho | una llave oxidada | un jardín secreto")),
    "it": (split("""Spiega {t} in modo semplice. | Racconta una storia su {a} a {c}. | Dammi cinque consigli su {t}. | Che cos'è {t}? | Scrivi una poesia su {a}. | Che cosa si può vedere a {c} in {n} giorni? |
        Scrivi una lettera a un amico di {c} su {t}. | Quali vantaggi ha {t}? | Descrivi {a} in tre frasi."""),
           split("la fotosintesi | la bicicletta | la cucina di casa | il sonno | i vulcani | l'energia solare | la lettura | il giardinaggio | gli scacchi | il risparmio | il riciclaggio | il mare"),
           split("un gatto grigio | un vecchio faro | una lanterna | una volpe | un orologio rotto | un fornaio | una piccola barca | un gufo | una chiave arrugginita")),
    "pt": (split("""Explica {t} de forma simples. | Conta uma história sobre {a} em {c}. | Dá-me cinco conselhos sobre {t}. | O que é {t}? | Escreve um poema sobre {a}. | O que se pode ver em {c} em {n} dias? |
        Quais são as vantagens de {t}? | Descreve {a} em três frases."""),
           split("a fotossíntese | a bicicleta | a cozinha caseira | o sono | os vulcões | a energia solar | a leitura | a jardinagem | o xadrez | a poupança | o mar"),
           split("um gato cinzento | um velho farol | uma lanterna | uma raposa | um relógio partido | um padeiro | um pequeno barco | uma coruja")),
    "nl": (split("""Leg {t} eenvoudig uit. | Vertel een verhaal over {a} in {c}. | Geef me vijf tips over {t}. | Wat is {t}? | Schrijf een gedicht over {a}. | Wat kun je in {n} dagen in {c} zien? | Beschrijf {a} in drie zinnen."""),
           split("fotosynthese | fietsen | gezond eten | slaap | het weer | zonne-energie | lezen | tuinieren | schaken | sparen | de zee"),
           split("een grijze kat | een oude vuurtoren | een lantaarn | een vos | een kapotte klok | een bakker | een klein bootje | een uil")),
    "ja": (split("""{t}について簡単に説明してください。 | {a}についての短い物語を書いてください。 | {t}のコツを三つ教えてください。 | {a}についての俳句を作ってください。 | {c}で{n}日間にできることを教えてください。"""),
           split("光合成 | 自転車 | 健康な食事 | 睡眠 | 火山 | 太陽光発電 | 読書 | 園芸 | 将棋 | 節約 | 海 | お茶の歴史"),
           split("灰色の猫 | 古い灯台 | 提灯 | 狐 | 壊れた時計 | パン屋 | 小さな舟 | 梟 | 錆びた鍵")),
    "zh": (split("""请简单解释{t}。 | 请写一个关于{a}的小故事。 | 请给我五条关于{t}的建议。 | 请写一首关于{a}的诗。 | 在{c}玩{n}天可以看什么？ | {t}有什么好处？"""),
           split("光合作用 | 骑自行车 | 健康饮食 | 睡眠 | 火山 | 太阳能 | 阅读 | 园艺 | 象棋 | 存钱 | 大海 | 茶的历史"),
           split("一只灰猫 | 一座旧灯塔 | 一盏灯笼 | 一只狐狸 | 一块坏了的表 | 一位面包师 | 一条小船 | 一只猫头鹰")),
    "ru": (split("""Объясни простыми словами, что такое {t}. | Расскажи историю про {a}. | Дай пять советов на тему: {t}. | Напиши стихотворение про {a}. | Что посмотреть в городе {c} за {n} дней?"""),
           split("фотосинтез | велосипед | здоровое питание | сон | вулканы | солнечная энергия | чтение | шахматы | море | история чая"),
           split("серого кота | старый маяк | фонарь | лису | сломанные часы | пекаря | маленькую лодку | сову")),
    "pl": (split("""Wyjaśnij prosto, czym jest {t}. | Opowiedz historię, w której jest {a} w mieście {c}. | Podaj pięć rad na temat: {t}. | Napisz wiersz, w którym jest {a}. | Co zobaczyć w mieście {c} w {n} dni?"""),
           split("fotosynteza | jazda na rowerze | zdrowe jedzenie | sen | energia słoneczna | czytanie | szachy | oszczędzanie | morze"),
           split("szary kot | stara latarnia morska | lis | zepsuty zegar | piekarz | mała łódka | sowa")),
    "sv": (split("""Förklara {t} enkelt. | Berätta en saga om {a} i {c}. | Ge mig fem råd om {t}. | Vad är {t}? | Skriv en dikt om {a}. | Vad kan man se i {c} på {n} dagar?"""),
           split("fotosyntes | cykling | hälsosam mat | sömn | solenergi | läsning | trädgårdsarbete | schack | sparande | havet"),
           split("en grå katt | en gammal fyr | en lykta | en räv | en trasig klocka | en bagare | en liten båt | en uggla")),
    "tr": (split("""{t} nedir, basitçe açıkla. | {a} hakkında kısa bir hikâye yaz. | {t} hakkında beş öneri ver. | {a} için bir şiir yaz. | {c} şehrinde {n} günde ne görülür?"""),
           split("fotosentez | bisiklet | sağlıklı beslenme | uyku | güneş enerjisi | okumak | bahçe işleri | satranç | tasarruf | deniz"),
           split("gri bir kedi | eski bir deniz feneri | bir fener | bir tilki | bozuk bir saat | bir fırıncı | küçük bir tekne | bir baykuş")),
}


def multilingual(rng):
    templates, topics, things = OTHER[rng.choice(sorted(OTHER))]
    text = rng.choice(templates).format(t=rng.choice(topics), a=rng.choice(things), c=rng.choice(CITIES), n=rng.randint(2, 9))
    if rng.random() < 0.35:
        more, _, _ = templates, topics, things
        text += " " + rng.choice(more).format(t=rng.choice(topics), a=rng.choice(things), c=rng.choice(CITIES), n=rng.randint(2, 9))
    return text
