"""The contract that every surface serves: limits, names and wire forms. No behaviour."""
