"""How: what an admitted Job does next, from its first attempt to its proven end.

The room owns `status.execution` of every Job and the finalizer that holds a Job back until its
tasks are gone. It records an attempt before it has it launched, and takes no attempt for over
unless a runtime proved it or a person wrote it off. It never decides whether a Job may start,
never touches a lock, and never speaks to a process itself.
"""

from interlock.execution.decide import Plan, decide, plan
from interlock.execution.reconciler import ExecutionReconciler
from interlock.execution.view import ExecutionView

__all__ = ["ExecutionReconciler", "ExecutionView", "Plan", "decide", "plan"]
