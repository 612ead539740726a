// The page: what the server tells, what is selected, and what the user does. The server's state is the only one;
// a reload or another tab shows the same.
import { duration, el, show, size } from "./dom.js";
import * as view from "./view.js";

const at = (id) => document.getElementById(id);
const runs = new Map();
const drafts = new Map();
const comparisons = new Map();
const uploads = new Map();
let server = { version: -1, limit_bytes: Infinity, lenses: ["auto"] };
let trouble = "";

const selected = () => location.hash.slice(2).split("/");
const newest = () => [...runs.values()].sort((one, other) => other.created - one.created);

async function request(path, method = "GET", body = undefined) {
  const answer = await fetch(path, { method, body: body && JSON.stringify(body) });
  if (answer.status === 204) return null;
  if (answer.status === 403) throw new Error("This page belongs to a server that has ended. Open the address that rssc app printed last.");
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  return said;
}

// --- what the server tells

let timer = 0;
async function poll() {
  clearTimeout(timer);
  try {
    const news = await request(`state?since=${server.version}`);
    if (news) learn(news);
    trouble = "";
  } catch (error) {
    trouble = error instanceof TypeError ? "The server does not answer. Start rssc app again, and open the address that it prints." : error.message;
  }
  draw();
  clearTimeout(timer);
  const busy = [...runs.values()].some(view.active);
  timer = setTimeout(poll, document.hidden ? 3000 : busy ? 400 : 1500);
}

function learn(news) {
  const first = server.version < 0;
  server = { ...server, ...news };
  for (const id of [...runs.keys()]) if (!news.ids.includes(id)) runs.delete(id);
  for (const run of news.runs) {
    const before = runs.get(run.id);
    runs.set(run.id, run);
    const state = (one) => one?.job && one.job.kind + one.job.state;
    if (!first && run.job && state(before) !== state(run) && run.job.state !== "queued") at("said").textContent = view.sentence(run);
  }
}

// --- what the user does

async function upload(file) {
  const id = crypto.randomUUID();
  const one = { name: file.name, share: 0, error: "" };
  uploads.set(id, one);
  if (file.size > server.limit_bytes) {
    one.error = `${file.name} is larger than the limit of ${size(server.limit_bytes)}; cut it to the seconds that show the motion, or start rssc app with a larger --limit.`;
    return draw();
  }
  const sender = new XMLHttpRequest();
  one.stop = () => sender.abort();
  sender.upload.onprogress = (event) => { one.share = event.loaded / event.total; draw(); };
  sender.onloadend = async () => {
    let said = {};
    try { said = JSON.parse(sender.responseText); } catch { /* none came */ }
    if (sender.status === 201 || !sender.status && one.stopped) uploads.delete(id);
    else one.error = said.error ?? `${file.name} did not arrive; is rssc app still running?`;
    await poll();
    if (sender.status === 201) { location.hash = `#/${said.id}`; at("main").focus({ preventScroll: true }); }
  };
  sender.open("POST", `runs?name=${encodeURIComponent(file.name)}`);
  sender.send(file);
  draw();
}

function actions(run) {
  const draft = drafts.get(run.id);
  const chosen = () => ({
    lens: draft.lens, fps: draft.fps ?? "",
    first: draft.first === "" || draft.first == null ? null : Number(draft.first), last: draft.last === "" || draft.last == null ? null : Number(draft.last),
  });
  const attempt = async (path, method, body) => {
    try {
      const said = await request(`runs/${run.id}${path}`, method, body);
      await poll();
      return said;
    } catch (error) {
      const place = at("refused");
      if (place) { place.textContent = error.message; place.hidden = false; } else { trouble = error.message; draw(); }
      return null;
    }
  };
  return {
    start: async () => {
      const said = await attempt(run.calibrate ? "/again" : "/calibrate", "POST", chosen());
      if (said) { location.hash = `#/${said.id}`; at("cancel")?.focus(); }
    },
    recheck: () => attempt("/check", "POST", chosen()),
    rectify: async () => { if (await attempt("/rectify", "POST")) at("cancel")?.focus(); },
    cancel: async () => { at("cancel").disabled = true; await attempt("/cancel", "POST"); at("start")?.focus(); },
    compare: (other) => { location.hash = other ? `#/${run.id}/${other}` : `#/${run.id}`; },
    remove: () => {
      at("sure-words").textContent = `Delete ${run.name}, its results and this copy of the video? Your own file stays.`;
      const sure = at("sure");
      sure.returnValue = "no";
      sure.onclose = async () => {
        if (sure.returnValue !== "yes" || !(await attempt("", "DELETE"))) return;
        location.hash = "#";
        at("file").focus();
      };
      sure.showModal();
    },
  };
}

async function comparison(one, other) {
  const key = `${one}/${other}`;
  if (comparisons.has(key)) return;
  comparisons.set(key, null);
  try { comparisons.set(key, await request(`compare/${key}`)); } catch (error) { comparisons.set(key, { error: error.message }); }
  draw();
}

// --- what is shown

function draw() {
  const [id, otherId] = selected();
  const run = runs.get(id);
  at("trouble").textContent = trouble;
  at("trouble").hidden = !trouble;
  document.body.classList.toggle("loading", server.version < 0);
  document.body.classList.toggle("empty", runs.size === 0);
  show(at("uploads"), [...uploads].map(([key, one]) => [key, one.share, one.error]), () => [...uploads].map(([key, one]) => upcoming(key, one)));
  show(at("runs"), [newest().map((one) => [one.id, view.standing(one), one.options]), id], () => newest().map((one) => view.entry(one, one.id === id)));
  at("welcome").hidden = run != null || server.version < 0;
  at("run").hidden = run == null;
  document.title = run ? `${run.name} · rssc` : "rssc";
  if (run) drawRun(run, runs.get(otherId));
}

function drawRun(run, other) {
  if (!drafts.has(run.id)) drafts.set(run.id, { ...run.options });
  const act = actions(run);
  const { job, check, calibrate, rectify, options } = run;
  const busy = view.active(run);
  const before = [...runs.values()].filter((one) => one.id !== run.id && view.active(one) && (one.job.state === "running" || one.job.queued < job?.queued)).length;
  const others = newest().filter((one) => one.id !== run.id && view.calibrated(one));
  const said = other && comparisons.get(`${run.id}/${other.id}`);
  if (other && view.calibrated(run) && view.calibrated(other)) comparison(run.id, other.id);
  show(at("head"), [run.id, calibrate?.facts, options], () => view.head(run, act));
  show(at("job"), [run.id, job?.kind, job?.state, job?.queued, before], () => view.job(run, before, act));
  if (at("stages")) show(at("stages"), job.stages, () => view.stages(run));
  show(at("result"), [run.id, calibrate], () => view.result(run));
  show(at("downloads"), [run.id, calibrate, rectify, busy], () => view.downloads(run, act));
  show(at("compare"), [run.id, view.calibrated(run), others.map((one) => one.id), other?.id, said], () => view.compare(run, others, other, said, act));
  show(at("check"), [run.id, check, calibrate != null], () => view.check(run));
  show(at("frames"), [run.id, check, calibrate != null], () => view.frames(run));
  show(at("options"), [run.id, check?.status, calibrate != null, busy], () => view.options(run, server.lenses, drafts.get(run.id), act));
  const clock = at("clock");
  if (clock && job?.began) clock.textContent = duration(Date.now() / 1000 - job.began);
}

const upcoming = (key, one) => el("li", { class: "upload" }, el("span", { class: "name" }, one.name),
  one.error ? el("p", { class: "verdict degenerate", role: "alert" }, one.error)
    : el("progress", { max: 1, value: one.share, "aria-label": `Copying ${one.name}` }),
  el("button", { id: `stop-${key}`, class: "quiet", onclick: () => { one.stopped = true; one.stop?.(); uploads.delete(key); draw(); } }, one.error ? "Dismiss" : "Stop"));

// --- events

at("file").addEventListener("change", (event) => { for (const file of event.target.files) upload(file); event.target.value = ""; });
let over = 0;
const dragging = (step) => (event) => {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  over = Math.max(0, over + step);
  document.body.classList.toggle("over", over > 0);
};
addEventListener("dragenter", dragging(1));
addEventListener("dragleave", dragging(-1));
addEventListener("dragover", dragging(0));
addEventListener("drop", (event) => {
  event.preventDefault();
  over = 0;
  document.body.classList.remove("over");
  for (const file of event.dataTransfer?.files ?? []) upload(file);
});
addEventListener("hashchange", draw);
addEventListener("beforeunload", (event) => { if ([...uploads.values()].some((one) => !one.error)) event.preventDefault(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
poll();
