// What the page shows of a run. Every function gets the run as the server tells it, and returns elements.
import { date, duration, el, fixed, size } from "./dom.js";

const JOBS = { check: "Checking", calibrate: "Calibrating", rectify: "Rectifying the video" };
const WORDS = { ok: "ok", weak: "weak", degenerate: "not determined" };
// Of a comparison: name, unit, factor, decimals.
const ROWS = {
  readout_time_s: ["Readout time", "ms", 1e3, 4], exposure_time_s: ["Exposure time", "ms", 1e3, 3], readout_ratio: ["Readout ratio", "", 1, 5],
  fx: ["fx", "px", 1, 3], fy: ["fy", "px", 1, 3], cx: ["cx", "px", 1, 3], cy: ["cy", "px", 1, 3],
};

export const active = (run) => run.job != null && ["queued", "running"].includes(run.job.state);
export const calibrated = (run) => run.calibrate != null && run.calibrate.quantities.length > 0;

/** The state of a run in a few words, and its colour. */
export function standing(run) {
  const job = run.job;
  if (job?.state === "queued") return ["waits", "busy"];
  if (job?.state === "running") return [`${JOBS[job.kind].toLowerCase().split(" ")[0]} …`, "busy"];
  if (run.calibrate) return [WORDS[run.calibrate.status], run.calibrate.status];
  if (job?.state === "failed") return ["failed", "degenerate"];
  if (run.check) return [`checked: ${WORDS[run.check.status]}`, run.check.status];
  return [job?.state ?? "new", "none"];
}

/** A sentence for those who do not see the page change. */
export function sentence(run) {
  const job = run.job;
  if (job.state === "failed") return `${run.name}: ${job.error}`;
  if (job.state !== "done") return `${run.name}: ${JOBS[job.kind]}, ${job.state}`;
  const said = run[job.kind];
  return job.kind === "rectify" ? `${run.name}: the rectified video is ready` : `${run.name}: ${job.kind} done, ${said?.verdict ?? ""}`;
}

/** A line of the list. */
export function entry(run, selected) {
  const [words, colour] = standing(run);
  const options = optionWords(run.options);
  return el("li", {}, el("a", { id: `to-${run.id}`, href: `#/${run.id}`, "aria-current": selected ? "page" : null },
    el("span", { class: "name" }, run.name),
    el("span", { class: "line" }, el("span", { class: `dot ${colour}`, "aria-hidden": "true" }), words),
    el("span", { class: "line" }, date(run.created), options && ` · ${options}`)));
}

const optionWords = (options) => [
  options.lens !== "auto" && `${options.lens} lens`, options.fps && `${options.fps} fps`,
  (options.first != null || options.last != null) && `frames ${options.first ?? ""}:${options.last ?? ""}`,
].filter(Boolean).join(", ");

export function head(run, act) {
  const options = optionWords(run.options);
  return [
    el("div", { class: "head" }, el("h2", { id: "name" }, run.name),
      el("button", { id: "delete", class: "quiet", onclick: act.remove }, "Delete")),
    el("p", { class: "facts" }, `${size(run.bytes)}, ${date(run.created)}`, run.calibrate && `, ${run.calibrate.facts}`, options && ` · asked for: ${options}`),
  ];
}

/** The job that waits or runs, or how the last one ended where it did not go well. */
export function job(run, before, act) {
  const job = run.job;
  if (!job || job.state === "done") return [];
  if (job.state === "failed")
    return el("div", { class: "verdict degenerate", role: "alert" }, el("strong", {}, `${JOBS[job.kind]} failed. `), job.error);
  if (job.state === "cancelled") return el("p", { class: "verdict none" }, `${JOBS[job.kind]} was cancelled. Nothing was lost.`);
  const cancel = el("button", { id: "cancel", onclick: act.cancel }, "Cancel");
  if (job.state === "queued")
    return el("section", { class: "card" }, el("div", { class: "head" }, el("h3", {}, "Waiting"), cancel),
      el("p", {}, before ? `${before} ${before === 1 ? "job is" : "jobs are"} before this one; one runs at a time.` : "It begins in a moment."));
  return el("section", { class: "card" },
    el("div", { class: "head" }, el("h3", {}, JOBS[job.kind], " ", el("span", { id: "clock", class: "small" })), cancel),
    el("table", { class: "stages" }, el("tbody", { id: "stages" })));
}

/** The stages of a job that runs; apart from it, so that its button stays the same under the pointer. */
export const stages = (run) => run.job.stages.filter((one) => one.name !== "starting" || !one.ended).map(stage);

function stage(stage) {
  const name = el("th", { scope: "row" }, stage.name);
  if (stage.name === "starting")
    return el("tr", {}, name, el("td", { class: "small", colspan: 2 }, "the very first job compiles for about a minute"));
  return el("tr", {}, name,
    el("td", {}, el("progress", { max: 1, value: stage.share, "aria-label": stage.name })),
    el("td", { class: "percent" }, stage.ended ? duration(stage.ended - stage.began) : `${Math.round(100 * stage.share)} %`));
}

const list = (lines, kind) => lines.length > 0 && el("ul", { class: kind }, lines.map((line) => el("li", {}, line.replaceAll("+-", "±"))));

function verdict(said, name) {
  const first = said.verdict.charAt(0).toUpperCase() + said.verdict.slice(1);
  return [el("p", { class: `verdict ${said.status}` }, el("strong", {}, `${name}: ${WORDS[said.status]}. `), first, /[.!?]$/.test(first) ? "" : "."),
    list(said.reasons, "reasons")];
}

/** What the check said; in a fold, with its frames, once there is a result. */
export function check(run) {
  if (!run.check || run.calibrate) return [];
  return el("section", { "aria-label": "Check" }, verdict(run.check, "Check"));
}

/** What the check looked at. */
export function frames(run) {
  const said = run.check;
  if (!said) return [];
  const pictures = said.frames.map((number) =>
    el("figure", {}, el("img", { src: `runs/${run.id}/frames/${number}.jpg`, alt: `Frame ${number}`, loading: "lazy" }), el("figcaption", {}, number)));
  const lines = [...said.notes.map((note) => `note: ${note}`), ...said.facts];
  const body = [
    pictures.length > 0 && el("div", { class: "frames" }, pictures),
    list(lines.map((line) => line.charAt(0).toUpperCase() + line.slice(1)), "notes"),
  ];
  if (run.calibrate) return el("details", { id: "check-fold", class: "fold" }, el("summary", {}, "What the check said before"), verdict(said, "Check"), body);
  return el("section", {}, el("h3", {}, "Frames that the check looked at"), body);
}

export function result(run) {
  const said = run.calibrate;
  if (!said) return [];
  const remedies = said.remedies.filter((remedy) => !said.reasons.some((reason) => reason.includes(remedy)));
  return el("section", { "aria-label": "Result" }, verdict(said, "Verdict"),
    remedies.length > 0 && el("p", { class: "small" }, `What to do: ${remedies.join("; ")}.`),
    said.quantities.length > 0 && el("table", { class: "quantities" },
      el("thead", {}, el("tr", {}, ["Quantity", "Estimate", "95 % interval"].map((word) => el("th", { scope: "col" }, word)))),
      el("tbody", {}, said.quantities.map((row) => el("tr", {}, el("th", { scope: "row" }, row.label),
        el("td", {}, row.value, row.unit && el("span", { class: "unit" }, ` ${row.unit}`)), el("td", {}, row.interval))))),
    list(said.notes.map((note) => `Note: ${note}`), "notes"),
    said.quantities.length > 0 && el("p", { class: "small" }, `From ${said.frames} frames; rms residual ${said.rms_px.toFixed(3)} px.`));
}

export function downloads(run, act) {
  const said = run.calibrate;
  if (!said) return [];
  const at = `runs/${run.id}`;
  const file = (name, words) => el("li", {}, el("a", { href: `${at}/results/${name}`, download: "" }, name), el("span", { class: "small" }, ` ${words}`));
  const report = el("a", { id: "report", class: "button", href: `${at}/report`, target: "_blank", rel: "noopener" }, "Open the full report");
  const json = el("a", { class: "button plain", href: `${at}/results/calibration.json`, download: "" }, "Download calibration.json");
  if (!calibrated(run)) return el("p", { class: "buttons" }, report, json);
  const rectified = run.rectify
    ? el("a", { id: "rectified", class: "button plain", href: `${at}/rectified`, download: "" }, `Download rectified video (${size(run.rectify.bytes)})`)
    : el("button", { id: "rectify", onclick: act.rectify, disabled: active(run) }, "Make the rectified video");
  return [
    el("p", { class: "buttons" }, report, json, rectified),
    el("details", { id: "exports", class: "fold" }, el("summary", {}, "Files for other tools"),
      el("dl", {}, said.exports.map((one) => [
        el("dt", {}, one.refused ? one.format : el("a", { href: `${at}/exports/${one.format}.zip`, download: "" }, `${one.format}.zip`)),
        el("dd", {}, one.refused ? `Not for this camera: ${one.refused}` : one.words)]))),
    el("details", { id: "files", class: "fold" }, el("summary", {}, "All files of the result"),
      el("ul", { class: "files" }, file("report.html", "the report, to keep or send"), file("calibration.json", "camera, covariance, verdict"),
        file("stretches.npz", "trajectory and tracks; rssc reads it beside calibration.json"), file("trajectory.tum", "poses"), file("points.ply", "points"))),
  ];
}

/** The choice of another run, and what the two have in common; `said` is the comparison, an error in words, or null. */
export function compare(run, others, other, said, act) {
  if (!calibrated(run) || others.length === 0) return [];
  const choice = el("select", { id: "with", onchange: (event) => act.compare(event.target.value) },
    el("option", { value: "" }, "choose a run"),
    others.map((one) => el("option", { value: one.id, selected: one.id === other?.id },
      [one.name, optionWords(one.options), date(one.created)].filter(Boolean).join(" · "))));
  return el("section", { class: "compare" }, el("h3", {}, el("label", { for: "with" }, "Compare with another run")), choice,
    !other ? [] : said == null ? el("p", { class: "small" }, "Comparing …")
      : said.error ? el("p", { class: "verdict degenerate" }, said.error) : comparison(said));
}

function comparison(said) {
  const same = said.same_camera;
  const [colour, words] = same >= 0.05 ? ["ok", "They agree within their error bars."]
    : same >= 0.001 ? ["weak", "They differ somewhat more than their error bars predict."] : ["degenerate", "They differ by more than their error bars allow."];
  const agree = same == null ? [] : el("p", { class: `verdict ${colour}` }, el("strong", {}, words, " "),
    `Two runs of one camera differ this much, or more, with a probability of ${same < 0.001 ? "less than 0.001" : fixed(same, 3)}.`);
  const rows = Object.entries(said.parameters).map(([name, one]) => {
    const [label, unit, factor, decimals] = ROWS[name] ?? [name, "", 1, 5];
    return [[label, unit && el("span", { class: "unit" }, ` ${unit}`)],
      ...[one.estimate, one.truth, one.error].map((value) => fixed(factor * value, decimals)), fixed(one.sigmas, 2)];
  });
  const places = said.projection ? Object.entries(said.projection.places).map(([where, one]) =>
    [where, fixed(one.difference_px, 3), fixed(one.sigma_px, 3), fixed(one.ratio, 2)]) : [];
  return [
    agree,
    table("Where the two put a far point, in pixels", ["Place in the image", "Difference", "Predicted", "Ratio"], places),
    table("Parameters", ["", "This run", "Other run", "Difference", "In sigmas"], rows),
    list(said.notes.map((note) => `Note: ${note}`), "notes"),
  ];
}

const table = (title, headings, rows) => rows.length > 0 && el("div", { class: "wide", role: "region", tabindex: 0, "aria-label": title },
  el("table", {}, el("caption", {}, title), el("thead", {}, el("tr", {}, headings.map((word) => el("th", { scope: "col" }, word)))),
    el("tbody", {}, rows.map(([first, ...rest]) => el("tr", {}, el("th", { scope: "row" }, first), rest.map((cell) => el("td", {}, cell)))))));

/** The form that starts a calibration; `draft` is what is typed in it. */
export function options(run, lenses, draft, act) {
  if (active(run)) return [];
  const field = (name, label, attributes, hint) => el("p", { class: "field" }, el("label", { for: name }, label),
    el("input", { id: name, autocomplete: "off", value: draft[name] ?? "", oninput: (event) => (draft[name] = event.target.value), ...attributes }),
    el("span", { class: "small", id: `${name}-hint` }, hint));
  const lens = el("p", { class: "field" }, el("label", { for: "lens" }, "Lens"),
    el("select", { id: "lens", onchange: (event) => (draft.lens = event.target.value) },
      lenses.map((name) => el("option", { value: name, selected: name === draft.lens }, name))),
    el("span", { class: "small" }, "auto chooses by evidence"));
  const unread = !run.check && !run.calibrate;
  const words = unread ? "Check again" : run.calibrate ? "Calibrate again" : run.check.status === "degenerate" ? "Calibrate all the same" : "Calibrate";
  const main = !run.calibrate && run.check?.status !== "degenerate";
  return el("form", { class: "start", onsubmit: (event) => { event.preventDefault(); unread ? act.recheck() : act.start(); } },
    el("details", { id: "options-fold", class: "fold" }, el("summary", {}, "Options"),
      lens,
      field("fps", "Frames per second", { inputmode: "decimal", "aria-describedby": "fps-hint" }, "of the camera, where the file is wrong: 29.97 or 30000/1001"),
      el("div", { class: "pair" }, field("first", "First frame", { type: "number", min: 0 }, ""), field("last", "One past the last", { type: "number", min: 1 }, "the most informative ones where empty")),
      !unread && !run.calibrate && el("p", {}, el("button", { id: "recheck", type: "button", onclick: act.recheck }, "Check again with these"))),
    el("p", { class: "buttons" }, el("button", { id: "start", class: main ? "main" : "" }, words),
      run.calibrate && el("span", { class: "small" }, "as another run, to compare with this one")),
    el("p", { id: "refused", class: "verdict degenerate", role: "alert", hidden: true }));
}
