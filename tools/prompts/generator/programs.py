"""Programming prompts: tasks, snippets to explain, mend, extend and translate."""

from words import FOODS, NAMES, split

LANGUAGES = split("""Python | Python | Python | JavaScript | JavaScript | TypeScript | C | C++ | Java | Go | Rust | C# | Ruby | PHP |
    Kotlin | Swift | Bash""")
TASKS = split("""reverses a string | counts the vowels in a text | checks whether a word is a palindrome | finds the largest
    number in a list | removes duplicates from a list and keeps the order | merges two sorted lists | sorts a list of
    records by two keys | computes the factorial of a number | prints the first n Fibonacci numbers | tests whether a
    number is prime | computes the greatest common divisor of two numbers | converts Celsius to Fahrenheit | counts how
    often each word occurs in a file | reads a CSV file and sums one column | writes a table as Markdown | parses a date
    in the form YYYY-MM-DD | validates an email address | validates a password | generates a random password | rolls two
    dice many times and prints a histogram | simulates a bank account with deposits and withdrawals | implements a stack |
    implements a queue with two stacks | implements binary search | implements bubble sort | implements quicksort |
    implements a linked list with insert and delete | walks a binary tree in order | finds the shortest path in a grid |
    counts islands in a grid of zeros and ones | transposes a matrix | multiplies two matrices | rotates a matrix by
    ninety degrees | converts a number to Roman numerals | converts binary to decimal | encodes a text with a Caesar
    cipher | compresses a text by run lengths | finds the longest common prefix of several words | finds all anagrams in
    a list of words | checks whether brackets are balanced | evaluates a simple arithmetic expression | flattens a nested
    list | groups people by age | computes a moving average | computes mean, median and mode | draws a triangle of stars |
    plays rock, paper, scissors | plays hangman in the terminal | guesses a number by halving | keeps a to-do list in a
    JSON file | renames all files in a folder | finds the largest files in a folder | downloads a page and counts its
    links | retries a failing call three times | caches the results of a slow function | limits calls to five a second |
    logs messages with a time stamp | reads settings from environment variables | converts between miles and
    kilometres | splits a bill between friends | computes compound interest | prints a calendar of a month | counts the
    days between two dates | finds leap years | shuffles a deck of cards | deals five cards to each player | scores a
    game of bowling | moves a robot on a grid by commands | implements the game of life | checks a sudoku row | formats
    seconds as hours, minutes and seconds | truncates a long text at a word boundary | capitalises every word of a
    title | extracts all numbers from a text | masks all but the last four digits of a card number | compares two
    version numbers | builds a frequency table of letters | implements a small key-value store | implements a circular
    buffer | implements a priority queue | finds two numbers in a list that add up to a target""")
EXTRAS = split("""Add a short comment to each step. | Include two example calls. | Explain how it works afterwards. | Handle bad
    input. | Write unit tests for it, too. | Do not use any library. | Keep it as short as possible. | Use clear names. |
    State its time complexity. | Make it robust against empty input. | Use recursion. | Avoid recursion. | Show the
    expected output. | Write it as a class. | Use type annotations where the language has them. | | | """)
CONCEPTS = split("""a pointer | a closure | recursion | inheritance | an interface | a race condition | a deadlock | garbage
    collection | a hash table | big O notation | an index in a database | a transaction | a foreign key | REST | JSON |
    a regular expression | a unit test | a mock object | dependency injection | a design pattern | the singleton pattern |
    the observer pattern | event loops | promises and async | threads | processes | a mutex | immutability | pure
    functions | type inference | generics | a stack overflow | a memory leak | an off-by-one error | lazy evaluation |
    a virtual environment | continuous integration | a merge conflict | rebasing in git | a Docker container | caching |
    a load balancer | an API key | Unicode | floating-point rounding | an iterator | a generator | a decorator""")
NOUNS = split("""user | order | item | book | student | city | ticket | invoice | player | message | product | sensor | flight |
    recipe | song | task | animal | house | team | route""")
FIELDS = split("""name | price | weight | age | score | length | size | rating | count | year | distance | height | speed | stock |
    temperature""")
PAGES = split("""a contact form | a recipe page | a photo gallery | a login form | a price table | a weekly timetable | a personal
    homepage | a menu of a small restaurant | a newsletter sign-up | a blog post | an event invitation | a footer with
    links | a card with picture and button | a quiz with three questions | a list of upcoming concerts""")


def function_name(rng, noun, field):
    return rng.choice([f"{rng.choice(['total', 'average', 'largest', 'smallest', 'count'])}_{field}",
                       f"find_{noun}", f"{noun}_report", f"{rng.choice(['filter', 'sort', 'update', 'load'])}_{noun}s",
                       f"print_{noun}s"])


def python_snippet(rng):
    noun, field, limit = rng.choice(NOUNS), rng.choice(FIELDS), rng.randint(2, 500)
    name = function_name(rng, noun, field)
    return rng.choice([
        f"def {name}({noun}s):\n    total = 0\n    for {noun} in {noun}s:\n        if {noun}[\"{field}\"] > {limit}:\n            total += {noun}[\"{field}\"]\n    return total",
        f"def {name}({noun}s, limit={limit}):\n    result = []\n    for i in range(len({noun}s)):\n        if {noun}s[i].{field} < limit:\n            result.append({noun}s[i])\n    return sorted(result, key=lambda x: x.{field})",
        f"class {noun.capitalize()}:\n    def __init__(self, name, {field}):\n        self.name = name\n        self.{field} = {field}\n\n    def is_large(self):\n        return self.{field} >= {limit}\n\n    def __str__(self):\n        return f\"{{self.name}}: {{self.{field}}}\"",
        f"{noun}s = {{}}\n\ndef add_{noun}(name, {field}):\n    {noun}s[name] = {field}\n\ndef {name}():\n    best = max({noun}s, key={noun}s.get)\n    print(best, {noun}s[best])",
        f"import json\n\ndef {name}(path):\n    with open(path) as file:\n        {noun}s = json.load(file)\n    by_{field} = {{}}\n    for {noun} in {noun}s:\n        by_{field}.setdefault({noun}[\"{field}\"], []).append({noun})\n    return by_{field}"])


def javascript_snippet(rng):
    noun, field, limit = rng.choice(NOUNS), rng.choice(FIELDS), rng.randint(2, 500)
    title = noun.capitalize()
    return rng.choice([
        f"function large{title}s({noun}s) {{\n  return {noun}s.filter(({noun}) => {noun}.{field} > {limit}).map(({noun}) => {noun}.name);\n}}",
        f"async function load{title}(id) {{\n  const response = await fetch(`/api/{noun}s/${{id}}`);\n  const {noun} = response.json();\n  return {noun}.{field};\n}}",
        f"const {noun}s = [];\n\nfunction add{title}(name, {field}) {{\n  {noun}s.push({{ name, {field} }});\n  if ({noun}s.length > {limit}) {{\n    {noun}s.shift();\n  }}\n}}",
        f"let sum = 0;\nfor (let i = 0; i <= {noun}s.length; i++) {{\n  sum += {noun}s[i].{field};\n}}\nconsole.log(sum / {noun}s.length);"])


def c_snippet(rng):
    noun, field, limit = rng.choice(NOUNS), rng.choice(FIELDS), rng.randint(3, 200)
    return rng.choice([
        f"struct {noun} {{\n  char name[{limit}];\n  int {field};\n}};\n\nint sum_{field}(const struct {noun} *list, int n) {{\n  int sum = 0;\n  for (int i = 0; i < n; i++) {{\n    sum += list[i].{field};\n  }}\n  return sum;\n}}",
        f"int find(const int *{field}s, int n, int wanted) {{\n  for (int i = 0; i <= n; i++) {{\n    if ({field}s[i] == wanted) return i;\n  }}\n  return -1;\n}}",
        f"char *copy_{field}(const char *text) {{\n  char *copy = malloc(strlen(text));\n  strcpy(copy, text);\n  return copy;\n}}",
        f"void swap(int *a, int *b) {{\n  int t = *a;\n  *a = *b;\n  *b = t;\n}}\n\nvoid sort_{field}s(int *v, int n) {{\n  for (int i = 0; i < n; i++)\n    for (int j = 0; j + 1 < n - i; j++)\n      if (v[j] > v[j + 1]) swap(&v[j], &v[j + 1]);\n}}"])


def sql_schema(rng):
    noun, field, other = rng.choice(NOUNS), *rng.sample(FIELDS, 2)
    return noun, field, other, (f"CREATE TABLE {noun}s (\n  id INTEGER PRIMARY KEY,\n  name TEXT NOT NULL,\n  {field} INTEGER,\n  {other} REAL,\n"
                                f"  created DATE\n);")


def html_snippet(rng):
    foods = rng.sample(FOODS, 3)
    items = "\n".join(f"    <li>{food}</li>" for food in foods)
    return f"<section id=\"{rng.choice(NOUNS)}s\">\n  <h2>{rng.choice(['Our offers', 'This week', 'What is new', 'Shopping list'])}</h2>\n  <ul>\n{items}\n  </ul>\n</section>"


def write_function(rng):
    language, extra = rng.choice(LANGUAGES), rng.choice(EXTRAS)
    return rng.choice([f"Write a {language} function that {rng.choice(TASKS)}. {extra}",
                       f"Write a small {language} program that {rng.choice(TASKS)}. {extra}",
                       f"I need code in {language} that {rng.choice(TASKS)}. {extra}",
                       f"How would you write something in {language} that {rng.choice(TASKS)}? {extra}",
                       f"Give me a {language} snippet that {rng.choice(TASKS)} and one that {rng.choice(TASKS)}."]).strip()


def work_on_snippet(rng):
    language, make = rng.choice([("python", python_snippet), ("python", python_snippet), ("javascript", javascript_snippet), ("c", c_snippet)])
    snippet = f"```{language}\n{make(rng)}\n```"
    noun = rng.choice(NOUNS)
    ask = rng.choice([
        "What does this code do? Explain it line by line.", "Find the bug in this code, if there is one, and correct it.",
        "Add comments to this code and print it again.", "Rewrite this code so that it is easier to read.",
        "Write three test cases for this code.", "What happens with this code when the input is empty?",
        f"Rename everything called after its old topic so that it is about a {noun} instead, and print the full code.",
        "Add error handling to this code.", f"Translate this code to {rng.choice(['Go', 'Java', 'Ruby', 'Rust', 'TypeScript', 'C++'])}.",
        "How fast is this code for large inputs? Suggest an improvement.", "Write a short documentation for this code.",
        "Print this code again without blank lines and with a licence comment at the top.",
        f"Add a function to this code that {rng.choice(TASKS)}."])
    return f"{ask}\n\n{snippet}" if rng.random() < 0.7 else f"{snippet}\n\n{ask}"


def sql(rng):
    noun, field, other, schema = sql_schema(rng)
    ask = rng.choice([
        f"Write a query that lists the {rng.randint(3, 20)} {noun}s with the highest {field}.",
        f"Write a query for the average {other} of all {noun}s whose {field} is above {rng.randint(2, 900)}.",
        f"Add a column for the owner to this table and fill it with '{rng.choice(NAMES)}'.",
        f"Count the {noun}s of each year by their creation date.", f"Delete all {noun}s without a {other}.",
        f"Which index would help to find {noun}s by {field}? Write the statement.",
        f"Insert three example {noun}s."])
    return f"{ask}\n\n```sql\n{schema}\n```"


def web(rng):
    if rng.random() < 0.5:
        return (f"Write the HTML for {rng.choice(PAGES)}" +
                rng.choice([".", " with a little CSS.", f" for a shop that sells {rng.choice(FOODS)}.", " without any JavaScript.",
                            f" in the name of {rng.choice(NAMES)}."]))
    return (rng.choice(["Add a fourth item to this list and print the whole HTML.", "Turn this list into a table.",
                        "Write CSS that shows these items side by side.", "Translate the texts in this HTML into French and print it again.",
                        "Give each item of this HTML an id and a link.", "Change the heading of this HTML to one that makes people curious."]) +
            f"\n\n```html\n{html_snippet(rng)}\n```")


def concept(rng):
    a, b = rng.sample(CONCEPTS, 2)
    language = rng.choice(LANGUAGES)
    return rng.choice([f"Explain {a} with an example in {language}.", f"What is the difference between {a} and {b}?",
                       f"When should I care about {a} as a {language} programmer?", f"Give a simple analogy for {a}.",
                       f"What are common mistakes with {a} in {language}?", f"Quiz me about {a}: five questions with answers."])


def shell(rng):
    extension = rng.choice(["txt", "log", "jpg", "csv", "py", "md"])
    return rng.choice([
        f"Give me a shell command that finds all .{extension} files larger than {rng.randint(1, 900)} MB and explain each part.",
        f"How do I rename every .{extension} file in a folder to lower case in bash?",
        f"Write a bash script that makes a backup of a folder every {rng.choice(['hour', 'night', 'week'])} and keeps the last {rng.randint(3, 30)}.",
        f"How do I count the lines of all .{extension} files that contain the word \"{rng.choice(NOUNS)}\"?",
        f"Write a cron entry that runs a script at {rng.randint(0, 23)}:{rng.randint(10, 59)} on weekdays.",
        f"Explain the git commands to undo the last {rng.randint(2, 6)} commits without losing the changes."])


CODE = [write_function, write_function, write_function, work_on_snippet, work_on_snippet, work_on_snippet, sql, web, concept, concept, shell]
