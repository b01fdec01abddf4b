"""How often a mistyped question finds nothing: `python -m bench.typos CONVERSATIONS.zip`.

Two neighbouring letters of 1, 2 or all words that a question asks for are swapped, by a seed. Tells, for each, how many of
the questions match no turn, and how much of the evidence is among the first ten results.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from bench.locomo import ADVERSARIAL, conversations, turn_id
from perdure import Memory, Store
from perdure.lexical.profile import get_profile

SEED = 1
LETTERS_MIN = 4
K = 10


def mistyped(question: str, words: int | None, chance: random.Random) -> str:
    """Return the question with two letters swapped in so many of its words; None for all that are long enough."""
    chunks = question.split()
    asked = {word for word, _ in get_profile("english.v1").query_words(question)}
    places = [
        at for at, chunk in enumerate(chunks) if chunk.strip("?.,'\"") in asked and len(chunk) >= LETTERS_MIN
    ]
    chosen = places if words is None else chance.sample(places, min(words, len(places)))
    for at in chosen:
        swapped = chance.randrange(len(chunks[at].rstrip("?.,")) - 1)
        letters = list(chunks[at])
        letters[swapped], letters[swapped + 1] = letters[swapped + 1], letters[swapped]
        chunks[at] = "".join(letters)
    return " ".join(chunks)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="an archive of LoCoMo conversations")
    told = parser.parse_args()
    chance = random.Random(SEED)
    rows: dict[int | None, list[tuple[bool, float]]] = {0: [], 1: [], 2: [], None: []}
    for number, conversation in enumerate(conversations(told.file)):
        with Store.open(":memory:") as store:
            memory: Memory = store.memory(f"c{number}")
            memory.remember_many(conversation.facts)
            for question in conversation.questions:
                if question.category == ADVERSARIAL:
                    continue
                for words, found in rows.items():
                    hits = memory.recall(mistyped(question.text, words, chance), k=K)
                    back = question.evidence & {turn_id(hit.fact) for hit in hits}
                    found.append((not hits, len(back) / len(question.evidence)))
    print("mistyped words  questions  match nothing  R@10")
    for words, found in rows.items():
        nothing = sum(empty for empty, _ in found) / len(found)
        recall = sum(share for _, share in found) / len(found)
        print(f"{'all' if words is None else words:>14}  {len(found):9}  {nothing:13.1%}  {recall:.1%}")


if __name__ == "__main__":
    main()
