"""The user that the server runs as: PostgreSQL refuses to run as root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forager.db.embedded.binaries import EXTERNAL_HINT, Binaries
from forager.db.embedded.folder import PRIVATE, ServerFolder
from forager.errors import EmbeddedServerError

# inside a separate namespace, root has no privileges; outside, its files still belong to root
_NAMESPACE = ("--user", "--map-user=65534", "--map-group=65534", "--")
# others can pass through such a folder, and list nothing of it
PASSABLE = 0o711
_UNPRIVILEGED = ("forager", "postgres", "nobody")
_PROBE = 'test -x "$1" && exec "$2" --version'
_PROBE_LIMIT = 10.0


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """A user as which PostgreSQL runs."""

    prefix: tuple[str, ...] = ()
    uid: int | None = None
    gid: int | None = None

    @property
    def files_uid(self) -> int:
        """The owner of the files that such a program makes, as seen from here."""
        return os.geteuid() if self.uid is None else self.uid

    def run(self, command: Sequence[str], *, check: bool = False, **options: Any) -> int:
        """Run a program as this user, in its own session, without the terminal; its exit code."""
        done = subprocess.run(
            [*self.prefix, *command],
            stdin=subprocess.DEVNULL,
            env=environment(),
            user=self.uid,
            group=self.gid,
            extra_groups=None if self.uid is None else [],
            start_new_session=True,
            check=check,
            **options,
        )
        return done.returncode


def choose_identity(folder: ServerFolder, binaries: Binaries) -> ServerIdentity:
    """The current user; for root the owner of the folder, a namespace, or an unprivileged user."""
    if os.geteuid() != 0:
        return ServerIdentity()
    for identity in _candidates(folder.root):
        if _works(identity, folder, binaries):
            return identity
    raise EmbeddedServerError(
        "PostgreSQL does not run as root, and no other user can reach both "
        f"{folder.root} and {binaries.postgres}",
        hint="run Forager as an ordinary user, or set FORAGER_HOME to a folder that the users "
        f"{', '.join(_UNPRIVILEGED)} can reach, or {EXTERNAL_HINT}",
    )


def home_mode() -> int:
    """The mode of a new home. Root without namespaces needs another user, who must pass through."""
    if os.geteuid() != 0:
        return PRIVATE
    unshare = shutil.which("unshare")
    if unshare is None:
        return PASSABLE
    probe = subprocess.run([unshare, *_NAMESPACE, "true"], capture_output=True, check=False)
    return PRIVATE if probe.returncode == 0 else PASSABLE


def environment() -> dict[str, str]:
    """The caller's environment without what would change the server behind our back."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("PG", "LC_", "LANG"))}


def _candidates(root: Path) -> list[ServerIdentity]:
    owner = root.stat()
    if owner.st_uid != 0:
        return [ServerIdentity(uid=owner.st_uid, gid=owner.st_gid)]
    found = []
    if unshare := shutil.which("unshare"):
        found.append(ServerIdentity(prefix=(unshare, *_NAMESPACE)))
    if _has_data(root):  # made in a namespace: it stays root's
        return found
    return [*found, *_unprivileged_users()]


def _unprivileged_users() -> list[ServerIdentity]:
    users = {user.pw_name: user for user in pwd.getpwall() if user.pw_uid != 0}
    known = [users[name] for name in _UNPRIVILEGED if name in users]
    return [ServerIdentity(uid=user.pw_uid, gid=user.pw_gid) for user in known]


def _has_data(root: Path) -> bool:
    return (root / "data").exists()


def _works(identity: ServerIdentity, folder: ServerFolder, binaries: Binaries) -> bool:
    probe = ["/bin/sh", "-c", _PROBE, "sh", str(folder.home), str(binaries.postgres)]
    try:
        code = identity.run(probe, capture_output=True, cwd="/", timeout=_PROBE_LIMIT)
    except (OSError, subprocess.SubprocessError):
        return False
    return code == 0
