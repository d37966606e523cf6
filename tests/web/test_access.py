"""Access: keys, sessions, forms of other sites, and security headers."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from built_site import Crawls
from forager.access.caller import Scope
from forager.access.keys import public_id, revoke_key
from forager.db.database import Database
from support.keys import make_key
from web.visitor import Visitor

PAGES = ("/", "/jobs", "/sources", "/search", "/search?q=guide", "/new-crawl", "/workers", "/keys")
ELSEWHERE = "https://evil.example"


async def test_without_any_key_this_machine_needs_none_and_the_page_says_so(
    visitor: Visitor,
) -> None:
    page = await visitor.get("/")
    assert page.status == 200
    assert "sign-in is off" in page.text


async def test_with_a_key_all_users_sign_in(visitor: Visitor, admin_key: str) -> None:
    for path in PAGES:
        sent_away = await visitor.get(path, allow_redirects=False)
        assert sent_away.status == 303
        assert sent_away.headers["Location"].startswith("/sign-in?next=")
    signed = await visitor.sign_in(admin_key)
    assert signed.status == 303
    assert [(await visitor.get(path)).status for path in PAGES] == [200] * len(PAGES)


async def test_the_session_cookie_is_kept_from_scripts_other_sites_and_open_lines(
    visitor: Visitor, admin_key: str
) -> None:
    cookie = (await visitor.sign_in(admin_key)).headers["Set-Cookie"]
    for flag in ("HttpOnly", "Secure", "SameSite=strict", "Path=/", "Max-Age="):
        assert flag in cookie
    assert admin_key not in cookie


@pytest.mark.parametrize(
    "key", ["", "nonsense", f"fgr_{'0' * 12}_{'0' * 64}", "fgr_\x00", "<script>"]
)
async def test_a_wrong_key_gets_no_session(visitor: Visitor, admin_key: str, key: str) -> None:
    refused = await visitor.sign_in(key)
    assert refused.status == 401
    assert "Set-Cookie" not in refused.headers
    assert "<script>" not in refused.text


async def test_a_revoked_key_ends_its_sessions(
    visitor: Visitor, database: Database, admin_key: str
) -> None:
    await visitor.sign_in(admin_key)
    await revoke_key(database, public_id(admin_key))
    assert (await visitor.get("/jobs", allow_redirects=False)).status == 303


async def test_the_first_key_ends_the_sessions_without_one(
    visitor: Visitor, database: Database
) -> None:
    assert (await visitor.get("/jobs")).status == 200
    await make_key(database, "first", scope=Scope.ADMIN)
    assert (await visitor.get("/jobs", allow_redirects=False)).status == 303


async def test_signing_out_takes_the_cookie_back(visitor: Visitor, admin_key: str) -> None:
    await visitor.sign_in(admin_key)
    await visitor.act("/sign-out")
    assert (await visitor.get("/", allow_redirects=False)).status == 303


async def test_a_cookie_that_was_changed_is_no_session(visitor: Visitor, admin_key: str) -> None:
    await visitor.sign_in(admin_key)
    [session] = [c for c in visitor.session.cookie_jar if c.key == "forager_session"]
    forged = session.value[:-6] + ("aaaaa=" if session.value[-6] != "a" else "bbbbb=")
    visitor.session.cookie_jar.clear()
    for cookie in (forged, "x", "A" * 5000, "%00"):
        found = await visitor.get("/jobs", headers={"Cookie": f"forager_session={cookie}"},
                                  allow_redirects=False)  # fmt: skip
        assert found.status == 303


async def test_signing_in_leads_to_no_other_site(visitor: Visitor, admin_key: str) -> None:
    for place in (ELSEWHERE, "//evil.example", "/\\evil.example", "javascript:alert(1)", "/\n/x"):
        fields = {"key": admin_key, "next": place}
        signed = await visitor.post("/sign-in", fields, allow_redirects=False)
        assert signed.headers["Location"] == "/sign-in?signed&next=/"


@pytest.mark.parametrize("token", [None, "", "0" * 32, "ä"])
async def test_a_form_without_the_token_is_refused(visitor: Visitor, token: str | None) -> None:
    await visitor.get("/")
    fields = {"urls": "https://docs.example.org/"} | ({} if token is None else {"csrf": token})
    refused = await visitor.post("/new-crawl", fields)
    assert refused.status == 403
    assert "not from a page of this session" in refused.text


@pytest.mark.parametrize(
    "headers", [{"Origin": ELSEWHERE}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
async def test_a_form_of_another_site_is_refused_even_with_the_token(
    visitor: Visitor, headers: dict[str, str]
) -> None:
    token = await visitor.token()
    refused = await visitor.post("/keys", {"csrf": token, "name": "theirs"}, headers=headers)
    assert refused.status == 403
    assert "theirs" not in (await visitor.get("/keys")).text


async def test_scopes_hold_for_pages_and_forms(visitor: Visitor, database: Database) -> None:
    reader = (await make_key(database, "reader", scope=Scope.READ)).text
    await visitor.sign_in(reader)
    assert (await visitor.get("/jobs")).status == 200
    assert (await visitor.get("/keys")).status == 403
    assert (await visitor.get("/workers")).status == 403
    assert (await visitor.act("/new-crawl", {"urls": "https://a.example/"})).status == 403
    assert "/keys" not in (await visitor.get("/jobs")).text


async def test_an_owner_sees_nothing_of_another(
    visitor: Visitor, database: Database, crawls: Crawls
) -> None:
    await crawls.crawl({"a": "alpha"})
    operator = (await make_key(database, "operator", scope=Scope.OPERATE)).text
    await visitor.sign_in(operator)
    assert (await visitor.get("/sources/docs.example.org")).status == 404
    assert "docs.example.org" not in (await visitor.get("/sources")).text
    assert (await visitor.act("/sources/docs.example.org/rollback")).status == 404


async def test_every_response_restricts_browsers_to_our_files(visitor: Visitor) -> None:
    asset = (await visitor.get("/")).text.split('src="')[1].split('"')[0]
    for path in (*PAGES, "/sign-in", "/nowhere", "/jobs/0/x", asset):
        headers = (await visitor.get(path)).headers
        policy = headers["Content-Security-Policy"]
        assert "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"


async def test_no_page_has_script_or_style_inside_of_it(visitor: Visitor, crawls: Crawls) -> None:
    await crawls.crawl({"a": "alpha"})
    for path in (*PAGES, "/sources/docs.example.org", "/sign-in", "/nowhere"):
        text = (await visitor.get(path)).text
        assert " style=" not in text
        assert "<style" not in text
        assert " onclick=" not in text
        assert text.count("<script") == text.count('<script src="/static/')


async def test_an_error_is_a_page_for_people_and_a_problem_for_programs(visitor: Visitor) -> None:
    page = await visitor.get("/nowhere")
    assert (page.status, "Not found" in page.text) == (404, True)
    problem = await visitor.get("/nowhere", headers={"Accept": "application/json"})
    assert problem.headers["Content-Type"] == "application/problem+json"
    asked = await visitor.get("/api/v1/nowhere", headers={"Accept": "text/html"})
    assert asked.headers["Content-Type"] == "application/problem+json"


async def test_a_key_is_shown_once_and_named_ever_after(visitor: Visitor) -> None:
    fields = {"name": "<b>nightly</b>", "scope": "admin", "days": "7", "csrf": ""}
    fields["csrf"] = await visitor.token()
    answer = await visitor.post("/keys", fields, allow_redirects=False)
    assert answer.status == 303  # a reload sends no form
    place = answer.headers["Location"]
    assert "fgr_" not in str(answer.headers)
    made = await visitor.get(place)  # the first key signs its creator in
    key = made.text.split('id="secret">')[1].split("<")[0]
    assert "&lt;b&gt;nightly" in made.text
    reloaded = await visitor.get(place)
    assert reloaded.status == 200
    assert key not in reloaded.text
    assert "shown only once" in reloaded.text
    example = made.text.split("<pre>")[1].split("</pre>")[0].split()[-1]
    headers = {"Authorization": f"Bearer {key}"}
    assert (await visitor.get(urlsplit(example).path, headers=headers)).status == 200
    listed = await visitor.get("/keys")
    assert key not in listed.text
    assert public_id(key) in listed.text


async def test_a_secret_belongs_to_its_page(visitor: Visitor, admin_key: str) -> None:
    await visitor.sign_in(admin_key)
    fields = {"csrf": await visitor.token(), "name": "a", "scope": "read"}
    await visitor.post("/keys", fields, allow_redirects=False)
    elsewhere = await visitor.get(f"/keys/{public_id(admin_key)}/secret")
    assert "shown only once" in elsewhere.text


async def test_a_key_for_reading_sees_everything_by_default(
    visitor: Visitor, admin_key: str, crawls: Crawls
) -> None:
    """What was crawled before the first key has no owner."""
    await crawls.crawl({"a": "one"})
    await visitor.sign_in(admin_key)
    page = (await visitor.get("/keys")).text
    assert '<option value="everything" selected>' in page
    for visibility, seen in (("everything", True), ("own", False)):
        await visitor.sign_in(admin_key)
        form = {"name": visibility, "scope": "read", "visibility": visibility}
        made = (await visitor.act("/keys", form)).text
        await visitor.sign_in(made.split('id="secret">')[1].split("<")[0])
        for place, row in (
            ("/sources", 'href="/sources/docs.example.org"'),
            ("/jobs", 'href="/jobs/0'),
            ("/search?q=one", "Title of one"),
        ):
            assert (row in (await visitor.get(place)).text) is seen, place


async def test_the_first_key_must_be_an_admin_key(visitor: Visitor) -> None:
    assert '<option value="read">' not in (await visitor.get("/keys")).text
    refused = await visitor.act("/keys", {"name": "a", "scope": "read"})
    assert refused.status == 409
    assert "The first key must be an admin key." in refused.text
    assert (await visitor.get("/jobs")).status == 200
