"""The words for a picture: its CLDR name, its name in another setting, and its keywords.

Training draws from `caption`; `reworded` makes the held-out captions of the evaluation, which training never sees.
"""
import random

FRAMES = ["a {}", "the {}", "{} emoji", "an emoji of {}", "a picture of {}", "a drawing of {}", "a photo of {}", "an icon of {}", "a small {}",
          "one {}", "my {}", "draw {}", "a nice {}", "painting of {}"]
MASS = {"grapes", "cherries", "glasses", "sunglasses", "socks", "jeans", "books", "scissors", "fireworks", "french fries", "pancakes", "peanuts", "crossed swords",
        "blueberries", "garlic", "broccoli", "bread", "bacon", "popcorn", "spaghetti", "sushi", "ice", "wood", "fire", "skis"}


def article(name):
    """The name with its article: "a pizza", "an onion", "grapes"."""
    return name if name in MASS else ("an " if name[0] in "aeio" else "a ") + name


def framed(text, name, rng):
    """The text in one of the frames; frames that end in "of" take an article."""
    frame = rng.choice(FRAMES)
    return frame.format(article(text) if text == name and (" of " in frame or frame.startswith("draw")) else text)


def caption(name, keywords, rng):
    """One training caption: 40 % the name with or without article, the rest frames, other orders, keywords."""
    words = name.split()
    some = lambda lo, hi: rng.sample(keywords, min(len(keywords), rng.randint(lo, hi)))
    k = rng.random()
    if k < 0.22:
        return name
    if k < 0.40:
        return article(name)
    if k < 0.55:
        return framed(name, name, rng)
    if k < 0.63:
        rng.shuffle(words)
        return " ".join(words)
    if k < 0.75:
        return name + rng.choice([", ", " "]) + ", ".join(some(1, 3))
    if k < 0.87:
        mix = some(1, 3) + rng.sample(words, rng.randint(1, len(words)))
        rng.shuffle(mix)
        return rng.choice([" ", ", "]).join(mix)
    mix = some(2, 4)
    text = rng.choice([" ", ", "]).join(mix)
    return framed(text, name, rng) if rng.random() < 0.3 else text


def reworded(names, keywords, count=50, seed=7):
    """(index, text) pairs, one a picture: even ones keep the name's words in another order with a keyword added, odd
    ones use three keywords and not the name. Keywords are only drawn where no other picture has all of them."""
    rng = random.Random(seed)
    sets = [set(k) for k in keywords]
    order = list(range(len(names)))
    rng.shuffle(order)
    out = []
    for i in order:
        if len(out) == count:
            break
        if len(out) % 2 == 0:
            extra = [k for k in keywords[i] if k not in names[i]]
            if not extra:
                continue
            words = names[i].split()[::-1]
            words.insert(0, rng.choice(extra))
            out.append((i, "an image of " + " ".join(words)))
            continue
        pool = [k for k in keywords[i] if k != names[i]]
        if len(pool) < 3:
            continue
        for _ in range(20):
            pick = rng.sample(pool, 3)
            if sum(s.issuperset(pick) for s in sets) == 1:
                out.append((i, " ".join(pick)))
                break
    return out
