"""What the multilingual set is made of: per language a sentence, a question, things and places.

A word is written as a fact has it, or as a pair with another spelling that people type for it: without accents,
without vowel signs, in half-width letters, in capitals.
"""

from __future__ import annotations

from dataclasses import dataclass

Word = str | tuple[str, str]


@dataclass(frozen=True)
class Language:
    """`fact` and `question` have the places {thing}, {place} and {number}; the question may have no number.

    `inflected` are things, each with another form of the word, as a question may have it.
    """

    fact: str
    question: str
    things: tuple[Word, ...]
    places: tuple[Word, ...]
    inflected: tuple[tuple[str, str], ...] = ()


LANGUAGES = {
    "English": Language(
        "The {thing} is kept in the {place}, shelf {number}.",
        "Is there a {thing} kept in the {place}?",
        ("ladder", "kettle", "lantern", "toolbox", "suitcase", ("café sign", "cafe sign")),
        ("cellar", "attic", "garage", "kitchen", ("entrée", "entree")),
        (("ladder", "ladders"), ("kettle", "kettles"), ("suitcase", "suitcases"), ("toolbox", "toolboxes")),
    ),
    "German": Language(
        "Der Gegenstand {thing} liegt im {place}, Fach {number}.",
        "Liegt {thing} im {place}?",
        (
            ("Schlüssel", "schlussel"),
            ("Kühlbox", "kuhlbox"),
            "Koffer",
            "Lampe",
            ("Straßenkarte", "strassenkarte"),
            "Leiter",
        ),
        ("Keller", ("Gästezimmer", "gastezimmer"), "Schuppen", ("Büro", "BÜRO"), "Flur"),
        (("Koffer", "Koffern"), ("Lampe", "Lampen"), ("Leiter", "Leitern"), ("Kühlbox", "Kühlboxen")),
    ),
    "French": Language(
        "L'objet {thing} se trouve dans {place}, étagère {number}.",
        "Où est {thing} dans {place} ?",
        (
            ("théière", "theiere"),
            ("clé", "cle"),
            "lampe",
            ("échelle", "echelle"),
            ("forêt peinte", "foret peinte"),
            "valise",
        ),
        ("cuisine", ("entrée", "entree"), "garage", ("bibliothèque", "bibliotheque"), "cave"),
        (("théière", "théières"), ("lampe", "lampes"), ("valise", "valises"), ("échelle", "échelles")),
    ),
    "Spanish": Language(
        "El objeto {thing} está en {place}, estante {number}.",
        "¿Está {thing} en {place}?",
        (
            ("lámpara", "lampara"),
            ("sartén", "sarten"),
            "escalera",
            ("baúl", "baul"),
            ("piñata", "pinata"),
            "maleta",
        ),
        ("cocina", ("jardín", "jardin"), "garaje", ("balcón", "balcon"), "sala"),
        (("lámpara", "lámparas"), ("escalera", "escaleras"), ("maleta", "maletas"), ("sartén", "sartenes")),
    ),
    "Turkish": Language(
        "{thing} eşyası {place} bölümünde, raf {number}.",
        "{thing} {place} içinde mi?",
        (("çanta", "canta"), ("şemsiye", "semsiye"), "lamba", ("fırın", "firin"), ("ütü", "utu"), "merdiven"),
        ("mutfak", ("banyo", "BANYO"), "salon", ("bodrum katı", "bodrum kati"), "bahçe"),
        (("lamba", "lambalar"), ("çanta", "çantalar"), ("fırın", "fırınlar"), ("merdiven", "merdivenler")),
    ),
    "Polish": Language(
        "Przedmiot {thing} leży w miejscu {place}, półka {number}.",
        "Czy {thing} jest w miejscu {place}?",
        (
            ("żelazko", "zelazko"),
            ("łopata", "lopata"),
            "lampa",
            ("krzesło", "krzeslo"),
            ("klucz gęsi", "klucz gesi"),
            "walizka",
        ),
        ("kuchnia", ("łazienka", "lazienka"), "piwnica", ("ogród", "ogrod"), "strych"),
        (("lampa", "lampy"), ("walizka", "walizki"), ("łopata", "łopaty"), ("krzesło", "krzesła")),
    ),
    "Russian": Language(
        "Предмет {thing} лежит тут: {place}, полка {number}.",
        "Есть ли {thing} тут: {place}?",
        ("чайник", ("зонт", "ЗОНТ"), "лампа", ("ковёр", "ковер"), "чемодан", ("счёты", "счеты")),
        ("кухня", "подвал", ("гараж", "ГАРАЖ"), "чердак", "балкон"),
        (("лампа", "лампы"), ("чемодан", "чемоданы"), ("чайник", "чайники"), ("зонт", "зонты")),
    ),
    "Greek": Language(
        "Το αντικείμενο {thing} βρίσκεται εδώ: {place}, ράφι {number}.",
        "Υπάρχει {thing} εδώ: {place};",
        (
            ("ομπρέλα", "ομπρελα"),
            ("λάμπα", "λαμπα"),
            ("κλειδί", "κλειδι"),
            ("βαλίτσα", "βαλιτσα"),
            ("φανός", "ΦΑΝΟΣ"),
            ("σκάλα", "σκαλα"),
        ),
        (
            ("κουζίνα", "κουζινα"),
            ("υπόγειο", "υπογειο"),
            ("κήπος", "κηπος"),
            ("γκαράζ", "γκαραζ"),
            ("σοφίτα", "σοφιτα"),
        ),
        (("ομπρέλα", "ομπρέλες"), ("λάμπα", "λάμπες"), ("κλειδί", "κλειδιά"), ("βαλίτσα", "βαλίτσες")),
    ),
    "Arabic": Language(
        "الشيء {thing} موجود في {place} على الرف {number}",
        "هل {thing} في {place}؟",
        (("مِفْتَاح", "مفتاح"), ("مِصْبَاح", "مصباح"), "حقيبة", "سلم", ("كِتَاب", "كتاب"), "مظلة"),
        ("المطبخ", ("القَبْو", "القبو"), "الحديقة", "المكتب", ("المخـــزن", "المخزن")),
        (("حقيبة", "حقائب"), ("مظلة", "مظلات"), ("سلم", "سلالم")),
    ),
    "Hebrew": Language(
        "החפץ {thing} נמצא ב {place} מדף {number}",
        "האם {thing} נמצא ב {place}?",
        (("מַפְתֵּחַ", "מפתח"), ("מְנוֹרָה", "מנורה"), "מזוודה", "סולם", ("סֵפֶר", "ספר"), "מטריה"),
        ("מטבח", ("מַרְתֵּף", "מרתף"), "גינה", "משרד", "מחסן"),
    ),
    "Hindi": Language(
        "वस्तु {thing} यहाँ है: {place}, खाना {number}",
        "क्या {thing} यहाँ है: {place}?",
        ("चाबी", "दीपक", ("घड़ी", "घड\u093cी"), "सीढ़ी", "किताब", "छाता"),
        ("रसोई", "तहखाना", "बगीचा", "दफ़्तर", "गोदाम"),
        (("चाबी", "चाबियाँ"), ("किताब", "किताबें"), ("छाता", "छाते")),
    ),
    "Thai": Language(
        "{thing}อยู่ใน{place} ชั้น {number}",
        "{thing}อยู่ใน{place}ไหม",
        ("กุญแจ", "โคมไฟ", "กระเป๋า", "บันได", "หนังสือ", "ร่ม"),
        ("ห้องครัว", "ห้องใต้ดิน", "สวนหลังบ้าน", "สำนักงาน", "โรงรถ"),
    ),
    "Chinese": Language(
        "{thing}放在{place}的第{number}层架子上。",
        "{place}里有{thing}吗？",
        ("钥匙", "台灯", "行李箱", "梯子", "雨伞", "茶壶"),
        ("厨房", "地下室", "花园", "办公室", "车库"),
    ),
    "Japanese": Language(
        "{thing}は{place}の棚{number}にあります。",
        "{place}に{thing}はありますか？",
        ("鍵", ("ランプ", "ﾗﾝﾌﾟ"), "傘", ("スーツケース", "ｽｰﾂｹｰｽ"), "はしご", "急須"),
        ("台所", "地下室", "庭", "事務所", ("ガレージ", "ｶﾞﾚｰｼﾞ")),
    ),
    "Korean": Language(
        "{thing}은 {place}에 있습니다. 선반 {number}",
        "{place}에 {thing} 있나요?",
        ("열쇠", "전등", "여행가방", "사다리", ("우산", "\u110b\u116e\u1109\u1161\u11ab"), "주전자"),
        ("부엌", "지하실", "정원", "사무실", "차고"),
    ),
    "emoji": Language(
        "{thing} party at the {place}, table {number}",
        "{thing} {place}",
        ("🎂", "🎸", ("👍🏽", "👍"), "👩‍🚀", "🇩🇪", "🇫🇷"),
        ("🏖️", "🏔️", "🏟️", "🏰", "🚢"),
    ),
}
