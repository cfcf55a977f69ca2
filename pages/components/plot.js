// Draws the step at which the timeline stands out of a film (film.py): every point says when it is shown.
const CONFIG = { displayModeBar: false, scrollZoom: false, doubleClick: false, responsive: true };
const memory = new WeakMap();

export default function (component) {
  const { data, parentElement, setStateValue } = component;
  const root = parentElement.querySelector(".svr-plot");
  let me = memory.get(root);
  if (!me) {
    me = {};
    memory.set(root, me);
    me.follow = () => follow(root, me);
    window.addEventListener("svrmad-step", me.follow);
    me.width = root.clientWidth;
    me.resized = new ResizeObserver(([entry]) => {
      const width = Math.round(entry.contentRect.width);
      if (width === me.width) return;
      me.width = width;
      again(root, me);
    });
    me.resized.observe(root);
    for (const button of parentElement.querySelectorAll("[data-format]")) button.onclick = () => download(me, button.dataset.format);
  }
  me.data = data;
  if (me.text !== data.film) {
    me.text = data.film;
    me.film = unpacked(JSON.parse(data.film));
  }
  me.choose = (agent) => {
    if (!data.choose) return;
    const chosen = agent === window.svrmadAgent ? null : agent;
    window.svrmadAgent = chosen;
    window.dispatchEvent(new CustomEvent("svrmad-step", { detail: "again" }));
    setStateValue("agent", { name: chosen, id: Date.now() });
  };
  window.svrmadAgent = data.agent;
  again(root, me);
  return () => {
    window.removeEventListener("svrmad-step", me.follow);
    me.resized.disconnect();
    memory.delete(root);
    if (window.Plotly) window.Plotly.purge(root);
  };
}

function again(root, me) {
  me.shown = null;
  follow(root, me);
}

function follow(root, me) {
  // a picture of one step follows nobody
  const at = me.film.alt.length === 1 ? 1 : window.svrmadSteps?.[me.data.run];
  const wanted = `${at} ${window.svrmadAgent ?? ""}`;
  if (!at || wanted === me.shown) return;
  if (!window.Plotly) {
    loaded().then(() => follow(root, me), () => { root.textContent = "The charts cannot be drawn: app/static/plotly-basic.min.js did not load. Reload the page."; });
    return;
  }
  me.shown = wanted;
  const k = Math.max(1, Math.min(at, me.film.alt.length));
  me.figure = frame(fitted(me, me.width), k, me.data, me.width);
  root.style.height = `${me.figure.layout.height}px`;
  me.k = k;
  // the very layout that Plotly holds need not be compared
  const same = me.drawn === me.figure.layout;
  me.drawn = me.figure.layout;
  window.Plotly.react(root, me.figure.data, same ? root.layout : structuredClone(me.drawn), CONFIG);
  root.setAttribute("aria-label", me.film.alt[k - 1]);
  root.dataset.step = at;
  if (!me.listening) {
    me.listening = true;
    root.on("plotly_click", (event) => {
      const agent = event.points.map((p) => p.customdata).find((name) => typeof name === "string");
      if (agent) me.choose(agent);
    });
  }
}

function unpacked(film) {
  for (const layer of film.layers) {
    for (const [name, column] of Object.entries(layer.columns)) {
      if (!Array.isArray(column)) layer.columns[name] = column.which.map((i) => column.of[i]);
    }
  }
  return film;
}

// On a narrow page a picture that shrinks is lower too; the layout stays one object as long as it is the same.
function fitted(me, width) {
  const small = shrunk(me.film, width);
  if (small === 1) return me.film;
  if (me.fitted?.small !== small || me.fitted.of !== me.film) {
    const layout = { ...me.film.layout, height: Math.round(me.film.layout.height * small) };
    me.fitted = { small, of: me.film, film: { ...me.film, layout } };
  }
  return me.fitted.film;
}

function shrunk(film, width) {
  return film.fit && width ? Math.min(1, Math.max(0.55, Math.round((width / film.fit) * 20) / 20)) : 1;
}

// The same as still() in film.py, with the chosen agent brought forward and, on a narrow page, smaller signs.
function frame(film, k, { agent, predict, text }, width) {
  const layout = predict && film.at.length ? guarded(film, k) : film.layout;
  const view = { small: shrunk(film, width), edge: layout.xaxis?.range?.[1] };
  const data = [];
  for (const layer of film.layers) {
    const shown = [];
    for (let i = 0; i < layer.start.length; i++) if (layer.start[i] <= k && k < layer.until[i]) shown.push(i);
    if (!shown.length) continue;
    const lines = layer.base.meta?.lines;
    const trace = made(film, k, layer, shown, view);
    if (agent && lines) trace.opacity = 0.18;
    if (agent && layer.base.meta?.nodes) trace.marker.line = { color: text, width: trace.customdata.map((name) => (name === agent ? 4 : 0)) };
    data.push(trace);
    if (agent && lines) {
      const its = shown.filter((i) => layer.columns.customdata[i] === agent || layer.columns.x[i] === null);
      if (its.some((i) => layer.columns.x[i] !== null)) data.push(made(film, k, layer, its, view, 1));
    }
  }
  return { data, layout };
}

// What is to be predicted must not be told by the length of the axis.
function guarded(film, k) {
  const at = film.at[k - 1];
  const xaxis = { ...film.layout.xaxis, dtick: at < 20 ? 1 : null, range: [film.layout.xaxis.range[0], Math.max(4, at + 1)] };
  return { ...film.layout, xaxis };
}

function made(film, k, layer, shown, { small, edge }, opacity) {
  const trace = { ...layer.base };
  for (const [name, column] of Object.entries(layer.columns)) {
    const values = shown.map((i) => column[i]);
    const outer = name.split(".");
    const last = outer.pop();
    let place = trace;
    for (const key of outer) place = place[key] = { ...place[key] };
    place[last] = name === "x" ? values.map((x) => (x === "now" ? film.at[k - 1] : x === "edge" ? edge : x)) : values;
  }
  if (opacity) trace.opacity = opacity;
  if (small < 1) {
    const less = (size) => (Array.isArray(size) ? size.map(less) : size * small);
    if (trace.marker?.size) trace.marker = { ...trace.marker, size: less(trace.marker.size) };
    if (trace.textfont?.size) trace.textfont = { ...trace.textfont, size: Math.max(10, trace.textfont.size * small) };
  } else if (trace.marker) trace.marker = { ...trace.marker };
  return trace;
}

function download(me, format) {
  if (!window.Plotly || !me.figure) return;
  const layout = { ...me.figure.layout, paper_bgcolor: me.data.paper, plot_bgcolor: me.data.paper, width: me.width };
  window.Plotly.downloadImage({ data: me.figure.data, layout }, { format, width: me.width, height: layout.height, scale: format === "png" ? 2 : 1, filename: `${me.data.run}-${me.data.name}-step-${me.k}` });
}

// Streamlit serves the folder static/ beside the page; an address that ends in a slash is one level deeper.
function loaded() {
  window.svrmadPlotly ??= script("app/static/plotly-basic.min.js").catch(() => script("../app/static/plotly-basic.min.js"));
  return window.svrmadPlotly;
}

function script(address) {
  return new Promise((resolve, reject) => {
    const made = document.createElement("script");
    made.src = new URL(address, window.location.href).href;
    made.onload = resolve;
    made.onerror = reject;
    document.head.append(made);
  });
}

if (!window.Plotly) loaded();
