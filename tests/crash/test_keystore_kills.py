"""A process dies at each call of a keystore that changes a file: no key that was told is lost, and the next one goes on."""

from __future__ import annotations

import os
import shutil
from uuid import UUID

import pytest

from crash import keystore_steps
from crash.children import Nursery
from crash.keystore_steps import ADA, BEN, MADE, OPERATIONS, OTHER, SECRET
from perdure.errors import WrongKey
from perdure.keystore import FileKeystore

CAM = UUID(int=99)

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="children are forked, and this platform has no fork"
)


@pytest.fixture(scope="module")
def nursery():
    with Nursery("crash.keystore_steps") as nursery:
        yield nursery


@pytest.fixture
def filled(tmp_path):
    return tmp_path / "filled", keystore_steps.fill(tmp_path / "filled")


def check_secret(keystore, _):
    told = keystore.find_secret(BEN)
    assert told in (None, SECRET)
    assert keystore.put_secret(BEN, OTHER) == (told or OTHER)
    assert [number for number, _ in keystore.new_keys(BEN, 2)] == [1, 2]


def check_new(keystore, made):
    assert keystore.find_keys(ADA, list(made)) == made
    later = dict(keystore.new_keys(ADA, 2))
    assert min(later) > MADE
    assert keystore.find_keys(ADA, [*made, *later]) == made | later


def check_destroyed(gone):
    def check(keystore, made):
        kept = {number: key for number, key in made.items() if number not in gone}
        found = keystore.find_keys(ADA, list(made))
        assert kept.items() <= found.items() <= made.items()
        assert keystore.destroy(ADA, gone)
        assert keystore.find_keys(ADA, list(made)) == kept

    return check


def check_dropped(keystore, made):
    assert keystore.drop_tenant(ADA)
    assert keystore.find_secret(ADA) is None
    for ask in (
        lambda: keystore.find_keys(ADA, list(made)),
        lambda: keystore.new_keys(ADA, 1),
        lambda: keystore.put_secret(ADA, OTHER),  # who is told by another number, if he comes again
    ):
        with pytest.raises(WrongKey):
            ask()
    assert keystore.drop_tenant(ADA)
    assert keystore.put_secret(CAM, OTHER) == OTHER
    assert len(keystore.new_keys(CAM, 1)) == 1


CHECKS = {
    "put_secret": check_secret,
    "new_keys": check_new,
    "destroy": check_destroyed([2, 3]),
    "destroy_below": check_destroyed(list(range(1, MADE))),
    "drop_tenant": check_dropped,
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_whatever_call_a_process_dies_at_the_keystore_holds_and_goes_on(nursery, filled, tmp_path, operation):
    source, made = filled
    place = tmp_path / "keys"

    def died(step):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(source, place)
        child = nursery.start("run", str(place), operation, step)
        nursery.await_(child)
        return child

    whole = died(0)
    assert not whole.was_killed
    [[_, calls]] = [said for said in whole.said if said[0] == "calls"]
    assert calls >= 3
    CHECKS[operation](FileKeystore(place), made)
    for step in range(1, calls + 1):
        child = died(step)
        assert child.was_killed, f"it did not die at step {step}"
        CHECKS[operation](FileKeystore(place), made)
