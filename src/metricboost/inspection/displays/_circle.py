"""An order of nodes on a circle in which few links cross.

Two links cross if their ends alternate around the circle. The order is found by circular sifting
(Baur and Brandes, 2004). Each node in turn is moved around the circle, past one node after the
other, and is put at the place with the fewest crossings. When a node passes another one, only the
crossings between links of these two nodes change. Their number is computed from the places of the
ends of these links.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._typing import Index

Links = Sequence[tuple[int, int]]

#: The most rounds of sifting. In most networks, nothing changes after two or three rounds.
ROUNDS = 6
#: Networks with more nodes are not sifted, because sifting would take seconds and their pictures
#: are not readable.
MOST_NODES = 200


def circle_order(n_nodes: int, links: Links) -> list[int]:
    """The nodes 0, 1, ... in their order on the circle.

    Parameters
    ----------
    n_nodes : int
    links : sequence of (int, int)
    """
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
    """The number of pairs of links that cross.

    Parameters
    ----------
    order : sequence of int
        The nodes in their order on the circle.
    links : sequence of (int, int)
    """
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
    """A first order, by a depth-first search that begins at nodes with few links.

    Links of different connected components do not cross, and neither do the links of a tree.
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
    """The same order, but with one node at the place with the fewest crossings."""
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
    """The same circle, beginning at a node."""
    start = order.index(node)
    return order[start:] + order[:start]


def _change(place: Index, node: int, passed: int, neighbors: list[Index]) -> int:
    """The change of the number of crossings when a node passes the next node on the circle.

    Let a be an end of a link of the node, and b an end of a link of the passed node, both counted
    around the circle from the passed node. Before the passing, the two links cross if a comes
    before b. After the passing, they cross if b comes before a.
    """
    own, other = neighbors[node], neighbors[passed]
    own, other = own[own != passed], other[other != node]
    n_places = len(place) - 1
    a, b = ((place[ends] - place[passed]) % n_places for ends in (own, other))
    return int(np.sign(np.subtract.outer(a, b)).sum())
