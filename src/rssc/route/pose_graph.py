"""A graph of keyframes, of which some are measured relative to others: how all of them fit together best.

A node has a place c, axes R (world_from_node) and a scale s, the length in the world of a unit in its surroundings:

    x_world = S_k(x) = s_k R_k x + c_k

An edge says that x_i = S_ij(x_j). With E = S_ij^-1 S_i^-1 S_j, the residual of the edge is

    r = [log R_E / sigma_R,  t_E / sigma_t,  log s_E / sigma_s]

and Gauss-Newton with a Cauchy loss on the loops finds the nodes (Strasdat et al., Scale drift-aware large scale
monocular SLAM, 2010). The loss begins so wide that it takes every loop for right, however far the clip has drifted, and
narrows from step to step, so that wrong ones stand alone in the end (Yang et al., Graduated non-convexity for robust
spatial perception, 2020). Derivatives by differences: seven of each end, for all edges at once. The normal matrix is
sparse: a chain, and the loops.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu
from scipy.spatial.transform import Rotation

from rssc.model.arrays import FloatArray, IntArray
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class PoseGraphConstants(Constants):
    """Solving the graph; none of them moves where it ends."""

    iterations: int = 60
    """At most."""
    narrowing: float = 0.6
    """Width of the loss over that of the step before."""
    settled: float = 1e-7
    """Largest step at which it ends."""
    damping: float = 1e-9
    """Relative; keeps worlds that nothing ties to the first node where they are."""
    difference: float = 1e-6
    """Step of the derivatives."""


POSE_GRAPH = PoseGraphConstants()
_SIZE = 7


@dataclass(frozen=True, eq=False)
class Nodes:
    """Similarities world_from_node."""

    rotations: FloatArray
    """(n, 3, 3)"""
    places: FloatArray
    """(n, 3)"""
    scales: FloatArray
    """(n,)"""

    def at(self, index: IntArray) -> "Nodes":
        """Some of them."""
        return Nodes(self.rotations[index], self.places[index], self.scales[index])

    def moved(self, steps: FloatArray) -> "Nodes":
        """Turned, moved and scaled by (n, 7) steps [rotation, place, log scale] in the world."""
        turns = Rotation.from_rotvec(steps[:, :3]).as_matrix()
        return Nodes(turns @ self.rotations, self.places + steps[:, 3:6], self.scales * np.exp(steps[:, 6]))

    def relative_to(self, others: "Nodes") -> "Nodes":
        """other_from_node of each."""
        back = others.rotations.transpose(0, 2, 1)
        places = np.einsum("nij,nj->ni", back, self.places - others.places) / others.scales[:, None]
        return Nodes(back @ self.rotations, places, self.scales / others.scales)


@dataclass(frozen=True, eq=False)
class Edges:
    """What is known of pairs of nodes."""

    first: IntArray
    """(m,)"""
    second: IntArray
    """(m,)"""
    measured: Nodes
    """(m,) first_from_second."""
    sigmas: FloatArray
    """(m, 7) of rotation in rad, place in units of the world, and the logarithm of the scale."""
    doubtful: FloatArray
    """(m,) 1 where an edge may be wrong altogether, else 0."""

    def residuals(self, first: Nodes, second: Nodes) -> FloatArray:
        """(m, 7) in standard deviations, given both ends of every edge."""
        error = second.relative_to(first).relative_to(self.measured)
        turns = Rotation.from_matrix(error.rotations).as_rotvec()
        # Lengths in the surroundings of the first end, in units of the world.
        places = error.places * (self.measured.scales * first.scales)[:, None]
        return np.column_stack([turns, places, np.log(error.scales)]) / self.sigmas


def solve_graph(nodes: Nodes, edges: Edges) -> tuple[Nodes, FloatArray]:
    """The nodes that fit the edges best, the first node held, and the (m,) weights that the loss leaves the edges."""
    count = len(nodes.scales)
    weights = np.ones(len(edges.first))
    width = np.inf
    for _ in range(POSE_GRAPH.iterations):
        first, second = nodes.at(edges.first), nodes.at(edges.second)
        residuals = edges.residuals(first, second)
        squares = edges.doubtful * (residuals**2).mean(axis=1)
        width = max(1.0, min(POSE_GRAPH.narrowing * width, float(np.sqrt(squares.max(initial=0.0)))))
        weights = 1 / (1 + squares / width**2)
        jacobians = np.concatenate([_derivatives(edges, first, second, end) for end in (0, 1)], axis=2)
        normals = np.einsum("m,mri,mrj->mij", weights, jacobians, jacobians)
        gradients = np.einsum("m,mri,mr->mi", weights, jacobians, residuals)
        index = np.concatenate(
            [_SIZE * ends[:, None] + np.arange(_SIZE) for ends in (edges.first, edges.second)], axis=1
        )
        rows, columns = np.broadcast_arrays(index[:, :, None], index[:, None, :])
        matrix = csc_array((normals.ravel(), (rows.ravel(), columns.ravel())), shape=(_SIZE * count, _SIZE * count))
        gradient = np.bincount(index.ravel(), weights=gradients.ravel(), minlength=_SIZE * count)
        free = matrix[_SIZE:, _SIZE:].tocsc()
        diagonal = free.diagonal()
        free.setdiag(diagonal * (1 + POSE_GRAPH.damping))
        step = np.zeros(_SIZE * count)
        step[_SIZE:] = -splu(free).solve(gradient[_SIZE:])
        nodes = nodes.moved(step.reshape(-1, _SIZE))
        if width == 1.0 and np.abs(step).max() < POSE_GRAPH.settled:
            break
    return nodes, weights


def _derivatives(edges: Edges, first: Nodes, second: Nodes, end: int) -> FloatArray:
    """(m, 7, 7) derivatives of the residuals in the steps of one end."""
    out = np.empty((len(edges.first), _SIZE, _SIZE))
    for k in range(_SIZE):
        step = np.zeros((len(edges.first), _SIZE))
        sides: list[FloatArray] = []
        for sign in (1.0, -1.0):
            step[:, k] = sign * POSE_GRAPH.difference
            ends = (first.moved(step), second) if end == 0 else (first, second.moved(step))
            sides.append(edges.residuals(*ends))
        out[:, :, k] = (sides[0] - sides[1]) / (2 * POSE_GRAPH.difference)
    return out
