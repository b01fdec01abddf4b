"""Time text analysis: microseconds for a text of 24 words and for a query of 6 words.

Run: python bench/analysis.py [--rounds 5]
"""

import argparse
import random
import re
import time

from perdure.lexical.profile import Profile, get_profile

SYLLABLES = re.findall("..", "bakelominurasoteviwodegahajukolipotawa")
TEXTS, TEXT_WORDS, QUERIES, QUERY_WORDS = 2_000, 24, 2_000, 6


def vocabulary(size: int, rng: random.Random) -> list[str]:
    return ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 5))) for _ in range(size)]


def sentences(count: int, length: int, words: list[str], rng: random.Random) -> list[str]:
    """Return sentences in which word n is about as frequent as 1/n, with a capital letter and a full stop."""
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    return [" ".join(rng.choices(words, weights, k=length)).capitalize() + "." for _ in range(count)]


def best_microseconds(call, inputs: list[str], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        for text in inputs:
            call(text)
        best = min(best, time.perf_counter() - started)
    return 1e6 * best / len(inputs)


def cold_microseconds(profile: Profile, inputs: list[str]) -> float:
    profile.forget_words()
    started = time.perf_counter()
    for text in inputs:
        profile.document_terms(text)
    return 1e6 * (time.perf_counter() - started) / len(inputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    rng = random.Random(7)
    profile = get_profile("english.v1")
    words = vocabulary(20_000, rng)
    texts = sentences(TEXTS, TEXT_WORDS, words, rng)
    queries = sentences(QUERIES, QUERY_WORDS, words, rng)
    accented = [text.replace("a", "á").replace("o", "ö") for text in texts]
    cjk = ["".join(chr(0x4E00 + rng.randrange(3_000)) for _ in range(TEXT_WORDS * 2)) for _ in range(200)]
    unseen = [" ".join(vocabulary(TEXT_WORDS, rng)) + f" {n}" for n in range(500)]
    rows = [
        ("text, 24 ASCII words, cached", best_microseconds(profile.document_terms, texts, rounds), "<= 9"),
        ("query, 6 ASCII words, cached", best_microseconds(profile.query_terms, queries, rounds), "<= 4"),
        ("text, 24 accented words, cached", best_microseconds(profile.document_terms, accented, rounds), ""),
        ("text, 24 words, few seen before", cold_microseconds(profile, unseen), ""),
        ("text, 48 Chinese characters", best_microseconds(profile.document_terms, cjk, 1), ""),
    ]
    print(f"{'what':34} {'µs':>8}  bar")
    for what, microseconds, bar in rows:
        print(f"{what:34} {microseconds:8.2f}  {bar}")


if __name__ == "__main__":
    main()
