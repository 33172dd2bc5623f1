"""The device's generators of random numbers: those of the host underneath, with a state as CUDA's generators have one.

CUDA's generator is Philox, whose state is a seed and an offset, 16 bytes. Libraries of kernels read both, draw numbers
by themselves in a kernel, and set the offset behind those. torch's operators run on the CPU here and draw from a
Mersenne Twister. So a seed and an offset are names for states of that: each time something was drawn since the state
was last asked for, the offset is 4 further; an offset that somebody sets names a state that follows from it.
"""

# torch's own values are `Any` here.
# ruff: noqa: ANN401

from __future__ import annotations

from importlib import import_module
from typing import Any

from triptych.languages.triton.torch_cuda.marks import DEVICE

torch: Any = import_module("torch")

_STEP = 4
"""Offsets are multiples of it, as of CUDA's generator."""
_MOST_KEPT = 1024
"""States of the host's generator that can be gone back to, 5 KB each."""
_WORD = 1 << 64


_Generator: Any = torch._C.Generator
"""The class itself: `torch.Generator` may be replaced."""


class DeviceGenerator(_Generator):
    """What `torch.Generator(device="cuda")` and `torch.cuda.default_generators[0]` are to scripts.

    It is a generator by class, which torch asks for; operators get `host` in its place.
    """

    device = DEVICE

    def __new__(cls, host: Any) -> DeviceGenerator:
        """One whose own numbers nobody draws."""
        return _Generator.__new__(cls)

    def __init__(self, host: Any) -> None:
        """Draws from `host`, a generator of the CPU."""
        self.host = host
        self._begin(host.initial_seed())

    def _begin(self, seed: int) -> None:
        """At the first number of a seed."""
        self._seed = self._host_seed = seed
        self._offset = 0
        self._state = self.host.get_state()
        self._kept = {(seed, 0): self._state}

    def _look(self) -> None:
        """Takes note of what was drawn, and of a new seed, since it was last asked."""
        state, host_seed = self.host.get_state(), self.host.initial_seed()
        if _same(state, self._state):
            return
        is_own = host_seed == self._host_seed
        if not is_own or (host_seed == self._seed and _same(state, _first_state(host_seed))):
            self._begin(host_seed)
            if _same(state, _first_state(host_seed)):
                return
        self._name(self._offset + _STEP)

    def _name(self, offset: int) -> None:
        self._offset = offset
        self._state, self._host_seed = self.host.get_state(), self.host.initial_seed()
        self._kept[self._seed, offset] = self._state
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]

    def get_state(self) -> Any:
        """The seed and the offset, as 16 bytes of the host's memory."""
        self._look()
        words = [self._seed - _WORD if self._seed >= _WORD >> 1 else self._seed, self._offset]
        return torch.tensor(words, dtype=torch.int64, device="cpu").view(torch.uint8)

    def set_state(self, new_state: Any) -> DeviceGenerator:
        """Goes on at a seed and an offset: where torch's operators were at it, they draw the same again.

        Raises:
            RuntimeError: for another size than 16 bytes, as torch itself.
        """
        if new_state.numel() * new_state.element_size() != 16:
            raise RuntimeError("RNG state is wrong size: a CUDA generator's has 16 bytes, a seed and an offset")
        seed, offset = new_state.view(torch.int64).tolist()
        self._look()
        known = self._kept.get((seed % _WORD, offset))
        if known is not None:
            self.host.set_state(known)
        else:
            self.host.manual_seed((seed + offset * 0x9E37_79B9_7F4A_7C15) % (_WORD >> 1) if offset else seed)
        self._seed = seed % _WORD
        self._name(offset)
        return self

    def get_offset(self) -> int:
        """The state's second half."""
        self._look()
        return self._offset

    def set_offset(self, offset: int) -> None:
        """As `set_state` with the seed that there is."""
        state = self.get_state()
        state.view(torch.int64)[1] = offset
        self.set_state(state)

    def manual_seed(self, seed: int) -> DeviceGenerator:
        """At the first number of a seed."""
        self.host.manual_seed(int(seed))
        self._begin(self.host.initial_seed())
        return self

    def seed(self) -> int:
        """At the first number of a seed that nobody chose; the seed."""
        self.host.seed()
        self._begin(self.host.initial_seed())
        return self._seed

    def initial_seed(self) -> int:
        """The seed."""
        self._look()
        return self._seed


def _first_state(seed: int) -> Any:
    return _Generator().manual_seed(seed).get_state()


def _same(state: Any, other: Any) -> bool:
    return bool((state == other).all())
