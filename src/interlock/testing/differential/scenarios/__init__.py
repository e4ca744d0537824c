"""The scenarios that both modes must tell alike. A new capability adds its own here."""

from interlock.testing.differential.scenario import Scenario
from interlock.testing.differential.scenarios.admission import LOCKS, SUSPENDING
from interlock.testing.differential.scenarios.stopping import STOPPING
from interlock.testing.differential.scenarios.tasks import PARALLEL, RETRIES, SINGLE

SCENARIOS: tuple[Scenario, ...] = (
    *SINGLE,
    *RETRIES,
    *PARALLEL,
    *STOPPING,
    *SUSPENDING,
    *LOCKS,
)

__all__ = ["SCENARIOS"]
