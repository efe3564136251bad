"""Dicts and sets with computed keys, implemented as hash tables in Python code that is inlined.

Keys, and the values of a dict, are stored in lists in order of insertion. The table is an array, each of whose cells
contains the position of a key, or -1. A key belongs to the cell given by its slot, or to one of the following cells
without a free cell in between (linear probing). The table has twice as many cells as there is room for keys.
"""

from __future__ import annotations

from typing import Any

from .python_code import pop_at


def slot_of_number(key: Any, size: Any) -> Any:
    """Return the first cell for an integer."""
    return key % size


def slot_of_tuple(key: Any, size: Any) -> Any:
    """Return the first cell for a tuple of integers."""
    found = 0
    for each in key:
        found = (31 * found + each % size) % size
    return found


def find(keys: Any, table: Any, key: Any, slot: Any) -> Any:
    """Return the cell that contains the position of a key, or the free cell for it."""
    size = len(table)
    cell = slot(key, size)
    while table[cell] >= 0 and keys[table[cell]] != key:
        cell = (cell + 1) % size
    return cell


def position(keys: Any, table: Any, key: Any, slot: Any) -> Any:
    """Return the position of a key, or -1 if it is absent."""
    return table[find(keys, table, key, slot)]


def contains(keys: Any, table: Any, key: Any, slot: Any) -> Any:
    """Implement `in`."""
    return position(keys, table, key, slot) >= 0


def insert_key(keys: Any, table: Any, key: Any, slot: Any) -> Any:
    """Implement `add` of a set; return the position of the key."""
    cell = find(keys, table, key, slot)
    number = table[cell]
    if number < 0:
        number = len(keys)
        keys.append(key)
        table[cell] = number
    return number


def add_all(keys: Any, table: Any, items: Any, slot: Any) -> None:
    """Implement `set(items)`."""
    for each in items:
        insert_key(keys, table, each, slot)


def item(keys: Any, table: Any, values: Any, key: Any, slot: Any) -> Any:
    """Implement `items[key]`."""
    number = position(keys, table, key, slot)
    if number < 0:
        raise KeyError
    return values[number]


def get(keys: Any, table: Any, values: Any, key: Any, slot: Any, default: Any) -> Any:
    """Implement `get`."""
    number = position(keys, table, key, slot)
    return values[number] if number >= 0 else default


def set_item(keys: Any, table: Any, values: Any, key: Any, slot: Any, value: Any) -> None:
    """Implement `items[key] = value`."""
    count = len(keys)
    number = insert_key(keys, table, key, slot)
    if number == count:
        values.append(value)
    else:
        values[number] = value


def set_default(keys: Any, table: Any, values: Any, key: Any, slot: Any, default: Any) -> Any:
    """Implement `setdefault`."""
    count = len(keys)
    number = insert_key(keys, table, key, slot)
    if number == count:
        values.append(default)
    return values[number]


def item_or_new(keys: Any, table: Any, values: Any, key: Any, slot: Any, make: Any) -> Any:
    """Implement `items[key]` of a `defaultdict`."""
    count = len(keys)
    number = insert_key(keys, table, key, slot)
    if number == count:
        values.append(make())
    return values[number]


def discard(keys: Any, table: Any, key: Any, slot: Any) -> Any:
    """Implement `discard` of a set; return the position that the key had, or -1."""
    hole = find(keys, table, key, slot)
    number = table[hole]
    if number >= 0:
        size = len(table)
        cell = (hole + 1) % size
        while table[cell] >= 0:
            home = slot(keys[table[cell]], size)
            if (cell - home) % size >= (cell - hole) % size:
                table[hole] = table[cell]
                hole = cell
            cell = (cell + 1) % size
        table[hole] = -1
        for cell in range(size):
            if table[cell] > number:
                table[cell] -= 1
        pop_at(keys, number)
    return number


def remove(keys: Any, table: Any, key: Any, slot: Any) -> None:
    """Implement `remove` of a set."""
    if discard(keys, table, key, slot) < 0:
        raise KeyError


def pop_item(keys: Any, table: Any, values: Any, key: Any, slot: Any) -> Any:
    """Implement `pop` of a dict."""
    number = discard(keys, table, key, slot)
    if number < 0:
        raise KeyError
    return pop_at(values, number)


def clear_set(keys: Any, table: Any) -> None:
    """Implement `clear` of a set."""
    table[:] = -1
    keys.clear()


def clear(keys: Any, table: Any, values: Any) -> None:
    """Implement `clear` of a dict."""
    clear_set(keys, table)
    values.clear()


def new_float() -> Any:
    """Implement `float()`."""
    return 0.0


def new_integer() -> Any:
    """Implement `int()`."""
    return 0


def new_list() -> Any:
    """Implement `list()`."""
    return []
