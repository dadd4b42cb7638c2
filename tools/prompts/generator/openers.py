"""First words of prompts that a model goes on with (self_prompts.py), by category."""

OPENERS = {
    "any": [""],
    "chat": [
        "I feel", "My friend", "My boss", "I am planning", "What do you think about", "Can you recommend",
        "I just moved to", "Is it a good idea to", "My partner and I", "Hello! I am looking for", "Help me decide",
        "I have been trying to", "Should I", "My neighbour", "What would you do if", "I am a student and",
        "Give me some advice on", "Every morning I",
    ],
    "code": [
        "Write a Python function that", "Write a function in JavaScript that", "Write a C++ program that",
        "Write a Java class for", "Write an SQL query that", "How do I use", "What is the difference between",
        "Fix the bug in this code:\n\n```python\n", "Explain what this code does:\n\n```python\n",
        "Write unit tests for this function:\n\n```python\n", "Write a bash script that", "Create an HTML page with",
        "Implement a", "Write a regular expression that", "In Rust, how do I", "How can I speed up",
        "Write a Python class called", "I get this error when", "Add comments to the following function:\n\n```",
        "Refactor this code:\n\n```javascript\n", "Write a Go program that",
    ],
    "maths": [
        "A train", "If x", "Solve the equation", "What is the probability that", "A shop sells", "Calculate",
        "Find the derivative of", "Find the area of", "How many", "The sum of", "Prove that", "Simplify",
        "A recipe needs", "In a class of", "Tom has", "The price of", "What is the value of", "Let f(x) =",
        "A rectangle has", "Two numbers",
    ],
    "extraction": [
        "Extract the names and dates as JSON from this text:\n\n", "List all the places named in the text:\n\n",
        "Turn the following notes into a table:\n\n", "Find the email addresses and phone numbers in:\n\n",
        "Convert this into JSON with the keys name, age and city:\n\n", "Read this order and list its items:\n\n",
        "From this review, extract the product and the rating:\n\n", "Answer with JSON only.",
        "Classify the sentiment of this sentence:", "What is the main topic of this text?\n\n",
        "Write as CSV:", "Pull the key facts out of this news item:\n\n", "Put these steps in order:",
    ],
    "summarising": [
        "Summarise the following text in two sentences.\n\n", "Summarize this article:\n\n",
        "Give me the main points of this paragraph:\n\n", "Shorten this email:\n\n", "Write a headline for this story:\n\n",
        "What is this passage about?\n\n", "TL;DR of the following:\n\n", "Rewrite this more simply:\n\n",
        "Make this text more formal:\n\n", "Correct the grammar:", "Explain this quote:", "Summarise the book",
        "Give a short overview of",
    ],
    "translation": [
        "Translate this sentence into French:", "Translate into Spanish:", "How do you say", "Translate to German:",
        "Translate into English:", "Translate the following paragraph into Italian:\n\n", "What is the meaning of the word",
        "Give the plural of", "What does the phrase", "Translate this dialogue into Portuguese:\n\n",
        "Which words rhyme with", "Find a synonym for",
    ],
    "explanation": [
        "How do I", "How does", "Why do", "Why is", "What is", "What are the", "What causes", "Explain how",
        "Explain the concept of", "Describe the process of", "Who was", "When did", "What happens when", "Where does",
        "Compare", "What are the advantages of", "Explain to a child", "What is the history of", "How can we",
        "Tell me about", "In what way", "Describe the role of", "List three reasons", "Which",
    ],
    "creative": [
        "Write a short story about", "Write a poem about", "Write a haiku about", "Write a dialogue between",
        "Imagine", "Write a letter to", "Describe a character who", "Come up with", "Write the first paragraph of",
        "Write a song about", "Create a recipe for", "Write a blog post about", "Write a speech for", "Invent a",
        "Write a review of", "Continue this story:", "Write an advertisement for", "Design a", "Give me five ideas for",
        "Write an email to", "Plan a", "Pretend that you are",
    ],
    "multilingual": [
        "Comment", "Pourquoi", "Écris", "Quelle est", "Wie kann ich", "Warum", "Schreibe", "Was ist", "¿Cómo",
        "¿Qué es", "Escribe", "Explícame", "Come si", "Scrivi", "Perché", "Como", "O que é", "Escreva", "Hoe", "Wat is",
        "Jak", "Napisz", "日本", "どうして", "为什么", "请",
    ],
}
