"""An interpreter that has imported the library and nothing else, and runs programs in forks of itself.

Starting an interpreter and importing the library takes longer than most programs of failures. Each program runs in a
fork with no state of the tests or of other programs.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

__all__ = ["in_fresh_interpreter"]

_servers: list[subprocess.Popen[str]] = []


def in_fresh_interpreter(programs: dict[str, str]) -> dict[str, str]:
    """Return the outcome of each program: "passed", or the name of the error that it raises."""
    if not _servers:
        _servers.append(_started())
    server = _servers[0] if hasattr(os, "fork") else _servers.pop()
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(json.dumps({"programs": programs, "path": sys.path}) + "\n")
    server.stdin.flush()
    told = server.stdout.readline()
    assert told, "the interpreter that runs programs has died"
    ends: dict[str, str] = json.loads(told)
    return ends


def _started() -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", __file__]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def end() -> None:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.close()
        server.wait(20)
        server.stdout.close()

    atexit.register(end)
    return server


def _serve(requests: Iterator[str], answers: Any) -> None:
    """Answer requests; only the first one if programs cannot run in forks."""
    for line in requests:
        request = json.loads(line)
        programs = request["programs"].items()
        run = _in_fork if hasattr(os, "fork") else _run
        print(json.dumps({name: run(program, request["path"]) for name, program in programs}), file=answers, flush=True)
        if not hasattr(os, "fork"):
            return


def _in_fork(program: str, path: list[str]) -> str:
    reader, writer = os.pipe()
    if not os.fork():
        os.write(writer, _run(program, path).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as told:
        end = told.read().decode()
    os.wait()
    return end


def _run(program: str, path: list[str]) -> str:
    sys.path[:] = path
    try:
        exec(compile(program, "<pasted>", "exec"), {"__name__": "__main__"})
    except Exception as error:
        return type(error).__name__
    return "passed"


if __name__ == "__main__":
    for module in ("viewgrad.autograd", "scipy.linalg", "scipy.special"):  # imported once and shared by forks
        with suppress(ImportError):
            importlib.import_module(module)

    given, answered = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # the output of programs
    _serve(iter(os.fdopen(given)), os.fdopen(answered, "w"))
