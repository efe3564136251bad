"""Python functions written as loops, which are inlined if there is no other implementation."""

from __future__ import annotations

import math
from typing import Any

# -- sums and extrema --------------------------------------------------------------------------------------------------


def sum_of(items: Any, start: Any = 0) -> Any:
    """Implement `sum`."""
    total = start
    for each in items:
        total = total + each
    return total


def fsum(items: Any) -> Any:
    """Implement `math.fsum`, up to rounding."""
    total = 0.0
    for each in items:
        total = total + each
    return total


def product_of(items: Any, start: Any = 1) -> Any:
    """Implement `math.prod`."""
    found = start
    for each in items:
        found = found * each
    return found


def is_close(a: Any, b: Any, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    """Implement `math.isclose`."""
    if rel_tol < 0.0 or abs_tol < 0.0:
        raise ValueError
    if a == b:
        return True
    if abs(a) == math.inf or abs(b) == math.inf:
        return False
    return abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol)


def max_of(items: Any) -> Any:
    """Implement `max`."""
    best = items[0]
    for number in range(1, len(items)):
        if items[number] > best:
            best = items[number]
    return best


def min_of(items: Any) -> Any:
    """Implement `min`."""
    best = items[0]
    for number in range(1, len(items)):
        if items[number] < best:
            best = items[number]
    return best


def max_by(items: Any, key: Any) -> Any:
    """Implement `max` with a key."""
    best = items[0]
    top = key(best)
    for number in range(1, len(items)):
        value = key(items[number])
        if value > top:
            best, top = items[number], value
    return best


def min_by(items: Any, key: Any) -> Any:
    """Implement `min` with a key."""
    best = items[0]
    top = key(best)
    for number in range(1, len(items)):
        value = key(items[number])
        if value < top:
            best, top = items[number], value
    return best


def max_by_or(items: Any, key: Any, default: Any) -> Any:
    """Implement `max` with a key and a default."""
    return max_by(items, key) if len(items) > 0 else default


def min_by_or(items: Any, key: Any, default: Any) -> Any:
    """Implement `min` with a key and a default."""
    return min_by(items, key) if len(items) > 0 else default


def max_or(items: Any, default: Any) -> Any:
    """Implement `max` with a default."""
    return max_of(items) if len(items) > 0 else default


def min_or(items: Any, default: Any) -> Any:
    """Implement `min` with a default."""
    return min_of(items) if len(items) > 0 else default


def greater_by(one: Any, other: Any) -> Any:
    """Return the item with the greater key, and the key; the first one if the keys are equal."""
    return other if other[1] > one[1] else one


def less_by(one: Any, other: Any) -> Any:
    """Return the item with the lesser key, and the key; the first one if the keys are equal."""
    return other if other[1] < one[1] else one


def any_of(items: Any) -> Any:
    """Implement `any`."""
    found = False
    for each in items:
        if each:
            found = True
            break
    return found


def all_of(items: Any) -> Any:
    """Implement `all`."""
    found = True
    for each in items:
        if not each:
            found = False
            break
    return found


def reduced(function: Any, items: Any) -> Any:
    """Implement `functools.reduce`."""
    found = items[0]
    for number in range(1, len(items)):
        found = function(found, items[number])
    return found


def reduced_from(function: Any, items: Any, start: Any) -> Any:
    """Implement `functools.reduce` with an initial value."""
    found = start
    for each in items:
        found = function(found, each)
    return found


def accumulated(function: Any, items: Any) -> Any:
    """Implement `itertools.accumulate` of at least one item."""
    found = items[0]
    totals = [found]
    for number in range(1, len(items)):
        found = function(found, items[number])
        totals.append(found)
    return totals


def accumulated_from(function: Any, items: Any, start: Any) -> Any:
    """Implement `itertools.accumulate` with an initial value."""
    found = start
    totals = [found]
    for each in items:
        found = function(found, each)
        totals.append(found)
    return totals


# -- lists -------------------------------------------------------------------------------------------------------------


def extend(items: Any, more: Any) -> None:
    """Implement `extend` of a list."""
    for each in more:
        items.append(each)


def concatenated(one: Any, other: Any) -> Any:
    """Implement `+` of lists."""
    found = list(one)
    for each in other:
        found.append(each)
    return found


def copied(items: Any) -> Any:
    """Implement `copy` of a list."""
    return list(items)


def part(items: Any, low: Any, high: Any) -> Any:
    """Implement `items[low:high]`."""
    count = len(items)
    first = 0 if low is None else low
    last = count if high is None else high
    if first < 0:
        first = max(first + count, 0)
    if last < 0:
        last = last + count
    return [items[number] for number in range(first, min(last, count))]


def backwards(items: Any, low: Any, high: Any) -> Any:
    """Implement `items[low:high:-1]`."""
    count = len(items)
    first = count - 1 if low is None else low
    last = -1 if high is None else high
    if first < 0 and low is not None:
        first = first + count
    if last < 0 and high is not None:
        last = max(last + count, -1)
    return [items[number] for number in range(min(first, count - 1), last, -1)]


def pop_at(items: Any, place: Any) -> Any:
    """Implement `pop(index)`."""
    where = place + len(items) if place < 0 else place
    found = items[where]
    for number in range(where, len(items) - 1):
        items[number] = items[number + 1]
    items.pop()
    return found


def pop_left(items: Any) -> Any:
    """Implement `popleft`."""
    return pop_at(items, 0)


def append_left(items: Any, value: Any) -> None:
    """Implement `appendleft`."""
    items.insert(0, value)


def insert(items: Any, place: Any, value: Any) -> None:
    """Implement `insert` of a list."""
    items.append(value)
    count = len(items)
    where = min(max(place if place >= 0 else place + count - 1, 0), count - 1)
    for number in range(count - 1, where, -1):
        items[number] = items[number - 1]
    items[where] = value


def remove(items: Any, value: Any) -> None:
    """Implement `remove` of a list."""
    del items[items.index(value)]


def reverse(items: Any) -> None:
    """Implement `reverse` of a list."""
    count = len(items)
    for number in range(count // 2):
        items[number], items[count - 1 - number] = items[count - 1 - number], items[number]


def assigned(items: Any, values: Any) -> None:
    """Implement `items[:] = values` for equally many items."""
    for number in range(len(items)):
        items[number] = values[number]


def index_of(items: Any, value: Any) -> Any:
    """Implement `index` of a list."""
    for number in range(len(items)):
        if items[number] == value:
            return number
    raise ValueError


def contains(items: Any, value: Any) -> Any:
    """Implement `value in items`."""
    found = False
    for each in items:
        if each == value:
            found = True
            break
    return found


def count_of(items: Any, value: Any) -> Any:
    """Implement `count` of a list."""
    count = 0
    for each in items:
        if each == value:
            count += 1
    return count


# -- sorting -----------------------------------------------------------------------------------------------------------


def itself(item: Any) -> Any:
    """Return the argument."""
    return item


def sorted_up(items: Any, key: Any) -> Any:
    """Implement `sorted` by merging runs of doubling lengths."""
    keys = [key(each) for each in items]
    count = len(keys)
    order = list(range(count))
    spare = list(range(count))
    for each in keys:
        if not each == each:  # NaN, whose position depends on the algorithm
            raise ValueError
    width = 1
    while width < count:
        for low in range(0, count, 2 * width):
            middle, high = min(low + width, count), min(low + 2 * width, count)
            left, right = low, middle
            for place in range(low, high):
                if right >= high or (left < middle and not keys[order[right]] < keys[order[left]]):
                    spare[place] = order[left]
                    left += 1
                else:
                    spare[place] = order[right]
                    right += 1
        for place in range(count):
            order[place] = spare[place]
        width *= 2
    return [items[number] for number in order]


def sorted_down(items: Any, key: Any) -> Any:
    """Implement `sorted` with `reverse=True`, which preserves the order of equal items."""
    ascending = sorted_up(backwards(items, None, None), key)
    return backwards(ascending, None, None)


# -- heaps -------------------------------------------------------------------------------------------------------------


def heappush(items: Any, item: Any) -> None:
    """Implement `heapq.heappush`."""
    items.append(item)
    rise(items, 0, len(items) - 1)


def heappop(items: Any) -> Any:
    """Implement `heapq.heappop`."""
    last = items.pop()
    if len(items) == 0:
        return last
    least = items[0]
    items[0] = last
    sink(items, 0)
    return least


def heapify(items: Any) -> None:
    """Implement `heapq.heapify`."""
    for place in range(len(items) // 2 - 1, -1, -1):
        sink(items, place)


def rise(items: Any, top: int, place: int) -> None:
    """Move an item of a heap up while its parent is greater."""
    item = items[place]
    while place > top and item < items[(place - 1) // 2]:
        items[place] = items[(place - 1) // 2]
        place = (place - 1) // 2
    items[place] = item


def sink(items: Any, top: int) -> None:
    """Move an item of a heap down along the lesser children, and then up to its final position."""
    count, place = len(items), top
    item = items[top]
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and not items[child] < items[child + 1]:
            child += 1
        items[place] = items[child]
        place = child
    items[place] = item
    rise(items, top, place)
