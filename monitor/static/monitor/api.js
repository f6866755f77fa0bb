// The documentation of the API: the list is filtered while one types, and a form sends requests. The token is kept in this
// variable only, so links between the pages of the documentation replace the content instead of loading the page anew.
"use strict";
(() => {
  const MOST_SHOWN = 200_000; // characters of an answer
  const SHOWN_HEADERS = ["content-type", "etag", "link", "location", "retry-after", "x-request-id", "data-age-seconds"];
  const { pathname: ROOT } = new URL("/help/api/", location);
  let token = "";
  let shown = location.pathname + location.search;

  function prepare() {
    prepareFilter(document.querySelector("[data-api-filter]"));
    const form = document.querySelector("[data-try]");
    if (!form) return;
    form.hidden = false;
    const optional = form.querySelector("[data-optional]");
    optional.hidden = !optional.querySelector("input, select");
    const field = form.querySelector("#token");
    if (field) {
      field.value = token;
      field.addEventListener("input", () => { token = field.value.trim(); });
    }
    form.addEventListener("input", () => showCommand(form));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send(form);
    });
  }

  function prepareFilter(filter) {
    const field = filter?.elements.q;
    if (!field || field.value) return; // the server has filtered
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const group of document.querySelectorAll("[data-api-group]")) {
        const items = [...group.querySelectorAll("[data-search]")];
        for (const item of items) item.hidden = !words.every((word) => item.dataset.search.includes(word));
        const shown = items.filter((item) => !item.hidden).length;
        group.hidden = shown === 0;
        count += shown;
      }
      document.querySelector("[data-api-empty]").hidden = count > 0;
      document.querySelector("[data-api-count]").textContent = `${count} operation${count === 1 ? "" : "s"}`;
    });
  }

  function address(form) {
    let path = form.dataset.path;
    const query = new URLSearchParams();
    for (const field of form.querySelectorAll("[data-place]")) {
      if (field.dataset.place === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(field.value));
      else if (field.value) query.append(field.name, field.value);
    }
    return query.size ? `${path}?${query}` : path;
  }

  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

  function showCommand(form) {
    const { method, type } = form.dataset;
    const body = form.querySelector("#try-body");
    const parts = ["curl"];
    if (form.querySelector("#token")) parts.push('-H "Authorization: Bearer $TOKEN"');
    if (method !== "GET" && !(method === "POST" && body)) parts.push(`-X ${method}`);
    if (body) parts.push(`-H "Content-Type: ${type}"`);
    parts.push(`"$URL"${quoted(address(form))}`);
    if (body) parts.push(`--data ${quoted(body.value)}`);
    document.querySelector("[data-curl]").textContent = parts.join(" ");
  }

  async function send(form) {
    const { method, type } = form.dataset;
    const button = form.querySelector("button[type=submit]");
    const body = form.querySelector("#try-body");
    const headers = { Accept: "application/json, */*" };
    if (body) headers["Content-Type"] = type;
    if (token && form.querySelector("#token")) headers.Authorization = `Bearer ${token}`;
    else headers["X-CSRFToken"] = form.elements.csrfmiddlewaretoken.value;
    button.disabled = true;
    const began = performance.now();
    try {
      // With a token, the session is not sent: the answer is that of the token alone.
      const credentials = headers.Authorization ? "omit" : "same-origin";
      const answer = await fetch(address(form), { method, headers, body: body?.value, credentials, cache: "no-store" });
      const text = await answer.text();
      const milliseconds = Math.round(performance.now() - began);
      show(`${answer.status} ${answer.statusText} in ${milliseconds} ms, ${new Blob([text]).size} bytes`, answer.headers, text);
    } catch (error) {
      show(`Not sent: ${error.message}. Check the token and the connection.`, new Headers(), "");
    } finally {
      button.disabled = false;
    }
  }

  function show(status, headers, text) {
    const part = document.querySelector("[data-answer]");
    part.hidden = false;
    part.querySelector("[data-status]").textContent = status;
    const rows = SHOWN_HEADERS.filter((name) => headers.has(name)).map((name) => {
      const row = document.createElement("div");
      const [term, value] = [document.createElement("dt"), document.createElement("dd")];
      term.textContent = name;
      value.textContent = headers.get(name);
      row.append(term, value);
      return row;
    });
    part.querySelector("[data-headers]").replaceChildren(...rows);
    const shown = /json/.test(headers.get("content-type") ?? "") ? pretty(text) : text;
    const cut = shown.length > MOST_SHOWN ? `${shown.slice(0, MOST_SHOWN)}\n… ${shown.length - MOST_SHOWN} more characters` : shown;
    part.querySelector("[data-body]").textContent = cut || "(no content)";
  }

  function pretty(text) {
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  }

  async function turn(url, { isBack = false } = {}) {
    const answer = await fetch(url, { headers: { Accept: "text/html" } }).catch(() => null);
    if (!answer?.ok) {
      location.assign(url);
      return;
    }
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.title = next.title;
    document.getElementById("content").replaceWith(next.getElementById("content"));
    if (!isBack) history.pushState(null, "", url);
    shown = location.pathname + location.search;
    prepare();
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target) target.scrollIntoView();
    else scrollTo(0, 0);
    document.querySelector("main h1").focus({ preventScroll: true });
  }

  const isDocumentation = (url) => url.origin === location.origin && url.pathname.startsWith(ROOT);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("main a[href]");
    const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (!link || !isPlain || !isDocumentation(new URL(link.href))) return;
    event.preventDefault();
    turn(link.href);
  });
  addEventListener("popstate", () => {
    if (location.pathname + location.search !== shown) turn(location.href, { isBack: true }); // not for #content
  });
  document.addEventListener("DOMContentLoaded", prepare);
})();
