"""The command `perdure`: a thin way in, which decodes options, calls Memory and prints what it answers."""
