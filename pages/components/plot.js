// Draws the step at which the timeline stands.
const CONFIG = { displayModeBar: false, scrollZoom: false, doubleClick: false, responsive: true };
const memory = new WeakMap();

export default function (component) {
  const { data, parentElement } = component;
  const root = parentElement.querySelector(".svr-plot");
  let me = memory.get(root);
  if (!me) {
    me = {};
    memory.set(root, me);
    me.follow = () => follow(root, me);
    window.addEventListener("svrmad-step", me.follow);
  }
  me.data = data;
  me.shown = null;
  root.style.height = `${data.height}px`;
  follow(root, me);
  return () => {
    window.removeEventListener("svrmad-step", me.follow);
    memory.delete(root);
    if (window.Plotly) window.Plotly.purge(root);
  };
}

function follow(root, me) {
  const at = window.svrmadStep;
  if (!at || at.run !== me.data.run || at.k === me.shown) return;
  const spec = me.data.steps[at.k];
  if (!spec) return;
  if (!window.Plotly) {
    loaded().then(() => follow(root, me), () => { root.textContent = "The charts cannot be drawn: app/static/plotly-basic.min.js did not load. Reload the page."; });
    return;
  }
  me.shown = at.k;
  const { data, layout, alt } = JSON.parse(spec);
  root.setAttribute("aria-label", alt);
  root.dataset.step = at.k;
  window.Plotly.react(root, data, layout, CONFIG);
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

loaded();
