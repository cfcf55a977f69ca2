// Plays Streamlit's part in a run saved as one file: hands each component its data, and follows the timeline.
const held = JSON.parse(document.getElementById("run").textContent);
const at = (id) => document.getElementById(id);
const VIEWS = { scores: "Scores", slope: "Prior → now", flow: "Beliefs" };
const PICTURE = '<div class="svr-picture"><div class="svr-plot" role="img"></div><div class="svr-take"><button type="button" data-format="png">PNG</button><button type="button" data-format="svg">SVG</button></div></div>';
window.svrmadKatexOutput = "mathml"; // set by the browser's own fonts, so that the file needs none
let predict = false;
let step = held.timeline.n;
let undo = {};

function show(k) {
  step = k;
  const told = held.steps[k - 1];
  for (const part of ["head", "legend", "words"]) at(part).innerHTML = told[part];
  say({ data: { speeches: told.said }, parentElement: at("said") });
}

function drawTimeline() {
  timeline({
    data: { ...held.timeline, run: held.run, k: step, hide: predict, jump: 0, echo: 0, name: held.run },
    parentElement: at("timeline"),
    setStateValue: (_, move) => {
      show(move.step);
      window.svrmadTimeline.asked = null;
      drawTimeline.answered?.(move);
    },
  });
}

function draw(place, name) {
  undo[place]?.();
  at(place).innerHTML = PICTURE;
  undo[place] = plot({
    data: { run: held.run, film: held.films[name], name, agent: window.svrmadAgent ?? null, predict, choose: true, text: held.ink.text, paper: held.ink.paper },
    parentElement: at(place),
    setStateValue: () => {},
  });
}

function choose(view) {
  for (const button of at("views").children) button.setAttribute("aria-pressed", String(button.dataset.view === view));
  choose.view = view;
  draw("view", view);
}

for (const [view, title] of Object.entries(VIEWS)) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = title;
  button.dataset.view = view;
  button.onclick = () => choose(view);
  at("views").append(button);
}

function toggle(label, act) {
  const box = document.createElement("input");
  box.type = "checkbox";
  box.onchange = () => act(box.checked);
  const line = document.createElement("label");
  line.append(box, ` ${label}`);
  at("switches").append(line);
}

toggle("Predict: hide what comes", (on) => {
  predict = on;
  drawTimeline();
  draw("graph", "graph");
  choose(choose.view);
});
if (held.reference !== null) {
  const answer = document.createElement("b");
  toggle("Reveal the reference answer", (on) => { answer.textContent = on ? held.reference : ""; });
  at("switches").append(answer);
}

const wanted = /^#step=([0-9]{1,6})$/.exec(window.location.hash);
if (wanted) step = Math.max(1, Math.min(held.timeline.n, Number(wanted[1])));
show(step);
drawTimeline();
draw("graph", "graph");
choose("scores");
