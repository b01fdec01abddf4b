"""Facts out of files: JSON Lines, conversations, and archives of them. Plain functions, usable from Python."""
