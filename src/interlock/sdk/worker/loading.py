"""Loading an application: `MODULE:APP`, found as Python finds modules from the directory here."""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module
from types import ModuleType

from interlock.client.errors import BAD_INPUT, CommandError
from interlock.findings import did_you_mean
from interlock.sdk.app import App
from interlock.sdk.app_errors import DeclarationError


def load(given: str) -> App:
    """The application that is meant.

    Raises:
        CommandError: There is none, it cannot be imported, or it is declared wrongly.
    """
    module_name, _, app_name = given.partition(":")
    words = [*module_name.split("."), *app_name.split(".")]
    if ":" not in given or not all(word.isidentifier() for word in words):
        raise CommandError(
            f"{given!r}: expected MODULE:APP", hint="such as broker:app", code=BAD_INPUT
        )
    here = os.getcwd()  # noqa: PTH109 - as sys.path has it
    if here not in sys.path:
        sys.path.insert(0, here)
    app: object = _import(given, module_name)
    for word in app_name.split("."):
        owner = app
        app = getattr(owner, word, None)
        if app is None:
            near = did_you_mean(word, _apps_of(owner))
            raise _bad(given, f"there is no {word} in {module_name}{near}")
    if not isinstance(app, App):
        raise _bad(given, f"it is a {type(app).__name__}, and no interlock.App")
    try:
        app.check()
    except DeclarationError as error:
        raise _bad(given, str(error)) from None
    if not app.functions:
        raise _bad(given, "it has no operations and no steps")
    return app


def _import(given: str, name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            told = f"there is no module {error.name} here or where Python looks for modules"
            raise _bad(given, told) from None
        raise _import_error(given, error) from None
    except DeclarationError as error:
        raise _bad(given, str(error), _line_of(error)) from None
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise _import_error(given, error) from None


def _import_error(given: str, error: BaseException) -> CommandError:
    told = "".join(traceback.format_exception_only(error)).strip()
    return _bad(given, told, _line_of(error))


def _line_of(error: BaseException) -> str:
    """Where in the application it went wrong: the last line of it that was reached."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((ours, "<")) and "importlib" not in frame.filename
    ]
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else ""


def _bad(given: str, told: str, where: str = "") -> CommandError:
    return CommandError(f"{given} cannot be loaded: {told}", hint=where, code=BAD_INPUT)


def _apps_of(owner: object) -> list[str]:
    return [name for name, value in vars(owner).items() if isinstance(value, App)]
