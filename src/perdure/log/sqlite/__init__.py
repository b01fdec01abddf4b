"""The default backend: one directory of SQLite files, durable, shared by processes, truly erasing."""

from perdure.log.sqlite.log import SqliteLog

__all__ = ["SqliteLog"]
