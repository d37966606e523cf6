"""A process that uses the embedded server, and does what its standard input says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from forager.db.embedded import ServerUse, join_server
from forager.errors import EmbeddedServerError
from forager.logs import configure_logs


def say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def say_state(use: ServerUse) -> None:
    say(url=use.url, pid=use.pid, started=use.started)


def main(home: str) -> None:
    configure_logs("warning")
    try:
        use = join_server(Path(home))
        say_state(use)
        for line in sys.stdin:
            match line.strip():
                case "ensure":
                    use.ensure_running()
                    say_state(use)
                case "leave":
                    use.leave()
                    say(left=True)
                case "join":
                    use = join_server(Path(home))
                    say_state(use)
    except EmbeddedServerError as error:
        say(error=error.message, hint=error.hint)


if __name__ == "__main__":
    main(sys.argv[1])
