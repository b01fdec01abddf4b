"""The names of the profiles, and which languages have one."""

from __future__ import annotations

DEFAULT_PROFILE = "english.v1"
UNICODE_PROFILE = "unicode.v1"
SNOWBALL = "snowball:"

# Snowball's algorithms for one language each, in Snowball 3.1. Its older algorithms for a language that has a
# newer one (porter, dutch_porter) are left out.
LANGUAGES = (
    "arabic",
    "armenian",
    "basque",
    "catalan",
    "czech",
    "danish",
    "dutch",
    "english",
    "esperanto",
    "estonian",
    "finnish",
    "french",
    "german",
    "greek",
    "hindi",
    "hungarian",
    "indonesian",
    "irish",
    "italian",
    "lithuanian",
    "nepali",
    "norwegian",
    "persian",
    "polish",
    "portuguese",
    "romanian",
    "russian",
    "serbian",
    "sesotho",
    "spanish",
    "swedish",
    "tamil",
    "turkish",
    "yiddish",
)

PROFILES = (DEFAULT_PROFILE, UNICODE_PROFILE, *(SNOWBALL + language for language in LANGUAGES))
