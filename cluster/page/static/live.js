// The server makes all that this page shows. This puts what it sends in the place of what was there, lets ages go on, and knows a few keys.
"use strict";
const sign = document.getElementById("live"), trouble = document.getElementById("trouble");
const filter = document.querySelector("[data-filter]");
let ahead = 0; // of cluster time before this clock, milliseconds
const rowOf = (list, key) => list.querySelector(`:scope > [data-key="${CSS.escape(key)}"]`);
const parse = (html) => { const t = document.createElement("template"); t.innerHTML = html.trim(); return t.content.firstElementChild; };
const say = (state, text) => { sign.textContent = state; sign.className = "sign " + state; trouble.hidden = !text; trouble.textContent = text || ""; };

function span(ms) {
  const s = Math.floor(Math.abs(ms) / 1000), f = (a, x, b, y) => `${Math.floor(a)}${x} ${Math.floor(b)}${y}`;
  const text = s < 60 ? s + "s" : s < 3600 ? f(s / 60, "m", s % 60, "s") : s < 86400 ? f(s / 3600, "h", s / 60 % 60, "m") : f(s / 86400, "d", s / 3600 % 24, "h");
  return ms > 0 ? "in " + text : text;
}
function age(within) { // only what is in view: another text in each row would have all of them laid out anew
  const inView = (t) => { const box = t.getBoundingClientRect(); return box.bottom > 0 && box.top < innerHeight; };
  for (const t of [...within.querySelectorAll("time")].filter(inView)) {
    const text = span(Date.parse(t.dateTime) - Date.now() - ahead);
    if (t.textContent !== text) t.textContent = text;
  }
}
function putList(name, change) {
  const list = document.querySelector(`[data-list="${name}"]`), kept = new Map();
  for (const row of list.children) kept.set(row.dataset.key, row);
  for (const [key, html] of Object.entries(change.rows || {})) {
    const row = parse(html), old = kept.get(key), focused = old && old.contains(document.activeElement);
    if (old) old.replaceWith(row);
    if (focused) row.querySelector("a")?.focus();
    kept.set(key, row);
  }
  if (!change.order && !change.empty) return;
  let next = list.firstElementChild;
  for (const key of change.order || []) {
    const row = kept.get(key);
    kept.delete(key);
    if (row === next) next = next.nextElementSibling; else list.insertBefore(row, next);
  }
  for (const row of kept.values()) row.remove();
}
const source = new EventSource(document.body.dataset.live);
source.onmessage = (message) => {
  const change = JSON.parse(message.data);
  ahead = change.now - Date.now();
  say(change.error ? "stale" : "live", change.error);
  for (const [key, html] of Object.entries(change.blocks || {})) document.querySelector(`[data-block="${key}"]`).innerHTML = html;
  for (const [name, list] of Object.entries(change.lists || {})) putList(name, list);
  age(document);
};
source.onerror = () => source.readyState === EventSource.CLOSED ? say("ended", "This page is not live any more: reload it, or log in again with lockfs ui.") : say("waits", "The daemon does not answer; trying again.");
setInterval(() => age(document), 1000);

let going = false;
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || /INPUT|SELECT/.test(e.target.tagName)) { if (e.key === "Escape") e.target.blur(); return; }
  const page = going && { l: "/", e: "/events", h: "/hosts", m: "/members" }[e.key];
  going = e.key === "g";
  if (page) location.href = page;
  if (e.key === "/" && filter) { e.preventDefault(); filter.focus(); filter.select(); }
  const links = [...document.querySelectorAll("[data-list] .path a")], at = links.indexOf(document.activeElement), step = { j: 1, k: -1 }[e.key];
  if (step && links.length) links[Math.min(Math.max(at + step, 0), links.length - 1)].focus();
});
