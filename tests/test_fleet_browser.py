"""catalog.html in a real browser: offline, in light and dark, wide and narrow; sorted and searched."""

import pytest

from rssc.fleet.page import catalog_page
from tests.browser import MISSING, chromium
from tests.test_fleet import made_up_catalog

if chromium() is None:
    pytest.skip(MISSING, allow_module_level=True)
pytest.importorskip("playwright.sync_api", reason="playwright is not installed; pip install '.[test]'")


@pytest.fixture(scope="module")
def open_page(browser, tmp_path_factory):
    """Opens the page without a network; in the end checks that nothing was complained about or asked for."""
    place = tmp_path_factory.mktemp("catalog") / "catalog.html"
    place.write_text(catalog_page(made_up_catalog(), "cameras"), encoding="utf-8")
    complaints = []

    def requested(request):
        if not request.url.startswith(("file:", "data:")):
            complaints.append(f"asked for {request.url}")

    def opened(width=1280, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("request", requested)
        page.goto(place.as_uri())
        return page

    yield opened
    assert not complaints


def cameras(page) -> list[str]:
    rows = page.locator("#cameras tbody:visible th").all_inner_texts()
    return [row.removesuffix(" by folder") for row in rows]


def test_columns_sort_and_what_is_unknown_comes_last(open_page):
    page = open_page()
    assert cameras(page) == ["Maker <b>Phone</b>", "Action 10", "card3"]
    for heading, ascending in (
        ("Camera", ["Action 10", "card3", "Maker <b>Phone</b>"]),
        ("Readout, ms", ["Action 10", "Maker <b>Phone</b>", "card3"]),
        ("Clips", ["card3", "Action 10", "Maker <b>Phone</b>"]),
    ):
        button = page.get_by_role("button", name=heading).first
        button.click()
        assert cameras(page) == ascending
        assert page.locator("th[aria-sort=ascending]").inner_text().strip() == heading
        button.press("Enter")
        known = [name for name in reversed(ascending) if name != "card3" or heading != "Readout, ms"]
        assert cameras(page) == [*known, *(name for name in ascending if name not in known)]


def test_search_finds_cameras_modes_clips_and_verdicts(open_page):
    page = open_page()
    for words, found in (
        ("phone", ["Maker <b>Phone</b>"]), ("3840", ["Action 10"]), ("other.mp4", ["Maker <b>Phone</b>"]),
        ("degenerate", ["card3"]), ("ok 1080", ["Maker <b>Phone</b>"]), ("nothing like it", []),
        ("", ["Maker <b>Phone</b>", "Action 10", "card3"]),
    ):  # fmt: skip
        page.get_by_label("Search").fill(words)
        assert cameras(page) == found, words
    page.get_by_label("Search").fill("outlier")
    assert page.get_by_role("status").inner_text() == "Found: cameras and modes 1, clips that do not count 1"
    assert "readout ratio 0.700, where the others have" in page.locator("#clips tbody:visible").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_fits(open_page, width, scheme):
    page = open_page(width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("summary").first.click()
    assert "± " in page.locator(".values").first.inner_text()
    assert page.locator("details a").first.get_attribute("href").startswith("cameras/maker-b-phone-b-1920-x-1080")
    dark = page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(23, 25, 28)"
    assert dark == (scheme == "dark")
