"""Prompts about numbers: sums, word problems, algebra, geometry, chance, units."""

from words import CITIES, FOODS, JOBS, NAMES, OBJECTS, PRODUCTS

HOW = ["", "", " Show your steps.", " Explain how you got there.", " Give only the result.", " Check the result afterwards.",
       " Think step by step."]


def arithmetic(rng):
    a, b, c = rng.randint(2, 999), rng.randint(2, 99), rng.randint(2, 60)
    return rng.choice([f"What is {a} + {b} * {c}?", f"Calculate {a} - {b} + {c}.", f"What is {a} divided by {c}, with two decimals?",
                       f"Compute ({a} + {b}) / {c}.", f"How much is {rng.randint(2, 95)} percent of {a}?",
                       f"What is {b} squared plus {c} squared?", f"Which is larger, {a}/{b} or {b}/{c}?",
                       f"Add these numbers: {', '.join(str(rng.randint(3, 900)) for _ in range(rng.randint(4, 8)))}.",
                       f"Find the mean and the median of {', '.join(str(rng.randint(1, 99)) for _ in range(rng.randint(5, 9)))}."])


def word_problem(rng):
    a, b = rng.sample(NAMES, 2)
    n, m, k = rng.randint(3, 60), rng.randint(2, 12), rng.randint(2, 9)
    food, thing = rng.choice(FOODS), rng.choice(PRODUCTS)
    return rng.choice([
        f"{a} has {n * m} {rng.choice(['marbles', 'stickers', 'coins', 'photos', 'stamps'])} and gives {n} of them to {b}. How many are left, and how many would each have if they shared them equally?",
        f"A {thing} costs {n * 5} euros and is reduced by {m * 5} percent. What does {a} pay for {k} of them?",
        f"A train leaves {rng.choice(CITIES)} at {rng.randint(6, 12)}:15 and drives {rng.randint(60, 180)} km/h. When has it gone {n * 10} km?",
        f"{a} can paint a fence in {m} hours, {b} in {m + k} hours. How long do they need together?",
        f"A recipe for {m} people takes {n * 10} grams of {food}. How much is needed for {m + k} people?",
        f"{a} is {k} times as old as {b}. In {m} years the sum of their ages will be {n + 2 * m}. How old are they?",
        f"A {rng.choice(JOBS)} earns {n * 40} euros a month and saves {m} percent. After how many months are {n * 50} euros saved?",
        f"There are {n} rows with {m} seats each in a theatre, and {k * 4} seats are broken. How many guests can sit?",
        f"A tank holds {n * 20} litres. It fills with {m} litres a minute and loses {1 + k // 3} litres a minute. When is it full?",
        f"{a} walks {m} km to work and takes {n} minutes. What is the speed in km/h?",
        f"{a} buys {m} {rng.choice(OBJECTS)}s for {k}.50 euros each and pays with a {max(50, m * (k + 1))} euro note. How much change is there?",
        f"In a box are {n} red, {m} blue and {k} green balls. {a} draws one without looking. What is the chance that it is blue?"])


def algebra(rng):
    a, b, c, d = rng.randint(2, 12), rng.randint(1, 60), rng.randint(2, 99), rng.randint(1, 9)
    return rng.choice([f"Solve for x: {a}x + {b} = {c}.", f"Solve for x: {a}x - {b} = {d}x + {c}.", f"Factor x^2 + {a + d}x + {a * d}.",
                       f"Solve the system x + y = {c} and {a}x - y = {b}.", f"Simplify ({a}x + {b})({d}x - {c}).",
                       f"For which x is {a}x^2 - {b} equal to zero?", f"What is the derivative of {a}x^3 + {b}x^2 - {c}x?",
                       f"Find the next three numbers: {b}, {b + a}, {b + 2 * a}, {b + 3 * a}, ...",
                       f"Find the next two numbers and the rule: {d}, {d * 2}, {d * 4}, {d * 8}, ...",
                       f"What is the sum of all whole numbers from {d} to {d + c}?", f"What is log base 2 of {2 ** rng.randint(3, 14)}?",
                       f"Is {rng.randint(50, 999)} a prime number? Say why.", f"What are the prime factors of {rng.randint(30, 999)}?",
                       f"Find the greatest common divisor of {a * d * 3} and {a * b}."])


def geometry(rng):
    a, b, c = rng.randint(2, 40), rng.randint(2, 40), rng.randint(2, 20)
    return rng.choice([f"What is the area of a rectangle with sides {a} cm and {b} cm?", f"A circle has a radius of {a} m. What are its area and circumference?",
                       f"How long is the diagonal of a rectangle of {a} by {b}?", f"A triangle has angles of {a + 20} and {b + 30} degrees. How large is the third?",
                       f"What is the volume of a box of {a} x {b} x {c} cm?", f"How many tiles of {c} by {c} cm cover a floor of {a} by {b} metres?",
                       f"A ladder of {a + 5} m leans on a wall, its foot {c / 4:.1f} m away. How high does it reach?",
                       f"A cylinder is {a} cm high and {b} cm wide. How many litres does it hold?"])


def units(rng):
    n = rng.randint(2, 900)
    pair = rng.choice([("kilometres", "miles"), ("pounds", "kilograms"), ("inches", "centimetres"), ("degrees Fahrenheit", "degrees Celsius"),
                       ("hours", "seconds"), ("litres", "gallons"), ("acres", "square metres"), ("days", "weeks and days"), ("minutes", "hours and minutes"),
                       ("megabytes", "gigabytes"), ("feet", "metres"), ("knots", "km/h")])
    return rng.choice([f"Convert {n} {pair[0]} to {pair[1]}.", f"How many {pair[1]} are {n} {pair[0]}?",
                       f"Make a table that converts {n}, {n + 5} and {n * 2} {pair[0]} to {pair[1]}."])


def ideas(rng):
    thing = rng.choice(["the Pythagorean theorem", "prime numbers", "fractions", "negative numbers", "percentages", "probability", "the number pi",
                        "logarithms", "exponential growth", "derivatives", "integrals", "matrices", "vectors", "the mean and the median", "standard deviation",
                        "binary numbers", "complex numbers", "the golden ratio", "infinity", "proof by contradiction", "modular arithmetic", "combinations",
                        "permutations", "the normal distribution", "linear functions", "quadratic equations", "ratios", "compound interest"])
    return rng.choice([f"Explain {thing} with an everyday example.", f"Why do people need {thing}?", f"Invent a word problem about {thing} and solve it.",
                       f"Write three exercises on {thing} with solutions.", f"What do pupils usually get wrong about {thing}?",
                       f"Explain {thing} using {rng.choice(FOODS)}."])


def maths(rng):
    kind = rng.choice([arithmetic, word_problem, word_problem, word_problem, algebra, algebra, geometry, units, ideas])
    return kind(rng) + ("" if kind is ideas else rng.choice(HOW))
