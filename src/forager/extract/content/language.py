"""The language of a text that does not say it: by its script, else by its commonest words."""

from __future__ import annotations

import re

_MAX_TEXT = 2_000
_MIN_WORDS = 20
_MIN_SHARE = 0.08  # of all words; running text of these languages has 0.2 to 0.4
_SURELY_ENGLISH = 8
_MIN_LEAD = 1.3  # times as many as the next language

_WORDS = {
    "en": "the of and to in is that for it with as are this be on by or from an which you not can",
    "de": "der die das und ist nicht ein eine zu den mit von auf für dem sich des im werden wird",
    "fr": "le la les des et est une dans que pour qui sur pas avec par plus ce sont vous au du",
    "es": "el los las que una por para con del se es como más está su al lo pero sus este puede",
    "it": "il di che per una sono con non del della è si nel alla gli più anche come questo viene",
    "pt": "o os que uma para com não do da em é um dos como mais foi ao ser pode são você das",
    "nl": "de het een van en is dat op te voor niet met zijn aan er ook als bij deze worden kan",
    "sv": "och att det som en är på för med av den till inte ett om kan har du eller detta",
    "da": "og at det er en til på som for med af ikke den der kan et har du eller fra",
    "no": "og det er en som på for med av ikke til å kan den et har du eller fra dette",
    "fi": "ja on ei että se ovat voi tai kun mutta myös joka jos ole sen niin kuin tämä voit",
    "pl": "i w nie na się z do jest to że dla jak przez po lub od można są tym jest",
    "cs": "a se na je v že to s pro jako nebo které by být pokud jsou k o jsem může",
    "hu": "a az és hogy nem egy is ez van meg vagy csak mint ha de kell lehet azt már",
    "ro": "și de la în este cu pe nu care un o să din mai pentru sau sunt fi acest se",
    "tr": "ve bir bu için ile de da olarak daha gibi çok olan veya kadar sonra değil her",
    "id": "yang dan di untuk dengan dari ini pada adalah tidak dalam akan dapat atau kita ke itu",
    "vi": "và của là có một các không cho được với trong khi này để những người bạn",
}
_LANGUAGES_OF: dict[str, list[str]] = {}
for _language, _words in _WORDS.items():
    for _word in set(_words.split()):
        _LANGUAGES_OF.setdefault(_word, []).append(_language)

_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),  # before Chinese: Japanese uses its characters too
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("uk", re.compile("[іїєґІЇЄҐ]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("fa", re.compile("[پچژگ]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
)
_SHARES = {"ja": 0.02, "uk": 0.01, "fa": 0.01}
_NOISE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\]\([^)]*\)|https?://\S+", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+")


def detect_language(markdown: str) -> str | None:
    """A two-letter tag, or None where the text is too short or too mixed to tell."""
    text = markdown[:_MAX_TEXT]
    if text.count(" the ") >= _SURELY_ENGLISH:  # most pages, without looking any closer
        return "en"
    text = _NOISE.sub(" ", text)
    return _by_script(text) or _by_words(_WORD.findall(text.lower()))


def _by_script(text: str) -> str | None:
    if text.isascii():
        return None
    letters = max(1, sum(map(str.isalpha, text)))
    for language, script in _SCRIPTS:
        if len(script.findall(text)) / letters > _SHARES.get(language, 0.2):
            return language
    return None


def _by_words(words: list[str]) -> str | None:
    if len(words) < _MIN_WORDS:
        return None
    counts = dict.fromkeys(_WORDS, 0)
    for word in words:
        for language in _LANGUAGES_OF.get(word, ()):
            counts[language] += 1
    (best, most), (_, second) = sorted(counts.items(), key=lambda item: -item[1])[:2]
    sure = most >= _MIN_SHARE * len(words) and most >= _MIN_LEAD * second
    return best if sure else None
