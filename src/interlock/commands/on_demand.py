"""Runs on demand: the Job that somebody asks a JobConfig for; and switching its schedules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any

from msgspec.structs import replace

from interlock.commands.change import By, Change, Write, changed
from interlock.commands.controlled import LONGEST
from interlock.commands.dates import DayWords, has_zone
from interlock.commands.errors import OrderRefusedError, conflict
from interlock.commands.jobs import created_by
from interlock.errors import Problem
from interlock.resources.job import WhenTaken
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import Noun
from interlock.resources.option_values import value_of_text
from interlock.resources.options import OptionSpec, OptionType
from interlock.resources.rules import Limit, Line
from interlock.resources.values.durations import Duration
from interlock.schedules.configs.making import job_on_demand
from interlock.timing.flaws import UnreadableError
from interlock.timing.local_time import told_at
from interlock.timing.zones import Zone, find_zone

#: So many of the values that can be chosen are told.
_TOLD = 10
_SECOND = timedelta(seconds=1)


class Running(Noun):
    """How to run a JobConfig: what is not given is as it says itself."""

    #: The Job's name; without it, the config's and five characters.
    name: Line = ""
    #: Values of its options by their names: true or false, a text, or a list of texts.
    options: dict[str, Any] = {}
    #: The same as texts, the way they are typed: `true`, `a,b` and 2026-01-31 are read as what the
    #: option takes. Only a Multi takes several.
    texts: dict[str, tuple[str, ...]] = {}
    #: Values of any variables by their full names, such as "option.region"; they win over all.
    substitutions: dict[str, str] = {}
    #: When the Job may start at the earliest: a time, a day and a time, or a moment with its zone.
    at: Line | None = None
    #: So much later than now: 90m. One of `at` and `after` at most.
    after: Duration | None = None
    #: What the Job does when as many run as may.
    policy: WhenTaken | None = None


class Switching(Noun):
    """Which schedules of a JobConfig to switch."""

    #: Only spec.schedules[N], counted from 0; without it, all of them.
    schedule: Annotated[int, Limit(0, 10_000)] | None = None


def run(config: JobConfig, how: Running, by: By) -> Change:
    """Make a Job of a JobConfig; a schedule that is suspended or off is no obstacle."""
    if config.is_going:
        raise conflict(f"jobconfig/{config.metadata.name} is being deleted")
    options = _options(config, how)
    start_after, when = _start_after(config, how, by.now)
    # Whoever asks for later wants it to wait then.
    later = WhenTaken.ENQUEUE if start_after is not None else None
    made = job_on_demand(
        config,
        options,
        by.now,
        name=how.name,
        start_after=start_after,
        policy=how.policy or later,
        substitutions=how.substitutions,
    )
    if made.problems:
        raise _refused(config, made.problems)
    notes = created_by(made.job.metadata.annotations, by)
    job = replace(made.job, metadata=replace(made.job.metadata, annotations=notes))
    return Change(
        made=f"created{when}",
        writes=(Write(job),),
        warnings=tuple(_without_effect(config, how, options)),
    )


def _options(config: JobConfig, how: Running) -> dict[str, Any]:
    """The values that were given, as texts too."""
    texts = ((name, text) for name, several in how.texts.items() for text in several)
    values = values_of_texts(config, texts)
    for name in values.keys() & how.options.keys():
        raise _given_twice(name)
    return {**values, **how.options}


def values_of_texts(config: JobConfig, given: Iterable[tuple[str, str]]) -> dict[str, object]:
    """What texts mean for the options that they are given for; only a Multi takes several."""
    options = {option.name: option for option in config.spec.options}
    values: dict[str, object] = {}
    for name, text in given:
        option = options.get(name)
        value = value_of_text(option, text) if option is not None else text
        before = values.get(name)
        if isinstance(before, list) and isinstance(value, list):
            value = before + value
        elif name in values:
            raise _given_twice(name)
        values[name] = value
    return values


def _given_twice(name: str) -> OrderRefusedError:
    return OrderRefusedError(
        f"--option {name} is given more than once", hint="only a Multi takes several values"
    )


def _without_effect(
    config: JobConfig, how: Running, options: Mapping[str, object]
) -> Iterator[str]:
    """The options that were given for nothing; the Job is made all the same."""
    for name in options:
        full = f"option.{name}"
        if full in config.spec.template.spec.substitutions and full not in how.substitutions:
            yield (
                f'option {name} has no effect: the template\'s substitutions give "{full}"; for'
                f" one run give --substitution {full}=VALUE"
            )


def _start_after(config: JobConfig, how: Running, now: datetime) -> tuple[datetime | None, str]:
    """When the Job may start at the earliest, and that for people."""
    if how.at is None and how.after is None:
        return None, ""
    if how.at is not None and how.after is not None:
        raise OrderRefusedError("give one of --at and --after, not both")
    zone = _zone(config)
    if how.after is not None:
        if not _SECOND <= how.after <= LONGEST:
            raise OrderRefusedError("expected from a second to ten years", option="after")
        at = now + how.after
    else:
        assert how.at is not None, "one of both is given"
        at = DayWords(zone, now).moment(how.at)
        _check_zone(config, how.at)
    return at, f"; it starts {told_at(at, zone, now)} at the earliest"


def _zone(config: JobConfig) -> Zone:
    """The clock of the config's schedules; UTC when it has none."""
    try:
        return find_zone(next((one.timezone for one in config.spec.schedules), "UTC"))
    except UnreadableError as error:
        raise OrderRefusedError(f"jobconfig/{config.metadata.name}: {error}") from None


def _check_zone(config: JobConfig, typed: str) -> None:
    """Refuse a time that could be on several clocks."""
    names = dict.fromkeys(schedule.timezone for schedule in config.spec.schedules)
    if len(names) > 1 and not has_zone(typed):
        raise OrderRefusedError(
            f"the schedules of jobconfig/{config.metadata.name} are in several"
            f" zones ({', '.join(names)})",
            hint="write a moment with its zone, such as 2026-11-20T19:00Z, or use --after",
            option="at",
            found=typed,
        )


def _refused(config: JobConfig, problems: tuple[Problem, ...]) -> OrderRefusedError:
    name = config.metadata.name
    lines = [f"jobconfig/{name} cannot be run like this, nothing was stored"]
    lines += [f"  {_problem_told(problem)}" for problem in problems]
    hint = ""
    if config.spec.options:
        hint = "\n  ".join(["its options:", *map(_option_told, config.spec.options)])
    return OrderRefusedError("\n".join(lines), hint=hint, problems=problems)


def _problem_told(problem: Problem) -> str:
    path = problem.path.replace("options.", "option ", 1)
    return f"{path}: {problem.message}"


def _option_told(option: OptionSpec) -> str:
    """An option for people: what it takes, and what it is without a value."""
    told = [f"  {option.name:<12} {option.type.value}"]
    if option.type in (OptionType.SELECT, OptionType.MULTI):
        more = ", …" if len(option.values) > _TOLD or option.allow_custom else ""
        told.append(f"({' | '.join(option.values[:_TOLD])}{more})")
    if option.default is not None:
        told.append(f"default {_written(option.default)}")
    elif option.required:
        told.append("required")
    return "  ".join([*told, option.description]).rstrip()


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


# Schedules on and off


def enable(config: JobConfig, how: Switching, by: By) -> Change:  # noqa: ARG001
    """Switch schedules on. What was due while they were off is not made up for."""
    return _switched(config, how, on=True)


def disable(config: JobConfig, how: Switching, by: By) -> Change:  # noqa: ARG001
    """Switch schedules off."""
    return _switched(config, how, on=False)


def _switched(config: JobConfig, how: Switching, *, on: bool) -> Change:
    name, schedules = config.metadata.name, config.spec.schedules
    wanted = _to_switch(name, len(schedules), how.schedule)
    after = tuple(
        replace(schedule, disabled=not on) if number in wanted else schedule
        for number, schedule in enumerate(schedules)
    )
    words = [f"schedule {how.schedule}"] if how.schedule is not None else []
    words += ["already"] if after == schedules else []
    told = [" ".join([*words, "enabled" if on else "disabled"])]
    if on and config.spec.suspend:
        told.append(
            f"  it is suspended all the same; let it go with: interlock resume jobconfig/{name}"
        )
    return changed(config, replace(config, spec=replace(config.spec, schedules=after)), *told)


def _to_switch(name: str, count: int, wanted: int | None) -> range:
    """The numbers of the schedules that are meant."""
    if not count:
        raise conflict(
            f"jobconfig/{name} has no schedule: it runs on demand only",
            f"run it now with: interlock run {name}",
        )
    if wanted is None:
        return range(count)
    if wanted >= count:
        raise OrderRefusedError(
            f"jobconfig/{name} has no schedule {wanted}",
            hint=f"it has {count}, counted from 0",
        )
    return range(wanted, wanted + 1)
