// Runs before the scripts of every page. Records changes of the document and routes of a router,
// and turns off what a crawler has no use for.
(() => {
  if (window !== window.top) return;
  let changed = performance.now();
  const later = setTimeout, routes = new Set();
  new MutationObserver(() => { changed = performance.now(); })
    .observe(document, { subtree: true, childList: true, characterData: true });
  const quiet = (ms) => new Promise((resolve) => {
    const look = () => {
      const left = changed + ms - performance.now();
      if (left > 0) later(look, left);
      else if (!document.scripts.length) resolve(Infinity);
      else resolve(document.body ? document.body.innerText.trim().length : 0);
    };
    look();
  });
  for (const name of ["pushState", "replaceState"]) {
    const original = history[name];
    history[name] = function (state, title, url) {
      if (url != null && routes.size < 1000) routes.add(new URL(url, document.baseURI).href);
      return original.apply(this, arguments);
    };
  }
  const stay = (event) => {
    const at = event.target.closest?.("[target]");
    if (at && !["", "_self", "_top"].includes(at.target)) event.preventDefault();
  };
  addEventListener("click", stay, true);
  addEventListener("submit", stay, true);
  HTMLFormElement.prototype.submit = () => undefined;
  window.alert = window.print = () => undefined;
  window.confirm = () => false;
  window.prompt = () => null;
  window.open = () => null;
  navigator.sendBeacon = () => true;
  delete window.RTCPeerConnection;
  delete window.webkitRTCPeerConnection;
  Object.defineProperty(window, "__forager", { value: Object.freeze({ quiet, routes }) });
})();
