// The timeline. All text is set as text, never as HTML: labels hold what models wrote.
const MARKS = { retained: "■", changed: "✕", void: "○", failed: "!", choice: "▸", other: "·" };
const SPEEDS = { "0.5×": 3000, "1×": 1500, "2×": 750, "4×": 375 };
const memory = new WeakMap();

export default function (component) {
  const { data, parentElement, setStateValue } = component;
  const root = parentElement.querySelector(".timeline");
  const me = memory.get(root) ?? mounted(root, data);
  // The cursor lives here. The server, which answers late, moves it only to another run or by a jump of its own.
  if (me.run !== data.run || me.jump !== data.jump) {
    stop(me);
    me.k = data.k;
  }
  // A run that is live grows, and a cursor at its end stays at its end.
  else if (me.live && me.k === me.n) me.k = data.n;
  Object.assign(me, { run: data.run, jump: data.jump, n: data.n, name: data.name, live: data.live });
  me.send = (move) => setStateValue("move", move);
  me.redraw = () => mark(root, me, data);
  if (data.echo === me.asked?.id) {
    clearTimeout(me.asked.late);
    me.asked = null;
    if (me.k !== data.k) setTimeout(() => tell(me));
  }
  draw(root, me, data);
  return () => {
    memory.delete(root);
    me.leaving = setTimeout(() => left(me), 1000);
  };
}

// Streamlit may take an element away and put it back in the middle of a scrub; the cursor outlives that.
function mounted(root, data) {
  let me = window.svrmadTimeline;
  if (me && me.run === data.run) clearTimeout(me.leaving);
  else {
    if (me) left(me);
    me = { k: data.k, playing: null, speed: "1×", run: data.run, jump: data.jump, asked: null };
    me.onKey = (event) => keyPressed(event, me);
    me.onBack = () => wentBack(me);
    document.addEventListener("keydown", me.onKey);
    window.addEventListener("popstate", me.onBack);
  }
  memory.set(root, me);
  window.svrmadTimeline = me;
  return me;
}

function left(me) {
  clearTimeout(me.leaving);
  clearTimeout(me.asked?.late);
  me.redraw = null;
  me.send = null;
  stop(me);
  document.removeEventListener("keydown", me.onKey);
  window.removeEventListener("popstate", me.onBack);
  if (window.svrmadTimeline === me) window.svrmadTimeline = null;
}

function go(me, k) {
  const to = Math.max(1, Math.min(me.n, k));
  if (to === me.k) return;
  me.k = to;
  if (!me.asked) tell(me); // first, so that the server works while the charts are drawn
  me.redraw?.();
}

// The server hears of one move at a time: where the cursor stands when it has answered is the next.
function tell(me) {
  if (!me.send) return;
  const id = Math.max(Date.now(), (me.last ?? 0) + 1);
  me.last = id;
  const k = me.k;
  const late = () => {
    me.asked = null;
    if (me.k !== k) tell(me);
  };
  me.asked = { id, late: setTimeout(late, 3000) };
  me.send({ step: k, id, end: k === me.n });
}

// The browser's back and forward change the link, whose step is the cursor.
function wentBack(me) {
  const link = new URLSearchParams(window.location.search);
  if (link.has("run") && link.get("run") !== me.name) return;
  const step = Number(link.get("step") || me.n);
  if (!Number.isInteger(step)) return;
  stop(me);
  me.k = Math.max(1, Math.min(me.n, step));
  me.redraw?.();
}

function keyPressed(event, me) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const at = event.composedPath()[0];
  const typing = at instanceof Element && !at.classList.contains("scrub") && at.closest("input, textarea, select, [contenteditable], [role=combobox], [role=radiogroup], [role=tablist], [role=listbox], [role=grid]");
  if (typing || document.querySelector("[role=dialog]")) return;
  const moves = { ArrowLeft: me.k - 1, ArrowRight: me.k + 1, Home: 1, End: me.n };
  if (event.key in moves) {
    event.preventDefault();
    go(me, moves[event.key]);
  } else if (event.key === " " && !(at instanceof HTMLButtonElement)) {
    event.preventDefault();
    toggle(me);
  }
}

function toggle(me) {
  if (me.playing) return stop(me);
  if (me.k >= me.n) go(me, 1);
  me.playing = setInterval(() => {
    go(me, me.k + 1);
    if (me.k >= me.n) stop(me);
  }, SPEEDS[me.speed]);
  me.redraw();
}

function stop(me) {
  clearInterval(me.playing);
  me.playing = null;
  if (me.redraw) me.redraw();
}

function element(tag, props, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function draw(root, me, data) {
  const shape = JSON.stringify([data.run, data.blocks, data.verdict, data.hide]);
  if (root.dataset.shape !== shape) {
    root.dataset.shape = shape;
    const scroll = root.querySelector(".strip")?.scrollLeft ?? 0;
    root.replaceChildren(strip(me, data), scrubber(me, data), controls(me));
    me.marked = null;
    root.querySelector(".strip").scrollLeft = scroll;
  }
  mark(root, me, data);
}

function strip(me, data) {
  const made = element("div", { className: "strip", role: "group", "aria-label": "Timeline of the run" });
  for (const block of data.blocks) {
    const ticks = element("div", { className: "ticks" });
    for (const tick of block.ticks) {
      const button = element("button", { className: "tick", type: "button", title: tick.title, "aria-label": `step ${tick.k}: ${tick.title}`, onclick: () => go(me, tick.k) });
      button.dataset.k = tick.k;
      button.dataset.mark = tick.mark;
      button.dataset.title = tick.title;
      button.dataset.text = tick.mark === "answer" ? tick.glyph : MARKS[tick.mark];
      button.dataset.colour = tick.colour;
      ticks.append(button);
    }
    const label = element("div", { className: "label" }, block.label);
    label.dataset.first = block.ticks.length ? block.ticks[0].k : 1;
    label.dataset.text = block.label;
    made.append(element("div", { className: "block" }, label, ticks));
  }
  const verdict = element("button", { className: "verdict", type: "button", onclick: () => go(me, data.verdict.k) });
  verdict.dataset.k = data.verdict.k;
  made.append(verdict);
  dragged(made, me);
  return made;
}

// A native slider over the whole width: drag, touch, arrow keys, screen readers.
function scrubber(me, data) {
  const made = element("input", { className: "scrub", type: "range", min: 1, step: 1, "aria-label": "Step of the run" });
  made.oninput = () => {
    const to = Number(made.value); // stopping puts the slider back to where the cursor is
    stop(me);
    go(me, to);
  };
  made.max = data.n;
  return made;
}

// Dragging over the ticks with the mouse moves the cursor as the slider does.
function dragged(made, me) {
  made.addEventListener("pointermove", (event) => {
    if (event.pointerType !== "mouse" || !(event.buttons & 1)) return;
    const tick = made.getRootNode().elementsFromPoint(event.clientX, event.clientY).find((e) => e.dataset?.k);
    if (tick) go(me, Number(tick.dataset.k));
  });
}

function controls(me) {
  const button = (text, label, act) => element("button", { type: "button", title: label, "aria-label": label, onclick: act }, text);
  const speed = element("select", { title: "Speed of play", "aria-label": "Speed of play", onchange: (e) => { me.speed = e.target.value; if (me.playing) { stop(me); toggle(me); } } });
  for (const name of Object.keys(SPEEDS)) speed.append(element("option", { value: name, selected: name === me.speed }, name));
  const play = button("▷ play", "Play or pause (space)", () => toggle(me));
  play.className = "play";
  return element("div", { className: "controls" },
    button("|◀", "First step (Home)", () => go(me, 1)), button("◀", "Previous step (left arrow)", () => go(me, me.k - 1)),
    element("span", { className: "where", role: "status" }), button("▶", "Next step (right arrow)", () => go(me, me.k + 1)),
    button("▶|", "Last step (End)", () => go(me, me.n)), play, speed,
    element("span", { className: "key" }, "▸ chosen   ■ retained   ✕ changed   ○ void"));
}

// Only what the cursor changes, and only the ticks it has passed: cheap enough for every step of a long run.
function mark(root, me, data) {
  window.svrmadSteps = { [data.run]: me.k };
  window.dispatchEvent(new CustomEvent("svrmad-step"));
  const ticks = root.querySelectorAll(".tick");
  const before = me.marked?.root === root ? me.marked.k : null;
  const [low, high] = before === null ? [0, Infinity] : [Math.min(before, me.k), Math.max(before, me.k)];
  for (const tick of ticks) {
    const k = Number(tick.dataset.k);
    if (k < low || k > high) continue;
    if (before === null) {
      tick.textContent = tick.dataset.text;
      tick.style.color = tick.dataset.colour;
    }
    tick.style.display = data.hide && k > me.k ? "none" : "";
    tick.classList.toggle("later", k > me.k);
    tick.classList.toggle("now", k === me.k);
    if (k === me.k) tick.setAttribute("aria-current", "step");
    else tick.removeAttribute("aria-current");
  }
  for (const label of root.querySelectorAll(".label")) {
    const first = Number(label.dataset.first);
    if (first < low || first > high) continue;
    const hidden = data.hide && first > me.k;
    label.textContent = hidden ? "…" : label.dataset.text;
    label.parentElement.style.display = hidden ? "none" : "";
  }
  me.marked = { root, k: me.k };
  const verdict = root.querySelector(".verdict");
  const later = me.k < data.verdict.k;
  const hidden = data.hide && later;
  verdict.textContent = hidden ? "verdict ?" : data.verdict.text;
  verdict.style.background = hidden || !data.verdict.colour ? "" : data.verdict.colour;
  verdict.style.color = hidden || !data.verdict.colour ? "" : data.verdict.ink;
  verdict.classList.toggle("later", later);
  verdict.classList.toggle("now", !later);
  const scrub = root.querySelector(".scrub");
  scrub.value = me.k;
  scrub.style.display = data.hide ? "none" : "";
  scrub.setAttribute("aria-valuetext", `step ${me.k} of ${me.n}`);
  root.querySelector(".where").textContent = `step ${me.k} of ${data.hide ? "?" : me.n}`;
  root.querySelector(".play").textContent = me.playing ? "❚❚ pause" : "▷ play";
  // measuring makes the browser lay the page out, so once a frame will do
  cancelAnimationFrame(me.showing);
  me.showing = requestAnimationFrame(() => show(root.querySelector(".strip"), later ? root.querySelector(".tick.now") : verdict));
}

// A long run's strip is wider than the page: keep the cursor in it, without moving the page itself.
function show(strip, at) {
  if (!at || strip.scrollWidth <= strip.clientWidth) return;
  const place = at.getBoundingClientRect();
  const window_ = strip.getBoundingClientRect();
  if (place.left < window_.left + 40 || place.right > window_.right - 40) strip.scrollLeft += place.left - window_.left - window_.width / 2;
}
