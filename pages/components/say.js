// What agents said, side by side. Everything a model wrote is set as text; formulas by KaTeX, which trusts nothing.
const FOLD_ABOVE = 1400;
const memory = new WeakMap();

export default function (component) {
  const { data, parentElement } = component;
  const root = parentElement.querySelector(".svr-said");
  const text = JSON.stringify(data.speeches);
  if (memory.get(root) === text) return;
  memory.set(root, text);
  root.replaceChildren(...data.speeches.map(speech));
  if (root.querySelector("[data-formula]")) katex().then(() => formulas(root), () => {});
}

function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function speech({ who, colour, pieces, facts, note }) {
  const made = element("section", "svr-say");
  made.style.borderColor = colour;
  made.append(element("div", "small", who));
  if (note) made.append(element("div", "small note", note));
  const body = element("div", "body");
  for (const [kind, content, mark] of pieces) body.append(piece(kind, content, mark));
  if (!pieces.length) body.append(element("i", "", "(an empty reply)"));
  made.append(body);
  const length = pieces.reduce((sum, [, content]) => sum + content.length, 0);
  if (length > FOLD_ABOVE) fold(made, body, length);
  if (facts) made.append(element("div", "small", facts));
  return made;
}

function piece(kind, content, mark) {
  const made = element(kind === "strong" ? "b" : mark ? "mark" : "span", mark, content);
  if (kind === "math" || kind === "display") made.dataset.formula = kind;
  if (mark) made.title = mark === "new" ? "not in the reply before" : "no longer in the reply after";
  return made;
}

function fold(made, body, length) {
  const button = element("button", "", "");
  button.type = "button";
  const turn = (folded) => {
    body.classList.toggle("folded", folded);
    button.textContent = folded ? `Show all ${length.toLocaleString("en")} characters` : "Show less";
    button.setAttribute("aria-expanded", String(!folded));
  };
  button.onclick = () => turn(!body.classList.contains("folded"));
  turn(true);
  made.append(button);
}

function formulas(root) {
  for (const place of root.querySelectorAll("[data-formula]")) {
    const source = place.textContent;
    const displayMode = place.dataset.formula === "display";
    delete place.dataset.formula;
    try {
      window.katex.render(source, place, { displayMode, throwOnError: true, trust: false, strict: "ignore", maxExpand: 200, maxSize: 20, output: window.svrmadKatexOutput ?? "htmlAndMathml" });
      place.classList.add(displayMode ? "display" : "inline");
    } catch {
      place.textContent = source; // no LaTeX after all: shown as it was written
      place.classList.add("raw");
    }
  }
}

function katex() {
  if (window.katex) return Promise.resolve();
  window.svrmadKatex ??= load("app/static/").catch(() => load("../app/static/"));
  return window.svrmadKatex;
}

function load(folder) {
  const at = (file) => new URL(`${folder}katex/${file}`, window.location.href).href;
  return new Promise((resolve, reject) => {
    const made = document.createElement("script");
    made.src = at("katex.min.js");
    made.onload = () => {
      const style = document.createElement("link");
      style.rel = "stylesheet";
      style.href = at("katex.min.css");
      document.head.append(style);
      resolve();
    };
    made.onerror = reject;
    document.head.append(made);
  });
}
