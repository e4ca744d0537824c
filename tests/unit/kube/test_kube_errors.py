"""What a refusal of the API server is about: the moment, the controller, or what was asked for."""

from __future__ import annotations

import pytest

from interlock.errors import ForbiddenError, InterlockError, InvalidError
from interlock.kube.client.errors import (
    CannotNowError,
    Cause,
    Details,
    NamespaceGoingError,
    NoRightError,
    OverQuotaError,
    Status,
    error_of,
)
from interlock.resources.metadata import Key

POD = Key("Pod", "team", "job-0-0")
NAMED = Details(name="job-0-0", kind="pods")
GOING = Cause(reason="NamespaceTerminating", message="namespace team is being terminated")
FORBIDS = 'pods "job-0-0" is forbidden: '


def refused(message: str, details: Details | None = NAMED, code: int = 403) -> Status:
    """A refusal, as the server words it."""
    return Status(kind="Status", message=message, reason="Forbidden", details=details, code=code)


@pytest.mark.parametrize(
    ("status", "expected", "told"),
    [
        pytest.param(
            refused(f"{FORBIDS}exceeded quota: q, requested: pods=1, used: pods=0"),
            OverQuotaError,
            "exceeded quota: q, requested: pods=1, used: pods=0",
            id="a quota is full",
        ),
        pytest.param(
            refused(f"{FORBIDS}status unknown for quota: q, resources: pods"),
            OverQuotaError,
            "status unknown for quota: q, resources: pods",
            id="a quota was not counted yet",
        ),
        pytest.param(
            refused(f"{FORBIDS}failed quota: q: must specify requests.cpu for: main"),
            ForbiddenError,
            "must specify",
            id="a quota asks for what the pod does not say",
        ),
        pytest.param(
            refused(f'{FORBIDS}violates PodSecurity "restricted:latest": exceeded quota: q'),
            ForbiddenError,
            "violates",
            id="the words of a quota in another's",
        ),
        pytest.param(
            refused('pods is forbidden: User "x" cannot create', Details(kind="pods")),
            NoRightError,
            "cannot create",
            id="the controller may not create pods",
        ),
        pytest.param(
            refused('admission webhook "x" denied the request: no', None),
            ForbiddenError,
            "denied the request",
            id="a webhook denies it and names nothing",
        ),
        pytest.param(
            refused(
                f"{FORBIDS}unable to create new content",
                Details(name="job-0-0", kind="pods", causes=(GOING,)),
            ),
            NamespaceGoingError,
            "namespace team is being terminated",
            id="the namespace goes",
        ),
        pytest.param(
            refused(f"{FORBIDS}ValidatingAdmissionPolicy 'v' denied request", code=422),
            InvalidError,
            "denied request",
            id="a policy denies it",
        ),
        pytest.param(
            refused("Internal error occurred: failed calling webhook", None, code=500),
            CannotNowError,
            "failed calling webhook",
            id="a webhook is dead",
        ),
    ],
)
def test_what_a_refusal_is_about(status: Status, expected: type[InterlockError], told: str) -> None:
    error = error_of(status, POD)

    assert type(error) is expected
    assert told in str(error)


def test_of_what_has_a_name_in_its_address_no_right_is_concluded() -> None:
    """There both sorts of refusal name it, and neither does for a list."""
    status = refused("pods is forbidden: cannot list", Details(kind="pods"))

    assert type(error_of(status, Key("Pod", "team", ""))) is ForbiddenError
