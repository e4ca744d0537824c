"""Print what a Kubernetes cluster needs to know of Interlock, ready to be applied.

The definitions of our kinds, and who may do what. No server is asked.

  interlock manifests | kubectl apply -f -
  interlock manifests --only crds | kubectl apply -f -
  interlock manifests --only rbac --namespace batch | kubectl apply -f -

With --namespace the controller serves that namespace alone, with roles in it instead of in the
whole cluster; the namespace must be there. The controller's Deployment, Service and
PodDisruptionBudget are printed by --only controller, and are not part of the rest yet.
"""

from __future__ import annotations

import argparse

from interlock.modes.cli.errors import BAD_INPUT, CommandError
from interlock.modes.cli.flags import add_output
from interlock.modes.cli.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.kube.installation import Installation

_PARTS = ("crds", "rbac", "controller")


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be typed."""
    add = parser.add_argument
    add("--only", choices=_PARTS, metavar="|".join(_PARTS), help="this part alone")
    add(
        "-n", "--namespace", metavar="NAME",
        help="serve this namespace alone (all, from interlock-system)",
    )  # fmt: skip
    add("--image", metavar="IMAGE", help="the image of the controller")
    add_output(parser, "yaml", "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Print the objects; every time the same."""
    from interlock.kube.manifests import USUAL, manifests, to_json, to_yaml

    made = manifests(_installation(args), [args.only] if args.only else USUAL)
    session.terminal.stream.write(to_json(made) if args.output == "json" else to_yaml(made))
    session.terminal.stream.flush()
    return 0


def _installation(args: argparse.Namespace) -> Installation:
    from msgspec.structs import replace

    from interlock.kube.installation import Installation

    install = Installation()
    if args.namespace is not None:
        _check_namespace(args.namespace)
        install = replace(install, namespace=args.namespace, everywhere=False)
    if args.image is not None:
        if not args.image or any(letter.isspace() for letter in args.image):
            raise CommandError(f"--image {args.image!r} is no image", code=BAD_INPUT)
        install = replace(install, image=args.image)
    return install


def _check_namespace(name: str) -> None:
    from interlock.resources.checks import problems_of
    from interlock.resources.cluster import Namespace
    from interlock.resources.metadata import Metadata

    for problem in problems_of(Namespace(metadata=Metadata(name=name))):
        raise CommandError(f"--namespace {name!r}: {problem.message}", code=BAD_INPUT)
