"""Room for so many threads: who waits is let in before those that come later, and who gives up leaves nothing behind."""

from __future__ import annotations

import threading

import pytest

from perdure.log.turns import ThreadRoom


def waiting(room, name, order):
    """A thread that waits for room by now, and leaves again."""

    def work() -> None:
        assert room.take(60)
        order.append(name)
        room.give()

    before = len(room._waiting)
    thread = threading.Thread(target=work)
    thread.start()
    while len(room._waiting) == before:
        assert thread.is_alive()
    return thread


def test_who_leaves_and_comes_again_is_let_in_after_all_who_waited():
    room, order = ThreadRoom(1), list[str]()
    assert room.take(0)
    threads = [waiting(room, name, order) for name in ("first", "second", "third")]
    room.give()
    assert room.take(60)
    assert order == ["first", "second", "third"]
    room.give()
    for thread in threads:
        thread.join()


def test_there_is_room_for_so_many_and_no_more_also_after_some_gave_up():
    room = ThreadRoom(2)
    for _ in range(2):
        assert [room.take(0) for _ in range(3)] == [True, True, False]
        assert not room.take(0.01)
        room.give()
        room.give()


@pytest.mark.parametrize("is_granted", [False, True], ids=["not granted", "granted just then"])
def test_a_thread_that_is_interrupted_as_it_waits_leaves_its_place_to_the_next(monkeypatch, is_granted):
    room = ThreadRoom(1)
    assert room.take(0)

    class Interrupted:
        """Stands for the lock that a waiting thread sleeps on."""

        def acquire(self, timeout: float | None = None) -> bool:
            if timeout is None:
                return True
            if is_granted:
                room.give()
            raise KeyboardInterrupt

        def release(self) -> None:
            """Wakes nobody."""

    with monkeypatch.context() as patched:
        patched.setattr("perdure.log.turns.Lock", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            room.take(60)
    if not is_granted:
        assert not room.take(0)
        room.give()
    assert room.take(0)
    assert not room.take(0)
