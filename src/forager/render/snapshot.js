// The document as a visitor sees it, as HTML: shadow trees in place, consent overlays removed.
([limit, hashRoutes]) => {
  const overlays = "#onetrust-consent-sdk, #CybotCookiebotDialog, #usercentrics-root, #didomi-host," +
    " #qc-cmp2-container, .cc-window, .cookie-banner, #cookie-banner, #cookie-law-info-bar," +
    " [id^='sp_message_container']";
  for (const overlay of document.querySelectorAll(overlays)) overlay.remove();
  for (const hidden of document.querySelectorAll("main[aria-hidden], #root[aria-hidden], #app[aria-hidden], [inert]")) {
    hidden.removeAttribute("aria-hidden");
    hidden.removeAttribute("inert");
  }
  const flatten = (root, depth) => {
    for (const host of root.querySelectorAll("*")) {
      if (!host.shadowRoot || depth > 20) continue;
      flatten(host.shadowRoot, depth + 1);
      const copies = [...host.shadowRoot.childNodes]
        .filter((node) => node.nodeName !== "STYLE" && node.nodeName !== "LINK")
        .map((node) => node.cloneNode(true));
      host.prepend(...copies);
    }
  };
  flatten(document, 0);
  const html = "<!DOCTYPE html>\n" + document.documentElement.outerHTML;
  const watch = window.__forager;
  const hashes = hashRoutes
    ? [...document.links].filter((a) => /^#!?\//.test(a.hash)).map((a) => a.href)
    : [];
  return {
    html: html.length > limit ? "" : html,
    length: html.length,
    url: location.href,
    routes: [...(watch && watch.routes ? watch.routes : []), ...hashes].map(String).slice(0, 1000),
  };
}
