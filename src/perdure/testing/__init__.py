"""Behaviour suites that ship with the package, for people who write a backend of their own."""
