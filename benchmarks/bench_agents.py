"""Questions of programmers through the Model Context Protocol: answered in one call, in how many
tokens?

    python -m benchmarks.bench_agents [--home FOLDER]

Reads the Debian packages python3.11-doc and postgresql-doc-15 from their folders, and asks each
question of `agent_questions.json` once, without naming the source. The questions and the expression
that an answer must contain were written before the first search.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from benchmarks.machine import describe_machine
from benchmarks.report import Report
from forager.mcp.text import BYTES_PER_TOKEN

FORAGER = Path(sys.executable).parent / "forager"
QUESTIONS = Path(__file__).with_name("agent_questions.json")
FOLDERS = {
    "python@3.11": Path("/usr/share/doc/python3.11/html"),
    "postgresql@15": Path("/usr/share/doc/postgresql-doc-15/html"),
}
TOKENS = 3000


def read_folders(environment: dict[str, str]) -> None:
    for source, folder in FOLDERS.items():
        if not folder.is_dir():
            sys.exit(f"{folder} is missing: install the Debian packages python3.11-doc"
                     " and postgresql-doc-15")  # fmt: skip
        command = [str(FORAGER), "crawl", str(folder), "--source", source, "--wait-for-embeddings"]
        subprocess.run(command, check=True, env=environment)


async def ask(environment: dict[str, str]) -> list[list[str]]:
    """One row per question: whether the answer is in the text, tokens, share of text of pages."""
    questions = json.loads(QUESTIONS.read_text("utf-8"))
    rows = []
    server = StdioServerParameters(command=str(FORAGER), args=["mcp"], env=environment)
    async with Client(server) as client:
        for each in questions:
            result = await client.call_tool("search_docs", {"query": each["question"]})
            [content] = result.content
            assert isinstance(content, types.TextContent)
            text = content.text
            fenced = "".join(re.findall(r"<untrusted-content \w+>(.*?)</untrusted", text, re.S))
            found = re.search(each["answer"], fenced or text) is not None
            rows.append(
                [
                    each["question"],
                    "yes" if found else "no",
                    f"{len(text) / BYTES_PER_TOKEN:,.0f}",
                    f"{len(fenced) / len(text):.0%}",
                ]
            )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--home", help="Folder that an earlier run has filled.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="forager-bench-") as folder:
        environment = {**os.environ, "FORAGER_HOME": given.home or folder}
        if not given.home or not Path(given.home, "postgres").exists():
            read_folders(environment)
        rows = asyncio.run(ask(environment))
        machine = describe_machine(Path(folder))
        subprocess.run([FORAGER, "db", "stop"], env=environment, check=False)
    report = Report("Questions of agents")
    report.table(("machine", ""), machine)
    report.heading("One call of search_docs")
    good = sum(row[1] == "yes" and int(row[2].replace(",", "")) < TOKENS for row in rows)
    report.text(
        f"{good} of {len(rows)} questions have their answer in the text of one call below"
        f" {TOKENS:,} tokens (characters / {BYTES_PER_TOKEN}). Python 3.11 and PostgreSQL 15"
        " together, no source named. The last column is the share of text of pages."
    )
    report.table(["question", "answered", "tokens", "text"], rows)
    print(report.write("agents.md"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
