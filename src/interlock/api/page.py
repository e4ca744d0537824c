"""The page for people who open the server in a browser: what there is, and how to ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from interlock import __version__
from interlock.api.discovery import verbs_of
from interlock.api.routing import Route, collection_path
from interlock.resources.kinds import KINDS

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{text-align:left;padding:.25rem 1rem .25rem 0}"
    "code{background:#f3f3f3;padding:.1rem .3rem}"
)


def page(routes: Sequence[Route]) -> bytes:
    """The whole page, without scripts: the kinds, and all other routes.

    A link is made of what a browser can open by it alone; the rest is told with its method.
    """
    kinds = "".join(
        f"<tr><td>{kind.name}</td><td>{_link(collection_path(kind))}</td>"
        f"<td>{', '.join(verbs_of(kind))}</td></tr>"
        for kind in KINDS.values()
    )
    others = [route for route in routes if route.kind is None and route.when is None]
    ends = "".join(
        f"<tr><td>{_link(route.path)}</td><td>{escape(route.gives)}</td></tr>"
        for route in others
        if _can_be_opened(route)
    )
    more = "".join(
        f"<tr><td><code>{escape(f'{route.method} {route.path}')}</code></td>"
        f"<td>{escape(route.gives)}</td></tr>"
        for route in others
        if not _can_be_opened(route)
    )
    html = (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Interlock</title>"
        # Without it a browser asks for a file that there is none of.
        "<link rel=icon href=data:,>"
        f"<style>{_STYLE}</style><h1>Interlock {__version__}</h1>"
        "<p>The resources are served as a Kubernetes API server would serve them: "
        "<code>interlock get jobs</code>, <code>kubectl get jobs.interlock.dev</code> and any "
        "Kubernetes client work.</p>"
        f"<h2>Resources</h2><table><tr><th>Kind<th>Path<th>Verbs</tr>{kinds}</table>"
        f"<h2>Endpoints</h2><table>{ends}</table>"
        f"<h2>With more words</h2><table>{more}</table></html>"
    )
    return html.encode()


def _can_be_opened(route: Route) -> bool:
    return route.method == "GET" and "{" not in route.path and not route.only_refuses


def _link(path: str) -> str:
    return f'<a href="{escape(path)}">{escape(path)}</a>'
