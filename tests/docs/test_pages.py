"""The pages of docs/: what they say of names and commands is so, and they build into a site that stands alone."""

import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

from bankml.cli.parser import build_parser
from tests.test_floors import FLOORS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
ROOMS = sorted((DOCS / "rooms").glob("*.md"))
SHELL = re.compile(r"```sh\n(.*?)```", re.S)


def test_every_room_has_a_page():
    shared = {"files": "errors", "pages": "errors", "threads": "errors"}
    rooms = {shared.get(room, room) for room in FLOORS if not room.startswith("_")}
    assert {page.stem for page in ROOMS} == rooms


def public_names(page):
    """The code spans in the first column of the table of public names, without what stands in brackets."""
    table = page.read_text().split("## Public names")[1].split("\n## ")[0]
    for row in re.findall(r"^\| (`.*?) \|", table, re.M):
        for span in re.findall(r"`(.+?)`", row.replace("\\|", "or")):
            yield re.split(r"[( ]", span)[0]


@pytest.mark.parametrize("page", ROOMS, ids=lambda page: page.stem)
def test_public_names_are_there(page):
    names = list(public_names(page))
    assert names
    if page.stem == "capi":
        header = (ROOT / "include" / "bankml.h").read_text()
        assert [name for name in names if f"{name}(" not in header] == []
        return
    room = "bankml" if page.stem == "errors" else f"bankml.{page.stem}"
    for name in names:
        resolve_name(f"{room}.{name}")


def test_the_glossary_names_what_exists():
    """Every name in the column "defined in" resolves, and no term has two rows."""
    rows = re.findall(r"^\| (.+?) \| .+? \| (.+?) \|$", (DOCS / "glossary.md").read_text(), re.M)
    terms = [term for term, _ in rows if term not in ("term", "---")]
    assert len(terms) >= 60 and len(set(terms)) == len(terms)
    for _, where in rows:
        for name in re.findall(r"`(.+?)`", where):
            resolve_name(f"bankml.{name}")


def test_the_architecture_page_names_what_exists():
    page = (DOCS / "architecture.md").read_text()
    names = set(re.findall(rf"`((?:{'|'.join(FLOORS)})[./][a-z_./]+(?:\.[A-Z]\w+)?)`", page))
    assert len(names) > 20
    for name in names:
        if "/" in name:
            assert (ROOT / "src" / "bankml" / name).exists(), name
        else:
            resolve_name(f"bankml.{name}")


def test_the_architecture_page_has_the_floors():
    rows = re.findall(r"^\| ([0-9, ]+) \| \[?([a-z, ]+)", (DOCS / "architecture.md").read_text(), re.M)
    floors = {room: floor for given, rooms in rows for room in rooms.strip().split(", ") for floor in [given]}
    assert floors.keys() == FLOORS.keys() - {"_native", "__main__"}
    assert [room for room, floor in floors.items() if str(FLOORS[room]) not in floor.split(", ")] == []


def commands(text):
    """Every `bankml …` of a shell block, as words."""
    for block in SHELL.findall(text):
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            for call in re.findall(r"(?:^|[(&|] ?)(bankml [^)&|>]*)", re.split(r"\s+#", line)[0]):
                yield shlex.split(re.split(r" <+ ", call)[0])[1:]


KNOWN = next(iter(build_parser()._subparsers._group_actions)).choices


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_can_be_parsed(page):
    for words in commands(page.read_text()):
        build_parser().parse_args(words)


@pytest.mark.parametrize("page", ["docs/command-line.md", "README.md"])
def test_every_command_is_in_the_table(page):
    told = set(re.findall(r"`bankml ([a-z0-9-]+)", (ROOT / page).read_text()))
    assert told == set(KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_every_option_is_on_the_page(name):
    page = (DOCS / "command-line.md").read_text()
    options = [action.option_strings for action in KNOWN[name]._actions if action.option_strings]
    assert [each for each in options if not any(re.search(f"{one}(?![a-z-])", page) for one in each)] == []


class Links(HTMLParser):
    """Everything that a page loads or leads to, and the places in it that can be led to."""

    def __init__(self, text):
        super().__init__()
        self.leads, self.loads, self.ids, self.scripts = [], [], set(), 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.scripts += tag == "script"
        self.ids |= {given["id"]} if "id" in given else set()
        if "src" in given or (tag == "link" and "href" in given):
            self.loads.append(given.get("src") or given["href"])
        elif "href" in given:
            self.leads.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed (it is in the extra `docs`)")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(ROOT / "mkdocs.yml")]
    ran = subprocess.run([*command, "-d", str(folder)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return folder


def test_the_site_needs_nothing_from_elsewhere_and_its_links_lead_somewhere(site):
    pages = {path: Links(path.read_text()) for path in site.rglob("*.html")}
    assert len(pages) == len(PAGES) - 1
    for path, links in pages.items():
        assert links.scripts == 0
        for load in links.loads:
            assert load == "data:," or (not urlsplit(load).scheme and (path.parent / load).is_file()), load
        for lead in links.leads:
            assert not urlsplit(lead).scheme, f"{path.name}: {lead}"
            target, place = urldefrag(urljoin(path.as_uri(), lead))
            found = pages[Path(unquote(urlsplit(target).path))]
            assert not place or unquote(place) in found.ids, f"{path.name}: {lead}"
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert not any(r"\|" in path.read_text() for path in pages), "GitHub and the site disagree on it"
    assert "url(" not in styles and "@import" not in styles


def test_links_between_pages_lead_somewhere_in_the_sources_too():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_no_table_breaks_a_word_on_a_phone(site, chromium):
    with chromium.page() as page:
        page.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
        for path in sorted(site.rglob("*.html")):
            page.open(path.as_uri())
            broken = "[...document.querySelectorAll('td code')].filter(one => one.getClientRects().length > 1)"
            assert page.run(f"return {broken}.map(one => one.textContent)") == [], path.name
            assert page.run("return document.documentElement.scrollWidth") <= 390, f"{path.name}: wider than the screen"
