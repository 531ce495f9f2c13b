"""The order of the nodes of a network on a circle, in which few links cross."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from metricboost.inspection.displays._circle import circle_order, crossings

PROPERTY = settings(max_examples=40, deadline=None)

NETWORKS = st.integers(2, 12).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(
            st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] < p[1]),
            unique=True, max_size=20,
        ),
    )
)  # fmt: skip


@given(NETWORKS)
@PROPERTY
def test_no_node_can_move_to_fewer_crossings(network):
    """The order has all nodes, and no node has a place with fewer crossings."""
    n_nodes, links = network
    order = circle_order(n_nodes, links)
    assert sorted(order) == list(range(n_nodes))
    least = crossings(order, links)
    for node, place in product(range(n_nodes), repeat=2):
        others = [other for other in order if other != node]
        assert least <= crossings([*others[:place], node, *others[place:]], links)


def test_orders_without_crossings():
    """Rings, stars, trees and separate links have no crossings, however they are numbered."""
    rng = np.random.default_rng(0)
    ring = [(i, (i + 1) % 9) for i in range(9)]
    star = [(0, i) for i in range(1, 9)]
    tree = [((i - 1) // 2, i) for i in range(1, 15)]
    apart = [(i, i + 1) for i in range(0, 40, 2)]
    for links in (ring, star, tree, apart):
        n_nodes = 1 + max(max(link) for link in links)
        number = rng.permutation(n_nodes)
        renamed = [(int(number[a]), int(number[b])) for a, b in links]
        assert crossings(circle_order(n_nodes, renamed), renamed) == 0


def test_crossings_by_hand():
    """The diagonals of a square cross once, and its sides do not cross."""
    assert crossings([0, 1, 2, 3], [(0, 2), (1, 3)]) == 1
    assert crossings([0, 1, 2, 3], [(0, 1), (1, 2), (2, 3), (0, 3)]) == 0
    assert crossings([0, 2, 1, 3], [(0, 2), (1, 3)]) == 0


def test_networks_too_large_to_sift():
    """A large network is not sifted, but its order has all nodes."""
    assert sorted(circle_order(500, [(i, 499 - i) for i in range(250)])) == list(range(500))
