"""Put a backup into a data directory. The server of that directory must not run.

What is there now is replaced, after the backup was found sound. Everything gets a new version, so
that fencing tokens go on rising. Tasks that still run in the name of that directory, and that the
backup does not know to be running, are stopped by its next server before anything else starts.

It is for a server of our own. What a cluster stores is put back by restoring its etcd; from a file
that `backup` wrote there, single Jobs are created anew with `interlock apply`, and then run again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from interlock.client.errors import BAD_INPUT, CONFLICT, FAILED, CommandError
from interlock.modes.cli.input.files import unreadable
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="what `interlock backup` wrote")
    parser.add_argument("--data", metavar="DIR", default=".interlock", help="where to (.interlock)")
    parser.add_argument("--force", action="store_true", help="replace what is there")


def run(session: Session, args: argparse.Namespace) -> int:
    """Replace the file of the store."""
    if args.context or args.kubeconfig:
        raise CommandError(
            "a cluster is not restored from here: Jobs that ended would run again",
            hint="restore its etcd, or create single Jobs of the file with: interlock apply -f",
            code=BAD_INPUT,
        )
    from interlock.control.clock import SystemClock
    from interlock.errors import InterlockError, UnavailableError
    from interlock.modes.embedded import STORE_FILE
    from interlock.private_files import NotPrivateError, check_directory
    from interlock.runtimes.keeper.journal import newest_term
    from interlock.runtimes.keeper.protocol import JOURNAL_NAME
    from interlock.store.sqlite.file import CorruptFileError, FileInUseError, ForeignContentError
    from interlock.store.sqlite.restoring import restore

    backup, place = Path(args.file), Path(args.data) / STORE_FILE
    try:
        check_directory(args.data)
    except NotPrivateError as error:
        raise CommandError(error.message, hint=error.hint, code=BAD_INPUT) from None
    except OSError as error:
        raise CommandError(f"{args.data}: {error.strerror}", code=BAD_INPUT) from None
    _check_backup(args.file)
    if place.exists() and not args.force:
        raise CommandError(
            f"{args.data} holds a store already", hint="replace it with --force", code=BAD_INPUT
        )
    try:
        known = newest_term(place.with_name(JOURNAL_NAME))
        restore(backup, place, now=SystemClock().now(), known=known)
    except FileInUseError as error:
        raise CommandError(
            str(error), hint="stop the server first, then restore", code=CONFLICT
        ) from None
    except ForeignContentError as error:
        raise CommandError(f"{error}; nothing was changed", code=BAD_INPUT) from None
    except CorruptFileError:
        raise CommandError(
            f"{backup} is damaged, or is no backup; nothing was changed", code=BAD_INPUT
        ) from None
    except UnavailableError as error:
        raise CommandError(str(error), code=BAD_INPUT) from None
    except InterlockError as error:
        raise CommandError(str(error), code=FAILED) from None
    except OSError as error:
        where = error.filename or args.data
        raise CommandError(f"cannot restore to {where}: {error.strerror}", code=FAILED) from None
    session.terminal.print(f"{place} restored from {backup}")
    return 0


def _check_backup(name: str) -> None:
    """Refuse what cannot be read before anything is touched."""
    try:
        with Path(name).open("rb"):
            pass
    except FileNotFoundError:
        raise CommandError(f"there is no backup {name}", code=BAD_INPUT) from None
    except OSError as error:
        raise unreadable(name, error) from None
