"""Moving queued Jobs and what makes them to a cluster: none lost, none doubled.

Jobs
----
What can be moved is a Job that never started. It passes four writes, each of which a repeated
move finds done or does again, whatever was interrupted in between:

1. *Hold* it at the source: suspend it by a compare-and-set from a version at which it waits, with a
   mark that names the cluster and how it was suspended before. A Job is let in by a
   compare-and-set too, from a version that is not suspended; so from here on it cannot start
   there. If it starts first, this write fails, and the Job is left where it runs.
2. *Copy* it: create it in the cluster, suspended, with the uid of the source on it. A name that is
   taken is the copy itself when it carries that uid; any other is a conflict, and
   the source is put back as it was.
3. *Remove* it at the source, at the very version at which it was seen held. Whoever resumed
   it meanwhile is found out here: if it started, the copy, which never ran, is removed instead.
4. *Let it go*: give the copy the suspension that the Job had before, and take the marks off.

At every moment at most one of the two is not suspended, and at least one of them is there: after 1
and 2 the source is held, after 3 the copy is the only one. A copy with marks whose source is gone
is at step 4, which needs the source no more. (When a person deletes a source between 2 and 3, and
the move is interrupted just then, the next move takes it for one at step 4: the copy goes on.)

Order: each step is done for all Jobs before the next. Holding begins at the end of the line, so
that no Job is overtaken by one behind it. Copies are made in the order of creation, which is the
order of the lines in the cluster, and let go from the first in line to the last.

Locks know nothing of the other side. A copy stays suspended while an unfinished Job that is left at
the source asks for one of its locks, so that no lock is held on both sides; a later move, or a
person with `interlock resume`, lets it go.

Schedules
---------
Calendars do nothing by themselves: they are created first, and left at the source. A JobConfig or a
ControlledJob is on both sides in the end, and acts on one. It passes six writes:

1. *Hold* it at the source: suspend it by a compare-and-set, with a mark that names the cluster and
   whether it was suspended before. Its server then makes no more Jobs of it, and a ControlledJob's
   Job is told to stop. All that are to be moved are held before any Job is moved.
2. *Copy* it: create it in the cluster, suspended, with the uid of the source on it.
3. *Tell* the copy up to when the source has accounted for what was due (an annotation), once the
   source's server has seen that it is suspended, and
4. what it has done: its skips, its windows and their outcomes, the number of its last run. So what
   is finished in a window is not begun again, and numbers only rise.
5. *Finish* the source: mark it as moved, at the very version that the copy was told of. Whoever
   resumed it meanwhile is found out here: it is held again, and the copy told anew.
6. *Let it go*: give the copy the suspension it had before, and take the marks off.

At every moment at most one of the two is not suspended. The source stays where it is, suspended:
its Jobs, their logs and its history belong to it, and would go with it.

No due time is lost in between. A copy that was let go is accountable from the moment that the
annotation names, and not from its creation or from now: what was due meanwhile is caught up on
or skipped by its own `catchUp`, as after an outage. The annotation counts only for books that
never accounted for anything, so it can never make something run twice. What was suspended before
carries none: nothing was due. A ControlledJob's windows go on where they are.

A copy stays suspended, and its source held, while an unfinished Job that is left at the source has
a lock that its own Jobs would ask for, the one of the schedule itself included; a later move hands
it over. A move waits up to ten seconds for that, which lets short Jobs end.
"""
