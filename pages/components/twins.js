// One cursor for two runs. All text is set as text: it holds what models wrote.
const memory = new WeakMap();

export default function (component) {
  const { data, parentElement, setStateValue } = component;
  const root = parentElement.querySelector(".twins");
  let me = memory.get(root);
  const shape = JSON.stringify([data.runs, data.by, data.stops.length]);
  if (!me) {
    me = { playing: null };
    memory.set(root, me);
    me.onKey = (event) => keyPressed(event, me);
    document.addEventListener("keydown", me.onKey);
  }
  me.data = data;
  me.send = (value) => setStateValue("move", { value, id: Date.now() });
  if (me.shape !== shape) {
    stop(me);
    me.shape = shape;
    me.i = data.at;
    root.replaceChildren(...built(me));
    me.root = root;
  }
  show(me);
  return () => {
    stop(me);
    clearTimeout(me.telling);
    document.removeEventListener("keydown", me.onKey);
    memory.delete(root);
  };
}

function made(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function built(me) {
  const last = me.data.stops.length - 1;
  const button = (text, label, act) => made("button", { type: "button", title: label, "aria-label": label, onclick: act }, text);
  me.play = button("▷ play", "Play or pause", () => toggle(me));
  me.play.className = "play";
  me.slider = made("input", { type: "range", min: 0, max: last, step: 1, className: "scrub", "aria-label": me.data.by === "round" ? "Round" : "Tokens spent" });
  me.slider.oninput = () => {
    stop(me);
    go(me, Number(me.slider.value));
  };
  me.where = made("span", { className: "where", role: "status" });
  me.sides = me.data.runs.map(() => made("div", { className: "side" }, made("div", { className: "title" }), made("div", { className: "had" }), made("div", { className: "used" })));
  return [
    made("div", { className: "controls" }, button("|◀", "Begin", () => go(me, 0)), button("◀", "Back (left arrow)", () => go(me, me.i - 1)), button("▶", "On (right arrow)", () => go(me, me.i + 1)), button("▶|", "End", () => go(me, last)), me.play, me.where),
    me.slider,
    made("div", { className: "sides" }, ...me.sides),
  ];
}

function go(me, i) {
  const to = Math.max(0, Math.min(me.data.stops.length - 1, i));
  if (to === me.i) return;
  me.i = to;
  show(me);
  clearTimeout(me.telling);
  me.telling = setTimeout(() => me.send(me.data.stops[to][0]), 400);
}

function show(me) {
  const { data } = me;
  const [value, ...steps] = data.stops[me.i];
  // the same run on both sides has two cursors: the picture takes the later one
  window.svrmadSteps = { [data.runs[0]]: steps[0], [data.runs[1]]: steps[1], [data.cursor]: me.i + 1 };
  window.dispatchEvent(new CustomEvent("svrmad-step"));
  me.slider.value = me.i;
  const where = data.by === "round" ? (value === 0 ? "initial answers" : `round ${value}`) : `with ${value.toLocaleString("en")} tokens`;
  me.where.textContent = where;
  me.slider.setAttribute("aria-valuetext", where);
  me.sides.forEach((side, s) => {
    const { had, used } = data.standing[s][steps[s] - 1];
    const texts = [data.titles[s], had, used];
    [...side.children].forEach((child, c) => { child.textContent = texts[c]; });
    side.dataset.step = steps[s];
  });
}

function toggle(me) {
  if (me.playing) return stop(me);
  const last = me.data.stops.length - 1;
  if (me.i >= last) go(me, 0);
  me.playing = setInterval(() => {
    go(me, me.i + 1);
    if (me.i >= last) stop(me);
  }, me.data.by === "round" ? 2000 : 700);
  me.play.textContent = "❚❚ pause";
}

function stop(me) {
  clearInterval(me.playing);
  me.playing = null;
  if (me.play) me.play.textContent = "▷ play";
}

function keyPressed(event, me) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const at = event.composedPath()[0];
  const typing = at instanceof Element && !at.classList.contains("scrub") && at.closest("input, textarea, select, [contenteditable], [role=combobox], [role=radiogroup], [role=tablist], [role=listbox], [role=grid]");
  if (typing || document.querySelector("[role=dialog]")) return;
  const moves = { ArrowLeft: me.i - 1, ArrowRight: me.i + 1, Home: 0, End: me.data.stops.length - 1 };
  if (event.key in moves) {
    event.preventDefault();
    go(me, moves[event.key]);
  } else if (event.key === " " && !(at instanceof HTMLButtonElement)) {
    event.preventDefault();
    toggle(me);
  }
}
