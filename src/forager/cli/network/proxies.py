"""Commands on proxies that differ from the operations: they take files, and all proxies at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from forager.cli.failures import print_error
from forager.cli.model_flags import ModelFlags, given_values
from forager.cli.operations import commands_of
from forager.cli.options import AllowPrivate, argument, option, switch
from forager.cli.output import Columns, read_input, say
from forager.cli.running import CommandServices, answers
from forager.errors import ForagerError, InvalidInput, NotAllowed
from forager.fetch.proxies.operations import (
    AddedProxy,
    ProxyOrder,
    ProxySettings,
    TrialResult,
    add_proxy,
    proxies,
    set_proxy,
    trial_options,
)
from forager.fetch.proxies.probe import try_proxies

MAX_FILE_BYTES = 10 * 1024 * 1024

app = commands_of(proxies)

Settings = Annotated[dict[str, Any], ModelFlags(ProxySettings, to=given_values)]


def _show_added(done: dict[str, Any]) -> None:
    for proxy in done["items"]:
        say(f"{'added' if proxy.is_new else 'updated'} proxy {proxy.id}: {proxy.url}")


def _exit_if_failed(done: dict[str, Any]) -> None:
    if done["errors"]:
        raise typer.Exit(done["errors"][0].exit_code)


@app.command()
@answers(
    _show_added,
    document=lambda done: {
        "items": [proxy.model_dump(mode="json") for proxy in done["items"]],
        "failed": len(done["errors"]),
    },
    then=_exit_if_failed,
)
async def add(
    services: CommandServices,
    addresses: list[str] | None = argument(
        "http, https or socks5://user:password@host:port.", metavar="[ADDRESS]..."
    ),
    file: Path | None = option("A file with one address per line; - reads standard input."),
    allow_private: AllowPrivate = False,
    *,
    settings: Settings,
) -> object:
    """Add proxies. Passwords are stored encrypted; a known proxy gets the new password."""
    changes = ProxySettings.model_validate(settings)
    given: list[tuple[str, str | None]]
    given = [(f"address {number}", each) for number, each in enumerate(addresses or [], 1)]
    given += _lines(file) if file is not None else []
    if not given:
        raise InvalidInput("no proxy was given", hint="Give an address, or --file.")
    added: list[AddedProxy] = []
    errors: list[ForagerError] = []
    for place, address in given:
        try:
            added.append(await _add(services, address, allow_private))
        except (InvalidInput, NotAllowed) as error:
            print_error(f"{place}: {error.message}", error.hint)
            errors.append(error)
    for proxy in added if settings else ():
        await set_proxy(services.context, proxy.id, changes)
    return {"items": added, "errors": errors}


async def _add(services: CommandServices, address: str | None, allow_private: bool) -> AddedProxy:
    if address is None:
        raise InvalidInput("the proxy address is not text in UTF-8")
    order = ProxyOrder.model_construct(url=address, allow_private=allow_private)
    return await add_proxy(services.context, order)


def _lines(file: Path) -> Iterator[tuple[str, str | None]]:
    """The place and the address of each line; None for a line that is not text."""
    data = read_input(file, MAX_FILE_BYTES).removeprefix(b"\xef\xbb\xbf")
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith(b"#"):
            try:
                yield f"line {number}", line.decode()
            except UnicodeDecodeError:
                yield f"line {number}", None


_TRIAL_COLUMNS: Columns = {
    "ID>": "proxy_id",
    "PROXY": "url",
    "RESULT": lambda trial: ("ok", "green") if trial.ok else ("failed", "red"),
    "TIME>": lambda trial: f"{trial.seconds * 1000:.0f} ms",
    "STATUS": "status",
    "RECOVERED?": lambda trial: "yes" if trial.has_recovered else "",
    "ERROR": "error",
}


@app.command("test")
@answers(
    _TRIAL_COLUMNS,
    document=lambda trials: {"items": [trial.model_dump(mode="json") for trial in trials]},
    succeeded=lambda trials: all(trial.ok for trial in trials),
)
async def check(
    services: CommandServices,
    which: Annotated[str, typer.Argument(metavar="ID|all", help="Proxy ID, or `all`.")],
    url: str | None = option(
        "URL to fetch through the proxy; by default only the connection is tested."
    ),
    allow_private: bool = switch("Allow a private address for the URL.", "--allow-private"),
) -> object:
    """Test proxies and show the response time. A failed proxy that works again is used again."""
    ids = await services.proxies.ids() if which == "all" else [_proxy_id(which)]
    options = trial_options(services.context, allow_private)
    return [
        TrialResult.build(trial) for trial in await try_proxies(services.proxies, ids, options, url)
    ]


def _proxy_id(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InvalidInput(f"{text!r} is not the ID of a proxy", hint="Give a number, or all.")
    return int(text)
