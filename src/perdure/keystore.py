"""Where the keys of a store in PostgreSQL are kept: the protocol, and the keystore in files. Needs the extra `postgres`."""

from perdure.log.postgres.keystore import KEY_SIZE_BYTES, FileKeystore, Keystore
from perdure.log.protocol import SECRET_BYTES

__all__ = ["KEY_SIZE_BYTES", "SECRET_BYTES", "FileKeystore", "Keystore"]
