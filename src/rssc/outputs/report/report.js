"use strict";
// Draws the plots with the page's own colours, moves the cut between the two pictures, turns the 3D view by keys.

const plots = JSON.parse(document.getElementById("plots").textContent);
const config = { displayModeBar: false, responsive: false };

// Plots name their colours as CSS variables; their values depend on light, dark and print.
function coloured(value, style) {
  if (typeof value === "string") {
    const name = /^var\((--[\w-]+)\)$/.exec(value);
    return name ? style.getPropertyValue(name[1]).trim() : value;
  }
  if (Array.isArray(value)) return value.map((item) => coloured(item, style));
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, coloured(item, style)]));
  return value;
}

// Plotly writes turns by mouse into the layout of the first drawing only; the full layout always has them.
const view = document.getElementById("space");
const viewpoint = () => view._fullLayout.scene.camera;

function draw() {
  const style = getComputedStyle(document.documentElement);
  for (const [name, plot] of Object.entries(plots)) {
    const element = document.getElementById(name);
    const { data, layout } = coloured(plot, style);
    layout.width = element.clientWidth;
    const { aspect } = layout.meta || {};
    if (aspect) {
      const { l, r, t, b } = layout.margin;
      layout.height = Math.round((layout.width - l - r) * aspect + t + b);
    }
    if (name === "space" && element._fullLayout) layout.scene.camera = viewpoint();
    Plotly.react(element, data, layout, config);
  }
}

let drawnWidth = 0;
let waiting = 0;
function redraw() {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(() => {
    drawnWidth = document.body.clientWidth;
    draw();
  });
}
redraw();
addEventListener("resize", () => { if (document.body.clientWidth !== drawnWidth) redraw(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("beforeprint", () => { document.documentElement.classList.add("printing"); draw(); });
addEventListener("afterprint", () => { document.documentElement.classList.remove("printing"); redraw(); });

const slider = document.getElementById("compare");
if (slider) {
  const pair = slider.parentElement.querySelector(".pair");
  const move = () => {
    pair.style.setProperty("--cut", slider.value + "%");
    slider.setAttribute("aria-valuetext", slider.value + " percent as filmed");
  };
  const follow = (event) => {
    const { left, width } = pair.getBoundingClientRect();
    slider.value = Math.round((100 * (event.clientX - left)) / width);
    move();
  };
  slider.addEventListener("input", move);
  pair.addEventListener("pointerdown", (event) => { pair.setPointerCapture(event.pointerId); follow(event); });
  pair.addEventListener("pointermove", (event) => { if (pair.hasPointerCapture(event.pointerId)) follow(event); });
  pair.addEventListener("dragstart", (event) => event.preventDefault());
  move();
}

const turns = { ArrowLeft: [-0.12, 0, 1], ArrowRight: [0.12, 0, 1], ArrowUp: [0, 0.12, 1], ArrowDown: [0, -0.12, 1],
  "+": [0, 0, 0.9], "=": [0, 0, 0.9], "-": [0, 0, 1 / 0.9] };
if (view) view.addEventListener("keydown", (event) => {
  const turn = turns[event.key];
  if (!turn) return;
  event.preventDefault();
  const { eye, center, up } = viewpoint();
  const [turned, raised, nearer] = turn;
  const distance = Math.hypot(eye.x, eye.y, eye.z) * nearer;
  const around = Math.atan2(eye.y, eye.x) + turned;
  const above = Math.max(-1.5, Math.min(1.5, Math.atan2(eye.z, Math.hypot(eye.x, eye.y)) + raised));
  const flat = distance * Math.cos(above);
  const moved = { x: flat * Math.cos(around), y: flat * Math.sin(around), z: distance * Math.sin(above) };
  Plotly.relayout(view, { "scene.camera": { center, up, eye: moved } });
});
