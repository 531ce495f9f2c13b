"""An order of nodes on a circle in which few links cross.

Two links cross where their ends alternate around the circle. Circular sifting (Baur and Brandes,
2004): one node after the other wanders once around the circle, from neighbour to neighbour, and
stays where crossings were fewest. Passing a neighbour changes only the crossings between the links
of these two, so a step costs the product of their numbers of links.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._typing import Index

Links = Sequence[tuple[int, int]]

#: Rounds of sifting at most; two or three settle most networks.
ROUNDS = 6
#: Beyond this many nodes no picture is readable, and sifting would take seconds.
MOST_NODES = 200


def circle_order(n_nodes: int, links: Links) -> list[int]:
    """The nodes 0, 1, ... in the order in which they stand on the circle."""
    neighbors = [np.array(sorted(near), dtype=np.intp) for near in _neighbors(n_nodes, links)]
    order = _depth_first(neighbors)
    if n_nodes > MOST_NODES:
        return order
    for _ in range(ROUNDS):
        before = list(order)
        for node in sorted(range(n_nodes), key=lambda node: -len(neighbors[node])):
            order = _sifted(order, node, neighbors)
        if order == before:
            break
    return order


def crossings(order: Sequence[int], links: Links) -> int:
    """How many pairs of links cross when the nodes stand in this order on a circle."""
    place = {node: i for i, node in enumerate(order)}
    ends = [sorted((place[a], place[b])) for a, b in links]
    return sum(a < c < b < d for a, b in ends for c, d in ends)


def _neighbors(n_nodes: int, links: Links) -> list[set[int]]:
    near: list[set[int]] = [set() for _ in range(n_nodes)]
    for a, b in links:
        near[a].add(b)
        near[b].add(a)
    return near


def _depth_first(neighbors: list[Index]) -> list[int]:
    """A start that keeps parts without links between them apart, and draws trees without crossings.

    It begins at nodes with few links, the ends of chains.
    """
    order: list[int] = []
    seen: set[int] = set()
    for root in sorted(range(len(neighbors)), key=lambda node: len(neighbors[node])):
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                order.append(node)
                waiting += sorted(
                    (int(n) for n in neighbors[node]), key=lambda n: -len(neighbors[n])
                )
    return order


def _sifted(order: list[int], node: int, neighbors: list[Index]) -> list[int]:
    """The same circle, with one node where its links cross fewest others."""
    others = _turned(order, node)[1:]
    place = np.empty(len(order), dtype=np.intp)
    place[others] = np.arange(len(others))
    change, changes = 0, [0]
    for passed in others:
        change += _change(place, node, passed, neighbors)
        changes.append(change)
    best = int(np.argmin(changes))
    return [*others[:best], node, *others[best:]] if best else order


def _turned(order: list[int], node: int) -> list[int]:
    start = order.index(node)
    return order[start:] + order[:start]


def _change(place: Index, node: int, passed: int, neighbors: list[Index]) -> int:
    """By how many crossings rise when a node passes its next neighbour on the circle.

    Standing just before it, a link of the node to a crosses a link of the other to b where a comes
    before b, seen from there; just behind it, where b comes before a.
    """
    own, other = neighbors[node], neighbors[passed]
    own, other = own[own != passed], other[other != node]
    n_places = len(place) - 1
    a, b = ((place[ends] - place[passed]) % n_places for ends in (own, other))
    return int(np.sign(np.subtract.outer(a, b)).sum())
