// The server renders all of the page. This script replaces changed pieces, updates ages, and handles keys.
"use strict";
const byId = (id) => document.getElementById(id);
const sign = byId("live"), trouble = byId("trouble"), keys = byId("keys"), filter = document.querySelector("[data-filter]");
let ahead = 0; // cluster time minus this clock, milliseconds
const parse = (html) => { const t = document.createElement("template"); t.innerHTML = html.trim(); return t.content.firstElementChild; };
const say = (state, text) => { sign.textContent = state; sign.className = "sign " + state; trouble.hidden = !text; trouble.textContent = text || ""; };

function span(ms) {
  const s = Math.floor(Math.max(ms, 0) / 1000), f = (a, x, b, y) => `${Math.floor(a)}${x} ${Math.floor(b)}${y}`;
  return s < 60 ? s + "s" : s < 3600 ? f(s / 60, "m", s % 60, "s") : s < 86400 ? f(s / 3600, "h", s / 60 % 60, "m") : f(s / 86400, "d", s / 3600 % 24, "h");
}
function distance(t) {
  const left = Date.parse(t.dateTime) - Date.now() - ahead;
  if (!("until" in t.dataset)) return span(-left);
  t.classList.toggle("past", left <= 0);
  return left > 0 ? "in " + span(left) : span(-left) + " ago";
}
function age(within) { // only visible texts: each change lays out a row
  const inView = (t) => { const box = t.getBoundingClientRect(); return box.bottom > 0 && box.top < innerHeight; };
  for (const t of [...within.querySelectorAll("time")].filter(inView)) {
    const text = distance(t);
    if (t.textContent !== text) t.textContent = text;
  }
}
function putBlock(key, html) { // a screen reader announces each change
  const block = document.querySelector(`[data-block="${key}"]`);
  if (block.innerHTML !== html) block.innerHTML = html;
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
  for (const [key, html] of Object.entries(change.blocks || {})) putBlock(key, html);
  for (const [name, list] of Object.entries(change.lists || {})) putList(name, list);
  age(document);
};
source.onerror = () => source.readyState === EventSource.CLOSED ? say("ended", "This page is no longer live. Reload it, or log in again with lockfs ui.") : say("waits", "The daemon does not answer. Trying again.");
setInterval(() => age(document), 1000);

byId("show-keys").hidden = false;
byId("show-keys").addEventListener("click", () => keys.showModal());
let going = false; // after g
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || keys.open) return; // Esc closes the dialog by itself
  if (/INPUT|SELECT/.test(e.target.tagName)) { if (e.key === "Escape") e.target.blur(); return; }
  const page = going && { l: "/", e: "/events", h: "/hosts", m: "/members", a: "/alarms" }[e.key];
  going = e.key === "g";
  const links = [...document.querySelectorAll("[data-list] .path a:first-child")], at = links.indexOf(document.activeElement);
  const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[e.key], row = step && links[at + step];
  const link = { ArrowRight: "a[rel=next]", ArrowLeft: "a[rel=prev]", Escape: ".crumb a" }[e.key];
  if (page) location.href = page;
  else if (e.key === "?") keys.showModal();
  else if (e.key === "/" && filter) { e.preventDefault(); filter.focus(); filter.select(); }
  else if (row) { e.preventDefault(); row.focus(); }
  else if (e.key === "Escape" && at >= 0) links[at].blur();
  else if (link && !e.target.closest(".scroll")) document.querySelector(link)?.click();
});
