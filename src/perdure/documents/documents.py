"""Documents of a space: put, get, delete, search, list. A fact is a document of one unit."""

from __future__ import annotations

from perdure.search.query import Budget
from perdure.space.space import Space


class Documents:
    """The texts of one space. Use `Store.documents(...)` to get one.

    `replace_facts`: a put may replace a fact of the same id (otherwise that is a conflict).
    """

    def __init__(self, space: Space, budget: Budget, *, replace_facts: bool) -> None:
        self._space, self._budget, self._replace_facts = space, budget, replace_facts
