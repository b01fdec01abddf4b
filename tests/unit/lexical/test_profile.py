"""What the default analysis makes of words, names, numbers and symbols."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from perdure.lexical.profile import count_words, get_profile, is_blank

PROFILE = get_profile("english.v1")


def shared(query: str, row: str) -> int:
    """The number of the query's terms that a row holds."""
    return len(set(PROFILE.query_terms(query)) & set(PROFILE.document_terms(row)))


def test_a_profile_knows_its_name_and_its_unicode_version():
    assert (PROFILE.name, PROFILE.table_version) == ("english.v1", "14.0.0")


def test_asking_twice_for_a_profile_gives_the_same_one():
    assert get_profile("english.v1") is PROFILE


def test_an_unknown_profile_is_refused_and_the_known_ones_are_named():
    with pytest.raises(ValueError, match=r"profile 'klingon\.v3' is unknown.*english\.v1"):
        get_profile("klingon.v3")


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Caroline's dogs were running.", ["carolin", "dog", "were", "run"]),
        ("Caroline\u2019s dogs", ["carolin", "dog"]),
        ("the dogs' bowls", ["the", "dog", "bowl"]),
        ("dog dog", ["dog", "dog"]),
        ("O'Brien's", ["obrien", "o", "brien"]),
        ("don't", ["dont"]),
        ("She said: \u201cYes\u2014now!\u201d", ["she", "said", "yes", "now"]),
        ("**bold** and _so_", ["bold", "*", "and", "so", "_"]),
        ("Straße", ["strass"]),
        ("İstanbul", ["istanbul", "i\u0307stanbul"]),
        ("x\u00ady", ["xy"]),
    ],
)
def test_a_text_gives_these_terms_in_its_order(text, terms):
    assert PROFILE.document_terms(text) == terms


@pytest.mark.parametrize(
    ("query", "row"),
    [
        ("ABC-1234", "ticket ABC-1234 closed"),
        ("abc-1234", "ticket ABC-1234 closed"),
        ("1234", "ticket ABC-1234 closed"),
        ("-closed", "ticket ABC-1234 closed"),
        ("state-of-the-art", "a state-of-the-art lab"),
        ("e-mail", "send an e-mail"),
        ("email", "send an e-mail"),
        ("3f2a9c1e-7b1d-4e0a-9c55-0d9f6a1b2c3d", "id 3F2A9C1E-7B1D-4E0A-9C55-0D9F6A1B2C3D."),
        ("user.py", "see src/api/v2/user.py"),
        ("src/api/v2/user.py", "see (src/api/v2/user.py)."),
        ("ana.b@example.org", "write to ana.b@example.org, please"),
        ("example.org", "write to ana.b@example.org, please"),
        ("GB/s", "about 12 GB/s"),
        ("8080", "on 10.0.0.1:8080"),
        ("10.0.0.1", "on 10.0.0.1:8080"),
        ("3.11", "needs python3.11"),
        ("user_id", "the column user_id"),
        ("\U0001f44d", "well done \U0001f44d\U0001f3fd"),
        ("\U0001f469", "the \U0001f468\u200d\U0001f469\u200d\U0001f467 picture"),
        ("\u2764", "I \u2764\ufe0f tea"),
        ("\U0001f1f3\U0001f1f4", "flags\U0001f1f3\U0001f1f4\U0001f1f8\U0001f1ea"),
        ("cafe", "a caf\u00e9 nearby"),
        ("caf\u00e9", "a cafe nearby"),
        ("cafe\u0301s", "a caf\u00e9 nearby"),
        ("Lodz", "born in Łódź"),
        ("ΕΛΛΑΔΑ", "στην Ελλάδα"),
        ("שלום", "שָׁלוֹם"),
        ("محمد", "مُحَمَّد"),
        ("दुनिया", "नमस्ते दुनिया"),
        ("กาแฟ", "ฉันชอบดื่มกาแฟร้อน"),
        ("fine", "\ufb01ne"),
        ("ＡＢＣ", "abc"),
        ("It's", "it"),
        ("wi-fi", "wifi"),
        ("example.org", "see https://example.org/a/b?x=1&y=2#frag"),
        ("https://example.org/a/b", "see https://example.org/a/b?x=1&y=2#frag"),
        ("file.txt", r"in C:\Users\bo\file.txt"),
        ("bashrc", "edit ~/.bashrc"),
        ("init", "an __init__.py"),
        ("case", "the snake_case_name"),
        ("vector", "a std::vector<int>"),
        ("HOME", "set ${HOME} first"),
        ("1.2.10", "tagged v1.2.10-rc1"),
        ("rc1", "tagged v1.2.10-rc1"),
        ("1.2.10", "image 1.2.10+build.5"),
        ("192.168.0.1", "net 192.168.0.1/24"),
        ("GH-123", "(fixes #123, GH-123)"),
        ("val", "col:val"),
        ("USA", "made in the U.S.A."),
        ("U.S.", "the US army"),
        ("PhD", "a Ph.D. thesis"),
        ("\U0001f3f4", "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f wins"),
        ("1\ufe0f\u20e3", "press 1\ufe0f\u20e3"),
        ("ისტორია", "საქართველოს ისტორია"),
        ("hôpital", "HÔPITAL"),
        ("hopital", "l'ho\u0302pital"),
        ("Tieng Viet", "Tiếng Việt"),
        ("ꦲꦏ꧀ꦱꦫ", "ꦲꦏ꧀ꦱꦫ"),
    ],
)
def test_this_query_finds_this_row(query, row):
    assert shared(query, row)


NOT_SYNTAX = [
    *(
        "don't",
        '"unterminated',
        "a:b",
        "col:val",
        "foo*",
        "*",
        "(",
        ")",
        "NEAR(a b)",
        "a AND",
        "OR",
        "NOT x",
        "^x",
    ),
    *(
        "+x",
        "GB/s",
        "C++",
        "C#",
        ".NET",
        "%",
        "_",
        "\\",
        "';DROP TABLE facts;--",
        "{}",
        "a&b|!c",
        "<->",
        ":*",
    ),
    *("?", "-", "...", "$5", "100%", "#tag", "@name", "||", "~x", "[x]", "x{2}", "x.*", '"a'),
]


@pytest.mark.parametrize("query", NOT_SYNTAX)
def test_operators_of_query_languages_are_text(query):
    row = f"somebody noted {query} here"
    assert PROFILE.query_terms(query)
    assert set(PROFILE.query_terms(query)) <= set(PROFILE.document_terms(row))


@pytest.mark.parametrize("symbol", ["(", "%", "_", "\\", "{", "*", "=", "\u20ac"])
def test_a_symbol_finds_rows_where_it_touches_a_word(symbol):
    assert shared(symbol, f"beside{symbol}word")


@pytest.mark.parametrize("name", ["getUserName", "OpenAI", "iPhone"])
def test_a_word_is_not_parted_where_its_case_changes(name):
    # Case makes no difference anywhere, so it cannot make a joint either.
    assert len(PROFILE.document_terms(name)) == 1
    assert PROFILE.document_terms(name) == PROFILE.query_terms(name.lower())


def test_an_abbreviation_that_is_spelled_like_a_stop_word_asks_for_no_stop_word():
    assert "am" not in PROFILE.query_terms("10 a.m.")


def test_symbols_do_not_count_beside_words_in_a_query():
    assert PROFILE.query_terms("* ( museum :* %") == ["museum"]


@pytest.mark.parametrize(
    ("query", "exact", "noise"),
    [
        ("abc-1234", "ABC-1234", "ABC 9 1234"),
        ("C++", "we use C++ here", "we use C here"),
        ("C#", "we use C# here", "we use C here"),
        ("C#", "we use C#.", "we use C++."),
        (".NET", "a .NET shop", "a net shop"),
        ("v1.2.10", "v1.2.10", "1.2.10"),
        ("user.py", "api/user.py", "py user"),
        ("caf\u00e9", "caf\u00e9", "cafe"),
        ("$5", "costs $5", "costs 5"),
        ("\U0001f44d\U0001f3fd", "\U0001f44d\U0001f3fd", "\U0001f44d"),
        ("U.S.", "the U.S. army", "the US army"),
        ("2024-05-01T10:30", "2024-05-01T10:30", "2024-05-01 and 11:30"),
        ("2024-05-01", "on 2024-05-01T10:30:00Z", "on 2024-05-02T01:30:00Z"),
        ("\U0001f469\u200d\U0001f52c", "a \U0001f469\u200d\U0001f52c", "a \U0001f469 \U0001f52c"),
    ],
)
def test_the_exact_form_shares_more_terms_than_its_parts(query, exact, noise):
    assert shared(query, exact) > shared(query, noise)


@pytest.mark.parametrize(
    ("query", "row"),
    [
        ("5432", "port 5432 is open"),
        ("00123", "order 00123"),
        ("91234567", "call +47 912 34 567"),
        ("4791234567", "call +47 912 34 567"),
        ("+47 912 34 567", "call 91234567"),
        ("912-34-567", "call +47 912 34 567"),
        ("2125550123", "call (212) 555-0123 now"),
        ("1.2.10", "v1.2.10"),
        ("v1.2.10", "1.2.10"),
        ("2024-05-01", "2024-05-01"),
        ("2024", "2024-05-01"),
        ("20240501", "2024-05-01"),
        ("100000", "₹1,00,000"),
        ("1,00,000", "₹1,00,000"),
        ("₹1,00,000", "100000"),
        ("1,234.50", "1234.50"),
        ("1:56", "at 1:56 pm"),
        ("2024-05-01", "at 2024-05-01T10:30:00Z"),
        ("20240501", "at 2024-05-01T10:30:00Z"),
        ("10:30:00", "at 2024-05-01T10:30:00.250+02:00."),
        ("2024-05-01T10:30:00Z", "on 2024-05-01"),
        ("123", "رقم ١٢٣"),
        ("١٢٣", "number 123"),
        ("91234567", "फ़ोन ९१२ ३४ ५६७"),
        ("2024-05-01", "२०२४-०५-०१"),
        ("12345", "０１２ ３４５ and １２ ３４５"),
    ],
)
def test_this_number_finds_this_row(query, row):
    assert shared(query, row)


@pytest.mark.parametrize(
    ("query", "row"),
    [
        ("12", "order 00123"),
        ("123", "order 00123"),
        ("1.2.1", "v1.2.10"),
        ("12", "v1.2.10"),
        ("12", "₹1,00,000"),
        ("23", "1234"),
        ("1234", "1.5 234"),
        ("咖啡", "我喜欢喝茶"),
        ("茶杯", "我喜欢喝茶"),
        ("OpenAI", "今日は会議"),
    ],
)
def test_this_query_does_not_find_this_row(query, row):
    assert not shared(query, row)


@pytest.mark.parametrize(
    ("query", "row"),
    [
        ("咖啡", "我喜欢在上海喝咖啡"),
        ("上海", "我喜欢在上海喝咖啡"),
        ("東京", "東京タワーへ行きました"),
        ("タワー", "東京タワーへ行きました"),
        ("ﾀﾜｰ", "東京タワーへ行きました"),
        ("서울", "저는 서울에서 일합니다"),
        ("일합니다", "저는 서울에서 일합니다"),
        ("会議", "今日はOpenAIの会議"),
        ("openai", "今日はOpenAIの会議"),
        ("茶", "我喜欢喝茶"),
        ("の", "今日はOpenAIの会議"),
    ],
)
def test_unspaced_text_is_found_by_any_part_of_it(query, row):
    assert set(PROFILE.query_terms(query)) <= set(PROFILE.document_terms(row))


@pytest.mark.parametrize("query", ["to be or not to be", "The Who", "IT", "what is it"])
def test_a_query_of_stop_words_alone_keeps_them(query):
    assert PROFILE.query_terms(query) == list(dict.fromkeys(query.lower().split()))


def test_stop_words_are_left_out_beside_other_words_but_stay_in_the_index():
    assert PROFILE.query_terms("When did she visit the museum?") == ["visit", "museum"]
    assert "the" in PROFILE.document_terms("the museum")


def test_a_repeated_query_word_counts_once():
    assert PROFILE.query_terms("museum Museums museum.") == ["museum"]


def test_query_words_keep_the_spelling_of_the_query():
    assert PROFILE.query_words('Where is "Caroline\'s" (C++) café, today? CAROLINE') == [
        ("Caroline's", ("carolin",)),
        ("C++", ("c++", "c")),
        ("café", ("cafe", "café")),
        ("today", ("today",)),
    ]


def test_query_words_name_digit_groups_as_written():
    assert ("912 34 567", ("91234567",)) in PROFILE.query_words("call 912 34 567")


@pytest.mark.parametrize(
    "text", ["", "   ", "\n\t", "\u200b", "\u00a0\u3000", "\x00\x1f", "\ufeff\u2060\u00ad", "\u3164"]
)
def test_a_text_without_a_visible_character_is_blank(text):
    assert is_blank(text)
    assert PROFILE.document_terms(text) == PROFILE.query_terms(text) == PROFILE.query_words(text) == []
    assert count_words(text) == 0


@pytest.mark.parametrize(
    "text", ["a", " . ", "\u200b*", "é", "茶", "\u0301", "\U0001f600", "\u05b0", "\ue000", "\U000e0fff"]
)
def test_a_text_with_a_visible_character_is_not_blank(text):
    assert not is_blank(text)
    assert PROFILE.document_terms(text)
    assert count_words(text) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("one two  three\nfour", 4),
        ("state-of-the-art e-mail", 2),
        ("well - then", 3),
        ("Größe zählt", 2),
        ("我喜欢咖啡", 5),
        ("我喜欢咖啡。", 5),
        ("今日はOpenAIの会議", 7),
        ("กาแฟ ร้อน", 2),
        ("a \x00 b", 2),
        ("é \u200b b", 2),
    ],
)
def test_words_are_counted_as_a_reader_would(text, words):
    assert count_words(text) == words


def test_a_long_word_becomes_a_term_of_bounded_length_that_its_ending_still_tells_apart():
    one, other = PROFILE.document_terms("x" * 200 + "a" + " " + "x" * 200 + "b")
    assert one != other
    assert len(one) == len(other) == 64
    assert one.startswith("x" * 47 + "~")
    assert PROFILE.query_terms("X" * 200 + "A") == [one]


def test_accents_do_not_lengthen_words_that_have_none():
    plain = "they met near the river and talked about boats"
    assert len(PROFILE.document_terms(plain)) == count_words(plain)


def test_threads_that_analyse_and_forget_at_once_get_the_same_terms():
    rows = [f"runn{n}ing wórd{n} meeting{n}s 漢{chr(0x4E00 + n)}" for n in range(100)]
    expected = [PROFILE.document_terms(row) for row in rows]

    def analyse_all(turn):
        found = [PROFILE.document_terms(row) for row in rows]
        PROFILE.forget_words()
        return found

    with ThreadPoolExecutor(4) as pool:
        assert all(found == expected for found in pool.map(analyse_all, range(20)))
