"""Lexical search: named text analysis and the exact inverted index over its terms."""
