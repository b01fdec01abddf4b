"""The journal backend: one file of JSON Lines that people can read, for one process at a time."""

from perdure.log.journal.log import JournalLog, is_journal, open_journal
from perdure.log.journal.verifying import find_journal_damage

__all__ = ["JournalLog", "find_journal_damage", "is_journal", "open_journal"]
