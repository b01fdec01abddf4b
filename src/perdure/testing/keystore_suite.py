"""What every Keystore must do: inherit KeystoreSpec, give it the fixture `reopen`, and run pytest.

```python
class TestMyKeystore(KeystoreSpec):
    @pytest.fixture
    def reopen(self):
        return lambda: MyKeystore("https://keys.example")
```

`reopen` returns a function that opens the same keystore anew, as another process does. Where holders of keys confirm later
that they destroyed them, give a method `confirm(keystore)` that waits until all have. Needs pytest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from uuid import UUID

import pytest

from perdure.errors import WrongKey
from perdure.keystore import KEY_SIZE_BYTES, SECRET_BYTES, Keystore

Open = Callable[[], Keystore]
ADA, BEN = UUID(int=1 << 64), UUID(int=2 << 64)
SECRET, OTHER = bytes(range(SECRET_BYTES)), bytes(reversed(range(SECRET_BYTES)))


class KeystoreSpec:
    """The contract, one sentence per test."""

    @pytest.fixture
    def reopen(self) -> Open:
        raise NotImplementedError("give a fixture `reopen` that returns a function opening the keystore")

    def confirm(self, keystore: Keystore) -> None:
        """Wait until every holder has confirmed what was to be destroyed; there is nothing to wait for in the usual case."""

    @pytest.fixture
    def keystore(self, reopen: Open) -> Iterator[Keystore]:
        keystore = reopen()
        keystore.put_secret(ADA, SECRET)
        yield keystore
        keystore.close()

    def check_destroyed(self, keystore: Keystore, destroy: Callable[[], bool]) -> None:
        """Destroy, and hold it to confirm at the latest when every holder has."""
        if not destroy():
            self.confirm(keystore)
            assert destroy(), "every holder has confirmed, but destroying again still says that one has not"
        assert destroy(), "what is gone stays confirmed"

    # Secrets

    def test_nothing_is_kept_of_a_tenant_at_first(self, keystore: Keystore) -> None:
        assert keystore.find_secret(BEN) is None

    def test_the_first_secret_stays_and_is_there_in_another_process(
        self, keystore: Keystore, reopen: Open
    ) -> None:
        assert keystore.put_secret(ADA, OTHER) == SECRET
        assert reopen().find_secret(ADA) == SECRET

    def test_of_threads_that_keep_a_secret_at_once_all_are_told_the_same(self, keystore: Keystore) -> None:
        offered = [bytes([number]) * SECRET_BYTES for number in range(8)]
        with ThreadPoolExecutor(8) as pool:
            told = set(pool.map(lambda secret: keystore.put_secret(BEN, secret), offered))
        assert len(told) == 1
        assert keystore.find_secret(BEN) in told

    # Keys

    def test_keys_are_numbered_upwards_from_one_and_differ(self, keystore: Keystore) -> None:
        made = keystore.new_keys(ADA, 3) + keystore.new_keys(ADA, 2)
        assert made[0][0] == 1
        assert all(one[0] < next_[0] for one, next_ in pairwise(made))
        assert {len(key) for _, key in made} == {KEY_SIZE_BYTES}
        assert len({key for _, key in made}) == 5

    def test_keys_are_found_by_number_in_another_process(self, keystore: Keystore, reopen: Open) -> None:
        made = dict(keystore.new_keys(ADA, 4))
        last = max(made)
        assert reopen().find_keys(ADA, list(made)) == made
        assert reopen().find_keys(ADA, [last, last + 1, 0, -1]) == {last: made[last]}
        assert reopen().find_keys(ADA, []) == {}

    def test_tenants_share_no_keys(self, keystore: Keystore) -> None:
        keystore.put_secret(BEN, OTHER)
        adas, bens = dict(keystore.new_keys(ADA, 2)), dict(keystore.new_keys(BEN, 2))
        assert not set(adas.values()) & set(bens.values())
        assert keystore.find_keys(BEN, list(bens)) == bens

    def test_threads_that_make_keys_at_once_get_different_ones(self, keystore: Keystore) -> None:
        with ThreadPoolExecutor(8) as pool:
            runs = list(pool.map(lambda _: keystore.new_keys(ADA, 3), range(16)))
        made = [one for run in runs for one in run]
        assert len(dict(made)) == len({key for _, key in made}) == 48
        assert keystore.find_keys(ADA, list(dict(made))) == dict(made)

    def test_a_tenant_without_a_secret_has_no_keys_and_gets_none(self, keystore: Keystore) -> None:
        with pytest.raises(WrongKey):
            keystore.new_keys(BEN, 1)
        with pytest.raises(WrongKey):
            keystore.find_keys(BEN, [1])
        assert not keystore.keeps_below(BEN, 1 << 40)

    def test_the_newest_number_is_known_in_another_process_also_once_its_key_is_gone(
        self, keystore: Keystore, reopen: Open
    ) -> None:
        assert keystore.newest(ADA) == keystore.newest(BEN) == 0
        last = max(dict(keystore.new_keys(ADA, 3)))
        self.check_destroyed(keystore, lambda: keystore.destroy(ADA, [last]))
        assert reopen().newest(ADA) == last

    # Destroying

    def test_keys_that_were_destroyed_are_found_no_more_and_others_are(
        self, keystore: Keystore, reopen: Open
    ) -> None:
        made = dict(keystore.new_keys(ADA, 4))
        first, second, third, last = made
        self.check_destroyed(keystore, lambda: keystore.destroy(ADA, [second, third, last + 99]))
        for one in (keystore, reopen()):
            assert one.find_keys(ADA, list(made)) == {first: made[first], last: made[last]}

    def test_nobody_is_given_a_key_from_the_moment_it_was_to_be_destroyed(
        self, keystore: Keystore, reopen: Open
    ) -> None:
        [(number, _)] = keystore.new_keys(ADA, 1)
        keystore.destroy(ADA, [number])
        assert reopen().find_keys(ADA, [number]) == {}
        assert not reopen().keeps_below(ADA, number + 1)

    def test_all_keys_below_a_number_are_destroyed(self, keystore: Keystore, reopen: Open) -> None:
        made = dict(keystore.new_keys(ADA, 300))
        *gone, last = made
        assert keystore.keeps_below(ADA, last)
        assert not keystore.keeps_below(ADA, min(made))
        self.check_destroyed(keystore, lambda: keystore.destroy_below(ADA, last))
        assert not reopen().keeps_below(ADA, last)
        assert keystore.keeps_below(ADA, last + 1)
        assert reopen().find_keys(ADA, [*gone, last]) == {last: made[last]}

    def test_a_number_never_comes_again(self, keystore: Keystore, reopen: Open) -> None:
        last = max(dict(keystore.new_keys(ADA, 3)))
        self.check_destroyed(keystore, lambda: keystore.destroy_below(ADA, last + 1))
        assert reopen().new_keys(ADA, 1)[0][0] > last

    def test_a_tenant_that_is_dropped_leaves_nothing_and_others_stay(
        self, keystore: Keystore, reopen: Open
    ) -> None:
        keystore.put_secret(BEN, OTHER)
        keystore.new_keys(ADA, 2)
        bens = dict(keystore.new_keys(BEN, 1))
        self.check_destroyed(keystore, lambda: keystore.drop_tenant(ADA))
        assert reopen().find_secret(ADA) is None
        with pytest.raises(WrongKey):
            reopen().find_keys(ADA, [1])
        assert (keystore.find_secret(BEN), keystore.find_keys(BEN, [*bens])) == (OTHER, bens)

    def test_a_tenant_that_was_dropped_is_known_for_good_and_dropping_it_is_confirmed_anew(
        self, keystore: Keystore, reopen: Open
    ) -> None:
        keystore.new_keys(ADA, 1)
        self.check_destroyed(keystore, lambda: keystore.drop_tenant(ADA))
        assert reopen().drop_tenant(ADA)
        keystore.put_secret(BEN, OTHER)
        assert reopen().drop_tenant(ADA)
        assert keystore.find_secret(BEN) == OTHER

    def test_of_threads_that_drop_a_tenant_at_once_none_is_told_that_it_never_was(
        self, keystore: Keystore
    ) -> None:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: keystore.drop_tenant(ADA), range(4)))
        self.check_destroyed(keystore, lambda: keystore.drop_tenant(ADA))
        assert keystore.find_secret(ADA) is None

    def test_what_was_never_kept_is_not_confirmed_to_be_dropped(
        self, keystore: Keystore, reopen: Open
    ) -> None:
        for one in (keystore, reopen()):
            with pytest.raises(WrongKey):
                one.drop_tenant(BEN)
        assert keystore.find_secret(ADA) == SECRET

    def test_destroying_keys_that_are_not_there_is_confirmed(self, keystore: Keystore) -> None:
        assert keystore.destroy(ADA, [1])
        assert keystore.destroy(BEN, [1])
        assert keystore.destroy_below(BEN, 5)
