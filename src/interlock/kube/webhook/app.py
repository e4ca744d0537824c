"""The webhook's HTTP application: one address for each question.

Who asks is not checked. The answer follows from the question alone and tells nothing that the
asker did not send, so there is nothing to protect.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Set
from datetime import datetime

from interlock.errors import BadRequestError
from interlock.kube.answering import Receive, Scope, Send, read_body, send_answer, send_text
from interlock.kube.webhook.holding import hold
from interlock.kube.webhook.judging import complete, judge
from interlock.kube.webhook.review import (
    MAX_REVIEW_BYTES,
    Change,
    Verdict,
    answer_review,
    read_review,
)

#: Judges a change, knowing who is the controller, and what time it is.
Rule = Callable[[Change, Set[str], datetime], Verdict]

VALIDATE_PATH = "/validate-jobs"
COMPLETE_PATH = "/complete-jobs"
HOLD_PATH = "/hold-workloads"
_RULES: dict[str, Rule] = {VALIDATE_PATH: judge, COMPLETE_PATH: complete, HOLD_PATH: hold}
_LOG = logging.getLogger("interlock.webhook")


class WebhookApp:
    """Answers an API server's questions about Jobs."""

    def __init__(
        self, controllers: Set[str], now: Callable[[], datetime], *, holds: bool = True
    ) -> None:
        """Answer; without `holds` batch Jobs and pods of others are let pass as they are."""
        #: The names under which the controller itself writes; whoever made the app adds to them.
        self._controllers = controllers
        self._now = now
        self._rules = _RULES if holds else _RULES | {HOLD_PATH: _let_pass}
        #: How many changes were asked about, and how many of them refused.
        self.asked = 0
        self.refused = 0

    def stop(self) -> None:
        """End what goes on; no answer here does."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        rule = self._rules.get(scope["path"])
        if rule is None:
            await send_text(send, 404, "there is nothing here")
        elif scope["method"] != "POST":
            await send_text(send, 405, "a review is sent with POST")
        else:
            await self._answer(rule, receive, send)

    async def _answer(self, rule: Rule, receive: Receive, send: Send) -> None:
        try:
            change = read_review(await read_body(receive, MAX_REVIEW_BYTES))
            verdict = rule(change, self._controllers, self._now())
        except BadRequestError as error:
            await send_text(send, 400, str(error))
            return
        except Exception:
            # The API server then does as if there were no webhook, and the admission room judges.
            _LOG.exception("a review failed")
            await send_text(send, 500, "an internal error occurred")
            return
        self.asked += 1
        self.refused += bool(verdict.problems)
        await send_answer(send, 200, answer_review(change, verdict))


def _let_pass(_: Change, __: Set[str], ___: datetime) -> Verdict:
    return Verdict()
