"""`rssc app` in a real browser, end to end: one clip is dropped, checked and calibrated, and all tests look at it."""

import base64
import json
import shutil
import zipfile

import pytest

import rssc
from tests.browser import MISSING, App, chromium, until

if chromium() is None:
    pytest.skip(MISSING, allow_module_level=True)
pytest.importorskip("starlette", reason="starlette is not installed; pip install '.[app]'")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed; pip install '.[test]'")

NAME = 'Küche <b>"1".mp4'
DROP = """([name, data]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const files = new DataTransfer();
  files.items.add(new File([bytes], name, { type: "video/mp4" }));
  for (const kind of ["dragenter", "dragover", "drop"]) {
    const event = new DragEvent(kind, { dataTransfer: files, bubbles: true, cancelable: true });
    document.querySelector(".drop").dispatchEvent(event);
  }
}"""
JOB_SECONDS = 240
"""That a job may take before a test gives up: the first one may compile."""


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    app = App(tmp_path_factory.mktemp("app") / "work")
    yield app
    app.stop()


@pytest.fixture(scope="module")
def open_page(app, browser):
    """Opens the page; in the end checks that nothing was complained about, and nothing else was asked."""
    complaints, contexts = [], []

    def opened(where="", width=1280, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda sent: sent.url.startswith((app.address, "data:")) or complaints.append(sent.url))
        page.goto(app.address + where)
        page.wait_for_selector("#run:not([hidden]), #welcome:not([hidden])")
        return page

    opened.contexts = contexts
    yield opened
    assert not complaints


@pytest.fixture(autouse=True)
def pages_end(open_page):
    """Closes the pages of a test."""
    yield
    while open_page.contexts:
        open_page.contexts.pop().close()


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    path = rssc.simulate(tmp_path_factory.mktemp("clip"), width=200, height=150, frames=20, seed=3)
    return path.read_bytes()


@pytest.fixture(scope="module")
def checked(app, open_page, clip):
    """The address of a run that was dropped and checked."""
    page = open_page()
    assert page.is_visible("text=What to film")
    page.evaluate(DROP, [NAME, base64.b64encode(clip).decode()])
    page.wait_for_selector("#check .verdict", timeout=1000 * JOB_SECONDS)
    return page.evaluate("location.hash")


@pytest.fixture(scope="module")
def calibrated(app, open_page, checked):
    """The same, calibrated: started by keyboard, watched in two tabs, one of which is loaded again meanwhile."""
    page, other = open_page(checked), open_page(checked)
    page.focus("#start")
    page.keyboard.press("Enter")
    for tab in (page, other):
        tab.wait_for_selector("#job progress")
    assert page.evaluate("document.activeElement.id") == "cancel"
    page.reload()
    page.wait_for_selector("#job progress")
    for tab in (page, other):
        tab.wait_for_selector(".quantities", timeout=1000 * JOB_SECONDS)
    assert "calibrate done" in other.inner_text("#said")
    return checked


def test_a_dropped_video_is_checked_and_shown(open_page, checked):
    page = open_page(checked)
    assert page.inner_text("#name") == NAME
    assert "This clip will do" in page.inner_text("#check .verdict")
    images = "[...document.querySelectorAll('.frames img')]"
    until(page, f"{images}.length >= 4 && {images}.every((image) => image.naturalWidth > 0)")
    assert "readout ratio" in page.inner_text("#frames")


def test_the_result_is_that_of_the_calibration(app, open_page, calibrated):
    page = open_page(calibrated)
    document = json.loads((app.folder / "runs" / calibrated[2:] / "calibrate" / "calibration.json").read_text())
    first = page.inner_text(".quantities tbody tr:first-child")
    assert "Readout time" in first
    assert 17 < float(first.split()[2]) < 20
    assert document["status"] in page.inner_text("#result .verdict")
    with page.context.expect_page() as opened:
        page.click("#report")
    opened.value.wait_for_selector(".js-plotly-plot .main-svg")
    assert "Verdict" in opened.value.inner_text("body")


def test_files_are_downloaded(open_page, calibrated):
    page = open_page(calibrated)
    with page.expect_download() as download:
        page.click("text=Download calibration.json")
    assert download.value.suggested_filename.endswith("_calibration.json")
    page.click("#exports summary")
    with page.expect_download() as download:
        page.click("text=kalibr.zip")
    with zipfile.ZipFile(download.value.path()) as archive:
        assert b"line_delay:" in b"".join(archive.read(name) for name in archive.namelist())


def test_a_rectified_video_is_made(open_page, calibrated):
    page = open_page(calibrated)
    page.click("#rectify")
    page.wait_for_selector("#rectified", timeout=1000 * JOB_SECONDS)
    with page.expect_download() as download:
        page.click("#rectified")
    assert b"ftyp" in download.value.path().read_bytes()[:64]


def test_another_run_is_cancelled_and_deleted(app, open_page, calibrated):
    page = open_page(calibrated)
    page.click("#options-fold summary")
    page.select_option("#lens", "radial")
    page.click("#start")
    page.wait_for_selector("#job progress")
    where = page.evaluate("location.hash")
    assert where != calibrated
    page.click("#cancel")
    page.wait_for_selector("text=was cancelled")
    assert app.runs()[where[2:]]["options"]["lens"] == "radial"
    assert not (app.folder / "runs" / where[2:] / "new").exists()
    page.focus("#delete")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert where[2:] in app.runs()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#welcome:not([hidden])")
    assert list(app.runs()) == [calibrated[2:]]


def test_errors_are_in_the_words_of_the_command_line(open_page, calibrated):
    page = open_page()
    page.set_input_files("#file", {"name": "x<i>.mp4", "mimeType": "video/mp4", "buffer": b"no video" * 100})
    page.wait_for_selector("#job .verdict", timeout=1000 * JOB_SECONDS)
    assert "x<i>.mp4 is not a readable video" in page.inner_text("#job")
    page.click("#options-fold summary")
    page.fill("#fps", "abc")
    page.click("#start")
    page.wait_for_selector("#refused:not([hidden])")
    assert "fps is 'abc'; expected a number" in page.inner_text("#refused")
    page.click("#delete")
    page.click("#sure button.danger")
    page.wait_for_selector("#welcome:not([hidden])")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_narrow_window(open_page, calibrated, scheme):
    for where in ("", calibrated):
        page = open_page(where, 400, scheme)
        page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        colour = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (max(int(n) for n in colour.strip("rgb()").split(",")) < 60) == (scheme == "dark")


def test_everything_is_reached_by_keyboard_and_has_a_name(open_page, calibrated):
    page = open_page(calibrated)
    seen = []
    for _ in range(30):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert seen[:2] == ["skip", ""]
    order = ["file", f"to-{calibrated[2:]}", "delete", "report", "start"]
    assert [name for name in seen if name in order][: len(order)] == order
    unnamed = """[...document.querySelectorAll("a, button, input, select, progress")].filter((one) =>
      !one.textContent.trim() && !one.ariaLabel && !one.labels?.length).map((one) => one.outerHTML)"""
    assert page.evaluate(unnamed) == []
    assert page.get_by_role("status").count() == 1


def test_runs_are_compared_after_a_restart(app, open_page, calibrated):
    page = open_page(calibrated)
    app.stop()
    page.wait_for_selector("#trouble:not([hidden])")
    assert "Start rssc app again" in page.inner_text("#trouble")
    page.context.close()
    # A second calibration would take as long as the first: a copy of it is another run.
    first = app.folder / "runs" / calibrated[2:]
    second = first.with_name("copy")
    shutil.copytree(first, second)
    document = {**json.loads((first / "run.json").read_text()), "id": "copy", "name": "second.mp4"}
    (second / "run.json").write_text(json.dumps(document))
    app.start()
    page = open_page(calibrated)
    page.select_option("#with", "copy")
    page.wait_for_selector("#compare table", timeout=1000 * JOB_SECONDS)
    assert "agree within their error bars" in page.inner_text("#compare")
    assert "upper left" in page.inner_text("#compare")
    page.reload()
    page.wait_for_selector("#compare table", timeout=1000 * JOB_SECONDS)
