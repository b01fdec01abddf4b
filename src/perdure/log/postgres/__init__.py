"""The log on PostgreSQL: tables that any number of processes share, and keys that are kept outside of them."""

from perdure.log.postgres.keystore import FileKeystore, Keystore
from perdure.log.postgres.log import PostgresLog

__all__ = ["FileKeystore", "Keystore", "PostgresLog"]
