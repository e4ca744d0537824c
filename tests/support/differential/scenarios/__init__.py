"""The scenarios that both modes must tell alike. A new capability adds its own here."""

from collections.abc import Callable

from support.differential.scenario import Scenario
from support.differential.scenarios.admission import LOCKS, SUSPENDING
from support.differential.scenarios.configs import CONFIGS
from support.differential.scenarios.controlled import CONTROLLED
from support.differential.scenarios.stopping import STOPPING
from support.differential.scenarios.tasks import PARALLEL, RETRIES, SINGLE
from support.differential.schedule_play import SchedulePlay

SCENARIOS: tuple[Scenario, ...] = (
    *SINGLE,
    *RETRIES,
    *PARALLEL,
    *STOPPING,
    *SUSPENDING,
    *LOCKS,
)

#: What schedules do; each is named after the kind it is about.
SCHEDULES: dict[str, Callable[[SchedulePlay], None]] = {
    f"{kind}-{act.__name__.replace('_', '-')}": act
    for kind, acts in (("jc", CONFIGS), ("ctj", CONTROLLED))
    for act in acts
}

__all__ = ["SCENARIOS", "SCHEDULES"]
