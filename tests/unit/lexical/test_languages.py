"""What the profiles of other languages, and that of none, make of words; and that it stays so."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from hashlib import blake2b

import pytest

from perdure import InvalidRequest
from perdure.lexical.languages import LANGUAGES, PROFILES
from perdure.lexical.profile import get_profile
from perdure.memory.config import MemoryConfig

STEMS = json.loads((pathlib.Path(__file__).parent / "stems.json").read_text(encoding="utf-8"))
PRINT_DIGESTS = """
import json, sys
sys.modules["Stemmer"] = None
from perdure.lexical.profile import get_profile
from hashlib import blake2b
texts = json.load(sys.stdin)
print(json.dumps({
    language: blake2b("\\n".join(get_profile(f"snowball:{language}").document_terms(text)).encode(), digest_size=12).hexdigest()
    for language, text in texts.items()
}))
"""


def beginnings(language: str) -> str:
    """Every beginning, of three characters or more, of every word of the language's sample: many endings."""
    words = STEMS[language]["text"].split()
    return " ".join(word[:length] for word in words for length in range(3, len(word) + 1))


def digest_of(terms: list[str]) -> str:
    return blake2b("\n".join(terms).encode(), digest_size=12).hexdigest()


def asks_of(profile: str, query: str, row: str) -> bool:
    analysis = get_profile(profile)
    return bool(set(analysis.query_terms(query)) & set(analysis.document_terms(row)))


def test_every_language_has_a_sample():
    assert sorted(STEMS) == sorted(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_terms_of_a_language_are_those_that_were_written_down(language):
    # Where this fails, the stemmer that is installed is not the one that the names of the profiles stand for.
    terms = get_profile(f"snowball:{language}").document_terms(beginnings(language))
    assert (len(terms), digest_of(terms)) == (STEMS[language]["terms"], STEMS[language]["digest"])


@pytest.mark.slow
def test_the_pure_stemmer_gives_the_same_terms_in_every_language():
    texts = {language: beginnings(language) for language in LANGUAGES}
    pure = subprocess.run(
        [sys.executable, "-c", PRINT_DIGESTS],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert json.loads(pure) == {language: STEMS[language]["digest"] for language in LANGUAGES}


@pytest.mark.parametrize("name", PROFILES)
def test_a_configuration_takes_every_profile(name):
    assert (
        MemoryConfig.from_json(MemoryConfig(profile=name).to_json()).profile == get_profile(name).name == name
    )


@pytest.mark.parametrize(
    "name", ["snowball:klingon", "snowball:porter", "snowball:", "unicode", "English.v1"]
)
def test_an_unknown_profile_is_refused_by_name_and_every_known_one_is_listed(name):
    for refused in (lambda: get_profile(name), lambda: MemoryConfig(profile=name)):
        with pytest.raises(InvalidRequest) as error:
            refused()
        assert error.value.field == "profile"
        assert all(known in error.value.message for known in PROFILES)


def test_the_version_of_a_profile_names_the_code_that_stems():
    assert "Stemmer" in get_profile("snowball:german").version
    assert "Stemmer" in get_profile("english.v1").version
    assert "Stemmer" not in get_profile("unicode.v1").version
    assert get_profile("unicode.v1").table_version in get_profile("unicode.v1").version


INFLECTED = [
    ("german", "Haus", "die Häuser"),
    ("french", "chevaux", "un cheval"),
    ("spanish", "gato", "los gatos"),
    ("italian", "libro", "i libri"),
    ("portuguese", "casa", "as casas"),
    ("russian", "красивый", "красивую дорогу"),
    ("swedish", "flicka", "flickorna"),
    ("finnish", "talo", "taloissa"),
    ("hungarian", "házban", "házak"),
    ("turkish", "ev", "evler"),
    ("dutch", "huis", "de huizen en een huis"),
    ("greek", "δρόμος", "τους δρόμους"),
    ("hindi", "लड़की", "लड़कियों"),
    ("arabic", "مدرسة", "المدرسة"),
    ("english", "run", "running"),
]


@pytest.mark.parametrize(("language", "query", "row"), INFLECTED)
def test_a_word_finds_its_inflected_form_in_its_own_language(language, query, row):
    assert asks_of(f"snowball:{language}", query, row)


WITHOUT_ACCENTS = [
    ("french", "preferee", "préférée"),
    ("german", "hauser", "Häuser"),
    ("czech", "dustojnosti", "důstojnosti"),
    ("polish", "swiatla", "światła"),
    ("romanian", "stiinta", "știință"),
    ("spanish", "hablabamos", "hablábamos"),
    ("greek", "δρομους", "δρόμους"),
]


@pytest.mark.parametrize(("language", "query", "row"), WITHOUT_ACCENTS)
def test_a_query_without_accents_finds_the_word_with_them_and_the_other_way_round(language, query, row):
    assert asks_of(f"snowball:{language}", query, row)
    assert asks_of(f"snowball:{language}", row, query)


@pytest.mark.parametrize("name", ["english.v1", "unicode.v1", "snowball:turkish"])
@pytest.mark.parametrize("query", ["IŞIK", "ışık", "isik", "Işık"])
@pytest.mark.parametrize("row", ["IŞIK", "ışık", "isik", "Işık"])
def test_turkish_letters_with_and_without_a_dot_find_each_other(name, query, row):
    # Folding knows no language: I becomes i, and ı meets it in the form without accents.
    assert asks_of(name, query, row)


@pytest.mark.parametrize("name", ["english.v1", "unicode.v1", "snowball:german"])
@pytest.mark.parametrize(("query", "row"), [("STRASSE", "Straße"), ("Straße", "strasse"), ("GROẞ", "groß")])
def test_a_sharp_s_is_two_letters_s(name, query, row):
    assert get_profile(name).query_terms(query) == get_profile(name).document_terms(row)


@pytest.mark.parametrize("name", ["english.v1", "unicode.v1", "snowball:greek"])
def test_a_final_sigma_is_a_sigma(name):
    profile = get_profile(name)
    assert (
        profile.document_terms("ΣΊΣΥΦΟΣ")
        == profile.document_terms("σίσυφος")
        == profile.document_terms("σίσυφοσ")
    )


@pytest.mark.parametrize("language", ["german", "russian", "arabic"])
def test_identifiers_and_numbers_are_the_same_in_every_language(language):
    text = "ABC-1234 v1.2.10 3f2a9c1e7b1d C++ 912-34-567 👍🏽 東京"
    assert get_profile(f"snowball:{language}").document_terms(text) == get_profile(
        "unicode.v1"
    ).document_terms(text)


def test_without_a_language_words_stay_as_they_are_and_none_is_left_out():
    profile = get_profile("unicode.v1")
    assert profile.document_terms("The Dogs were RUNNING") == ["the", "dogs", "were", "running"]
    assert profile.query_terms("The Dogs were RUNNING") == ["the", "dogs", "were", "running"]


def test_stop_words_are_left_out_of_english_queries_only():
    assert get_profile("snowball:english").query_terms("where is the dog") == ["dog"]
    assert get_profile("snowball:german").query_terms("wo ist der Hund") == ["wo", "ist", "der", "hund"]
