"""Secrets at rest: encrypted with one key, which is a setting or a file only its owner can read.

The key is read when the first secret is encrypted or decrypted, so that whatever needs no secret
works without it.
"""

from __future__ import annotations

import os
import secrets
import stat
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from forager.errors import ForagerError
from forager.settings import Settings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_FILE = "secret.key"
KEY_BYTES = 32
NONCE_BYTES = 12
ID_BYTES = 8
VERSION = b"\x01"  # of the encrypted form: version, id of the key, nonce, ciphertext
_READ_LIMIT = 1024

_GET_THE_KEY = (
    "Set FORAGER_SECRET_KEY to the key that was used when it was stored, or bring back its"
    f" file {KEY_FILE} in the home folder; otherwise store the secret again."
)
_NEW_KEY = "A key is 32 random bytes in base64, as `openssl rand -base64 32` makes them."


class SecretsUnavailable(ForagerError):
    """Stored secrets cannot be read or written."""


class Vault:
    """Encrypts and decrypts texts. Each decrypts only in the context that it was encrypted for.

    SecretsUnavailable is raised without a key, or with another one. A context names the row:

        vault = Vault(settings)
        stored = vault.encrypt("secret", "webhook 7")
        assert vault.decrypt(stored, "webhook 7") == "secret"
    """

    def __init__(self, settings: Settings) -> None:
        self._given = settings.secret_key
        self._file = settings.home / KEY_FILE

    def encrypt(self, text: str, context: str) -> bytes:
        """The text, encrypted; makes the key file if there is no key yet."""
        if self._given is None and not self._file.exists():
            create_key_file(self._file)
        nonce = os.urandom(NONCE_BYTES)
        head = VERSION + _key_id(self._key)
        encrypted = self._cipher.encrypt(nonce, text.encode(), head + context.encode())
        return head + nonce + encrypted

    def decrypt(self, encrypted: bytes, context: str) -> str:
        """The text that was encrypted; an error if it was encrypted with another key."""
        head, rest = encrypted[: 1 + ID_BYTES], encrypted[1 + ID_BYTES :]
        if head != VERSION + _key_id(self._key):
            raise SecretsUnavailable(
                "a stored secret was encrypted with another key", hint=_GET_THE_KEY
            )
        nonce, ciphertext = rest[:NONCE_BYTES], rest[NONCE_BYTES:]
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(nonce, ciphertext, head + context.encode()).decode()
        except (InvalidTag, ValueError):
            raise SecretsUnavailable(
                "a stored secret is damaged, or was copied from elsewhere",
                hint="Store the secret again.",
            ) from None

    @cached_property
    def _cipher(self) -> AESGCM:
        # 7 MB of memory, which a process without secrets does not need
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._key)

    @cached_property
    def _key(self) -> bytes:
        if self._given is not None:
            return _decoded(self._given.get_secret_value(), "FORAGER_SECRET_KEY")
        return _decoded(_read_private(self._file), str(self._file))


def create_key_file(path: Path) -> None:
    """Create a key file atomically; an existing one is not changed."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            _write_private(draft, urlsafe_b64encode(os.urandom(KEY_BYTES)) + b"\n")
            # a link fails where the name is taken: of two processes, one makes the key for both
            with suppress(FileExistsError):
                path.hardlink_to(draft)
        finally:
            draft.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except OSError as error:
        raise SecretsUnavailable(
            f"the key file {path} cannot be made: {error.strerror or error}",
            hint=f"Make the folder writable, or set FORAGER_SECRET_KEY. {_NEW_KEY}",
        ) from None


def _write_private(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)  # a umask may have taken our own bits away
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def _sync_folder(folder: Path) -> None:
    """Secrets are stored elsewhere, and may outlive a key whose name was not on disk yet."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_private(path: Path) -> str:
    try:
        # not to be kept waiting by a pipe of this name
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            _refuse_readable(os.fstat(descriptor).st_mode, path)
            return os.read(descriptor, _READ_LIMIT).decode("ascii", "replace")
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise SecretsUnavailable(
            f"there is no key to read stored secrets with: {path} does not exist", hint=_GET_THE_KEY
        ) from None
    except OSError as error:
        raise SecretsUnavailable(
            f"the key file {path} cannot be read: {error.strerror or error}", hint=_GET_THE_KEY
        ) from None


def _refuse_readable(mode: int, path: Path) -> None:
    if not stat.S_ISREG(mode):
        raise SecretsUnavailable(f"{path} is not a file", hint=_GET_THE_KEY)
    if mode & 0o077:
        raise SecretsUnavailable(
            f"the key file {path} is open to other users (mode {stat.S_IMODE(mode):03o})",
            hint=f"Run `chmod 600 {path}`. If others may have read it, make a new key and store"
            " the secrets again.",
        )


def _decoded(text: str, origin: str) -> bytes:
    try:
        key = urlsafe_b64decode(text.strip().replace("+", "-").replace("/", "_"))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise SecretsUnavailable(f"the key in {origin} is not a key", hint=_NEW_KEY)
    return key


def _key_id(key: bytes) -> bytes:
    """Distinguishes keys, and reveals nothing else about them."""
    return sha256(b"forager key id" + key).digest()[:ID_BYTES]
