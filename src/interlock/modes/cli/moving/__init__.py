"""Moving queued Jobs from a server of our own to a cluster: none lost, none doubled.

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
"""
