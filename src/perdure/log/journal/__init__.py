"""The journal backend: one file of JSON Lines that people can read, for one process at a time."""

from perdure.log.journal.log import JournalLog, is_journal, open_journal

__all__ = ["JournalLog", "is_journal", "open_journal"]
