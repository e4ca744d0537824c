"""Naming rules: which names, labels, annotations and owners are good, as in Kubernetes."""

from __future__ import annotations

import re
from hashlib import sha256

from interlock.findings import Findings, child
from interlock.resources.metadata import Metadata

#: `<name>-<index>-<attempt>` of a Job's task must be a label too: 52 + 5 + 5 is 62.
MAX_JOB_NAME = 52
#: What Kubernetes allows a CronJob, so that none need be called otherwise here. A JobConfig's Jobs
#: are `<name>-<seconds of the due time>`, with ten digits; of a name beyond 41 characters they have
#: as much as there is room for, and a digest of the rest.
MAX_CONFIG_NAME = 52
#: A ControlledJob's are `<name>-<seconds of the start>-<number>`, with ten digits and four.
MAX_CONTROLLED_NAME = MAX_JOB_NAME - 16
MAX_LABEL = 63
MAX_SUBDOMAIN = 253
#: What a made-up name adds to `generateName`.
GENERATED = 5
_DIGEST = 5
MAX_ANNOTATIONS_BYTES = 256 * 1024

LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(LABEL)
SUBDOMAIN = rf"{LABEL}(?:\.{LABEL})*"
_DNS_SUBDOMAIN = re.compile(SUBDOMAIN)
_PREFIX_OF_NAME = re.compile(r"[a-z0-9][-a-z0-9]*")
_QUALIFIED = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[0-9]{1,18}")

LABEL_RULE = (
    "expected lower-case letters, digits and '-', beginning and ending with one of the first two"
)
SUBDOMAIN_RULE = f"{LABEL_RULE}; parts are divided by '.'"
_VALUE_RULE = (
    "expected letters, digits, '-', '_' and '.', beginning and ending with one of the first two"
)


def cut_name(name: str, room: int) -> str:
    """The name, or as much of it as there is room for with a digest that stands for the rest.

    Two names may be cut to one, though hardly ever: whoever makes objects of such names looks
    whether somebody has the name already.
    """
    if len(name) <= room:
        return name
    digest = sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: room - _DIGEST - 1].rstrip('-')}-{digest}"


def check_metadata(metadata: Metadata, longest: int, *, dotted: bool, to: Findings) -> None:
    """Check what people write of the metadata; what the server owns it replaces anyway."""
    _check_name(metadata, longest, dotted, to)
    if metadata.namespace:
        check_label_name("metadata.namespace", metadata.namespace, MAX_LABEL, to)
    if metadata.resource_version and not _VERSION.fullmatch(metadata.resource_version):
        to.add("metadata.resourceVersion", "expected a number", metadata.resource_version)
    if metadata.labels:
        check_labels("metadata.labels", metadata.labels, to)
    if metadata.annotations:
        check_annotations("metadata.annotations", metadata.annotations, to)
    for at, name in enumerate(metadata.finalizers):
        _check_qualified(f"metadata.finalizers[{at}]", name, to, inside=False)
    if metadata.owner_references:
        _check_owners(metadata, to)


def check_labels(path: str, labels: dict[str, str], to: Findings) -> None:
    """Check the names and values of labels."""
    for name, value in labels.items():
        _check_qualified(path, name, to)
        if len(value) > MAX_LABEL or (value and not _QUALIFIED.fullmatch(value)):
            message = f"{_VALUE_RULE}, at most {MAX_LABEL} of them"
            to.add(child(path, name), message, value)


def _check_name(metadata: Metadata, longest: int, dotted: bool, to: Findings) -> None:
    name = metadata.name
    if name:
        if dotted:
            _check_subdomain("metadata.name", name, to)
        else:
            check_label_name("metadata.name", name, longest, to)
        return
    prefix = metadata.generate_name
    if not prefix:
        to.add("metadata.name", "is required, unless generateName is given")
    elif len(prefix) > longest - GENERATED:
        message = f"expected at most {longest - GENERATED} characters, found {len(prefix)}"
        to.add("metadata.generateName", message, prefix)
    elif not _PREFIX_OF_NAME.fullmatch(prefix):
        to.add("metadata.generateName", LABEL_RULE, prefix)


def check_label_name(path: str, name: str, longest: int, to: Findings) -> None:
    """Check a name that has to be a DNS label."""
    if len(name) > longest:
        to.add(path, f"expected at most {longest} characters, found {len(name)}", name)
    elif not _DNS_LABEL.fullmatch(name):
        to.add(path, LABEL_RULE + _better(name), name)


def _better(name: str) -> str:
    """A good name that looks like the bad one."""
    better = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return f'; did you mean "{better}"?' if better else ""


def _check_subdomain(path: str, name: str, to: Findings) -> None:
    if len(name) > MAX_SUBDOMAIN:
        to.add(path, f"expected at most {MAX_SUBDOMAIN} characters, found {len(name)}", name)
    elif not _DNS_SUBDOMAIN.fullmatch(name):
        to.add(path, SUBDOMAIN_RULE, name)


def _check_qualified(path: str, name: str, to: Findings, *, inside: bool = True) -> None:
    prefix, slash, last = name.rpartition("/")
    where = child(path, name) if inside else path
    if slash and (len(prefix) > MAX_SUBDOMAIN or not _DNS_SUBDOMAIN.fullmatch(prefix)):
        to.add(where, f"expected a DNS name before '/': {LABEL_RULE}", name)
    elif len(last) > MAX_LABEL or not _QUALIFIED.fullmatch(last):
        to.add(where, f"bad name: {_VALUE_RULE}, at most {MAX_LABEL} of them", name)


def check_annotations(path: str, annotations: dict[str, str], to: Findings) -> None:
    """Check the names of annotations, and their size in all."""
    size = 0
    for name, value in annotations.items():
        _check_qualified(path, name, to)
        size += len(name.encode()) + len(value.encode())
    if size > MAX_ANNOTATIONS_BYTES:
        message = f"expected at most {MAX_ANNOTATIONS_BYTES} bytes in all, found {size}"
        to.add(path, message)


def _check_owners(metadata: Metadata, to: Findings) -> None:
    managing = 0
    for at, owner in enumerate(metadata.owner_references):
        managing += bool(owner.controller)
        path = f"metadata.ownerReferences[{at}]"
        parts = {"apiVersion": owner.api_version, "kind": owner.kind}
        parts |= {"name": owner.name, "uid": owner.uid}
        for name, value in parts.items():
            if not value:
                to.add(f"{path}.{name}", "expected text that is not empty", value)
    if managing > 1:
        to.add("metadata.ownerReferences", "expected at most one with controller: true")
