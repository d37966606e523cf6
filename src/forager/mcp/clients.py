"""The configuration of clients that start this server by themselves.

Apart from the server: `forager up` asks for the names of clients alone, and keeps running.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path

# settings that say which database is meant; a client started from a desktop does not have them
PASSED_ON = ("FORAGER_HOME", "FORAGER_CONFIG")


class McpClient(StrEnum):
    """A program that can use the MCP server."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CURSOR = "cursor"
    VSCODE = "vscode"
    ZED = "zed"
    CODEX = "codex"


def client_config(client: McpClient, flags: Sequence[str]) -> tuple[str, str]:
    """Where the configuration belongs, and its text; `flags` stand before the command."""
    command = _executable()
    arguments = [*flags, "mcp"]
    environment = {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)}
    place, make = _CONFIGS[client]
    return place, make(command, arguments, environment)


def _executable() -> str:
    """With its folder: programs of a desktop do not search the folders of a shell."""
    program = Path(sys.argv[0])
    return str(program.absolute()) if program.name == "forager" else "forager"


Make = Callable[[str, list[str], dict[str, str]], str]


def _shell(command: str, arguments: list[str], environment: dict[str, str]) -> str:
    passed = [part for name, value in environment.items() for part in ("-e", f"{name}={value}")]
    return shlex.join(["claude", "mcp", "add", "forager", *passed, "--", command, *arguments])


def _json(key: str, extra: dict[str, str]) -> Make:
    def make(command: str, arguments: list[str], environment: dict[str, str]) -> str:
        entry: dict[str, object] = {**extra, "command": command, "args": arguments}
        if environment:
            entry["env"] = environment
        return json.dumps({key: {"forager": entry}}, indent=2)

    return make


def _toml(command: str, arguments: list[str], environment: dict[str, str]) -> str:
    # JSON strings and lists of them are TOML as well
    lines = ["[mcp_servers.forager]", f"command = {json.dumps(command)}"]
    lines.append(f"args = {json.dumps(arguments)}")
    if environment:
        pairs = ", ".join(f"{name} = {json.dumps(value)}" for name, value in environment.items())
        lines.append(f"env = {{ {pairs} }}")
    return "\n".join(lines)


_CONFIGS: dict[McpClient, tuple[str, Make]] = {
    McpClient.CLAUDE_CODE: ("Run this in a shell", _shell),
    McpClient.CLAUDE_DESKTOP: (
        "Merge this into claude_desktop_config.json",
        _json("mcpServers", {}),
    ),
    McpClient.CURSOR: ("Merge this into ~/.cursor/mcp.json", _json("mcpServers", {})),
    McpClient.VSCODE: ("Merge this into .vscode/mcp.json", _json("servers", {"type": "stdio"})),
    McpClient.ZED: ("Merge this into Zed's settings.json", _json("context_servers", {})),
    McpClient.CODEX: ("Add this to ~/.codex/config.toml", _toml),
}
