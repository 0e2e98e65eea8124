"use strict";
// The palette, keys and the browser's zone. Every page works without this script.
(() => {
  const by = id => document.getElementById(id);
  const typing = el => el && (el.isContentEditable || /^(input|textarea|select)$/i.test(el.tagName));

  // The zone of this browser, as one of the choices.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const choice = by("browserzone");
  if (choice && zone) {
    const to = new URL(location.href);
    to.searchParams.set("tz", zone);
    choice.href = to.pathname + to.search;
    choice.textContent = "this browser (" + zone + ")";
    choice.hidden = false;
  }

  const open = (dialog, text) => {
    if (!dialog || dialog.open) return;
    dialog.showModal();
    const input = dialog.querySelector("input");
    if (input) {
      if (text !== undefined) input.value = text;
      input.select();
      input.dispatchEvent(new Event("input", {bubbles: true}));
    }
  };

  // The arrows walk over what the palette found; Enter in its field opens the first.
  const palette = by("palette");
  if (palette) {
    palette.addEventListener("keydown", e => {
      const links = [...palette.querySelectorAll("#jumps a")];
      const at = links.indexOf(document.activeElement);
      if (e.key === "ArrowDown" || e.key === "ArrowUp") {
        e.preventDefault();
        const next = at + (e.key === "ArrowDown" ? 1 : -1);
        if (next < 0) palette.querySelector("input").focus();
        else if (links[next]) links[next].focus();
      } else if (e.key === "Enter" && at < 0 && links.length) {
        e.preventDefault();
        links[0].click();
      }
    });
    palette.addEventListener("click", e => { if (e.target === palette) palette.close(); });
  }

  // Rows of the first table: j and k walk, Enter opens.
  const rows = () => [...document.querySelectorAll("main table.rows tbody tr")].filter(r => r.querySelector("a[href]"));
  const step = by => {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex(r => r.classList.contains("here"));
    const to = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
    if (at >= 0) all[at].classList.remove("here");
    all[to].classList.add("here");
    const link = all[to].querySelector("a[href]");
    link.focus({preventScroll: true});
    all[to].scrollIntoView({block: "nearest"});
  };
  const go = sel => { const a = document.querySelector(sel); if (a) a.click(); return !!a; };
  const beside = by => {
    const tabs = [...document.querySelectorAll(".tabs a")];
    const at = tabs.findIndex(a => a.hasAttribute("aria-current"));
    if (tabs[at + by]) tabs[at + by].click();
    else if (!tabs.length) go(by > 0 ? '.pager a[rel="next"]' : '.pager a[rel="first"]');
  };

  const pages = {n: "", j: "jobs", e: "executions", s: "schedules", w: "workers", t: "tasks"};
  let waiting = 0;
  document.addEventListener("keydown", e => {
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") { e.preventDefault(); open(palette); return; }
    if (e.ctrlKey || e.metaKey || e.altKey || typing(e.target) || document.querySelector("dialog[open]")) return;
    if (waiting && e.timeStamp - waiting < 1500 && e.key in pages) {
      waiting = 0;
      const brand = document.querySelector(".brand");
      if (brand) location.href = brand.href + pages[e.key];
      return;
    }
    waiting = 0;
    switch (e.key) {
      case "/": e.preventDefault(); open(palette); break;
      case "?": open(by("keyhelp")); break;
      case "g": waiting = e.timeStamp; break;
      case "j": step(1); break;
      case "k": step(-1); break;
      case "[": beside(-1); break;
      case "]": beside(1); break;
    }
  });

  // What was typed into a form and not sent survives a reload, or signing in again, in this tab.
  const form = document.querySelector("form.act");
  const sent = sessionStorage.getItem("sent");
  if (sent && sent !== location.pathname) sessionStorage.removeItem("form " + sent);
  if (sent) sessionStorage.removeItem("sent");
  if (form) {
    const at = "form " + location.pathname;
    const fields = () => [...form.elements].filter(f => f.name && f.name !== "do" && !/^(hidden|password|submit|file)$/.test(f.type));
    const value = f => (f.type === "checkbox" ? f.checked : f.value);
    const keep = () => sessionStorage.setItem(at, JSON.stringify(Object.fromEntries(fields().map(f => [f.name, value(f)]))));
    if ("sent" in form.dataset) keep();
    const kept = JSON.parse(sessionStorage.getItem(at) || "{}");
    let filled = false;
    if (!document.querySelector("#refused [role=alert]")) for (const f of fields()) {
      if (!(f.name in kept) || kept[f.name] === value(f)) continue;
      if (f.type === "checkbox") f.checked = kept[f.name];
      else f.value = kept[f.name];
      filled = true;
    }
    if (filled) {
      const note = document.createElement("p");
      note.className = "note";
      note.textContent = "What you typed here before, and did not send, is filled in. ";
      const forget = document.createElement("button");
      forget.type = "button";
      forget.textContent = "Forget it";
      forget.onclick = () => { sessionStorage.removeItem(at); location.reload(); };
      note.append(forget);
      form.prepend(note);
      form.dispatchEvent(new Event("change", {bubbles: true}));
    }
    form.addEventListener("input", keep);
    form.addEventListener("submit", e => { if (e.submitter?.value !== "export") sessionStorage.setItem("sent", location.pathname); });
  }

  // Live: one stream a tab, none while it is hidden. An event asks for the page as a fragment, at most
  // once a second, which is merged: focus, selection and open details stay. A page that has not changed is
  // a 304, which only says as of when that is.
  const main = by("main"), says = by("live");
  const topics = main && main.dataset.live, stream = document.body.dataset.stream;
  if (topics && stream && window.EventSource && window.htmx) {
    const since = document.querySelector("footer time"), rarely = 15000;
    let source = null, last = 0, timer = 0, asking = false, refused = false, tag = document.body.dataset.tag;
    const say = text => { if (says) says.textContent = text; };
    const away = () => { if (says && !says.textContent) say("The server does not answer: these numbers are as of " + (since ? since.textContent : "before") + "."); };
    // A page instead of the numbers does not take their place: it is no answer.
    const get = async (url, request) => {
      const none = new Response(null, {status: 304});
      let got;
      try {
        got = await fetch(url, {...request, redirect: "manual"}); // the sign-in of others can be at another host
      } catch {
        away();
        return none;
      }
      if (got.type === "opaqueredirect" || got.status === 401) {
        say("The session is over: load the page again to sign in.");
        return none;
      }
      if (got.status === 403) {
        say("You may not see this page any more: load it again.");
        return none;
      }
      if (!got.ok && ![304, 404, 422].includes(got.status)) {
        away();
        setTimeout(changed, rarely);
        return none;
      }
      tag = got.headers.get("ETag") || "";
      const [iso, ...text] = (got.headers.get("Surfin-As-Of") || "").split(" ");
      if (since && iso) {
        since.dateTime = iso;
        since.title = iso.slice(0, 19) + "Z";
        since.textContent = text.join(" ");
      }
      say(refused ? "Too many pages are live: this one asks every " + rarely / 1000 + " seconds." : "");
      return got;
    };
    const ask = async () => {
      timer = 0;
      last = Date.now();
      asking = true;
      try {
        await htmx.ajax("GET", location.pathname + location.search, {target: "#main", swap: "outerMorph", push: "false", headers: tag ? {"If-None-Match": tag} : {}, fetch: get});
        const now = by("main");
        if (now && now.dataset.title) document.title = now.dataset.title + " · Surfin";
      } finally {
        asking = false;
      }
    };
    const changed = () => {
      if (timer || document.hidden) return;
      timer = setTimeout(() => (asking ? (timer = 0, changed()) : ask()), Math.max(0, last + 1000 - Date.now()));
    };
    const close = () => { if (source) source.close(); source = null; };
    const listen = () => {
      if (source || document.hidden) return;
      source = new EventSource(stream + "?topic=" + encodeURIComponent(topics));
      // What changed before the stream was open comes with no event.
      source.onopen = () => { refused = false; say(""); changed(); };
      source.onerror = () => {
        if (!source || source.readyState !== EventSource.CLOSED) { away(); return; }
        // A refused stream stays closed: too many are open, or the session is over.
        close();
        refused = true;
        changed();
        setTimeout(listen, rarely);
      };
      for (const kind of ["execution", "step", "progress", "task", "schedule", "worker", "reset", "back"]) source.addEventListener(kind, changed);
      source.addEventListener("away", away);
    };
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) close(); else { listen(); changed(); }
    });
    addEventListener("pagehide", close);
    listen();
  }

  // One click opens a menu, the next one outside closes it.
  document.addEventListener("click", e => {
    document.querySelectorAll("details.menu[open]").forEach(d => { if (!d.contains(e.target)) d.open = false; });
  });
})();
