"""Lists of statuses, whatever is asked for while Jobs arrive, end, and go into the archive."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.api.callers import Access
from support.status_desk import StatusDesk, a_desk, a_token

ADMIN = a_token("admin", Access.ADMIN)
ANA = a_token("ana", Access.READ, "a/b")
BOB = a_token("bob", Access.OPERATE, "c", "a/bb")
EVE = a_token("eve", Access.READ)
TOKENS = (ADMIN, ANA, BOB, EVE)

PATHS = st.sampled_from(["", "a", "a/b", "a/b/x", "a/bb", "c"])
PEOPLE = st.sampled_from(["", "ana", "bob", "eve"])
MAKES = st.tuples(st.just("make"), PATHS, PEOPLE, PEOPLE, st.integers(0, 1))
#: What becomes of a Job that is chosen by a number.
MOVES = st.tuples(st.sampled_from(["finish", "fail", "remove", "remove"]), st.integers(0, 11))
EVENTS = st.lists(MAKES | MOVES, max_size=5)
POPULATION = st.tuples(
    st.lists(MAKES, min_size=3, max_size=12), st.lists(MOVES, min_size=3, max_size=12)
).map(lambda both: [*both[0], *both[1]])


class Story:
    """A desk at which things happen, and what a list may have shown of it."""

    def __init__(self, desk: StatusDesk) -> None:
        self.desk = desk
        self.is_over: dict[str, bool] = {}
        self.removed: set[str] = set()

    async def happen(self, events: list[Any]) -> None:
        for event in events:
            await self._happen(*event)

    async def _happen(self, what: str, *how: Any) -> None:
        if what == "make":
            path, owner, creator, seconds = how
            self.desk.tick(seconds)
            # Of one without a target no status is kept: nobody waits for it by its id.
            job = await self.desk.make(path=path or "none", owner=owner, creator=creator)
            self.is_over[job.metadata.name] = False
            return
        name = f"job-{how[0]}"
        if name not in self.is_over or name in self.removed:
            return
        # What is not over when it is removed is gone without a trace.
        if not self.is_over[name]:
            self.is_over[name] = True
            await self.desk.finish(name, well=what != "fail")
        if what == "remove":
            self.removed.add(name)
            await self.desk.remove(name)

    def place(self, name: str) -> tuple[datetime, str]:
        """Where a Job stands in lists that show the oldest first."""
        metadata = self.desk.jobs[name].metadata
        assert metadata.creation_timestamp is not None
        return metadata.creation_timestamp, metadata.uid


def fits(state: str, is_over: bool) -> bool:
    return not state or (state == "complete") is is_over


@settings(max_examples=40)
@given(
    population=POPULATION,
    between=st.lists(EVENTS, max_size=4),
    meanwhile=st.lists(EVENTS, max_size=4),
    sort=st.sampled_from(["created", "-created"]),
    state=st.sampled_from(["", "complete", "queued,executing"]),
    limit=st.integers(1, 4),
)
def test_every_job_that_fits_all_the_time_is_listed_once(
    population: list[Any],
    between: list[Any],
    meanwhile: list[Any],
    sort: str,
    state: str,
    limit: int,
) -> None:
    """Whatever happens between two pages, and while one is read."""

    async def told() -> None:
        async with a_desk(*TOKENS) as desk:
            story = Story(desk)
            await story.happen(population)
            #: Those that have to be listed as long as they fit.
            wanted = {name for name, is_over in story.is_over.items() if fits(state, is_over)}
            before = set(story.is_over)
            during, after = iter(meanwhile), iter(between)
            desk.archive.meanwhile = lambda: story.happen(next(during, []))
            listed: list[str] = []
            query = {"sort": sort, "limit": str(limit), "state": state}
            while True:
                page = await desk.page("admin", "/jobs", query)
                assert len(page["items"]) <= limit
                assert all(fits(state, one["state"] == "complete") for one in page["items"])
                listed += [item["name"] for item in page["items"]]
                assert len(listed) == len(set(listed))
                if "next" not in page:
                    break
                query["cursor"] = page["next"]
                known = set(story.is_over)
                await story.happen(next(after, []))
                if sort == "created" and listed:
                    reached = story.place(listed[-1])[0]
                    new = set(story.is_over) - known
                    wanted |= {
                        name
                        for name in new
                        if fits(state, story.is_over[name]) and story.place(name)[0] > reached
                    }

            places = [story.place(name) for name in listed]
            assert places == sorted(places, reverse=sort == "-created")
            assert {name for name in wanted if fits(state, story.is_over[name])} <= set(listed)
            if sort == "-created":
                newest = max((story.place(name)[0] for name in before), default=None)
                late = set(listed) - before
                assert newest is None or all(story.place(name)[0] <= newest for name in late)

    asyncio.run(told())


def below(path: str, item: dict[str, Any]) -> bool:
    """Whether a Job is of a target, or of one below it."""
    return f"{item.get('target_path', '')}/".startswith(f"{path}/")


def is_own(who: str, item: dict[str, Any]) -> bool:
    return who in (item["owner_login"], item["creator_login"])


def may_see(who: str, item: dict[str, Any]) -> bool:
    """What is promised of rights: one's own, and what is at or below one's paths."""
    paths = {"ana": ["a/b"], "bob": ["c", "a/bb"], "eve": []}
    return who == "admin" or is_own(who, item) or any(below(path, item) for path in paths[who])


FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "state": st.sampled_from(["queued", "complete", "queued,complete", "executing"]),
        "completion_state": st.sampled_from(["success", "failed", "success,failed"]),
        "creator": st.sampled_from(["ana", "bob"]),
        "owner": st.sampled_from(["ana", "eve"]),
        "ids": st.lists(st.integers(0, 14), min_size=1, max_size=6),
    },
)


def is_asked_for(item: dict[str, Any], filters: dict[str, Any], ids: list[str]) -> bool:
    """Whether what a status says is what was asked for."""
    return (
        ("state" not in filters or item["state"] in filters["state"].split(","))
        and (
            "completion_state" not in filters
            or (item["completion_state"] or "none") in filters["completion_state"].split(",")
        )
        and ("creator" not in filters or item["creator_login"] == filters["creator"])
        and ("owner" not in filters or item["owner_login"] == filters["owner"])
        and ("ids" not in filters or item["job_id"] in ids)
    )


#: Who asks, at which route, for what.
QUERIES = st.tuples(
    st.sampled_from(["admin", "ana", "bob", "eve"]),
    st.sampled_from(["", "user", "a", "a/b", "a/bb", "b", "none"]),
    FILTERS | st.just({}),
)


@settings(max_examples=30)
@given(population=POPULATION, queries=st.lists(QUERIES, min_size=1, max_size=12))
def test_a_list_is_what_somebody_may_see_of_what_they_ask_for(
    population: list[Any], queries: list[tuple[str, str, dict[str, Any]]]
) -> None:
    """All filters have to fit, and what is not seen is not there, in lists and one by one."""

    async def told() -> None:
        async with a_desk(*TOKENS) as desk:
            await Story(desk).happen(population)
            everything = (await desk.page("admin", "/jobs", {"limit": "1000"}))["items"]
            assert len(everything) == len(desk.jobs)
            for who, route, filters in queries:
                await check_list(desk, everything, who, route, filters)
            for who in {who for who, _, _ in queries}:
                await check_each(desk, everything, who)

    asyncio.run(told())


async def check_list(
    desk: StatusDesk, everything: list[Any], who: str, route: str, filters: dict[str, Any]
) -> None:
    known = {job.metadata.name: job.metadata.uid for job in desk.jobs.values()}
    ids = [known.get(f"job-{n}", f"unknown-{n}") for n in filters.get("ids", ())]
    query = {**filters, **({"ids": ",".join(ids)} if ids else {})}
    listed = await desk.page(who, f"/{route}/jobs" if route else "/jobs", query)

    def is_of_route(item: dict[str, Any]) -> bool:
        return is_own(who, item) if route == "user" else not route or below(route, item)

    assert listed["items"] == [
        item
        for item in everything
        if may_see(who, item) and is_of_route(item) and is_asked_for(item, filters, ids)
    ]


async def check_each(desk: StatusDesk, everything: list[Any], who: str) -> None:
    unknown = await desk.ask(who, "/jobs/unknown")
    for item in everything:
        one = await desk.ask(who, f"/jobs/{item['job_id']}")
        if may_see(who, item):
            assert (one.status, one.json) == (200, item)
        else:
            hidden = one.body.replace(item["job_id"].encode(), b"unknown")
            assert (one.status, hidden) == (404, unknown.body)
