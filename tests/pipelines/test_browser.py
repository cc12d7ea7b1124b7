"""What a person does in the pages: launch an import, follow it to its end, look at what came in."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

import importer as im
from tests.importing import site_workbook
from tests.pipelines.stack import Stack
from tests.workflows import flow, node

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine (Debian: apt-get install chromium)"
)

#: Pages are slow to come on a busy machine.
PATIENCE_MS = 60_000

LAUNCHPAD = """ops:
  import_one_workbook:
    config:
      form: seen_report
      file: {file}
"""

ANSWER = """ops:
  answer_one_approval:
    config:
      approval: {approval}
      choice: approve
      by: Ada
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Open Debian's Chromium."""
    with sync_playwright() as playwright:
        # Chromium refuses to run as root in its sandbox; the pages are our own.
        opened = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Open an empty page."""
    context = browser.new_context(viewport={"width": 1500, "height": 1000})
    context.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    yield context.new_page()
    context.close()


def shot(page: Page, name: str) -> None:
    """Keep a picture of the page where somebody asked for pictures."""
    folder = os.environ.get("ROWLEASE_SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png")


def test_a_workbook_is_imported_from_the_launchpad(
    stack: Stack, stack_db: im.Database, page: Page, tmp_path: Path
) -> None:
    """Launchpad, run, asset: the run is followed to success, and the asset shows counts and the table of faults."""
    # In the store, not in the inbox, where the sensor would be faster.
    stored = im.Store(stack_db.settings.store).put(site_workbook(tmp_path / "may.xlsx", 200)).content_hash

    page.goto(f"{stack.address}/locations/rowlease/jobs/import_workbook/playground")
    editor = page.locator(".CodeMirror").first
    editor.wait_for()
    shot(page, "1-launchpad")
    page.evaluate(
        "text => document.querySelector('.CodeMirror').CodeMirror.setValue(text)",
        LAUNCHPAD.format(file=stored),
    )
    page.get_by_role("button", name="Launch Run").click()
    page.wait_for_url("**/runs/**")
    expect(page.get_by_text("Success", exact=True).first).to_be_visible(timeout=2 * PATIENCE_MS)
    expect(page.get_by_text("few_enough_faults").first).to_be_visible()
    shot(page, "2-run")

    page.goto(f"{stack.address}/assets/seen_report")
    picture = page.locator("img[src^='data:image/svg+xml']")
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_attribute("alt", "type 4")
    assert picture.evaluate("image => image.complete && image.naturalWidth > 0")
    for row in (51, 101, 151, 201):
        expect(page.get_by_role("cell", name=str(row), exact=True)).to_be_visible()
    expect(page.get_by_text("a whole number is expected").first).to_be_visible()
    shot(page, "3-asset")


def test_a_waiting_step_is_approved_from_the_launchpad(stack: Stack, stack_db: im.Database, page: Page) -> None:
    """The answer is launched as a run; its log says that the workflow has ended, and so it has."""
    asked = flow(
        node("ask", "approval", question="Go on?", who=["Ada"]),
        node("end", "end"),
        ways=[("ask", "end")],
        name="seen_workflow",
    )
    started = im.start(asked, db=stack_db)
    (approval,) = im.approvals(instance=started, db=stack_db)

    page.goto(f"{stack.address}/locations/rowlease/jobs/answer_approval/playground")
    page.locator(".CodeMirror").first.wait_for()
    page.evaluate(
        "text => document.querySelector('.CodeMirror').CodeMirror.setValue(text)",
        ANSWER.format(approval=approval.id),
    )
    page.get_by_role("button", name="Launch Run").click()
    page.wait_for_url("**/runs/**")
    expect(page.get_by_text("Success", exact=True).first).to_be_visible(timeout=2 * PATIENCE_MS)
    expect(page.get_by_text(f"workflow instance {started.id} is completed").first).to_be_visible()
    shot(page, "5-approved")

    assert im.workflow(started, db=stack_db).status == "completed"


def test_a_form_says_what_it_expects(stack: Stack, page: Page) -> None:
    """Before anything was imported: columns, rules, and the form as it was written."""
    page.goto(f"{stack.address}/assets/slow_report?view=overview")

    expect(page.get_by_text("at most 500").first).to_be_visible()
    shot(page, "4-columns")
