"""Sensitive text: secrets by their shape, and listed words that are followed by a value."""

from __future__ import annotations

import re
import unicodedata

# What the issuers publish of how their keys begin, and how long they are at least. Repeats are bounded, here as
# below, so that no text takes more than time linear in its length.
_KEYS = (
    r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{16}\b",  # AWS
    r"\bgh[pousr]_[A-Za-z0-9]{36}",  # GitHub
    r"\bgithub_pat_[A-Za-z0-9_]{22}",
    r"\bgl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_-]{20}",  # GitLab
    r"\bxox[abeoprs](?:\.xox[a-z])?-[A-Za-z0-9-]{10}",  # Slack
    r"\bxapp-\d-[A-Za-z0-9-]{10}",
    r"\bhooks\.slack\.com/services/T[A-Z0-9]{1,20}/B[A-Z0-9]{1,20}/[A-Za-z0-9]{16}",
    r"\b[srp]k_(?:live|test)_[A-Za-z0-9]{10}",  # Stripe
    r"\bwhsec_[A-Za-z0-9+/]{24}",
    r"\bsk-(?=[A-Za-z0-9_-]{0,100}\d)(?=[A-Za-z0-9_-]{0,100}[A-Za-z])[A-Za-z0-9_-]{20}",  # OpenAI, Anthropic and kin
    r"\b(?:gsk|xai|pplx|r8|fw|csk|nvapi|tvly|voy|jina)[_-](?=[A-Za-z0-9_-]{0,100}\d)[A-Za-z0-9_-]{20}",
    r"\bAIza[A-Za-z0-9_-]{35}",  # Google
    r"\bya29\.[A-Za-z0-9_-]{20}",
    r"\bGOCSPX-[A-Za-z0-9_-]{28}",
    r"\bhf_[A-Za-z0-9]{30}",  # Hugging Face
    r"\bnpm_[A-Za-z0-9]{36}",
    r"\bpypi-AgE[A-Za-z0-9_-]{50}",
    r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",  # SendGrid
    r"\b(?:AC|SK)[0-9a-f]{32}\b",  # Twilio
    r"\bkey-[0-9a-f]{32}\b",  # Mailgun
    r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}\b",  # Telegram
    r"\bdo[opr]_v1_[0-9a-f]{64}\b",  # DigitalOcean
    r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b",  # Shopify
    r"\bdapi[0-9a-f]{32}\b",  # Databricks
    r"\bhv[sbr]\.[A-Za-z0-9_-]{24}",  # Vault
    r"\blin_api_[A-Za-z0-9]{32}",  # Linear
    r"\b(?:ntn|secret)_[A-Za-z0-9]{40}",  # Notion
    r"\bsb[ps]_(?:secret_)?[A-Za-z0-9_]{20}",  # Supabase
    r"\b[MNO][A-Za-z\d_-]{23,30}\.[\w-]{6}\.[\w-]{27}",  # Discord
    r"\bAccountKey=[A-Za-z0-9+/]{86}==",  # Azure
)
_KEY = re.compile("|".join(_KEYS), re.ASCII)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----|\bPuTTY-User-Key-File-\d"
)
_JWT = re.compile(r"\beyJ[A-Za-z0-9_-]{10,1000}\.eyJ[A-Za-z0-9_-]{5}", re.ASCII)
_BEARER = re.compile(
    r"\b(?:Bearer|Basic)\s+(?=[A-Za-z0-9._~+/-]{0,100}\d)[A-Za-z0-9._~+/-]{16}", re.ASCII | re.IGNORECASE
)
_URL = re.compile(
    r"\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@<>]{0,100}:(?!\*{1,200}@|<|\$\{|\{)[^\s/@]{3,200}@", re.IGNORECASE
)
_SSN = re.compile(r"(?<![\d-])(?!000|666|9\d\d)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\d-])", re.ASCII)
_DIGITS = re.compile(r"(?<![\d.,])\d(?:[ -]?\d){12,18}(?![\d])", re.ASCII)
_CARD = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01])\d{13}|2720\d{12}|3[47]\d{13}"
    r"|6(?:011|4[4-9]\d|5\d\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|62\d{14,17}",
    re.ASCII,
)

# Words for a password: what is said to be one is taken for one, also where it is a plain word.
_SPOKEN = (
    r"pass ?words?|pass ?phrases?|pass ?codes?|passwd|pwd"
    r"|passw(?:ort|örter)|kennwort|mots? de passe|contraseñas?|senhas?|palavra-passe|wachtwoord|lösenord"
    r"|adgangskode|passord|salasana|hasło|heslo|jelszó|parol[aă]|şifre|парол[ьяюе]|паролем"
)
# Words that are more often spoken of than followed by a secret: only what looks like one is taken for one.
_NAMED = (
    r"(?:api|access|secret|private|signing|encryption|auth|license|licence)[ _-]?keys?"
    r"|(?:(?:api|access|auth|refresh|bearer|session|client|personal access|bot)[ _-]?)?(?:tokens?|secrets?)"
    r"|credentials?|recovery codes?|seed phrase|api[ _-]?schlüssel|clave|clé(?: d'api)?|chiave|токен|ключ"
)
_NUMBERED = (
    r"ssn|social security(?: number| no\.?)?|pin(?:[ -]?code)?|cvv2?|cvc2?|security code|tan"
    r"|sozialversicherungsnummer|пин(?:-?код)?"
)
_UNSPACED = "密码|密碼|口令|パスワード|暗証番号|비밀번호|암호"
_IS = r"is|was|are|ist|lautet|war|est|es|è|é|jest|är|er|is:|это|—|–|->|=>|→"
_VALUE = r"(?P<quote>[\"'`«“„‘])?(?P<value>[^\s\"'`»”“’]{1,256})"
_NAME = rf"(?<![^\W_])(?:(?P<spoken>{_SPOKEN})|(?P<named>{_NAMED})|(?P<numbered>{_NUMBERED}))(?![\w])"
_SAYS = rf"\s*[:=]+\s*|\s+(?:{_IS})\s+"
_TOLD = re.compile(rf"{_NAME}(?P<join>{_SAYS}|\s+){_VALUE}", re.IGNORECASE)
_TOLD_OF = re.compile(
    rf"{_NAME}\s+(?:for|of|to|für|von|pour|de|para|для|от)\s+(?:\S{{1,64}}\s+){{0,3}}?\S{{1,64}}?(?P<join>{_SAYS}){_VALUE}",
    re.IGNORECASE,
)
_TOLD_UNSPACED = re.compile(
    rf"(?:{_UNSPACED})\s*(?:是|为|為|は|이|은|는|[:=])\s*[\"'`「“]?(?P<value>[\w!-/:-@]{{3,}})",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"(?<![\w])(?:{_SPOKEN}|{_NAMED}|ssn|social security(?: number)?)(?![\w])|{_UNSPACED}",
    re.IGNORECASE,
)
# What is said of a password without telling it.
_SAID = (
    "wrong right correct incorrect invalid valid expired expiring strong weak secure insecure safe unsafe required "
    "optional missing empty set unset reset changed unchanged lost forgotten stolen leaked compromised rotated "
    "stored saved kept hidden hashed encrypted protected encoded masked redacted unknown none null nil true false "
    "needed not new old here there too very short long enough ok okay fine bad good string str text bytes see ask "
    "in on at by for from to with a an the my your our his her its their this that these those it what which and "
    "or no never always still only also being been now then shared public private temporary default blank same "
    "different mandatory falsch richtig ungültig gültig abgelaufen sicher unsicher stark schwach nötig geändert "
    "vergessen gespeichert nicht zu im in der die das ein eine mein leer faux correct expiré invalide sûr oublié "
    "changé dans le la les un une mon ton pas incorrecta correcta segura débil caducada olvidada en el una mi no "
    "errada certa fraca forte expirada esquecida неверный верный истёк устарел хранится забыт в на не"
)
_STATES = frozenset(_SAID.split())
_PLACEHOLDER = re.compile(
    r"[*•.x…_-]{2,}|<.*>?|\[.*\]?|\$\{?\w+\}?|\{\{?.*|%\w+%|your[_-].*|xxx+.*|process\.env.*|os\.environ.*"
    r"|env\..*|getenv.*",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[ \t\"'`»”“’]*(?:[.,;!?)\]}\n]|$)")


def find_sensitive(text: str, *, strict_words: bool = False) -> str | None:
    """Return what kind of sensitive text this holds, in words for a message, or None.

    Args:
        strict_words: also the bare words for a secret, with no value after them.
    """
    seen = _plain(text)
    for pattern, kind in _SHAPES:
        if pattern.search(seen):
            return kind
    if any(_is_card(match.group()) for match in _DIGITS.finditer(seen)):
        return "a card number"
    if _tells_value(seen):
        return "a password, key or code after its name"
    if strict_words and _BARE.search(seen):
        return "a word for a secret"
    return None


_SHAPES = (
    (_PRIVATE_KEY, "a private key"),
    (_KEY, "an API key"),
    (_JWT, "a signed token"),
    (_BEARER, "an authorization header"),
    (_URL, "a password in an address"),
    (_SSN, "a social security number"),
)


def _plain(text: str) -> str:
    """Return the text as it is read: one form for each character and digit, without characters that nobody sees."""
    if text.isascii():
        return text
    normal = unicodedata.normalize("NFKC", text)
    return "".join(
        str(unicodedata.decimal(c)) if c.isdecimal() else c for c in normal if unicodedata.category(c) != "Cf"
    )


def _is_card(found: str) -> bool:
    digits = found.replace(" ", "").replace("-", "")
    return _CARD.fullmatch(digits) is not None and len(set(digits)) > 1 and _has_check_digit(digits)


def _has_check_digit(digits: str) -> bool:
    """Whether the last digit is right by the formula of Luhn (ISO/IEC 7812-1)."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _tells_value(text: str) -> bool:
    for pattern in (_TOLD, _TOLD_OF):
        if any(map(_is_told, _each(pattern, text))):
            return True
    return any(not _is_placeholder(match["value"]) for match in _TOLD_UNSPACED.finditer(text))


def _each(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """Return the matches from every place, overlapping ones too: a value may be the word for the next."""
    found, at = [], 0
    while (match := pattern.search(text, at)) is not None:
        found.append(match)
        at = match.start() + 1
    return found


def _is_told(match: re.Match[str]) -> bool:
    value = match["value"].rstrip(".,;!?)]}")
    if not value or _is_placeholder(value) or value.lower() in _STATES:
        return False
    if match["numbered"] is not None:
        digits = sum(character.isdigit() for character in value)
        least = 4 if match["numbered"].lower().startswith(("pin", "пин", "tan")) else 3
        is_number = digits == len(value.replace("-", ""))
        return bool(is_number and digits >= least)
    return _is_said(match, value)


def _is_said(match: re.Match[str], value: str) -> bool:
    """Whether what follows the word for a secret is one, by how they are joined."""
    join = match["join"]
    if match["quote"] and len(value) >= 3:
        return bool(join.strip())
    is_last = _is_last(match, value)
    if any(mark in join for mark in ":="):
        if match["spoken"]:
            return len(value) >= 4
        return _looks_secret(value, least=4) or (is_last and len(value) >= 3)
    if join.strip():
        return _looks_secret(value, least=4) or (match["spoken"] is not None and is_last and len(value) >= 4)
    return _looks_secret(value, least=7)


def _is_last(match: re.Match[str], value: str) -> bool:
    """Whether the value ends its sentence or line."""
    return len(value) < len(match["value"]) or _ENDS.match(match.string, match.end()) is not None


def _is_placeholder(value: str) -> bool:
    return _PLACEHOLDER.fullmatch(value) is not None


def _looks_secret(value: str, *, least: int) -> bool:
    """Whether this is no word of a language: digits or signs among letters, or capitals within."""
    if len(value) < least:
        return False
    if value.isdigit():
        return len(value) >= 6
    has_digit = any(character.isdigit() for character in value)
    has_letter = any(character.isalpha() for character in value)
    signs = sum(not (character.isalnum() or character in "-'’./,_()") for character in value)
    return has_letter and (has_digit or signs > 0)
