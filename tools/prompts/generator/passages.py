"""Passages that the generator composes: made-up reports, notices and letters with facts in them, to be
summarised, questioned, edited, translated or turned into JSON."""

from words import (ADJECTIVES, ALL_TOPICS, ANIMALS, CITIES, DAYS, FOODS, JOBS, MONTHS, NAMES, OBJECTS,
                   PRODUCTS, SURNAMES)


def person(rng):
    return f"{rng.choice(NAMES)} {rng.choice(SURNAMES)}"


def date(rng):
    return f"{rng.randint(1, 28)} {rng.choice(MONTHS)} {rng.randint(1987, 2031)}"


def clock(rng):
    return f"{rng.randint(7, 21)}:{rng.choice(['00', '10', '15', '20', '30', '40', '45'])}"


def price(rng, most=300):
    return f"{rng.randint(2, most)}.{rng.choice(['00', '20', '49', '50', '90', '95', '99'])}"


def mail(rng, name):
    first, last = name.lower().split(" ")[0], name.lower().split(" ")[-1]
    ascii_name = (first + "." + last).encode("ascii", "ignore").decode()
    return f"{ascii_name}@{rng.choice(['example.org', 'mail.example', 'office.example', 'post.example'])}"


def phone(rng):
    return f"+{rng.randint(30, 99)} {rng.randint(100, 999)} {rng.randint(10000, 99999)}"


def meeting(rng):
    a, b, c = person(rng), person(rng), person(rng)
    first = rng.choice(["opened the meeting", "welcomed everyone", "began with the numbers of last month",
                        "read out the open points"])
    budget = rng.randint(2, 90) * 500
    return " ".join([
        f"{a} {first}.",
        rng.choice([f"{b} reported that the move to {rng.choice(CITIES)} will take {rng.randint(2, 9)} weeks longer than planned.",
                    f"{b} showed the results of the survey: {rng.randint(40, 95)} percent of {rng.randint(80, 900)} customers are content.",
                    f"{b} said that {rng.randint(3, 40)} orders of the {rng.choice(PRODUCTS)} came back damaged.",
                    f"{b} presented two offers for the new {rng.choice(['server', 'kitchen', 'roof', 'website', 'delivery van'])}."]),
        rng.choice([f"The group agreed on a budget of {budget} euros.",
                    f"After a long discussion the budget was cut to {budget} euros.",
                    f"Nobody objected to spending {budget} euros on it."]),
        rng.choice([f"{c} will write to the supplier by {rng.choice(DAYS)}.",
                    f"{c} will prepare a list of risks before {date(rng)}.",
                    f"{c} offered to train the new {rng.choice(JOBS)}."]),
        rng.choice([f"The next meeting is on {rng.choice(DAYS)} at {clock(rng)}.",
                    f"The group meets again in {rng.randint(2, 6)} weeks in room {rng.randint(1, 40)}.",
                    "The date of the next meeting is still open."])])


def news(rng):
    city, other = rng.sample(CITIES, 2)
    count = rng.randint(12, 4000)
    return " ".join([
        rng.choice([f"{city}: A {rng.choice(['storm', 'flood', 'power cut', 'landslide', 'heat wave'])} has closed the main road to {other} since {rng.choice(DAYS)}.",
                    f"{city} opened a new {rng.choice(['library', 'tram line', 'swimming hall', 'bridge', 'market hall'])} on {date(rng)}.",
                    f"The city council of {city} decided to plant {count} trees within {rng.randint(2, 8)} years.",
                    f"A {rng.choice(ANIMALS)} escaped from the zoo of {city} and was found in a {rng.choice(['bakery', 'car park', 'school yard', 'church'])}."]),
        rng.choice([f"According to {person(rng)}, {rng.choice(JOBS)} at the town hall, {count} people are affected.",
                    f"\"We waited {rng.randint(2, 20)} years for this day,\" said {person(rng)}, a {rng.choice(JOBS)}.",
                    f"The work cost {rng.randint(2, 80)} million euros, {rng.randint(1, 9)} million more than planned."]),
        rng.choice([f"Schools in the area stay closed until {rng.choice(DAYS)}.",
                    f"Residents may send their questions to the office before {date(rng)}.",
                    f"Critics say that the money was needed for {rng.choice(['schools', 'the hospital', 'new buses', 'cheap flats'])}."]),
        rng.choice([f"Neighbouring {other} has offered help.", "A report is to follow next month.",
                    f"The mayor, {person(rng)}, called the result encouraging."])])


def product(rng):
    thing = rng.choice(PRODUCTS)
    return " ".join([
        f"The {thing} by {rng.choice(SURNAMES)} & {rng.choice(['Sons', 'Daughters', 'Partners', 'Friends'])} weighs {rng.randint(120, 4800)} grams and comes in {rng.choice(['grey', 'dark green', 'orange', 'black', 'cream', 'navy blue'])}.",
        rng.choice([f"It costs {price(rng)} euros and is delivered within {rng.randint(2, 12)} days.",
                    f"Until the end of {rng.choice(MONTHS)} it is sold for {price(rng)} instead of {price(rng, 500)} euros."]),
        rng.choice([f"Testers praised the {rng.choice(['handle', 'fabric', 'finish', 'weight', 'sound', 'battery'])}, but found the {rng.choice(['manual', 'packaging', 'colour', 'price', 'lid', 'cable'])} disappointing.",
                    f"In a test with {rng.randint(20, 400)} users it failed {rng.randint(1, 9)} times.",
                    "Most buyers would order it again, although the instructions are hard to follow."]),
        rng.choice([f"The guarantee lasts {rng.randint(1, 10)} years.", f"Spare parts are kept for {rng.randint(5, 20)} years.",
                    "It can be returned within thirty days."])])


def letter(rng):
    a, b = person(rng), person(rng)
    return "\n".join([
        f"Dear {b.split(' ')[0]},",
        " ".join([rng.choice([f"I have been in {rng.choice(CITIES)} for {rng.randint(2, 30)} days now.",
                              f"thank you for the {rng.choice(OBJECTS)} that you sent me in {rng.choice(MONTHS)}.",
                              f"I am sorry that I missed your party on {rng.choice(DAYS)}."]),
                  rng.choice([f"The flat is small, but from the window I can see a {rng.choice(ADJECTIVES)} garden with a {rng.choice(ANIMALS)} in it.",
                              f"I found work as a {rng.choice(JOBS)}, which is harder than I thought.",
                              f"Every morning I buy {rng.choice(FOODS)} and {rng.choice(FOODS)} at the corner and practise the language."]),
                  rng.choice([f"Could you send me {rng.randint(40, 900)} euros until the end of {rng.choice(MONTHS)}?",
                              f"Will you visit me on {date(rng)}? The train arrives at {clock(rng)}.",
                              f"Please tell {rng.choice(NAMES)} that I still have the {rng.choice(OBJECTS)}."])]),
        f"Yours, {a.split(' ')[0]}"])


def recipe(rng):
    a, b, c = rng.sample(FOODS, 3)
    return " ".join([
        f"For {rng.randint(2, 8)} people you need {rng.randint(1, 9) * 100} grams of {a}, {rng.randint(1, 5)} cups of {b} and a little {c}.",
        rng.choice([f"Wash the {a} and cut them into pieces.", f"Cook the {b} in salted water for {rng.randint(5, 40)} minutes.",
                    f"Warm the pan, add some oil and fry the {a} until they are golden."]),
        rng.choice([f"Stir in the {c} and leave everything on low heat for {rng.randint(5, 50)} minutes.",
                    f"Put it into the oven at {rng.randint(14, 23) * 10} degrees.", f"Mix with {b} and taste for salt."]),
        rng.choice(["Serve it hot.", "It tastes even better the next day.", f"Leftovers keep for {rng.randint(2, 5)} days in the fridge."])])


def incident(rng):
    return " ".join([
        f"On {date(rng)} at {clock(rng)} the {rng.choice(['login page', 'payment service', 'mail server', 'booking system', 'map service', 'search index'])} stopped answering.",
        rng.choice([f"The cause was a certificate that had run out {rng.randint(1, 9)} hours before.",
                    "A full disk on the second machine was the cause.", "A change to the firewall had blocked all traffic.",
                    f"A script had deleted {rng.randint(20, 9000)} rows by mistake."]),
        f"{person(rng)} noticed it after {rng.randint(3, 90)} minutes and {rng.choice(['restarted the service', 'rolled the change back', 'restored a backup', 'called the provider'])}.",
        rng.choice([f"{rng.randint(15, 5000)} users were affected.", "No data were lost.", f"About {rng.randint(2, 60)} orders have to be entered again."]),
        rng.choice(["From now on an alarm watches the disk.", "Changes on Fridays are no longer allowed.", "The team will rehearse the restore every quarter."])])


def biography(rng):
    name, city = person(rng), rng.choice(CITIES)
    born = rng.randint(1802, 1975)
    return " ".join([
        f"{name} was born in {city} in {born}, the {rng.choice(['first', 'second', 'third', 'youngest'])} child of a {rng.choice(JOBS)}.",
        f"At the age of {rng.randint(12, 24)} {rng.choice(['they left school', 'they moved to ' + rng.choice(CITIES), 'they built their first ' + rng.choice(OBJECTS)])}.",
        f"In {born + rng.randint(25, 45)} they became known for {rng.choice(['a book about', 'a lecture on', 'drawings of', 'an exhibition about'])} {rng.choice(ALL_TOPICS)}.",
        rng.choice([f"They never married and kept {rng.randint(2, 30)} {rng.choice(['cats', 'pigeons', 'bee hives', 'clocks'])}.",
                    f"With {person(rng)} they founded a school that still exists.", "Most of the work was lost in a fire."]),
        f"They died in {born + rng.randint(50, 90)} in {rng.choice(CITIES)}."])


def order(rng):
    name = person(rng)
    lines = [f"{rng.randint(1, 12)} x {rng.choice(PRODUCTS)} at {price(rng, 90)}" for _ in range(rng.randint(2, 4))]
    return (f"Order {rng.randint(1000, 99999)} of {date(rng)}. Customer: {name}, {mail(rng, name)}, {phone(rng)}. "
            f"Items: {'; '.join(lines)}. Delivery to {rng.choice(['Mill Lane', 'Station Road', 'Harbour Street', 'Church Square', 'Garden Row'])} "
            f"{rng.randint(1, 120)}, {rng.choice(CITIES)}. Payment by {rng.choice(['card', 'invoice', 'bank transfer', 'cash'])}.")


def event(rng):
    return (f"{rng.choice(['Workshop', 'Concert', 'Reading', 'Guided walk', 'Open day', 'Film night', 'Repair cafe'])}: "
            f"{rng.choice(ALL_TOPICS)}. {rng.choice(DAYS)}, {date(rng)}, {clock(rng)}, at the {rng.choice(['town hall', 'old mill', 'library', 'youth club', 'botanical garden'])} "
            f"in {rng.choice(CITIES)}. With {person(rng)}, {rng.choice(JOBS)}. Tickets {price(rng, 40)} euros, free for children under {rng.randint(6, 16)}. "
            f"Places are limited to {rng.randint(12, 250)}; please sign up by {rng.choice(DAYS)}.")


def weather(rng):
    city, other = rng.sample(CITIES, 2)
    return (f"In {city} the {rng.choice(['morning', 'day', 'night'])} begins with {rng.choice(['fog', 'light rain', 'clear skies', 'snow', 'strong wind'])} at {rng.randint(-8, 24)} degrees. "
            f"By {clock(rng)} it reaches {rng.randint(5, 36)} degrees, {rng.randint(1, 9)} more than in {other}. "
            f"{rng.choice(['Showers move in from the west.', 'The sun shines for ' + str(rng.randint(1, 13)) + ' hours.', 'Thunderstorms are possible in the hills.'])} "
            f"The outlook for {rng.choice(DAYS)}: {rng.choice(['cooler', 'warmer', 'dry', 'changeable', 'windy'])}.")


PASSAGES = [meeting, news, product, letter, recipe, incident, biography, order, event, weather]
FACTUAL = [meeting, news, product, incident, biography, order, event, weather]


def passage(rng, kinds=PASSAGES):
    return rng.choice(kinds)(rng)


def long_passage(rng):
    """Several of one or more kinds, as paragraphs."""
    return "\n\n".join(passage(rng) for _ in range(rng.randint(2, 4)))
