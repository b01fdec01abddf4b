"""Spaces as a file of readable lines, and back, without loss. Works on logs and spaces alone."""
