"""The journal backend: one file of JSON Lines that people can read, for one process at a time."""

from perdure.log.journal.log import JournalLog, is_journal, open_journal
from perdure.log.journal.medium import is_unfinished
from perdure.log.journal.salvaging import (
    create_keeping,
    journal_kept_from_others,
    open_journal_remains,
)
from perdure.log.journal.verifying import find_journal_damage

__all__ = [
    "JournalLog",
    "create_keeping",
    "find_journal_damage",
    "is_journal",
    "is_unfinished",
    "journal_kept_from_others",
    "open_journal",
    "open_journal_remains",
]
