"""Functions that run in several threads at once."""

from __future__ import annotations

import threading


def in_threads(count, function):
    """Run `function(number)` in several threads at once, and re-raise an exception of any of them."""
    errors = []
    barrier = threading.Barrier(count)

    def run(number):
        try:
            barrier.wait()
            function(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
