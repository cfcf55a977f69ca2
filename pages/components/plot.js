// Draws the step at which the timeline stands, with the Plotly that Streamlit has loaded for its own charts.
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
    clearTimeout(me.waiting);
    window.removeEventListener("svrmad-step", me.follow);
    memory.delete(root);
    if (window.Plotly) window.Plotly.purge(root);
  };
}

function follow(root, me) {
  clearTimeout(me.waiting);
  const at = window.svrmadStep;
  if (!at || at.run !== me.data.run || at.k === me.shown) return;
  const spec = me.data.steps[at.k];
  if (!spec) return;
  if (!window.Plotly) {
    me.waiting = setTimeout(() => follow(root, me), 20);
    return;
  }
  me.shown = at.k;
  const { data, layout, alt } = JSON.parse(spec);
  root.setAttribute("aria-label", alt);
  root.dataset.step = at.k;
  window.Plotly.react(root, data, layout, CONFIG);
}
