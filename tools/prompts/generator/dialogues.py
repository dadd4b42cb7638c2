"""Conversations of several turns, as messages."""

from texts import chat, creative, explanation, extraction, lists, translation
from maths import maths
from programs import CODE
from passages import passage
from words import ALL_TOPICS, AUDIENCES, CITIES, FOODS, JOBS, LENGTHS, NAMES, TONES

ROLES = ["a patient teacher", "a terse assistant who answers in at most three sentences", "a cook", "a travel agent", "a proof-reader",
         "an assistant who always answers with a list", "a librarian", "a helpful programmer", "a poet", "an assistant who writes for children",
         "a careful editor", "a coach", "a historian", "a scientist who loves examples", "a customer service agent of a bicycle shop"]
FOLLOW_UPS = ["Can you say that more simply?", "Give me an example, please.", "Why is that so?", "And what would be the opposite?", "Summarise what you said in one sentence.",
              "Continue.", "Please make it shorter.", "Please make it longer.", "Now as a list.", "Write that again in a {tone} tone.", "How would you explain it to {audience}?",
              "What else should I know?", "Are you sure?", "Which part is the most important?", "What does that mean for a {job} in {city}?", "Turn it into three questions."]


def answer(rng):
    """An earlier answer of the assistant, short and of no great substance."""
    topic, city, food = rng.choice(ALL_TOPICS), rng.choice(CITIES), rng.choice(FOODS)
    return rng.choice([
        f"Certainly. The short version: begin with {topic}, look at two or three examples, and then try it yourself. Most people find the first step the hardest.",
        f"There are three things to keep in mind. First, take your time. Second, write down what surprises you. Third, talk about it with somebody who knows {topic}.",
        f"Yes, of course. In {city} I would start at the market, walk along the water and end the day with a plate of {food}.",
        f"It depends. If you mean {topic}, the answer is yes; if you mean something else, please tell me more.",
        f"Here is a first draft: \"Dear {rng.choice(NAMES)}, thank you for your patience. I will bring the {food} on Sunday, and we can talk about {topic} then.\"",
        f"{passage(rng)}", f"Good question. {topic[0].upper() + topic[1:]} is easier to understand when you have seen it once. Shall I give an example or a definition?",
        f"1. Collect what you have.\n2. Sort it by importance.\n3. Leave out half of it.\n4. Ask {rng.choice(NAMES)}, who works as a {rng.choice(JOBS)}."])


def follow_up(rng):
    return rng.choice(FOLLOW_UPS).format(tone=rng.choice(TONES), audience=rng.choice(AUDIENCES), job=rng.choice(JOBS), city=rng.choice(CITIES))


def dialogue(rng):
    first = rng.choice([chat, chat, explanation, creative, lists, maths, extraction, translation, *CODE[:2]])
    messages = []
    if rng.random() < 0.5:
        messages.append({"role": "system", "content": f"You are {rng.choice(ROLES)}."})
    messages.append({"role": "user", "content": first(rng)})
    if not messages[:-1] or rng.random() < 0.7:
        for _ in range(rng.randint(1, 2)):
            messages.append({"role": "assistant", "content": answer(rng)})
            then = follow_up(rng) if rng.random() < 0.7 else rng.choice([chat, explanation, lists])(rng)
            messages.append({"role": "user", "content": then})
    if rng.random() < 0.2:
        messages[-1]["content"] += f" Answer {rng.choice(LENGTHS)}."
    return messages
