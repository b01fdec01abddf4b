"""Makes the pages of docs/reference out of docstrings, signatures, the contract and the command line."""
