"""Coverage-guided fuzzing of one target: `python -m tests.fuzz TARGET [MINUTES]`.

What breaks a promise is written to build/fuzz/TARGET/found; give it a name that says what it is,
and put it into tests/hostile/cases/TARGET, where every run of the tests replays it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from fuzz.target import Target
from fuzz.targets import PLACES, load

FOLDER = Path("build/fuzz")
CASES = Path(__file__).parent.parent / "hostile" / "cases"
MAX_LENGTH = 16_384
# a unit of work that takes longer than this, or more memory, is a finding as well
UNIT_SECONDS = 20
UNIT_MEMORY_MB = 2_048


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python -m tests.fuzz TARGET [MINUTES]")
    minutes = float(sys.argv[2]) if len(sys.argv) == 3 else 1.0
    name = sys.argv[1]
    if name not in PLACES:
        sys.exit(f"the targets are: {', '.join(PLACES)}")
    atheris = _atheris()
    with atheris.instrument_imports(include=["forager"]):
        target = load(name)
    _fuzz(atheris, name, target, minutes)


def _atheris() -> Any:
    try:
        return import_module("atheris")
    except ImportError:
        sys.exit("fuzzing needs atheris, which comes for Linux: pip install atheris")


def _fuzz(atheris: Any, name: str, target: Target, minutes: float) -> None:
    folder = FOLDER / name
    corpus, found = folder / "corpus", folder / "found"
    for each in (corpus, found):
        each.mkdir(parents=True, exist_ok=True)
    for number, example in enumerate(target.examples):
        (corpus / f"example-{number}").write_bytes(example)
    words = folder / "words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words))
    folders = [str(corpus), *(str(f) for f in [CASES / name] if f.is_dir())]
    options = {
        "max_total_time": max(1, round(minutes * 60)),
        "max_len": MAX_LENGTH,
        "timeout": UNIT_SECONDS,
        "rss_limit_mb": UNIT_MEMORY_MB,
        "dict": words,
        "artifact_prefix": f"{found}/",
        "print_final_stats": 1,
    }
    flags = [f"-{name}={value}" for name, value in options.items()]
    atheris.Setup([sys.argv[0], *flags, *folders], target.check)
    atheris.Fuzz()


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02X}" for byte in word)


if __name__ == "__main__":
    main()
