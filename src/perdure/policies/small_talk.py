"""Small talk: texts of nothing but greetings, thanks and assent, in the languages that are listed."""

from __future__ import annotations

import re
import unicodedata

# Single words, so that any order and number of them is small talk. None of them says anything by itself.
_TALK = (
    "hi hello hey heya hiya yo howdy greetings welcome good morning afternoon evening night day bye goodbye cya see "
    "you later ya soon there thanks thank thx ty cheers much very so appreciated please ok okay okey k kk yes yeah "
    "yep yup no nope nah sure fine great cool nice awesome perfect right alright got it gotcha hmm hm uh um oh ah "
    "wow lol haha hahaha hehe lmao sorry np how are doing what's up sup i'm well "
    "hallo moin servus grüß gott guten morgen tag abend gute nacht tschüss tschüs ciao danke dir ihnen schön schon "
    "sehr bitte gern gerne ja nein doch klar super prima genau "
    "bonjour bonsoir salut coucou merci beaucoup oui non d'accord au revoir bonne nuit journée s'il vous te plaît "
    "hola buenos buenas días dias tardes noches gracias muchas sí si vale claro adiós adios luego hasta de nada por "
    "favor buongiorno buonasera grazie mille prego sì va bene arrivederci "
    "olá ola oi bom boa dia tarde noite obrigado obrigada sim não nao tchau até logo "
    "hoi dag dank je wel u bedankt nee prima doei hej hejsan tack tak ja nej hejdå "
    "cześć dzień dobry dzięki dziękuję tak nie proszę pa merhaba selam teşekkürler teşekkür ederim evet hayır tamam "
    "привет здравствуйте здравствуй добрый день утро вечер доброе спасибо большое пожалуйста да нет ладно хорошо ок "
    "пока свидания до понятно ясно "
    "γεια σου σας ευχαριστώ ναι όχι שלום תודה כן לא مرحبا أهلا شكرا نعم لا حسنا السلام عليكم "
    "नमस्ते धन्यवाद शुक्रिया हाँ हां नहीं ठीक है "
    "안녕 안녕하세요 감사합니다 고마워 고마워요 네 예 아니요 아니오 좋아요 halo terima kasih ya tidak xin chào cảm ơn vâng"
)
# Of languages that are written without spaces: whole phrases, which may follow one another.
_PHRASES = (
    "你好|您好|大家好|早上好|下午好|晚上好|早安|晚安|谢谢你?|謝謝你?|感谢|多谢|不客气|好的|好|是的?|不是|对的?|嗯+|哈+|再见|再見|拜拜|没问题|可以|行"
    "|こんにちは|こんばんは|おはよう(?:ございます)?|おやすみ(?:なさい)?|(?:どうも)?ありがとう(?:ございます|ございました)?|はい|いいえ|うん"
    "|わかりました|了解(?:です|しました)?|さようなら|よろしく(?:お願いします)?|สวัสดี(?:ครับ|ค่ะ)?|ขอบคุณ(?:ครับ|ค่ะ|มาก)*"
)
_UNSPACED = re.compile(f"(?:{_PHRASES})+")
_FORMS = frozenset(unicodedata.normalize("NFKC", word).casefold() for word in _TALK.split())


def is_small_talk(text: str) -> bool:
    """Whether the text is nothing but listed words, with any punctuation, emoji and repeated letters' case."""
    words = _words(text)
    return all(word in _FORMS or _UNSPACED.fullmatch(word) for word in words)


def _words(text: str) -> list[str]:
    """Return the words of a text, caseless; an apostrophe within a word belongs to it."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    kept = [c if c == "'" or unicodedata.category(c)[0] in "LMN" else " " for c in plain if not _unseen(c)]
    return [word for told in "".join(kept).split() if (word := told.strip("'"))]


def _unseen(character: str) -> bool:
    # A variation selector after an emoji is a mark, but no part of a word.
    return unicodedata.category(character) == "Cf" or "\ufe00" <= character <= "\ufe0f"
