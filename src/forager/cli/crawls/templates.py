"""`forager templates`: saved crawl options."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from forager.access.caller import LOCAL
from forager.cli.crawls.crawl import Urls, as_flags
from forager.cli.crawls.crawl_flags import GivenOptions
from forager.cli.options import AsJson, Cursor, Limit, grouped
from forager.cli.output import Columns, note, plain, say, show_facts, show_json
from forager.cli.running import CommandContext, answers, lists, with_services
from forager.crawl.options import CrawlTemplate
from forager.crawl.templates import delete_template, get_template, list_templates, save_template

app = typer.Typer(
    help="Crawl templates: named options for `forager crawl --template`.", no_args_is_help=True
)

TemplateName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the template.")]


@app.command()
@grouped
def save(
    context: typer.Context,
    name: TemplateName,
    urls: Urls = None,
    *,
    options: GivenOptions,
    as_json: AsJson = False,
) -> None:
    """Save start URLs and crawl options as a template, or replace one.

    Secret headers and proxy credentials are not saved.
    """
    given = {**options, **({"urls": urls} if urls else {})}
    with as_flags():
        saved = with_services(
            context, lambda here: save_template(here.database, LOCAL, name, given)
        )
    if as_json:
        return show_json({**plain(saved.template), "omitted": saved.omitted})
    if saved.omitted:
        note(f"not saved because it is secret: {', '.join(saved.omitted)}")
    return say(f"saved template {saved.template.name}")


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {text}" for name, text in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)


TEMPLATE_COLUMNS: Columns = {
    "NAME": "name",
    "OPTIONS": lambda each: ", ".join(n.replace("_", "-") for n in each.options if n != "urls"),
    "UPDATED": "updated_at",
    "URLS…": lambda each: _text(each.options.get("urls", [])),
}


@app.command("list")
@lists(
    TEMPLATE_COLUMNS, none="There are no crawl templates. `forager templates save NAME` saves one."
)
async def list_(here: CommandContext, limit: Limit = 100, cursor: Cursor = None) -> object:
    """List crawl templates by name."""
    return await list_templates(here.database, LOCAL, cursor=cursor, limit=limit)


def _show(template: CrawlTemplate) -> None:
    options = {name.replace("_", " "): _text(value) for name, value in template.options.items()}
    show_facts({"name": template.name, **options, "updated": template.updated_at})


@app.command()
@answers(_show)
async def show(here: CommandContext, name: TemplateName) -> object:
    """Show the URLs and options of a template."""
    return await get_template(here.database, LOCAL, name)


@app.command()
@answers(lambda found: f"deleted template {found.name}")
async def delete(here: CommandContext, name: TemplateName) -> object:
    """Delete a template. Crawls that were started from it stay."""
    return await delete_template(here.database, LOCAL, name)
