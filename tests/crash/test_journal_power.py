"""The power goes at any moment: a journal holds what was acknowledged, and nothing of what was forgotten."""

from __future__ import annotations

import re
from random import Random

import pytest

from crash.journal_disk import Disk
from crash.journal_steps import kept, text
from perdure.log.journal import JournalLog
from perdure.log.protocol import Batch

SECRET = b"s" * 32
WORD = re.compile(rb"the (w\d{1,6}) is blue")
IMAGES_MAX = 60  # of a run: each is opened and read
OPERATIONS = 40


class Run:
    """One journal, told at random; pictures of its disk at random moments with what they may hold."""

    def __init__(self, place, seed, durability):
        self.random = Random(seed)
        self.place, self.durability = place, durability
        self.states = [None]  # the contents there were, oldest first; None before there was a journal
        self.pending = None  # the content that the present operation would lead to
        self.gone = set()  # words that were forgotten
        self.words = 0
        self.pictures = []
        place.mkdir(mode=0o700)
        self.disk = Disk(place, self.look)

    def look(self):
        if self.random.random() < 0.12:
            # What was not synced in time may be lost with durability "normal".
            held = self.states[-1:] if self.durability == "full" else list(self.states)
            image = self.disk.image(Random(self.random.random()))
            self.pictures.append((image, [*held, held[-1] if self.pending is None else self.pending]))
        if self.random.random() < 0.05:
            self.check_blocks()

    def check_blocks(self):
        for block in self.disk.blocks(Random(self.random.random())):
            assert not {word.decode() for word in WORD.findall(block)} & self.gone

    def open(self):
        return JournalLog.open(self.place, secret=SECRET, durability=self.durability)

    def tell(self):
        with self.disk.watched():
            self.pending = []
            log = self.open()
            self.states.append([])
            for _ in range(OPERATIONS):
                before = content(log)
                self.step(log, before)
                self.pending = None
                self.states.append(content(log))
                if self.random.random() < 0.1:
                    log.close()
                    log = self.open()
            log.close()
        self.check_blocks()

    def step(self, log, before):
        kind = self.random.choice(["append", "append", "append", "create", "forget", "purge"])
        if kind == "create" or not before:
            self.pending = [*before, [b"first"]]
            log.create_space(self.words.to_bytes(16), b"first")
            self.words += 1
            return
        space = self.random.randint(1, len(before))
        records = before[space - 1]
        if kind == "append":
            new = [self.new_text() for _ in range(self.random.choice([1, 2, 30]))]
            self.pending = replaced(before, space, [*records, *new])
            log.append(space, log.head(space), Batch(records=new))
        elif kind == "purge":
            self.pending = [[data for data in one if data is not None] for one in before]
            self.pending = [one for one in self.pending if one]
            log.purge(kept)
        else:
            seqs = self.random.sample(range(1, len(records) + 1), min(3, len(records)))
            words = WORD.findall(b"".join(records[seq - 1] or b"" for seq in seqs))
            left = [None if seq in seqs else data for seq, data in enumerate(records, 1)]
            self.pending = replaced(before, space, left)
            log.append(space, log.head(space), Batch(records=[], erase=seqs))
            self.states.append(self.pending)
            assert log.scrub()
            self.gone |= {word.decode() for word in words}

    def new_text(self):
        self.words += 1
        return text(f"w{self.words}")


def replaced(content, space, records):
    return [records if number == space else one for number, one in enumerate(content, 1)]


def content(log):
    return [[data for _, data in log.read(space, 0, log.head(space).seq)] for space in log.spaces()]


def unordered(spaces):
    """What the spaces hold, in no order: a purge gives them other numbers."""
    return sorted([data or b"" for data in one] for one in spaces or [])


def check_picture(place, image, allowed):
    place.mkdir(mode=0o700)
    for name, data in image.items():
        (place / name).write_bytes(data)
        (place / name).chmod(0o600)
    log = JournalLog.open(place, secret=SECRET)
    found = content(log)
    assert unordered(found) in list(map(unordered, allowed))
    assert list(log.verify()) == []
    space = log.create_space(b"n" * 16, b"after")
    log.append(space, log.head(space), Batch(records=[b"more"]))
    now = content(log)
    log.close()
    log = JournalLog.open(place, secret=SECRET)
    assert content(log) == now
    log.close()


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["full", "normal"])
@pytest.mark.parametrize("seed", range(3))
def test_a_loss_of_power_at_any_moment_takes_nothing_acknowledged_and_brings_back_nothing_forgotten(
    tmp_path, seed, durability
):
    lose_power(tmp_path, seed, durability)


@pytest.mark.soak
@pytest.mark.parametrize("durability", ["full", "normal"])
@pytest.mark.parametrize("seed", range(3, 200))
def test_a_loss_of_power_at_any_moment_many_times_over(tmp_path, seed, durability):
    lose_power(tmp_path, seed, durability)


def lose_power(folder, seed, durability):
    run = Run(folder / "store", seed, durability)
    run.tell()
    assert run.pictures
    chosen = Random(seed).sample(run.pictures, min(IMAGES_MAX, len(run.pictures)))
    for number, (image, allowed) in enumerate(chosen):
        check_picture(folder / f"picture {number}", image, allowed)
