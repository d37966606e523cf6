"""Crawl templates over HTTP: saved, replaced, owned, and without secrets."""

from __future__ import annotations

from api.client import Api
from api.conftest import Keyed
from forager.access.caller import Scope

PATH = "/api/v1/crawl-templates"


async def test_a_template_is_saved_replaced_and_deleted(api: Api) -> None:
    order = {"urls": ["docs.example.org"], "max_depth": 3, "exclude": ["/old/*"]}
    saved = await api.send("PUT", f"{PATH}/nightly%20docs", order)
    assert (saved.status, saved.json["omitted"]) == (200, [])
    assert saved.json["options"] == {**order, "urls": ["https://docs.example.org/"]}
    await api.send("PUT", f"{PATH}/nightly%20docs", {"max_depth": 1})
    await api.send("PUT", f"{PATH}/another", {})
    listed = (await api.get(f"{PATH}?limit=1")).json
    assert [each["name"] for each in listed["items"]] == ["another"]
    following = (await api.get(f"{PATH}?cursor={listed['next_cursor']}")).json["items"]
    assert [each["options"] for each in following] == [{"max_depth": 1}]
    assert (await api.send("DELETE", f"{PATH}/nightly%20docs")).json["name"] == "nightly docs"
    assert (await api.get(f"{PATH}/nightly%20docs")).status == 404


async def test_wrong_options_are_refused_and_secrets_are_not_stored(api: Api) -> None:
    assert (await api.send("PUT", f"{PATH}/x", {"include": ["re:("]})).status == 422
    assert (await api.send("PUT", f"{PATH}/x", {"granted_pages": 5})).status == 422
    assert (await api.send("PUT", f"{PATH}/%0A", {})).status == 422
    order = {
        "headers": {"Authorization": "Bearer t0ken", "Accept-Language": "de"},
        "proxy": "http://me:t0ken@proxy.example.org:3128",
    }
    saved = await api.send("PUT", f"{PATH}/x", order)
    assert saved.json["omitted"] == ["Authorization", "proxy"]
    assert saved.json["options"] == {"headers": {"Accept-Language": "de"}}


async def test_each_owner_has_templates_and_an_admin_sees_all(keyed: Keyed) -> None:
    mine, other, admin = await keyed(), await keyed(), await keyed(Scope.ADMIN)
    await mine.send("PUT", f"{PATH}/docs", {"max_pages": 1})
    await other.send("PUT", f"{PATH}/docs", {"max_pages": 2})
    await other.send("PUT", f"{PATH}/shop", {"max_pages": 3})
    assert (await mine.get(f"{PATH}/docs")).json["options"] == {"max_pages": 1}
    assert (await mine.get(f"{PATH}/shop")).status == 404
    assert (await mine.send("DELETE", f"{PATH}/shop")).status == 404
    await admin.send("PUT", f"{PATH}/docs", {"max_pages": 9})
    seen = (await admin.get(PATH)).json["items"]
    assert [each["options"]["max_pages"] for each in seen] == [9, 3]
    assert (await other.get(f"{PATH}/docs")).json["options"] == {"max_pages": 2}
