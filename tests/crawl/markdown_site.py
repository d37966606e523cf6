"""A site that offers its pages as markdown too, in each of the ways to find it."""

from __future__ import annotations

from servers.site import Answer, Page, Site, moved, text

STORY = (
    "The pump moves water from the well to the tank. Open the valve before it starts, and close it"
    " when the tank is full. Never let the pump run dry: its seals wear out within a few minutes."
)
# a sign that the site may offer markdown
GENERATOR = '<meta name="generator" content="Docusaurus v3.1">'
MENU = '<nav><a href="/guide/">Guide</a> <a href="/api/pump.html">API</a></nav>'


def html(title: str, *, head: str = GENERATOR, link: str = "/api/pump.html") -> Page:
    body = (
        f"<html><head><title>{title}</title>{head}</head><body>{MENU}<main><h1 id=top>{title}</h1>"
        f"<p>{STORY} {title}.</p><h2 id='start-it'>Starting</h2><p>Press the green button and wait."
        f"</p><h2 id='no-slug'>Stopping it</h2><p>See <a href='{link}'>the reference</a>.</p>"
    )
    return Page(body.encode())


def markdown(title: str, link: str = "/api/pump.md#stop") -> Page:
    content = (
        f"# {title}\n\n{STORY} {title}.\n\n## Starting\n\nPress the green button and wait."
        f"\n\n## Stopping it\n\nSee [the reference]({link}).\n\nOnly in markdown: {title}."
    )
    return text(content, "text/markdown; charset=utf-8")


LINK = '<link rel="alternate" type="text/markdown" href="{}">'
PAGES = {"/": "Home", "/guide/": "Guide", "/api/pump.html": "Pump"}
TWINS = {"/": "/index.md", "/guide/": "/guide.md", "/api/pump.html": "/api/pump.md"}


def named(site: Site) -> None:
    for path, title in PAGES.items():
        twin = f"/raw{path.rstrip('/')}/it.md"
        site.pages[path] = html(title, head=LINK.format(twin))
        site.pages[twin] = markdown(title)


def named_in_header(site: Site) -> None:
    for path, title in PAGES.items():
        twin = f"/raw{path.rstrip('/')}/it.md"
        header = f'<{twin}>; rel="alternate"; type="text/markdown"'
        site.pages[path] = Page(html(title).body, headers={"Link": header})
        site.pages[twin] = markdown(title)


def negotiated(site: Site) -> None:
    for path, title in PAGES.items():
        site.pages[path] = by_accept(site, path, html(title), markdown(title))


def by_accept(site: Site, path: str, page: Page, twin: Page) -> Answer:
    return lambda _: twin if accepts_markdown(site, path) else page


def accepts_markdown(site: Site, path: str) -> bool:
    return b"accept: text/markdown" in site.heads[path].lower()


def negotiated_elsewhere(site: Site) -> None:
    """The server redirects clients that accept markdown."""
    for path, title in PAGES.items():
        site.pages[path] = by_accept(site, path, html(title, head=""), moved(TWINS[path]))
        site.pages[TWINS[path]] = markdown(title)


def similar(site: Site) -> None:
    for path, title in PAGES.items():
        site.pages[path] = html(title)
        # as many servers send it
        site.pages[TWINS[path]] = text(markdown(title).body.decode(), "text/plain")


def listed(site: Site) -> None:
    lines = ["# The site", ""]
    for path, title in PAGES.items():
        site.pages[path] = html(title)
        stem = path.rstrip("/").removesuffix(".html")
        twin = f"/raw{stem}.mdx" if stem else "/index.mdx"
        lines.append(f"- [{title}]({twin}): it")
        site.pages[twin] = markdown(title)
    site.pages["/llms.txt"] = text("\n".join(lines))


def complete(site: Site) -> None:
    parts = ["# The site\n"]
    for path, title in PAGES.items():
        site.pages[path] = html(title)
        content = markdown(title).body.decode().partition("\n\n")[2]
        parts.append(f"# {title}\nSource: {site.url}{path}\n\n{content}\n")
    site.pages["/llms.txt"] = text("# The site\n\nAll of it is in llms-full.txt.")
    site.pages["/llms-full.txt"] = text("\n".join(parts))
