"""Isolation of a browser: no network access, and flags that turn off unneeded features."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
# any number but 0: Chromium refuses its own sandbox to root
_INNER_ID = 1000

# All traffic is served by interception. Should anything escape it, there is no name that resolves
# and no address that can be reached: neither by the resolver, nor by a proxy that does not exist.
FLAGS = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=socks5://127.0.0.1:1",
    "--proxy-bypass-list=<-loopback>",
    "--block-new-web-contents",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--disable-gpu",
    "--disable-remote-fonts",
    "--disable-notifications",
    "--disable-speech-api",
    "--no-pings",
    "--deny-permission-prompts",
    "--mute-audio",
)


def leave_network() -> bool:
    """Move this process to a user and a network namespace; False where the system refuses.

    A process in its own network namespace reaches nothing, not even loopback. The user namespace
    also makes root an ordinary user, so that Chromium can use its sandbox.
    """
    if sys.platform != "linux":
        return False
    uid, gid = os.getuid(), os.getgid()
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return False
    try:
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{_INNER_ID} {uid} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{_INNER_ID} {gid} 1", encoding="ascii")
    except OSError:
        # without a mapping, files cannot be opened as their owner: better not to run at all
        os._exit(NO_MAPPING)
    return True


# exit code of a process that must be started again without namespaces
NO_MAPPING = 4
