"""robots.txt: every file can be read, and says the same however its lines end."""

from __future__ import annotations

from forager.fetch.robots.rules import MAX_CRAWL_DELAY, Robots, parse_robots, product_token
from fuzz.target import Target, assert_storable, text_of

_AGENTS = ("Forager/1.0 (+https://example.org)", "*", "Mozilla/5.0 (compatible; Bot42; x)", "")
_URLS = ("http://h/", "http://h/a/b.html?x=*$", "http://h/%61%2f/index.html", "http://h/robots.txt")
_MARKS = (b"\xff\xfe", b"\xfe\xff")


def check(data: bytes) -> None:
    """A file, its first line also as a user agent and as the path of a URL."""
    robots = parse_robots(data)
    line = text_of(data.partition(b"\n")[0])
    agents = (*_AGENTS, product_token(line))
    urls = (*_URLS, f"http://h/{line}")
    verdicts = _verdicts(robots, agents, urls)
    _check_words(robots, agents)
    if not data.startswith(_MARKS) and b"\r" not in data:
        windows = parse_robots(data.replace(b"\n", b"\r\n"))
        assert _verdicts(windows, agents, urls) == verdicts, "line ends must not matter"
        more = parse_robots(data + b"\n# the end")
        assert _verdicts(more, agents, urls) == verdicts, "a comment must not matter"


def _verdicts(robots: Robots, agents: tuple[str, ...], urls: tuple[str, ...]) -> list[object]:
    return [robots.verdict(url, agent) for url in urls for agent in agents]


def _check_words(robots: Robots, agents: tuple[str, ...]) -> None:
    for agent in agents:
        delay = robots.crawl_delay(agent)
        assert delay is None or 0 <= delay <= MAX_CRAWL_DELAY
        rule = robots.verdict("http://h/a", agent).rule
        assert_storable(rule or "")
        assert robots.verdict("http://h/robots.txt", agent).allowed
    for text in (*robots.sitemaps, *robots.notes):
        assert_storable(text)
    assert len(robots.notes) <= 21


TARGET = Target(
    check,
    [b"User-agent: *\nDisallow: /a*b$\nAllow: /a/index.html\nCrawl-delay: 1.5\nSitemap: http://h/s",
     b"\xef\xbb\xbfuser-agent: bot42\ruser agent : forager\rdisallow /x\r\rAllow: /%7Ex\xff",
     b"\xff\xfeU\0s\0e\0r\0-\0a\0g\0e\0n\0t\0:\0*\0\n\0D\0i\0s\0a\0l\0l\0o\0w\0:\0/\0"],
    [b"User-agent:", b"Disallow:", b"Allow:", b"Crawl-delay:", b"Sitemap:", b"*", b"$", b"%2F",
     b"%61", b"/index.html", b"\r\n", b"#", b"forager", b"\xff\xfe", b"\xc2\x85", b"\x0b"],
)  # fmt: skip
