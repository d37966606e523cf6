"""`forager templates`: saved crawl options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from forager.cli.crawls.crawl import Urls, as_flags
from forager.cli.crawls.crawl_flags import with_crawl_flags
from forager.cli.options import AsJson, Cursor, Limit
from forager.cli.output import (
    Columns,
    long_time,
    note,
    plain,
    say,
    show_facts,
    show_json,
    show_list,
)
from forager.cli.running import with_database

if TYPE_CHECKING:
    from forager.crawl.options import CrawlTemplate

app = typer.Typer(
    help="Crawl templates: named options for `forager crawl --template`.", no_args_is_help=True
)

TemplateName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the template.")]


def _save(
    context: typer.Context,
    name: TemplateName,
    urls: Urls = None,
    as_json: AsJson = False,
    *,
    options: dict[str, Any],
) -> None:
    """Save start URLs and crawl options as a template, or replace one.

    Secret headers and proxy credentials are not saved.
    """
    from forager.access.caller import LOCAL
    from forager.crawl.templates import save_template

    given = {**options, **({"urls": urls} if urls else {})}
    with as_flags():
        saved = with_database(context, lambda db, _: save_template(db, LOCAL, name, given))
    if as_json:
        return show_json({**plain(saved.template), "omitted": saved.omitted})
    if saved.omitted:
        note(f"not saved because it is secret: {', '.join(saved.omitted)}")
    return say(f"saved template {saved.template.name}")


app.command("save")(with_crawl_flags(_save, after="urls"))


@app.command("list")
def list_(
    context: typer.Context, limit: Limit = 100, cursor: Cursor = None, as_json: AsJson = False
) -> None:
    """List crawl templates by name."""
    from forager.access.caller import LOCAL
    from forager.crawl.templates import list_templates

    page = with_database(
        context, lambda db, _: list_templates(db, LOCAL, cursor=cursor, limit=limit)
    )
    none = "There are no crawl templates. `forager templates save NAME` saves one."
    return show_list(page, as_json, TEMPLATE_COLUMNS, none=none)


@app.command()
def show(context: typer.Context, name: TemplateName, as_json: AsJson = False) -> None:
    """Show the URLs and options of a template."""
    from forager.access.caller import LOCAL
    from forager.crawl.templates import get_template

    found = with_database(context, lambda db, _: get_template(db, LOCAL, name))
    if as_json:
        return show_json(found)
    options = {name.replace("_", " "): _words(value) for name, value in found.options.items()}
    return show_facts({"name": found.name, **options, "updated": long_time(found.updated_at)})


@app.command()
def delete(context: typer.Context, name: TemplateName, as_json: AsJson = False) -> None:
    """Delete a template. Crawls that were started from it stay."""
    from forager.access.caller import LOCAL
    from forager.crawl.templates import delete_template

    found = with_database(context, lambda db, _: delete_template(db, LOCAL, name))
    return show_json(found) if as_json else say(f"deleted template {found.name}")


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {text}" for name, text in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)


def _urls(template: CrawlTemplate) -> str:
    return _words(template.options.get("urls", []))


def _options(template: CrawlTemplate) -> str:
    return ", ".join(name.replace("_", "-") for name in template.options if name != "urls")


TEMPLATE_COLUMNS: Columns = {
    "NAME": "name", "OPTIONS": _options, "UPDATED": "updated_at", "URLS…": _urls,
}  # fmt: skip
