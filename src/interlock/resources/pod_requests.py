"""What a pod asks for, as the Kubernetes scheduler counts it: its requests, of all containers.

Containers run side by side, and so do init containers that go on (`restartPolicy: Always`); the
others run one after another, before. What limits say stands for requests that are not given. What
a pod asks for as a whole (`resources`) counts instead of what its containers do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from interlock.resources.pods import BatchJobTemplate, PodTemplate
from interlock.resources.values.amounts import Amount
from interlock.resources.values.quantities import parse_quantity

#: What a pod can ask for as a whole.
_OF_WHOLE_PODS = ("cpu", "memory")
_HUGE = "hugepages-"


def requests_of_pod(template: PodTemplate) -> dict[str, int]:
    """What a pod of this template takes, in thousandths."""
    return requests_of_spec(template.spec)


def requests_of_batch_job(template: BatchJobTemplate) -> dict[str, int]:
    """What the pods of a batch Job take that run at the same time, in thousandths."""
    spec = template.spec
    pod = _mapping(_mapping(spec.get("template")).get("spec"))
    at_once = _count(spec.get("parallelism"), 1)
    pods = min(at_once, _count(spec.get("completions"), at_once))
    return {name: amount * pods for name, amount in requests_of_spec(pod).items()}


def requests_of_spec(spec: Mapping[str, Any]) -> dict[str, int]:
    """What a pod takes, by its specification, in thousandths."""
    beside: dict[str, int] = {}
    most: dict[str, int] = {}
    for container in _list(spec.get("initContainers")):
        asked = _of_container(container)
        if container.get("restartPolicy") == "Always":
            _add(beside, asked)
        else:
            asked = {**asked}
            _add(asked, beside)
            for name, amount in asked.items():
                most[name] = max(most.get(name, 0), amount)
    together = {**beside}
    for container in _list(spec.get("containers")):
        _add(together, _of_container(container))
    found = {name: max(together.get(name, 0), most.get(name, 0)) for name in (*together, *most)}
    found |= _of_whole_pod(spec)
    _add(found, _amounts(_mapping(spec.get("overhead"))))
    return {name: amount for name, amount in found.items() if amount}


def _of_whole_pod(spec: Mapping[str, Any]) -> dict[str, int]:
    asked = _of_container(spec)
    return {name: asked[name] for name in asked if name in _OF_WHOLE_PODS or name.startswith(_HUGE)}


def _of_container(container: Mapping[str, Any]) -> dict[str, int]:
    resources = _mapping(container.get("resources"))
    limits, requests = _mapping(resources.get("limits")), _mapping(resources.get("requests"))
    return _amounts({**limits, **requests})


def _amounts(given: Mapping[str, Any]) -> dict[str, int]:
    return {name: milli for name, text in given.items() if (milli := _milli(text)) is not None}


def _milli(text: object) -> int | None:
    """An amount in thousandths; None for what is none: the API server will say so."""
    try:
        return Amount.read(text).milli
    except ValueError:
        pass
    try:
        # Thousandths of what is written as 1e3; of what is below a thousandth, one.
        written = str(text)
        return 1 if written[-1:] in "nu" else parse_quantity(written) * 1000
    except ValueError:
        return None


def _add(to: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        to[name] = to.get(name, 0) + amount


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Iterable[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _count(value: object, otherwise: int) -> int:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and value > 0 else otherwise  # type: ignore[operator, return-value]
