"""Writes the Helm chart from what `interlock manifests` prints: the same objects, with values.

python tools/write_chart.py            write it
python tools/write_chart.py --check    only say whether it is up to date
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from interlock import __version__
from interlock.kube.install.definitions import definitions
from interlock.kube.install.deployment import EXTENDER_LISTEN
from interlock.kube.install.installation import Installation, Manifest
from interlock.kube.install.manifests import manifests, to_yaml

ROOT = Path(__file__).resolve().parent.parent
CHART = "chart/interlock"
#: The parts that depend on values, each a template.
PARTS = ("rbac", "controller", "webhook", "monitor", "workers", "slots")

_NOTE = "Written by tools/write_chart.py from the code. Change the code, then `make docs`."
#: What stands for a value while the objects are made, and how Helm is told to put it in.
_NAMESPACE, _IMAGE, _REPLICAS = "value-of-namespace", "value-of-image", 987654321
_POLICY = "value-of-policy"
_SCHEDULER_IMAGE = "value-of-scheduler"
_APP, _WORKER_IMAGE, _WORKERS, _AT_ONCE = "value-of-app", "value-of-other", 987654322, 987654323
_VALUES = {
    f"image: {_IMAGE}": "image: {{ .Values.image | quote }}",
    f"replicas: {_REPLICAS}": "replicas: {{ .Values.replicas }}",
    f"        - --wait-for-pods-ready={_POLICY}\n": "        {{- with .Values.waitForPodsReady }}\n"
    '        - {{ printf "--wait-for-pods-ready=%s" (toJson .) | quote }}\n        {{- end }}\n',
    **{
        f"{text}": f"{indent}{{{{- if .Values.slots }}}}\n{text}{indent}{{{{- end }}}}\n"
        for indent, text in (
            (" " * 8, f"        - --extender-listen=0.0.0.0:{EXTENDER_LISTEN}\n"),
            (
                " " * 8,
                f"        - name: extender\n          containerPort: {EXTENDER_LISTEN}\n"
                "          protocol: TCP\n",
            ),
            (
                " " * 2,
                f"  - name: extender\n    port: {EXTENDER_LISTEN}\n    targetPort: extender\n"
                "    protocol: TCP\n",
            ),
        )
    },
    f"image: {_SCHEDULER_IMAGE}": "image: {{ .Values.schedulerImage | quote }}",
    f"- {_APP}": "- {{ .Values.workerApp | quote }}",
    "--adopt-workloads=true": "--adopt-workloads={{ .Values.adoptWorkloads }}",
    f"image: {_WORKER_IMAGE}": "image: {{ default .Values.image .Values.workerImage | quote }}",
    f"replicas: {_WORKERS}": "replicas: {{ .Values.workerReplicas }}",
    f"--concurrency={_AT_ONCE}": "--concurrency={{ .Values.workerConcurrency }}",
}
_WHOLE = re.compile(f"(?<=[:-] ){_NAMESPACE}$", re.MULTILINE)
#: When a part is there at all.
_CONDITIONS = {
    "webhook": "ternary (not .Values.namespaced) .Values.webhook "
    '(kindIs "invalid" .Values.webhook)',
    "monitor": ".Values.serviceMonitor",
    "workers": ".Values.workerApp",
    "slots": "and .Values.slots (not .Values.namespaced)",
}
_FIELDS: dict[str, tuple[dict[str, object], object, str]] = {
    "image": (
        {"type": "string", "minLength": 1, "pattern": r"^\S+$"},
        Installation().image,
        "The image of the controller.",
    ),
    "replicas": (
        {"type": "integer", "minimum": 0, "maximum": 9},
        Installation().replicas,
        "How many controllers there are: one leads, the others stand by.",
    ),
    "namespaced": (
        {"type": "boolean"},
        False,
        "Serve the release's namespace alone, with roles in it instead of in the whole cluster.",
    ),
    "webhook": (
        {"type": ["boolean", "null"]},
        None,
        "Let the API server refuse bad Jobs by asking the controller. When nothing is said, it"
        " does unless one namespace alone is served: a webhook belongs to the whole cluster.",
    ),
    "adoptWorkloads": (
        {"type": "boolean"},
        Installation().adopts,
        "Have batch Jobs and pods of others wait in the Queue that their label interlock.dev/queue"
        " names.",
    ),
    "serviceMonitor": (
        {"type": "boolean"},
        False,
        "Let Prometheus read the metrics; its operator's kinds must be installed.",
    ),
    "waitForPodsReady": (
        {"type": "object"},
        {},
        "What holds for all Queues that do not say otherwise about being ready in time, such as"
        " {enable: true, timeout: 10m}: the fields of a Queue's waitForPodsReady.",
    ),
    "slots": (
        {"type": "boolean"},
        Installation().slots,
        "Give pods slots of TestBeds: placeholder pods, and a second scheduler that asks the"
        " controller. Slots are on nodes, so there are none where one namespace alone is served.",
    ),
    "schedulerImage": (
        {"type": "string", "pattern": r"^\S+$"},
        Installation().scheduler_image,
        "The image of that scheduler; of the version of the cluster, or one below.",
    ),
    "workerApp": (
        {"type": "string", "pattern": r"^([A-Za-z0-9_.]+:[A-Za-z0-9_.]+)?$"},
        Installation().worker_app,
        "Run workers that load this application, as MODULE:APP; empty runs none.",
    ),
    "workerImage": (
        {"type": "string", "pattern": r"^\S*$"},
        Installation().worker_image,
        "The image that has the application; empty takes that of the controller.",
    ),
    "workerReplicas": (
        {"type": "integer", "minimum": 0},
        Installation().worker_replicas,
        "How many workers there are.",
    ),
    "workerConcurrency": (
        {"type": "integer", "minimum": 1, "maximum": 1000},
        Installation().worker_concurrency,
        "How many steps each worker does at a time.",
    ),
}


def files() -> dict[str, str]:
    """Every file of the chart, by its path below the project."""
    made = {
        "Chart.yaml": _chart(),
        "values.yaml": "\n".join(_values()) + "\n",
        "values.schema.json": json.dumps(_schema(), indent=2) + "\n",
        "README.md": "\n".join(_readme()) + "\n",
        "templates/NOTES.txt": _NOTES,
    }
    for one in definitions():
        made[f"crds/{one['metadata']['name']}.yaml"] = f"# {_NOTE}\n" + to_yaml([one])
    for part in PARTS:
        made[f"templates/{part}.yaml"] = "".join(_template(part))
    return {f"{CHART}/{name}": text for name, text in made.items()}


def _chart() -> str:
    return (
        f"# {_NOTE}\n"
        "apiVersion: v2\n"
        "name: interlock\n"
        "description: One control plane for jobs that must run when told, only when allowed, and"
        " never twice\n"
        "type: application\n"
        f"version: {__version__}\n"
        f'appVersion: "{__version__}"\n'
        'kubeVersion: ">=1.31.0-0"\n'
    )


def _values() -> Iterator[str]:
    yield f"# {_NOTE}"
    for name, (_, default, told) in _FIELDS.items():
        yield ""
        yield from _wrapped(told)
        yield f"{name}: {json.dumps(default)}"


def _wrapped(text: str) -> Iterator[str]:
    line = "#"
    for word in text.split():
        if len(line) + len(word) + 1 > 98:
            yield line
            line = "#"
        line += f" {word}"
    yield line


def _schema() -> Manifest:
    return {
        "$schema": "https://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            # A chart that this one is part of hands these down to all.
            "global": {"type": "object"},
            **{name: {**kind, "description": told} for name, (kind, _, told) in _FIELDS.items()},
        },
    }


def _template(part: str) -> Iterator[str]:
    yield f"{{{{- /* {_NOTE} */ -}}}}\n"
    condition = _CONDITIONS.get(part)
    if condition:
        yield f"{{{{- if {condition} }}}}\n"
    # Rights to kinds outside of namespaces, which one namespace needs besides, are the last.
    for everywhere, alone in zip_longest(_objects(part, True), _objects(part, False), fillvalue=""):
        if everywhere == alone:
            yield everywhere
        else:
            yield "{{- if .Values.namespaced }}\n" + alone
            yield "{{- else }}\n" + everywhere + "{{- end }}\n"
    if condition:
        yield "{{- end }}\n"


def _objects(part: str, everywhere: bool) -> list[str]:
    install = Installation(
        namespace=_NAMESPACE,
        everywhere=everywhere,
        image=_IMAGE,
        replicas=_REPLICAS,
        wait_for_pods_ready=_POLICY,
        # Slots are on nodes, which are everybody's.
        slots=everywhere,
        scheduler_image=_SCHEDULER_IMAGE,
        worker_app=_APP,
        worker_image=_WORKER_IMAGE,
        worker_replicas=_WORKERS,
        worker_concurrency=_AT_ONCE,
    )
    if part == "slots" and not everywhere:
        return []
    made = manifests(install, [part])
    # Helm makes the namespace itself, or finds it there.
    return [_filled(to_yaml([one])) for one in made if one["kind"] != "Namespace"]


def _filled(text: str) -> str:
    assert "{{" not in text, "Helm would take this for its own"
    for found, value in _VALUES.items():
        text = text.replace(found, value)
    # A namespace may be called 1, and that is no number.
    text = _WHOLE.sub("{{ .Release.Namespace | quote }}", text)
    return text.replace(_NAMESPACE, "{{ .Release.Namespace }}")


_NOTES = """\
Interlock {{ .Chart.AppVersion }} serves {{ if .Values.namespaced -}}
the namespace {{ .Release.Namespace }}{{ else }}all namespaces{{ end }}.

  kubectl get pods -n {{ .Release.Namespace }} -l app.kubernetes.io/component=controller
  kubectl get jobs.interlock.dev -A
"""


def _readme() -> Iterator[str]:
    yield from ("# Interlock", "", f"<!-- {_NOTE} -->", "")
    yield "Installs what `interlock manifests` prints: the same objects, from the same code."
    yield ""
    yield from ("```sh", "helm install interlock chart/interlock \\")
    yield from ("  --namespace interlock-system --create-namespace", "```", "")
    yield "| value | default | what it is |"
    yield "|---|---|---|"
    for name, (_, default, told) in _FIELDS.items():
        yield f"| `{name}` | `{json.dumps(default)}` | {told} |"
    yield ""
    yield "Two things are Helm's own way:"
    yield ""
    yield "- The namespace is made by `--create-namespace`, without the label by which"
    yield "  `interlock manifests` has it take only pods with few rights; ours are such pods."
    yield "- Helm installs custom resource definitions and never changes them. Before an upgrade:"
    yield "  `kubectl apply --server-side -f chart/interlock/crds`"


def main(arguments: list[str]) -> int:
    """Write the chart, or say what is out of date."""
    made = {ROOT / path: text for path, text in files().items()}
    there = {path for path in (ROOT / CHART).rglob("*") if path.is_file()}
    different = {path for path in made.keys() & there if path.read_text("utf-8") != made[path]}
    stale = different | (made.keys() ^ there)
    if "--check" in arguments:
        for path in sorted(stale):
            print(f"{path} is out of date: run `make docs`")
        return bool(stale)
    for path in stale:
        if path not in made:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made[path], "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
