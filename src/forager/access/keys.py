"""API keys: create, list, revoke, and authenticate."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from forager.access import store
from forager.access.caller import Caller, Scope, Unauthorized, Visibility
from forager.access.key import ApiKey, FoundKey, KeyState, new_credentials, parse_credentials
from forager.db.cursor import Page, check_limit, decode_cursor_text, encode_cursor, page_of
from forager.db.database import Connection, Database
from forager.db.ids import new_id
from forager.errors import InvalidInput, NotAllowed, NotFound
from forager.hints import Hint, action

MAX_NAME = 200
LONGEST_LIFE = 10 * 366 * 86400.0


@dataclass(frozen=True, slots=True)
class MadeKey:
    """A new key; `text` is its only copy."""

    key: ApiKey
    text: str = field(repr=False)


async def create_key(
    database: Database,
    name: str,
    *,
    scope: Scope = Scope.OPERATE,
    visibility: Visibility | None = None,
    user_id: UUID | None = None,
    owner: str | None = None,
    expires_in: float | None = None,
) -> MadeKey:
    """Create a key, by default for a new owner.

    `owner` is the name of an owner, who is added if there is none with this name, or an ID. An
    admin key sees everything; others see only what their owner has, unless `visibility` is set.
    Raises NotAllowed if the first key of the installation is not an admin key.
    """
    credentials = new_credentials()
    name, life = _checked_name(name), _checked_life(expires_in)
    visibility = _checked_visibility(scope, visibility)
    if user_id is not None and owner is not None:
        raise InvalidInput("an owner is given twice", hint="Give either its name or its ID.")
    async with database.transaction() as connection:
        if scope is not Scope.ADMIN and not await store.any_key(connection):
            raise _no_admin_key()
        key = await store.insert_key(
            connection,
            key_id=credentials.id,
            secret_hash=credentials.secret_hash,
            name=name,
            user_id=user_id or await _owner_id(connection, owner),
            scope=scope,
            visibility=visibility,
            expires_in=life,
        )
    return MadeKey(key, credentials.text)


async def owner_named(database: Database, name: str) -> UUID:
    """The owner with this name, who is added if there is none."""
    name = _checked_name(name)
    async with database.transaction() as connection:
        found = await store.select_owner(connection, name)
        return found or await store.insert_owner(connection, new_id(), name)


async def find_owner(database: Database, text: str) -> UUID:
    """The owner with this name or ID."""
    if (user_id := _parse_id(text)) is not None:
        return user_id
    found = await database.run(store.select_owner, text.strip())
    if found is None:
        raise NotFound(
            f"there is no owner {text[:40]!r}", hint=Hint("{} shows owners.", action("keys list"))
        )
    return found


async def list_keys(
    database: Database, *, cursor: str | None = None, limit: int = 50
) -> Page[ApiKey]:
    """Keys, newest first, including expired and revoked ones."""
    check_limit(limit)
    before = decode_cursor_text(cursor) if cursor else None
    found = await database.run(store.select_keys, before=before, limit=limit + 1)
    return page_of(found, limit, lambda key: encode_cursor(key.created_at, key.id))


async def get_key(database: Database, key_id: str) -> ApiKey:
    """A key by its ID, or by the key itself; raises NotFound."""
    found = await database.run(store.select_key, public_id(key_id))
    if found is None:
        raise _no_such_key(key_id)
    return found


async def revoke_key(database: Database, key_id: str) -> ApiKey:
    """Revoke a key at once and permanently; revoking it again changes nothing."""
    found = await database.run(store.revoke_key, public_id(key_id))
    if found is None:
        raise _no_such_key(key_id)
    return found


async def any_key(database: Database) -> bool:
    """Whether a key was ever created; with the last one revoked, access stays closed."""
    return await database.run(store.any_key)


async def authenticate(database: Database, text: str) -> Caller:
    """The caller with this key. The state of a key is revealed only to a caller with its secret."""
    credentials = parse_credentials(text)
    if credentials is None:
        raise Unauthorized("this is not an API key", hint=SEND_KEY)
    found = await database.run(store.find_key, credentials.id)
    if found is None or not credentials.proves(found.secret_hash):
        raise Unauthorized("there is no such API key", hint=SEND_KEY)
    return _active(found)


async def caller_of(database: Database, key_id: str) -> Caller:
    """The caller with the key of this ID, which a session has authenticated before."""
    found = await database.run(store.find_key, key_id)
    if found is None:
        raise Unauthorized("there is no such API key", hint=SEND_KEY)
    return _active(found)


def _active(found: FoundKey) -> Caller:
    if found.key.state is not KeyState.ACTIVE:
        raise Unauthorized(f"this API key is {found.key.state}", hint=SEND_KEY)
    key = found.key
    return Caller(key.user_id, key.scope, key.id, found.quota, key.visibility)


SEND_KEY = Hint(
    "Send `Authorization: Bearer fgr_…`. To create the first key, run {} on the server.",
    "`forager keys create NAME --scope admin`",
)


def public_id(text: str) -> str:
    """The id of a key, also from its whole text."""
    credentials = parse_credentials(text)
    return text if credentials is None else credentials.id


def _checked_name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable():
        raise InvalidInput(f"a name has 1 to {MAX_NAME} printable characters")
    return name


async def _owner_id(connection: Connection, owner: str | None) -> UUID:
    if owner is None:
        return new_id()
    return _parse_id(owner) or await store.insert_owner(connection, new_id(), _checked_name(owner))


def _parse_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _checked_visibility(scope: Scope, visibility: Visibility | None) -> Visibility:
    if scope is Scope.ADMIN and visibility is Visibility.OWN:
        raise InvalidInput("an admin key sees everything", hint="Use the scope read or operate.")
    return visibility or (Visibility.EVERYTHING if scope is Scope.ADMIN else Visibility.OWN)


def _no_admin_key() -> NotAllowed:
    """A first key of another scope would lock out everyone: only an admin can create keys."""
    return NotAllowed(
        "the first key must be an admin key",
        hint=Hint(
            "{} creates it. Every request needs a key from then on.",
            action("keys create", "NAME", scope=Scope.ADMIN),
        ),
    )


def _checked_life(seconds: float | None) -> float | None:
    if seconds is not None and not 0 < seconds <= LONGEST_LIFE:
        raise InvalidInput("a key lives from one second to ten years, or without an end")
    return seconds


def _no_such_key(key_id: str) -> NotFound:
    # a mistyped key may be nearly the right one: its secret is not repeated
    shown = key_id if len(key_id) <= 12 else f"{key_id[:12]}…"
    return NotFound(f"there is no key {shown}", hint=Hint("{} lists keys.", action("keys list")))
