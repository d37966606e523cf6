"""Pages that need scripts, and pages whose scripts attack: each has a path of the test site."""

from __future__ import annotations

from collections.abc import Mapping

from servers.site import Answer, Page, text

WORDS = "This sentence was put here by a script and is long enough to count as content. " * 4
SHOW = f'document.getElementById("app").innerHTML = "<h1>" + title + "</h1><p>{WORDS}</p>"'


def shell(script: str, *, head: str = "") -> Page:
    """An app shell: no content until its script has run."""
    document = (
        f"<!DOCTYPE html><html><head><title>Shell</title>{head}</head><body>"
        f'<div id="app"></div><script>{script}</script></body></html>'
    )
    return Page(document.encode(), headers={"Content-Type": "text/html"})


def shown(title: str, then: str = "", *, first: str = "") -> Page:
    """A shell that shows content under this title, before and after other scripts."""
    return shell(f'{first}; const title = "{title}"; {SHOW}; {then}')


def requests_to(*urls: str) -> str:
    """A script that requests URLs in every way a page can, and lists what answered."""
    ways = """
        const answered = [];
        const ways = [
          (u) => fetch(u, {mode: "no-cors"}).then(() => answered.push(u)).catch(() => 0),
          (u) => new Promise((done) => { const x = new XMLHttpRequest(); x.open("GET", u);
                 x.onload = () => { answered.push(u); done(); }; x.onerror = done; x.send(); }),
          (u) => { new Image().src = u; document.head.append(Object.assign(
                 document.createElement("script"), {src: u, onload: () => answered.push(u)})); },
          (u) => { document.body.append(Object.assign(
                 document.createElement("iframe"), {src: u})); },
          (u) => { new WebSocket(u.replace("http", "ws")).onopen = () => answered.push(u); },
          (u) => { new EventSource(u); navigator.sendBeacon(u, "x"); },
          (u) => { new Worker(URL.createObjectURL(new Blob([`fetch("${u}", {mode: "no-cors"})
                 .then(() => postMessage(1))`]))).onmessage = () => answered.push(u); },
          (u) => { document.head.append(Object.assign(document.createElement("link"),
                 {rel: "preload", as: "fetch", href: u}), Object.assign(
                 document.createElement("link"), {rel: "preconnect", href: u})); },
        ];
    """
    tries = "".join(
        f'for (const way of ways) try {{ way("{url}") }} catch (e) {{}}' for url in urls
    )
    return (
        ways + tries + "setTimeout(() => document.getElementById('app').append("
        "' answered: [' + answered.join(' ') + ']'), 1500)"
    )


SITE: Mapping[str, Answer] = {
    "/static": Page(b"<title>Static</title><main><p>Plain text.</p></main>"),
    "/client": shown("Client"),
    "/xhr": shell(
        'setTimeout(() => fetch("/data.json").then((r) => r.json()).then((d) => {'
        f" const title = d.title; {SHOW} }}), 700)"
    ),
    "/data.json": text('{"title": "From data"}', "application/json"),
    "/scroll": shown(
        "Scroll",
        """
        let n = 0;
        const more = () => { for (let i = 0; i < 20; i++) { const p = document.createElement("p");
          p.textContent = `Item ${n++}`; p.style.height = "200px"; document.body.append(p); } };
        more();
        addEventListener("scroll", () => { if (n < 60 && innerHeight + scrollY >=
          document.documentElement.scrollHeight - 10) more(); });
        """,
    ),
    "/router": shown(
        "Router",
        'document.getElementById("app").insertAdjacentHTML("beforeend", "<a href=/one>1</a>");'
        'history.pushState({}, "", "/routed")',
    ),
    "/moves": shell('location.href = "/client"'),
    "/replaces": shell('setTimeout(() => location.replace("/static"), 50)'),
    "/reloads": shell("location.reload()"),
    "/alerts": shown(
        "Alerts", first="for (let i = 0; i < 500; i++) { alert(i); confirm(i); prompt(i) }"
    ),
    "/popups": shown(
        "Popups",
        first="for (let i = 0; i < 100; i++) { open('/static?popup=' + i);"
        "const f = document.createElement('a'); f.href = '/static?popup'; f.target = '_blank';"
        "document.body.append(f); f.click() }",
    ),
    "/worker": shown("Worker", 'navigator.serviceWorker?.register("/sw.js")'),
    "/sw.js": text("self.addEventListener('fetch', (e) => 0)", "text/javascript"),
    "/endless": shown(
        "Endless",
        "let i = 0; const go = () => fetch('/none?' + i++).finally(go);"
        " for (let n = 0; n < 50; n++) go()",
    ),
    "/huge": shown("Huge", "fetch('/endless/body').catch(() => 0)"),
    "/loop": shell("while (true) {}"),
    "/grows": shell("const kept = []; while (true) kept.push(new Array(1e6).fill(Math.random()))"),
    "/arrays": shell(
        "const kept = []; const go = () => { kept.push(new Uint8Array(5e7).fill(1));"
        " setTimeout(go, 1) }; go()"
    ),
    "/changes": shown("Changes", "setInterval(() => document.body.append(Date.now()), 20)"),
    "/download": shown("Download", "location.href = '/file.bin'"),
    "/cookies": shown("Cookies", "document.cookie = 'a=b'; fetch('/echo.json')"),
    "/echo.json": text("{}", "application/json"),
    "/broken-data": shown("Broken", "fetch('/status/503')"),
    "/assets": shell(f'const title = "Assets"; {SHOW}', head='<script src="/lib.js"></script>'),
    "/lib.js": text("window.lib = 1", "text/javascript"),
    "/hangs": shown("Hangs", "fetch('/never')"),
    "/never": Page(hangs=True),
    "/shadow": shown(
        "Shadow",
        "const host = document.createElement('x-card'); document.body.append(host);"
        "host.attachShadow({mode: 'open'}).innerHTML = '<p>In the shadow tree</p>'",
    ),
    "/selector": shown("Late", "setTimeout(() => document.body.append(Object.assign("
        "document.createElement('p'), {id: 'late', textContent: 'Late text'})), 2000)"),
}  # fmt: skip
