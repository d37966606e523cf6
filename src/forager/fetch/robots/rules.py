"""robots.txt by RFC 9309: which URLs a crawler may fetch, and which line says so.

Our own parser, because Protego's public interface cannot name the rule that decided, and its
misses (user agents with spaces, escapes, groups) lie in its parser and its matcher alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from forager.extract.wildcard import Wildcard

SIZE_LIMIT = 500 * 1024
"""RFC 9309 requires at least 500 KiB; the rest is not read."""

LINE_LIMIT = 16 * 1024
MAX_CRAWL_DELAY = 3600.0

# spellings that Google's parser accepts too
_FIELDS = {
    **dict.fromkeys(("user-agent", "useragent", "user agent"), "user-agent"),
    "allow": "allow",
    **dict.fromkeys(
        ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"), "disallow"
    ),
    **dict.fromkeys(("sitemap", "site-map"), "sitemap"),
    **dict.fromkeys(("crawl-delay", "crawldelay", "crawl delay"), "crawl-delay"),
}
# wider than the RFC's letters, "-" and "_": robots called Bot42 or archive.org_bot exist
_TOKEN = re.compile(r"[A-Za-z0-9_.-]+")
_COMPATIBLE = re.compile(r"\(compatible;\s*([A-Za-z0-9_.-]+)")
_SECONDS = re.compile(r"\d+(?:\.\d*)?|\.\d+")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_PATH = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://)?[^/?#]*([^#]*)")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """Whether a URL may be fetched, and the rule and line that decided (none: no rule matched)."""

    allowed: bool
    rule: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class _Rule:
    verdict: RuleVerdict
    wildcard: Wildcard
    priority: int

    @property
    def order(self) -> tuple[int, bool, int]:
        """The longest pattern decides; of two equally long ones, the one that allows."""
        return -self.priority, not self.verdict.allowed, self.verdict.line or 0


@dataclass(slots=True)
class _Group:
    """A list of user agents with the rules for all of them.

    Rules are kept once for the group, not once for each agent: a file with ten thousand of both
    must not cost a hundred million.
    """

    agents: dict[str, int] = field(default_factory=dict)
    rules: list[_Rule] = field(default_factory=list)
    delays: list[tuple[int, float]] = field(default_factory=list)

    def delays_of(self, agent: str) -> Iterator[float]:
        """A Crawl-delay applies to the agents listed before it, even if the list continues."""
        position = self.agents[agent]
        return (delay for named, delay in self.delays if position < named)


class _RuleSet:
    """The rules of a group in the order they are tried: the first match decides."""

    __slots__ = ("_everywhere", "_ordered", "_roots", "delay")

    def __init__(self, agent: str, groups: list[_Group]) -> None:
        delays = [delay for group in groups for delay in group.delays_of(agent)]
        self.delay = max(delays, default=None)
        self._ordered = _in_order([rule for group in groups for rule in group.rules])
        self._everywhere = [entry for entry in self._ordered if entry[0] in ("", "/")]
        self._roots = tuple({root for root, _, _ in self._ordered} - {"", "/"})

    def decide(self, path: str) -> RuleVerdict:
        literal = _spell(path)
        plain = _decode_unreserved(literal)
        # one call in C rejects all rules with another prefix: the usual case
        near = plain != literal or literal.startswith(self._roots)
        spellings = (plain, literal)
        for root, allows, rule in self._ordered if near else self._everywhere:
            text = spellings[allows]
            if text.startswith(root) and rule.wildcard.matches(text):
                return rule.verdict
        return _UNRULED


def _in_order(rules: list[_Rule]) -> list[tuple[str, bool, _Rule]]:
    """Each rule with the prefix that a path must have."""
    ordered = sorted(rules, key=lambda rule: rule.order)
    return [(rule.wildcard.parts[0], rule.verdict.allowed, rule) for rule in ordered]


_UNRULED = RuleVerdict(allowed=True)
_ITSELF = RuleVerdict(allowed=True, rule="robots.txt itself may always be fetched")


class Robots:
    """A parsed robots.txt; `notes` describes what was cut, capped or not understood."""

    def __init__(
        self, groups: dict[str, list[_Group]], sitemaps: list[str], notes: tuple[str, ...] = ()
    ) -> None:
        self.sitemaps = sitemaps
        self.notes = notes
        self._groups = groups
        self._rule_sets: dict[str, _RuleSet] = {}

    def verdict(self, url: str, user_agent: str) -> RuleVerdict:
        """Check a URL as it will be requested; `user_agent` may be a whole User-Agent header."""
        path = _path_of(url)
        if path == "/robots.txt":
            return _ITSELF
        return self._rules_for(user_agent).decide(path)

    def crawl_delay(self, user_agent: str) -> float | None:
        """The Crawl-delay for a user agent, in seconds."""
        return self._rules_for(user_agent).delay

    def _rules_for(self, user_agent: str) -> _RuleSet:
        rule_set = self._rule_sets.get(user_agent)
        if rule_set is None:
            token = product_token(user_agent).lower()
            token = token if token in self._groups else "*"
            rule_set = _RuleSet(token, self._groups.get(token, []))
            self._rule_sets[user_agent] = rule_set
        return rule_set


def product_token(user_agent: str) -> str:
    """The name of a crawler in robots.txt: `Forager` in `Forager/1.0 (+https://...)`."""
    if "/" not in user_agent:
        return user_agent
    disguised = _COMPATIBLE.search(user_agent)
    if disguised:
        return disguised[1]
    leading = _TOKEN.match(user_agent)
    return leading[0] if leading else user_agent


def parse_robots(body: bytes) -> Robots:
    """Parse a robots.txt; no body is rejected."""
    parser = _Parser()
    text, cut = _cut(_recode(body))
    if cut:
        parser.notes.append(f"only the first {SIZE_LIMIT // 1024} KiB were read")
    for number, name, value in _fields(text):
        parser.take(number, name, value)
    return Robots(parser.groups, list(dict.fromkeys(parser.sitemaps)), tuple(parser.notes))


class _Parser:
    """The state between lines: the user agents of the next rule."""

    def __init__(self) -> None:
        self.groups: dict[str, list[_Group]] = {}
        self.sitemaps: list[str] = []
        self.notes: list[str] = []
        self._group = _Group()
        self._rules_began = False

    def take(self, line: int, name: str, value: str) -> None:
        if name == "user-agent":
            self._name_agent(value)
        elif name == "sitemap":
            self._add_sitemap(value)
        elif name == "crawl-delay":
            self._set_delay(line, value)
        else:
            self._add_rule(line, value, allow=name == "allow")

    def _name_agent(self, value: str) -> None:
        # only Allow and Disallow end the list of agents: a Sitemap or an unknown line does not
        if self._rules_began:
            self._group, self._rules_began = _Group(), False
        token = _agent_token(value)
        if token not in self._group.agents:
            self._group.agents[token] = len(self._group.agents)
            self.groups.setdefault(token, []).append(self._group)

    def _add_rule(self, line: int, value: str, *, allow: bool) -> None:
        self._rules_began = True
        if value and self._group.agents:
            self._group.rules += _rules(line, value, allow=allow)

    def _set_delay(self, line: int, value: str) -> None:
        if not _SECONDS.fullmatch(value):
            self._note(f"line {line}: Crawl-delay {value[:40]!r} is not a number of seconds")
            return
        delay = float(value)
        if delay > MAX_CRAWL_DELAY:
            self._note(f"line {line}: Crawl-delay {value[:40]} lowered to {MAX_CRAWL_DELAY:g} s")
            delay = MAX_CRAWL_DELAY
        self._group.delays.append((len(self._group.agents), delay))

    def _add_sitemap(self, value: str) -> None:
        if value:
            self.sitemaps.append(value.encode("latin-1").decode("utf-8", "replace"))

    def _note(self, text: str) -> None:
        if len(self.notes) < 20:
            self.notes.append(text)


def _agent_token(value: str) -> str:
    if value == "*" or value.startswith(("* ", "*\t")):
        return "*"
    token = _TOKEN.match(value)
    return token[0].lower() if token else ""


def _rules(line: int, value: str, *, allow: bool) -> list[_Rule]:
    verdict = RuleVerdict(allow, f"{'Allow' if allow else 'Disallow'}: {_readable(value)}", line)
    rules = [_rule(verdict, value)]
    folder, slash, page = value.rpartition("/")
    if allow and slash and page in ("index.html", "index.htm"):
        # a rule that allows the index page also allows its folder
        rules.append(_rule(verdict, f"{folder}/$"))
    return rules


def _rule(verdict: RuleVerdict, value: str) -> _Rule:
    anchored = value.endswith("$")
    pattern = _escape_bytes(value.removesuffix("$")).replace("$", "%24")
    pattern = _upper_escapes(pattern)
    if not verdict.allowed:
        pattern = _decode_unreserved(pattern)
    return _Rule(verdict, Wildcard.compile(pattern, anchored=anchored), len(pattern) + anchored)


# --- bytes to lines -------------------------------------------------------------------------


def _recode(body: bytes) -> bytes:
    body = body[: 2 * SIZE_LIMIT + 2]
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return body.decode("utf-16", "replace").encode("utf-8", "replace")
    return body.removeprefix(b"\xef\xbb\xbf")


def _cut(body: bytes) -> tuple[str, bool]:
    """Cut to the size limit, at the end of a line: half a rule would be another rule."""
    cut = len(body) > SIZE_LIMIT
    if cut:
        body = body[:SIZE_LIMIT]
        body = body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
    # in Latin-1 each character is one byte, so that decoding cannot fail
    return body.replace(b"\0", b"").decode("latin-1"), cut


def _fields(text: str) -> Iterator[tuple[int, str, str]]:
    # str.splitlines would also split at form feeds and other characters
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(lines, 1):
        name, value = _field(line[:LINE_LIMIT].partition("#")[0].strip())
        if name:
            yield number, name, value


def _field(line: str) -> tuple[str | None, str]:
    name, colon, value = line.partition(":")
    known = _FIELDS.get(name.strip().lower())
    if colon and known:
        return known, value.strip()
    # "Disallow /x" without the colon: exactly two words
    words = line.split()
    if len(words) == 2:
        return _FIELDS.get(words[0].lower()), words[1]
    return None, ""


# --- spelling of paths and patterns -----------------------------------------------------------
#
# RFC 9309 takes %62 and "b" for the same character; Google's parser, which most files are tested
# with, does not. A rule that forbids is read the RFC's way and one that allows is read Google's
# way, so that in doubt a URL is not fetched.


def _path_of(url: str) -> str:
    """Path and query of a normalized URL."""
    match = _PATH.match(url)
    path = match[1] if match else ""
    return path if path.startswith("/") else f"/{path}"


def _spell(path: str) -> str:
    """Escapes in upper case; the two characters with a meaning in patterns are escaped."""
    if "*" in path or "$" in path:
        path = path.replace("*", "%2A").replace("$", "%24")
    return _upper_escapes(path)


def _upper_escapes(text: str) -> str:
    return _ESCAPE.sub(lambda match: match[0].upper(), text) if "%" in text else text


def _decode_unreserved(text: str) -> str:
    return _ESCAPE.sub(_decode_one, text) if "%" in text else text


def _decode_one(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0]


def _escape_bytes(text: str) -> str:
    if text.isascii():
        return text
    return "".join(c if c < "\x80" else f"%{ord(c):02X}" for c in text)


def _readable(value: str) -> str:
    return value.encode("latin-1").decode("utf-8", "replace")
