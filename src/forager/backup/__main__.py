"""`python -m forager.backup save FOLDER` and `python -m forager.backup restore FOLDER`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from forager.backup.copying import Copied, restore, save
from forager.errors import ForagerError
from forager.logs import configure_logs
from forager.settings import load_settings


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m forager.backup", description=__doc__)
    parser.add_argument("action", choices=("save", "restore"))
    parser.add_argument("folder", type=Path)
    asked = parser.parse_args()
    act = save if asked.action == "save" else restore
    try:
        settings = load_settings()
        configure_logs(settings.log_level, settings.log_format)
        print(_words(act(settings, asked.folder)))
    except ForagerError as error:
        print(f"error: {error.message}", error.hint or "", sep="\n", file=sys.stderr)
        return 1
    return 0


def _words(copied: Copied) -> str:
    files = copied.archive_files
    archive = "the archive is in a bucket" if files is None else f"{files} files of the archive"
    key = "with" if copied.secret_key else "without"
    return f"database of schema {copied.schema}, {archive}, {key} the key of secrets"


if __name__ == "__main__":
    raise SystemExit(main())
