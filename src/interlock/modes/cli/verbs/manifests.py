"""Print what a Kubernetes cluster needs to run Interlock, ready to be applied.

The definitions of our kinds, who may do what, the controller, and the webhook by which the API
server refuses what our own server refuses. No server is asked.

  interlock manifests | kubectl apply -f -
  interlock manifests --only crds | kubectl apply -f -
  interlock manifests --namespace batch --namespaced | kubectl apply -f -

The controller runs in the namespace interlock-system, or in that of --namespace, and serves all.
With --namespaced it serves its own alone, which must be there, with roles in it instead of in the
whole cluster. The webhook is then left out, as it belongs to the cluster: what it would refuse is
refused before it starts; --only webhook --namespaced prints one for that namespace. So that its
own API knows who calls, the cluster role system:auth-delegator must be given to its account.

Prometheus' operator finds the metrics by a ServiceMonitor, printed by --service-monitor.

With --worker-app MODULE:APP there are workers too, in the controller's namespace, that load that
application from --worker-image. Their account may connect as a worker, and nothing else.
"""

from __future__ import annotations

import argparse
import re

from interlock.client.errors import BAD_INPUT, CommandError
from interlock.modes.cli.flags import add_output
from interlock.modes.cli.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.kube.install.installation import Installation

#: One leads; more than a few stand by for nothing.
MAX_REPLICAS = 9
#: So many workers there are at most, and so many steps each does at a time.
MAX_WORKERS = 1000
_APP = re.compile(r"[A-Za-z0-9_.]+:[A-Za-z0-9_.]+")
_PARTS = ("crds", "rbac", "controller", "webhook", "policy", "monitor")


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--only", choices=_PARTS, metavar="|".join(_PARTS), help="this part alone")
    add("-n", "--namespace", metavar="NAME", help="where the controller runs (interlock-system)")
    add("--namespaced", action="store_true", help="serve that namespace alone")
    add("--image", metavar="IMAGE", help="the image of the controller")
    add("--replicas", type=int, metavar="N", help="how many controllers: one leads (2)")
    add("--service-monitor", action="store_true", help="let Prometheus read the metrics")
    add("--wait-for-pods-ready", metavar="FILE",
        help="whether Jobs have to be ready in time, for Queues that do not say")  # fmt: skip
    add("--no-adopt-workloads", action="store_true",
        help="leave batch Jobs and pods alone that are labelled interlock.dev/queue")  # fmt: skip
    add("--slots", action="store_true",
        help="give pods slots of TestBeds: with a second scheduler, which asks the controller")  # fmt: skip  # noqa: E501
    add("--scheduler-image", metavar="IMAGE", help="the image of that scheduler")
    add("--worker-app", metavar="MODULE:APP", help="run workers that load this application")
    add("--worker-image", metavar="IMAGE", help="the image that has it (the controller's)")
    add("--worker-replicas", type=int, metavar="N", help="how many workers there are (1)")
    add("--worker-concurrency", type=int, metavar="N",
        help="how many steps each does at a time (4)")  # fmt: skip
    add_output(parser, "yaml", "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Print the objects; every time the same."""
    from interlock.kube.install.manifests import manifests, to_json, to_yaml, usual_parts

    install = _installation(args)
    parts = (args.only,) if args.only else usual_parts(install)
    if args.service_monitor:
        parts = (*parts, "monitor")
    if install.worker_app:
        parts = (*parts, "workers")
    if install.slots and not args.only:
        parts = (*parts, "slots")
    made = manifests(install, parts)
    session.terminal.stream.write(to_json(made) if args.output == "json" else to_yaml(made))
    session.terminal.stream.flush()
    return 0


def _installation(args: argparse.Namespace) -> Installation:
    from msgspec.structs import replace

    from interlock.kube.install.installation import Installation

    install = Installation()
    if args.namespace is not None:
        _check_namespace(args.namespace)
        install = replace(install, namespace=args.namespace)
    if args.namespaced:
        if args.namespace is None:
            raise CommandError("--namespaced: say which with --namespace NAME", code=BAD_INPUT)
        install = replace(install, everywhere=False)
    if args.no_adopt_workloads:
        install = replace(install, adopts=False)
    if args.image is not None:
        if not args.image or any(letter.isspace() for letter in args.image):
            raise CommandError(f"--image {args.image!r} is no image", code=BAD_INPUT)
        install = replace(install, image=args.image)
    if args.replicas is not None:
        if not 0 <= args.replicas <= MAX_REPLICAS:
            told = f"--replicas {args.replicas}: expected 0 to {MAX_REPLICAS}"
            raise CommandError(told, code=BAD_INPUT)
        install = replace(install, replicas=args.replicas)
    if args.wait_for_pods_ready is not None:
        install = replace(install, wait_for_pods_ready=_policy(args.wait_for_pods_ready))
    return replace(install, **_workers(args), **_slots(args))


def _slots(args: argparse.Namespace) -> dict[str, str | bool]:
    """What was chosen about slots."""
    image = args.scheduler_image
    if not args.slots:
        if image is not None:
            raise CommandError("--scheduler-image means nothing without --slots", code=BAD_INPUT)
        return {}
    if args.namespaced:
        told = "--slots is for all namespaces: slots are on nodes, and nodes are everybody's"
        raise CommandError(told, code=BAD_INPUT)
    if image is None:
        return {"slots": True}
    if not image or any(letter.isspace() for letter in image):
        raise CommandError(f"--scheduler-image {image!r} is no image", code=BAD_INPUT)
    return {"slots": True, "scheduler_image": image}


def _policy(given: str) -> str:
    """The policy for all Queues, as the controllers are given it."""
    from interlock.modes.ready_policy import ReadyPolicyError, read_ready_policy
    from interlock.resources.codec import encode

    try:
        return encode(read_ready_policy(given)).decode()
    except ReadyPolicyError as error:
        raise CommandError(str(error), hint=error.hint, code=BAD_INPUT) from error


def _workers(args: argparse.Namespace) -> dict[str, str | int]:
    """What was chosen about workers."""
    names = ("worker_app", "worker_image", "worker_replicas", "worker_concurrency")
    given = {name: value for name in names if (value := getattr(args, name)) is not None}
    for name, value in given.items():
        flag = f"--{name.replace('_', '-')}"
        if "worker_app" not in given:
            raise CommandError(f"{flag} means nothing without --worker-app", code=BAD_INPUT)
        if name == "worker_app" and not _APP.fullmatch(value):
            told = f"{flag} {value!r}: expected MODULE:APP, such as broker:app"
            raise CommandError(told, code=BAD_INPUT)
        if name == "worker_image" and (not value or any(letter.isspace() for letter in value)):
            raise CommandError(f"{flag} {value!r} is no image", code=BAD_INPUT)
        least = 1 if name == "worker_concurrency" else 0
        if isinstance(value, int) and not least <= value <= MAX_WORKERS:
            told = f"{flag} {value}: expected {least} to {MAX_WORKERS}"
            raise CommandError(told, code=BAD_INPUT)
    return given


def _check_namespace(name: str) -> None:
    from interlock.resources.cluster import Namespace
    from interlock.resources.door.checking import problems_of
    from interlock.resources.metadata import Metadata

    for problem in problems_of(Namespace(metadata=Metadata(name=name))):
        raise CommandError(f"--namespace {name!r}: {problem.message}", code=BAD_INPUT)
