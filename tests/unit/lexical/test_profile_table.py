"""The committed word classes, and terms that are equal on every Python."""

import json
import pathlib
import runpy
import subprocess
import sys
import unicodedata

import pytest

from perdure.lexical import unicode_table
from perdure.lexical.characters import classes
from perdure.lexical.profile import get_profile

ROOT = pathlib.Path(__file__).resolve().parents[3]

# Every Python must give these terms. Newer versions of Unicode class, fold or compose some of the characters
# otherwise.
ODD_TEXTS = {
    "Ǆ ǅ ǆ": ["dz", "dž", "dz", "dž", "dz", "dž"],
    "ΣΊΣΥΦΟΣ": ["σισυφοσ", "σίσυφοσ"],
    "a\u0345\u0301": ["a\u03b9", "á\u03b9"],
    "ﬃ ½ ℌ ①": ["ffi", "1/2", "1", "2", "/", "h", "1"],
    "\u1e9e \u0149": ["ss", "n"],
    "\ua7dc \U00011f02": ["\ua7dc", "\U00011f02"],
    "x\U00010d6d\u0301y": ["x", "\U00010d6d", "\u0301y"],
    "\U0001fae8\U0001f3fd \U0001fae0": ["\U0001fae8", "\U0001f3fd", "\U0001fae0"],
    "\ufdfa": ["صلى", "الله", "عليه", "وسلم"],
    "ཀྵ ᠠ᠋ ꙮ": ["ཀྵ", "ᠠ", "ꙮ"],
    "\u09cb\u09be ก็": ["\u09cb\u09be", "ก็"],
    "각 \u1100\u1161\u11a8 ㄅ": ["각", "각", "ㄅ"],
    "が か\u3099 ｶﾞ": ["が", "が", "ガ"],
    "\U00031350漢": ["\U00031350", "漢"],
    "1\ufe0f\u20e3 #\ufe0f\u20e3": ["1\u20e3", "#\u20e3", "\u20e3", "#"],
}


@pytest.mark.slow
@pytest.mark.skipif(
    unicodedata.unidata_version != unicode_table.TABLE_VERSION, reason="needs Unicode 14 to compare"
)
def test_the_committed_table_is_what_the_script_writes():
    script = runpy.run_path(str(ROOT / "scripts/make_unicode_table.py"))
    written = pathlib.Path(unicode_table.__file__).read_text(encoding="ascii")
    assert script["source"]() == written


@pytest.mark.skipif(
    unicodedata.unidata_version != unicode_table.TABLE_VERSION, reason="needs Unicode 14 to compare"
)
def test_the_table_gives_every_code_point_the_class_that_the_script_gives():
    word_class = runpy.run_path(str(ROOT / "scripts/make_unicode_table.py"))["word_class"]
    text = "".join(map(chr, range(0x80, sys.maxunicode + 1, 7)))
    assert classes(text) == "".join(word_class(ord(character)) for character in text)


@pytest.mark.parametrize(("text", "terms"), ODD_TEXTS.items())
def test_odd_texts_give_the_same_terms_on_every_python(text, terms):
    assert get_profile("english.v1").document_terms(text) == terms


def test_the_pure_stemmer_gives_the_terms_of_the_compiled_one():
    text = (
        "Running ponies, generously relational hopping; communism's skies dying. News: only national geese!"
    )
    program = (
        "import json, sys; sys.modules['Stemmer'] = None\n"
        "from perdure.lexical.profile import get_profile\n"
        "print(json.dumps(get_profile('english.v1').document_terms(sys.argv[1])))\n"
    )
    pure = subprocess.run(
        [sys.executable, "-c", program, text], capture_output=True, text=True, check=True
    ).stdout
    assert json.loads(pure) == get_profile("english.v1").document_terms(text)
