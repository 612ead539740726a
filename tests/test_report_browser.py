"""report.html in a real browser: offline, in light and dark, wide and narrow; by mouse and by keyboard."""

from itertools import pairwise

import pytest

from rssc.io.reference_file import Reference
from rssc.model import Lens
from tests.browser import MISSING, chromium, until
from tests.test_report import adjusted, calibration, grey_frames, plots_in  # noqa: F401 (fixtures)

if chromium() is None:
    pytest.skip(MISSING, allow_module_level=True)
pytest.importorskip("playwright.sync_api", reason="playwright is not installed; pip install '.[test]'")


@pytest.fixture(scope="module")
def report(calibration, tmp_path_factory):  # noqa: F811
    from rssc.outputs.report import write_report

    path = tmp_path_factory.mktemp("report") / "report.html"
    other = calibration.camera.with_lens(Lens("fisheye", *calibration.camera.lens.parameters[:4]))
    write_report(calibration, path, grey_frames, Reference("truth.json", other, calibration.frame_interval_s))
    return path


@pytest.fixture(scope="module")
def open_page(browser, report):
    """Opens the report without a network; in the end checks that nothing was complained about or asked for."""
    complaints = []

    def requested(request):
        if not request.url.startswith(("file:", "data:", "blob:")):
            complaints.append(f"asked for {request.url}")

    def opened(width=1280, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("request", requested)
        page.goto(report.as_uri())
        count = len(plots_in(report.read_text()))
        until(page, f"document.querySelectorAll('.js-plotly-plot .main-svg').length >= {count}")
        assert not complaints
        return page

    yield opened
    assert not complaints


@pytest.fixture(scope="module")
def page(open_page):
    """One wide, light page for all that is done with the mouse and the keyboard."""
    return open_page()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_every_figure_is_drawn_within_the_page(open_page, report, width, scheme):
    page = open_page(width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in plots_in(report.read_text()):
        box = page.locator(f"#{name} .main-svg").first.bounding_box()
        assert box["width"] > 0.8 * min(width - 40, 690), name
        assert box["height"] > 150, name
    colour = page.evaluate("getComputedStyle(document.querySelector('#velocity .xtick text')).fill")
    channels = [int(n) for n in colour.strip("rgb()").split(",")]
    assert (min(channels) > 150) if scheme == "dark" else (max(channels) < 100)
    page.context.close()


def test_colours_follow_the_scheme(page):
    read = "getComputedStyle(document.querySelector('#velocity .xtick text')).fill"
    before = page.evaluate(read)
    page.emulate_media(color_scheme="dark")
    until(page, f"{read} !== '{before}'")
    page.emulate_media(color_scheme="light")
    until(page, f"{read} === '{before}'")


def test_slider_moves_by_keyboard_and_by_mouse(page):
    clip = "getComputedStyle(document.querySelector('.before')).clipPath"
    start = page.evaluate(clip)
    page.focus("#compare")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    moved = page.evaluate(clip)
    assert moved != start
    assert page.get_attribute("#compare", "aria-valuetext") == "60 percent as filmed"
    page.locator(".pair").scroll_into_view_if_needed()
    box = page.locator(".pair").bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 50)
    page.mouse.up()
    assert page.input_value("#compare") == "20"
    assert page.evaluate(clip) != moved


def test_3d_view_turns_by_mouse_and_by_keyboard(page):
    eye = "JSON.stringify(document.getElementById('space')._fullLayout.scene.camera.eye)"
    page.locator("#space").scroll_into_view_if_needed()
    start = page.evaluate(eye)
    box = page.locator("#space").bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.6 * box["height"], steps=8)
    page.mouse.up()
    until(page, f"{eye} !== '{start}'")
    dragged = page.evaluate(eye)
    page.focus("#space")
    page.keyboard.press("ArrowLeft")
    until(page, f"{eye} !== '{dragged}'")


def test_headings_and_labels_are_there_for_screen_readers(page):
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map((h) => +h.tagName[1])")
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    assert page.get_by_role("slider", name="As filmed").count() == 1
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.get_by_role("img", name="Three-dimensional view").count() == 1


def test_prints_in_light_colours(open_page):
    page = open_page(1280, "dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(252, 251, 248)"
    assert not page.is_visible("#compare")
    assert len(page.pdf(format="A4")) > 50_000
