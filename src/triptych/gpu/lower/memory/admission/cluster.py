"""The shared memory of a cluster's blocks: an address names one, whose memory is looked up lane by lane."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.lower.memory.admission.request import PlainAdmission
from triptych.gpu.lower.primitives.emitter import I64
from triptych.gpu.lower.records import Site
from triptych.gpu.lower.scheduling.clusters import LOCATE


class AdmitCluster(PlainAdmission):
    """Wavefronts at the other block's banks are not modelled: a request counts as one."""

    def build(self) -> None:
        """See `PlainAdmission`."""
        self.lane_by_lane()

    def find(self, lane: ir.Value, address: ir.Value) -> ir.Value:
        """See `PlainAdmission`."""
        arguments = [self.request.context, self.request.site, address, self.request.size]
        return self.e.intrinsic(LOCATE, I64, arguments)

    def host_of(self, lane: ir.Value, address: ir.Value) -> ir.Value:
        """See `PlainAdmission`."""
        return self.e.load_field(Site, self.request.site, "delta")
