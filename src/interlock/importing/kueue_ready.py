"""The Configuration of Kueue: how long Jobs may take to be ready, said for every Queue."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from interlock.importing.drafts import quoted
from interlock.importing.fields import Fields
from interlock.resources.door.manifests import Document, ManifestError, read_manifests
from interlock.resources.ready_gate import MAX_BACKOFF_S, BlockScope
from interlock.resources.values.durations import format_duration, parse_duration

FIRST = "config.kueue.x-k8s.io/v1beta1"
API_VERSIONS = ("config.kueue.x-k8s.io/v1beta2", FIRST)
#: The file that Kueue reads it from, in a ConfigMap.
_FILE = "controller_manager_config.yaml"
_BLOCK = "waitForPodsReady"
_DISABLED = "DisableWaitForPodsReady"
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_SIZES_MS = {"ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6, "ns": 1e-6}
#: No duration of Go is longer.
_MOST_MS = 2**63 / 1e6
#: What is about Kueue's own process, and about none of its queues.
_PROCESS = (
    *("apiVersion", "kind", "metadata", "namespace", "health", "metrics", "webhook", "manager"),
    *("leaderElection", "controller", "clientConnection", "internalCertManagement", "tls"),
    *("pprofBindAddress", "syncPeriod", "cacheNamespace", "gracefulShutDown", "queueVisibility"),
    *("visibilityServer", "visibility", "featureGates"),
)
#: What is about its cohorts, and read elsewhere.
_ELSEWHERE = ("fairSharing",)
#: What is about its queues, each with why it is lost and what is done instead.
_LOST = {
    "admissionFairSharing": (
        "the order of a Queue is one of priority and of creation, whoever used it before",
        "that order",
    ),
    "integrations": (
        "it names the kinds that Kueue holds back: here a Job waits that names a spec.queue",
        "the batch Jobs of the file that are imported",
    ),
    "manageJobsWithoutQueueName": (
        "here a Job waits that names a spec.queue, and no other",
        "Jobs that name no LocalQueue are left out",
    ),
    "managedJobsNamespaceSelector": (
        "here a Job waits that names a spec.queue, and no other",
        "Jobs that name no LocalQueue are left out",
    ),
    "resources": (
        "what a Job takes of its Queue is what its pods request, by the names they use",
        "spec.resources of a Job says anything else",
    ),
}


def ready_of(given: Fields) -> dict[str, Any] | None:
    """What every Queue says about readiness; None where Kueue does not wait for it.

    What is not written is what the version of the Configuration takes it for.
    """
    is_first = given.raw("apiVersion") == FIRST
    block = given.within(_BLOCK)
    is_off = bool(given.mapping("featureGates").get(_DISABLED))
    given.pass_over(*_PROCESS, *_ELSEWHERE)
    for name, (why, instead) in _LOST.items():
        if given.raw(name):
            given.note(name, "is not carried over", why, instead)
    given.tell_rest()
    if is_first and not block.flag("enable"):
        return None
    if not is_first and block.data.get("enable") is not None:
        raise block.wrong("enable", "v1beta2 has no such field: it waits wherever it is read")
    if is_off:
        return None
    if not is_first and not block.data:
        why = "Kueue waits all the same from 0.19 on, and does not before"
        given.note(_BLOCK, "is not given", why, "the defaults of Kueue 0.19")
    return _waiting(block, is_first)


def configuration_in(given: Fields) -> Fields | None:
    """The Configuration in a ConfigMap, where Kueue reads it; None when there is none.

    Raises:
        BadSourceError: It cannot be read.
    """
    data = given.mapping("data") if isinstance(given.raw("data"), dict) else {}
    text = data.get(_FILE)
    if given.raw("kind") != "ConfigMap" or not isinstance(text, str):
        return None
    place = given.within("data")
    line = place.line_of(_FILE)
    try:
        found = read_manifests(text)
    except ManifestError as error:
        raise place.wrong(_FILE, error.message) from None
    for one in found:
        if one.data.get("kind") == "Configuration":
            # Where its lines are depends on how the text is written.
            lines = dict.fromkeys(one.lines, line)
            return Fields(given.draft, Document(one.data, lines), "", one.data)
    return None


def _waiting(block: Fields, is_first: bool) -> dict[str, Any]:
    block.pass_over("enable")
    timeout = _timeout(block, is_first)
    recovery = _duration(block, "recoveryTimeout")
    if recovery is None:
        why = "Kueue takes it for as long as the timeout from 0.16 on, and for ever before"
        block.note("recoveryTimeout", "is not given", why, timeout)
    made: dict[str, Any] = {
        "enable": True,
        "timeout": timeout,
        "blockAdmission": _blocks(block, is_first),
    }
    if made["blockAdmission"]:
        # Kueue knows one block, for all of its queues.
        made["blockScope"] = BlockScope.SYSTEM.value
    made["recoveryTimeout"] = recovery or timeout
    if strategy := _strategy(block.within("requeuingStrategy")):
        made["requeuingStrategy"] = strategy
    block.tell_rest()
    return made


def _timeout(block: Fields, is_first: bool) -> str:
    timeout = _duration(block, "timeout")
    if timeout is not None and parse_duration(timeout):
        return timeout
    if timeout is not None and is_first:
        raise block.wrong("timeout", f"expected more than 0, found {quoted(timeout)}")
    usual = "5m" if is_first else "30m"
    why = "Kueue takes it for 5m in v1beta1, and for 30m in v1beta2"
    block.note("timeout", "is not given", why, usual)
    return usual


def _blocks(block: Fields, is_first: bool) -> bool:
    if block.data.get("blockAdmission") is not None:
        return block.flag("blockAdmission")
    if is_first:
        why = "Kueue takes it for true in v1beta1, and for false in v1beta2"
        block.note("blockAdmission", "is not given", why, "true")
    return is_first


def _strategy(given: Fields) -> dict[str, Any]:
    base, longest = given.number("backoffBaseSeconds"), given.number("backoffMaxSeconds")
    if longest == 0:
        why = "to Kueue a longest wait of 0 is none at all"
        given.note("backoffMaxSeconds", "0 is not carried over", why, f"{MAX_BACKOFF_S}, a year")
        longest = MAX_BACKOFF_S
    if (60 if base is None else base) > (3600 if longest is None else longest):
        why = "to Kueue the first wait may be longer than the longest"
        given.note("backoffBaseSeconds", "is cut", why, "no wait is longer than backoffMaxSeconds")
    made = {
        "timestamp": given.one_of("timestamp", "Eviction", "Creation"),
        "backoffLimitCount": given.number("backoffLimitCount"),
        "backoffBaseSeconds": base,
        "backoffMaxSeconds": longest,
    }
    given.tell_rest()
    return {name: value for name, value in made.items() if value is not None}


def _duration(given: Fields, name: str) -> str | None:
    """A duration as Go writes it, in our words."""
    text = given.text(name)
    if text is None:
        return None
    parts = _PART.findall(text)
    if text == "0":
        return "0s"
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise given.wrong(name, f'expected a duration such as "5m", found {quoted(text)}')
    try:
        parse_duration(text)
    except ValueError:
        total = sum(float(number) * _SIZES_MS.get(unit, 1e-3) for number, unit in parts)
        if total > _MOST_MS:
            raise given.wrong(name, f"expected less than 292 years, found {quoted(text)}") from None
        length = timedelta(milliseconds=max(round(total), 1) if total else 0)
        return format_duration(length)
    return text
