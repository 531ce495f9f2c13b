"""Numbers of the sDist paper: test errors of Tables 1 to 3, and running times of Table 3."""

from __future__ import annotations

from ..tables import SIZES, simulation_name

#: The real tables of the paper.
REAL = ("Ionosphere", "SECOM", "Madelon")

_RINGS = {
    "kNN": (0.310, 0.400, 0.488, 0.311, 0.426, 0.478, 0.308, 0.475, 0.489),
    "PGDM": (0.320, 0.355, 0.389, 0.312, 0.356, 0.377, 0.337, 0.340, 0.412),
    "LMNN": (0.230, 0.280, 0.290, 0.245, 0.291, 0.289, 0.246, 0.303, 0.315),
    "SMLsm": (0.222, 0.289, 0.250, 0.169, 0.200, 0.249, 0.199, 0.276, 0.330),
    "sDist": (0.143, 0.189, 0.192, 0.177, 0.183, 0.191, 0.168, 0.179, 0.202),
    "Bayes": (0.130, 0.150, 0.160, 0.154, 0.156, 0.144, 0.160, 0.154, 0.156),
}
_XOR = {
    "kNN": (0.355, 0.410, 0.491, 0.420, 0.446, 0.499, 0.397, 0.500, 0.500),
    "PGDM": (0.221, 0.355, 0.383, 0.289, 0.356, 0.360, 0.354, 0.350, 0.403),
    "LMNN": (0.145, 0.280, 0.274, 0.188, 0.213, 0.239, 0.198, 0.231, 0.299),
    "SMLsm": (0.207, 0.307, 0.333, 0.277, 0.291, 0.337, 0.242, 0.378, 0.420),
    "sDist": (0.157, 0.199, 0.192, 0.169, 0.183, 0.225, 0.193, 0.187, 0.221),
    "Bayes": (0.130, 0.160, 0.160, 0.133, 0.177, 0.181, 0.155, 0.144, 0.138),
}
#: (test error, seconds) on Ionosphere, SECOM and Madelon.
_REAL = {
    "kNN": ((0.13, 0.01), (0.14, 2.07), (0.46, 9.05)),
    "PGDM": ((0.07, 37.80), (0.09, 960.47), (0.31, 2527.82)),
    "LMNN": ((0.06, 20.06), (0.08, 1960.94), (0.39, 1323.64)),
    "SMLsm": ((0.09, 173.19), (0.09, 1293.97), (0.41, 2993.97)),
    "sDist": ((0.05, 27.49), (0.07, 473.07), (0.09, 689.64)),
}

#: The paper's test error for (source, method). "Bayes" is one of the methods.
ERRORS: dict[tuple[str, str], float] = {
    (simulation_name(kind, n, p), method): value
    for kind, table in (("double ring", _RINGS), ("XOR", _XOR))
    for method, values in table.items()
    for (n, p), value in zip(SIZES, values, strict=True)
} | {
    (source, method): error
    for method, pairs in _REAL.items()
    for source, (error, _) in zip(REAL, pairs, strict=True)
}
#: The paper's seconds of one execution for (source, method).
SECONDS: dict[tuple[str, str], float] = {
    (source, method): seconds
    for method, pairs in _REAL.items()
    for source, (_, seconds) in zip(REAL, pairs, strict=True)
}
