"""Benches do not rot: every job still runs, what is told of it is right, and the page is written in one place only."""

import asyncio
import shutil
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

BENCH = Path(__file__).parent.parent / "bench"
sys.path.append(str(BENCH))  # its scripts find each other as scripts do

child, jobs, machine, measure, page, rounds, table = (
    import_module(name) for name in ("child", "jobs", "machine", "measure", "page", "rounds", "table")
)
building, crowd, day, looks, sizes = (
    import_module(f"growing.{name}") for name in ("building", "crowd", "day", "looks", "sizes")
)

OURS = ("floor", "remit", "remit, durable", "remit, session of 10", "remit, 2 workers")
# Those with one worker or four differ from the one with two in a figure only, and each takes a while to start.
NOT_AGAIN = {("tasks-postgres", "remit")}


def our_subjects() -> list[Any]:
    found = [(job, name) for job in jobs.JOBS for name in job.subjects if name in OURS]
    return [
        pytest.param(job, name, id=f"{job.name}-{name}") for job, name in found if (job.name, name) not in NOT_AGAIN
    ]


@pytest.mark.deep
@pytest.mark.parametrize(("job", "name"), our_subjects())
def test_every_job_measures_remit_and_the_floor(job: Any, name: str):
    if job.unit == "syncs" and shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    # A folder that a database server may enter too, which runs as another user if we are root.
    with TemporaryDirectory(prefix="remit-bench-") as folder, asyncio.Runner() as runner:
        following, close = child.asked(job.subjects[name], measure.Load(measure.TINY.share, Path(folder)), runner)
        try:
            cost = following()
        finally:
            close()
    assert isinstance(cost.value, float)
    assert cost.value > 0 or job.unit in ("µs", "KB", "syncs")  # a difference of two, or too little to be seen


def test_a_peer_that_is_not_installed_says_so():
    with pytest.raises(measure.Skipped, match="not installed"):
        measure.need("a_library_that_nobody_has")


def test_a_subject_is_measured_in_a_process_of_its_own():
    job = next(job for job in jobs.JOBS if job.name == "find")
    found = rounds.measured(job, measure.TINY)
    assert len(found.costs["remit"]) == measure.TINY.rounds


def job_of(*aims: Any, more: bool = False) -> Any:
    return jobs.Job("job", "what is done", "ms", {}, aims, more)


def costs(*values: float) -> list[Any]:
    return [measure.Cost(value, value) for value in values]


def test_ratios_are_taken_within_a_round_against_the_best_there():
    aim = jobs.Aim(1 / 2, ("one", "other", "absent"))
    found = rounds.Found(
        job_of(aim), {"remit": costs(1, 10, 1), "one": costs(4, 50, 2), "other": costs(8, 40, 9), "absent": "not there"}
    )
    assert found.ratio(aim) == rounds.Figure(median=0.25, least=0.25, most=0.5)
    assert found.reached(aim)


def test_more_is_better_where_the_job_says_so():
    aim = jobs.Aim(1.3, ("remit",), "remit, 2 workers")
    found = rounds.Found(job_of(aim, more=True), {"remit": costs(100, 100), "remit, 2 workers": costs(120, 120)})
    assert found.reached(aim) is False
    assert found.reached(jobs.Aim(90)) is True


def test_an_aim_that_was_not_measured_is_neither_reached_nor_missed():
    aim = jobs.Aim(1 / 2, ("one",))
    found = rounds.Found(job_of(aim), {"remit": costs(1), "one": "not installed"})
    assert found.reached(aim) is None
    assert "not measured" in table.markdown([found], "a machine")


MACHINE = {
    "system": "a system",
    "cores": 2,
    "python": "3.11",
    "sqlite": "3.40",
    "versions": {"remit": "1"},
    "minutes": 1,
    "load_before": 0.1,
    "load_after": 0.2,
    "others_percent": 3,
}


def test_the_page_written_twice_is_the_page_written_once(tmp_path: Path):
    copy = tmp_path / "performance.md"
    copy.write_text(page.PAGE.read_text())
    found = rounds.Found(job_of(jobs.Aim(5)), {"remit": costs(1, 2), "floor": costs(1, 1)})
    body = table.markdown([found], machine.sentence(MACHINE))
    page.write("bench", body, copy)
    once = copy.read_text()
    page.write("bench", body, copy)
    assert copy.read_text() == once
    assert body in once
    page.write("growth", "| a | b |", copy)
    assert body in copy.read_text()


def test_a_job_that_is_measured_alone_leaves_the_others_on_the_page(tmp_path: Path):
    copy = tmp_path / "performance.md"
    copy.write_text(page.PAGE.read_text())
    one, other = (
        rounds.Found(job_of()._replace(name=name), {"remit": costs(figure)})
        for name, figure in (("handoff", 1), ("chain", 2))
    )
    page.write("bench", table.markdown([one, other], "a machine"), copy)
    again = one._replace(costs={"remit": costs(7)})
    page.write("bench", table.markdown([again], "a machine", {"chain": page.rows("bench", copy)["chain"]}), copy)
    assert [line.split(" | ")[3] for line in page.rows("bench", copy).values()] == ["7", "2"]


def test_a_page_without_a_place_for_the_table_is_refused():
    with pytest.raises(SystemExit, match="no place for 'bench'"):
        page.replaced("# A page", "bench", "a table")


def test_the_page_tells_of_every_job():
    text = page.PAGE.read_text()
    assert [job.name for job in jobs.JOBS if f"`{job.name}`" not in text] == []


def test_a_journal_is_built_once_and_measured_whole(tmp_path: Path):
    built = building.build(str(tmp_path / "small.db"), 300)
    assert building.build(str(tmp_path / "small.db"), 300) == built
    found = asyncio.run(looks.looked(built, 1))
    assert {"open it", "newest 20 tasks", "delegation", "submit", "cancel 11 tasks", "settled"} < found.keys()
    assert {"prune, nothing is old", "prune 100 runs"} < found.keys()
    told = sizes.markdown(sizes.Grown("SQLite", [300, 300], [found, found]))
    assert "| prune 100 runs |" in told


@pytest.mark.deep
def test_a_crowd_and_an_hour_of_a_day_are_measured(tmp_path: Path):
    assert asyncio.run(crowd.crowd(20, None))["p99_ms"] > 0
    (hour,) = asyncio.run(day.day(1, tmp_path, hours=1))
    assert hour["runs"] == 120  # a run and a submitted task each minute
    assert hour["file_mb"] > 0


@pytest.mark.deep
def test_streams_are_measured_through_the_gateway_and_without_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["gateway.py", "--quick"])
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")  # set back at the end
    import_module("gateway").main()
    told = capsys.readouterr().out
    assert "event lag, 1 at once, through the gateway: median" in told
    assert "memory more after 100 streams than after 10" in told
