"""Completion for a shell.

Put the line of your shell into the file that it reads when it starts.

  bash:  source <(interlock completion bash)
  zsh:   source <(interlock completion zsh)
  fish:  interlock completion fish | source
"""

from __future__ import annotations

import argparse

from interlock.modes.cli.session import Session

_SCRIPTS = {
    "bash": """\
_interlock() {
    local IFS=$'\\n'
    COMPREPLY=($(interlock __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${COMPREPLY[0]} == __files ]] && COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _interlock interlock
""",
    "zsh": """\
#compdef interlock
_interlock() {
    local -a found
    found=("${(@f)$(interlock __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ $found[1] == __files ]]; then _files; else compadd -- $found; fi
}
compdef _interlock interlock
""",
    "fish": """\
function __interlock_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (interlock __complete $words[2..-1] 2>/dev/null)
    if test "$found[1]" = __files
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $found
    end
end
complete -c interlock -f -a '(__interlock_complete)'
""",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(_SCRIPTS), help="which shell")


def run(session: Session, args: argparse.Namespace) -> int:
    """Print the script; all knowledge stays in this program."""
    session.terminal.stream.write(_SCRIPTS[args.shell])
    return 0
