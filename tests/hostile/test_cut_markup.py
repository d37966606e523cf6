"""What the parser would take too long for is cut off; what honest pages leave open is not."""

from __future__ import annotations

import pytest

from forager.extract.markup import cut_hostile_source

HONEST = {
    "everything closed": b"<div><p>x <a href=x>y</a></p><ul><li>a</li></ul></div>" * 8_000,
    "items that are never closed": b"<ul>" + b"<li>a" * 60_000,
    "cells that are never closed": b"<table>" + (b"<tr>" + b"<td>x" * 10) * 6_000,
    "paragraphs and choices": b"<p>a<br><img><input>" * 20_000 + b"<select>" + b"<option>a" * 9_000,
    "drawings": b"<svg>" + b"<path d=x /><circle r=1 />" * 30_000 + b"</svg>",
}
HOSTILE = {
    "rules": b"<span>" * 40_000 + b"<hr>" * 40_000,
    "ends of what was never opened": b"<span>" * 40_000 + b"</x>" * 40_000,
    "more ends, and then rules": b"<span>" * 30_000 + b"</x>" * 30_000 + b"<hr>" * 30_000,
    "elements that only look closed": b"<span/>" * 40_000 + b"<hr>" * 40_000,
    "elements in capitals": b"<SPAN>" * 40_000 + b"</x>" * 40_000,
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_pages_stay_whole(name: str) -> None:
    assert cut_hostile_source(HONEST[name]) == (HONEST[name], None)


@pytest.mark.parametrize("name", HOSTILE)
def test_tags_below_too_many_open_elements_are_cut_off(name: str) -> None:
    kept, reason = cut_hostile_source(HOSTILE[name])
    assert reason == "too many tags inside of too many open elements"
    assert 0 < len(kept) < len(HOSTILE[name])
    assert HOSTILE[name].startswith(kept)
