"""The HTML page: everything is there, needs nothing else, and nothing of a user's becomes markup."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from parsed import Parsed

from launches import GPU_CHECKS, VEC_ADD, finding, gpu_launch, line, nki_launch, stopped_launch
from triptych.core.checks import Severity
from triptych.core.counter_table import PROVENANCES, Provenance
from triptych.core.errors import MemoryFault
from triptych.core.languages import LANGUAGES
from triptych.core.launches import Finding
from triptych.core.source import SourceLocation
from triptych.execution.launch_report import LaunchReport
from triptych.report.columns import COLUMNS, in_one_line
from triptych.report.html import page
from triptych.report.html.views import LINES_SHOWN

TAGS = frozenset(
    {
        *("html", "head", "meta", "link", "title", "style", "body", "header", "main", "section", "h1", "h2", "h3"),
        *("p", "code", "bdi", "strong", "ul", "li", "a", "dl", "dt", "dd", "div", "span", "details", "summary"),
        *("table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "svg", "line", "circle", "text"),
    }
)
HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "</title></style></svg></bdi><script src=//x.test/y.js></script>",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; &amp; <!-- ]]>",
    "javascript:alert(1)",
    "vec<float, 3>::add(T&&)",
)  # fmt: skip


def rendered(
    launches: Sequence[LaunchReport],
    script: str = "x.py",
    arguments: Sequence[str] = ("--n", "3"),
    exit_status: int = 0,
    error: BaseException | None = None,
) -> str:
    return page(launches, script=script, arguments=arguments, exit_status=exit_status, error=error)


def test_the_table_has_the_terminals_columns_and_figures() -> None:
    parsed = Parsed(rendered([gpu_launch(), nki_launch()]))
    for column in (*COLUMNS["gpu"], *COLUMNS["neuron"]):
        assert in_one_line(column.heading) in parsed.text
    for launch in (gpu_launch(), nki_launch()):
        for column in COLUMNS[launch.record.machine]:
            assert column.cell(launch) in parsed.pieces, column.heading
    assert "x.py --n 3" in parsed.text
    assert "2 launches; exit status 0." in parsed.text


def test_headings_without_breaks() -> None:
    assert [in_one_line(one) for one in ("diver-\ngent", "sectors\n/request", "floor/\nestimate", "warp\ninstr.")] == [
        *("divergent", "sectors/request", "floor/estimate", "warp instr.")
    ]


def test_every_number_says_where_it_comes_from() -> None:
    launch = gpu_launch()
    text = rendered([launch])
    rows = re.findall(
        r'class="words">([^<]+)</th><td>([^<]+)</td><td class="words">([^<]+)</td><td class="words">([^<]+)<', text
    )
    shown = {name: (value, unit, provenance) for name, value, unit, provenance in rows}
    assert shown["flops.f32"] == ("1,048,576", "FLOPs", "counted on PTX")
    assert shown["model.ridge_point"] == ("20", "FLOP/byte", "modelled")
    assert shown["model.floor"] == ("3.75609e-06", "s", "modelled")
    assert len(shown) == len(launch.counters) + len(launch.roofline.counters())
    origins = re.findall(r'<th colspan="(\d)" scope="colgroup" class="origin[^"]*">([^<]+)<', text)
    assert sum(int(columns) for columns, _ in origins) == len(COLUMNS["gpu"])
    assert {name for _, name in origins} == {"as launched", "counted", "modelled"}
    parsed = Parsed(text)
    assert PROVENANCES[Provenance.COUNTED_PTX] in parsed.text
    assert PROVENANCES[Provenance.MODELLED] in parsed.text
    assert PROVENANCES[Provenance.COUNTED_NKI] not in parsed.text
    assert set(PROVENANCES) == set(Provenance)


def test_every_language_has_a_colour() -> None:
    text = rendered([gpu_launch()])
    for number, name in enumerate(LANGUAGES, 1):
        assert f".point.{name} {{ fill: var(--series-{number}); }}" in text
        assert len(re.findall(rf"--series-{number}: #[0-9a-f]{{6}};", text)) == 2  # on light paper, on dark


def test_it_needs_nothing_else() -> None:
    text = rendered([gpu_launch(), nki_launch()])
    parsed = Parsed(text)
    assert set(parsed.tags) <= TAGS
    assert "default-src 'none'" in text
    assert "://" not in text
    assert "url(" not in text
    assert "@import" not in text
    assert [value for value in parsed.values("href") if not value.startswith("#")] == ["data:,"]
    assert parsed.values("src") == []
    assert "prefers-color-scheme: dark" in text
    assert "width=device-width" in text


def test_links_lead_to_sections() -> None:
    parsed = Parsed(rendered([gpu_launch(), nki_launch(), gpu_launch("other"), gpu_launch()]))
    ids = parsed.values("id")
    assert ids == ["launch-1", "launch-2", "launch-3"]
    links = [value for value in parsed.values("href") if value.startswith("#")]
    assert {link.removeprefix("#") for link in links} == set(ids)


def test_the_same_run_gives_the_same_page() -> None:
    launches = [gpu_launch(), nki_launch()]
    assert rendered(launches) == rendered(list(launches))


def test_equal_launches_share_a_row_and_a_section() -> None:
    launches = [gpu_launch()] * 10 + [gpu_launch("other"), gpu_launch()]
    text = rendered(launches)
    assert text.count('<section class="launch"') == 2
    assert text.count(">1–10, 12</a>") == 1
    assert text.count('<circle class="point cuda" cx="') == 3  # two launches and the key


def test_lines_with_their_text_and_callers(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("one\n  two < 3;\ncall();\n", encoding="utf-8")
    frame = SourceLocation(str(source), 3)
    lines = (
        line(str(source), 1, {"instructions.warp": 10}),
        line(str(source), 2, {"instructions.warp": 70, "flops.f32": 64}, frame),
        line(str(source), 2, {"instructions.warp": 20}),
    )
    text = rendered([gpu_launch(lines=lines)])
    parsed = Parsed(text)
    assert f"two < 3; {source}:2 inlined into {source}:3 call(); 70% 64 0 – 0" in parsed.text
    assert f"two < 3; {source}:2 20% 0 0 – 0" in parsed.text
    assert text.index('"--share: 70.0%"') < text.index('"--share: 20.0%"') < text.index('"--share: 10.0%"')


def test_lines_that_are_left_out_are_counted() -> None:
    lines = tuple(line("k.cu", number, VEC_ADD) for number in range(1, LINES_SHOWN + 4))
    parsed = Parsed(rendered([gpu_launch(lines=lines)]))
    assert "3 more lines that cost less; the JSON has all." in parsed.text


def test_findings() -> None:
    where, frame = SourceLocation("k.cu", 3), SourceLocation("k.cu", 9)
    found = (finding(Severity.NOTICE), finding(Severity.ERROR, where, frame))
    parsed = Parsed(rendered([gpu_launch(findings=found)]))
    assert "1 vec_add: 2 findings, at worst error" in parsed.text
    assert "error memcheck: global load of 4 bytes behind the end of [a] at k.cu:3 called from k.cu:9" in parsed.text
    assert "The checks found nothing" not in parsed.text
    assert f"Checks: {', '.join(GPU_CHECKS)} (GPU)." in parsed.text
    clean = Parsed(rendered([gpu_launch()])).text
    assert f"The checks found nothing: {', '.join(GPU_CHECKS)} (GPU)." in clean


def test_a_findings_advice_and_its_line_once(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("x[i] = 1;\n", encoding="utf-8")
    where = SourceLocation(str(source), 1)
    found = replace(finding(Severity.ERROR), message="bad store\n  x[i] = 1;", where=where, hint="look at i")
    text = Parsed(rendered([gpu_launch(findings=(found,))])).text
    assert f"bad store x[i] = 1; at {source}:1 look at i" in text


def test_a_stopped_launch_has_no_figures() -> None:
    text = rendered([gpu_launch(), stopped_launch()])
    parsed = Parsed(text)
    assert "2bad cuda 4096 256 stopped – – – " in parsed.text
    assert "Without FLOPs or bytes, or stopped, and so without a place here: 2." in parsed.text
    section = Parsed(text[text.index('<section class="launch" id="launch-2"') : text.index("</main>")]).text
    assert "by a fault: nothing was counted to its end" in section
    for absent in ("floor", "estimate", "counters", "Time", "model"):
        assert absent not in section
    assert "None of these launches has both FLOPs and bytes" in Parsed(rendered([stopped_launch()])).text


def test_notes_of_the_model() -> None:
    parsed = Parsed(rendered([gpu_launch(target="sm_80")]))
    assert "Notes of the model Compiled for sm_80; placed on h100, whose own target is sm_90." in parsed.text


def test_nothing_launched() -> None:
    assert "The script launched no kernel." in Parsed(rendered([])).text


def test_the_error_that_ended_the_script() -> None:
    error = MemoryFault("bad store\nof 4 bytes", where=SourceLocation("k.cu", 7), hint="look at <i>")
    parsed = Parsed(rendered([], exit_status=1, error=error))
    assert "MemoryFault ended the script: bad store of 4 bytes at k.cu:7 look at <i>" in parsed.text
    assert "The script ended with an error before any kernel had run to its end." in parsed.text
    assert "ValueError ended the script: <b>" in Parsed(rendered([], exit_status=1, error=ValueError("<b>"))).text


def test_without_flops_there_is_no_roofline() -> None:
    idle = gpu_launch("copy", values={"global.load.compulsory_bytes": 64})
    parsed = Parsed(rendered([idle]))
    assert "so none has a place on a roofline" in parsed.text
    assert "svg" not in parsed.tags
    parsed = Parsed(rendered([gpu_launch(), idle]))
    assert "without a place here: 2." in parsed.text


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_of_a_users_becomes_markup(name: str, tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(f"{name}\n", encoding="utf-8")
    written, unwritten = SourceLocation(str(source), 1), SourceLocation(f"/tmp/{name}", 2)
    found = Finding("memcheck", Severity.ERROR, name, unwritten, (written, unwritten))
    lines = (line(str(source), 1, VEC_ADD, unwritten), line(f"/tmp/{name}", 2, VEC_ADD, written))
    launch = gpu_launch(name, lines=lines, findings=(found,), target=name)
    error = MemoryFault(name, where=written, hint=name)
    clean = Parsed(rendered([gpu_launch("k", lines=lines[:1], findings=(found,), target="sm_80")]))
    text = rendered([launch, gpu_launch()], script=name, arguments=[name], error=error)
    parsed = Parsed(text)
    assert set(parsed.tags) <= TAGS
    assert {attribute for _, attribute, _ in parsed.attributes} == {name for _, name, _ in clean.attributes}
    assert all(value == "data:," or re.fullmatch(r"#launch-\d+", value) for value in parsed.values("href"))
    assert all(re.fullmatch(r"--share: \d+\.\d%", value) for value in parsed.values("style"))
    assert "<script" not in text
    assert "<img" not in text
    # In the title, the heading, the command and its argument, the table, the finding, the lines, the chart, the notes …
    assert parsed.text.count(" ".join(name.split())) >= 15


def test_signs_that_are_not_seen_become_visible() -> None:
    parsed = Parsed(rendered([gpu_launch("a\x1b[31m\u202eb\udcff\x00")], script="s\udc80.py"))
    assert "a\\x1b[31m\\u202eb\\udcff\\x00" in parsed.text
    assert "s\\udc80.py" in parsed.text
    rendered([gpu_launch("a\udcff")]).encode("utf-8")
