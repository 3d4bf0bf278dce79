"""Which unit is believed, and why."""

from __future__ import annotations

import pytest

from advisor.domain.usage import ComputeSource
from advisor.errors import Refused
from advisor.settings import DcgmSettings
from advisor.telemetry.dcgm import normalise
from advisor.telemetry.dcgm.scales import DecidedBy, Generation, Pins, Pool, Unit
from advisor.telemetry.dcgm.tracks import Carried
from tests.advisor.telemetry.dcgm.exposition import A100, NEW, OLD, exposed

UTIL, RATIO = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO"
ENGINE, USED, ENERGY = (
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
)


def _scale(line, pins=None, carried=None):
    chunk = normalise(exposed(line), carried or Carried(), pins or Pins())
    (scale,) = chunk.scales.values()
    return chunk, scale


TABLE = [
    # an idle card shows only 0 and 1 in percent
    (UTIL, OLD, "0 1 0 1", Unit.PERCENT, DecidedBy.LABEL),
    (UTIL, A100, "0 1 0 1", Unit.PERCENT, DecidedBy.NAME),
    (UTIL, NEW, "0 1 0 1", Unit.RATIO, DecidedBy.LABEL),
    (UTIL, NEW, "0.25 1", Unit.RATIO, DecidedBy.LABEL),
    # DCGM 4.6: the new name, the old numbers
    (RATIO, OLD, "0 1", Unit.PERCENT, DecidedBy.LABEL),
    (RATIO, OLD, "0 97", Unit.PERCENT, DecidedBy.LABEL),
    (RATIO, A100, "0 97", Unit.PERCENT, DecidedBy.VALUES),
    (RATIO, NEW, "0 97", Unit.PERCENT, DecidedBy.VALUES),
    (RATIO, A100, "0 0.97", Unit.RATIO, DecidedBy.NAME),
    (RATIO, A100, "0 1 1", None, DecidedBy.NOTHING),
    (RATIO, A100, "0 0", None, DecidedBy.NOTHING),
    # one wild value does not turn a hundred
    (RATIO, NEW, "0.5 0.25 57", Unit.RATIO, DecidedBy.LABEL),
    # rescaled by somebody: told as a doubt, not guessed
    (UTIL, OLD, "0.5 0.25", Unit.PERCENT, DecidedBy.LABEL),
    (ENGINE, OLD, "0.5", Unit.RATIO, DecidedBy.LABEL),
    (ENGINE, OLD, "50 71.5", Unit.PERCENT, DecidedBy.VALUES),
    (ENGINE, NEW, "1 1", Unit.RATIO, DecidedBy.LABEL),
    (USED, OLD, "4100", Unit.MIB, DecidedBy.LABEL),
    (USED, NEW, "4299161600", Unit.BYTES, DecidedBy.LABEL),
    (USED, OLD, "4299161600", Unit.BYTES, DecidedBy.VALUES),
    (USED, NEW, "4100", Unit.MIB, DecidedBy.VALUES),
    (USED, A100, "0", Unit.MIB, DecidedBy.NAME),
    (ENERGY, OLD, "5000000 29000000", Unit.MILLIJOULES, DecidedBy.LABEL),
    (ENERGY, NEW, "5000 29000", Unit.JOULES, DecidedBy.LABEL),
    (ENERGY, A100, "5000 29000", Unit.JOULES, DecidedBy.VALUES),
    (ENERGY, NEW, "5000000 29000000", Unit.MILLIJOULES, DecidedBy.VALUES),
    (ENERGY, A100, "5000000", Unit.MILLIJOULES, DecidedBy.NAME),
]


@pytest.mark.parametrize("name,labels,values,unit,by", TABLE)
def test_the_unit_and_what_decided_it(name, labels, values, unit, by):
    _, scale = _scale(f"{name}{{{labels}}} {values}")
    assert (scale.unit, scale.by) == (unit, by)


def test_a_pin_is_never_overturned():
    chunk, scale = _scale(f"{UTIL}{{{OLD}}} 97 0.5", Pins(utilisation=Unit.RATIO))
    assert (scale.unit, scale.by) == (Unit.RATIO, DecidedBy.PIN)
    assert chunk.tracks[0].compute[ComputeSource.UTILISATION].values.tolist() == [0.5]


@pytest.mark.parametrize("version,unit", [("4.8.2", Unit.PERCENT), ("4.9.0", Unit.RATIO), ("4.7.0-4.10.1", Unit.RATIO)])
def test_the_exporters_version_comes_before_label_and_name(version, unit):
    _, scale = _scale(f"{RATIO}{{{A100}}} 0 1", Pins(exporter_version=version))
    assert (scale.unit, scale.by) == (unit, DecidedBy.VERSION)


def test_fractions_among_percentages_are_told_as_a_doubt():
    _, scale = _scale(f"{UTIL}{{{OLD}}} 0.5 0.25")
    assert "pin" in (scale.doubt or "")
    assert _scale(f"{UTIL}{{{OLD}}} 1 57")[1].doubt is None


def test_a_busy_device_settles_the_unit_of_the_idle_ones():
    idle = f"{RATIO}{{{A100}}} 1 1"
    busy = f"{RATIO}{{{A100.replace('GPU-a', 'GPU-b')}}} 88 90"
    first, second = normalise(exposed(idle, busy)).tracks
    assert first.compute[ComputeSource.UTILISATION].values.tolist() == [0.01, 0.01]
    assert second.compute[ComputeSource.UTILISATION].values.tolist() == pytest.approx([0.88, 0.90])


def test_evidence_is_carried_from_chunk_to_chunk():
    seen, _ = _scale(f"{RATIO}{{{A100}}} 88 90")
    chunk, scale = _scale(f"{RATIO}{{{A100}}} 1 1", carried=seen.carried)
    assert (scale.unit, scale.by) == (Unit.PERCENT, DecidedBy.VALUES)
    assert chunk.carried.scales.evidence[Pool(RATIO, Generation.UNSAID)].larger == 2


def test_what_is_open_is_withheld_and_counted_but_nothing_is_nothing_in_any_unit():
    chunk = normalise(exposed(f"{RATIO}{{{A100}}} 0 1 1", f"{RATIO}{{{A100.replace('GPU-a', 'GPU-b')}}} 0 0"))
    first, second = chunk.tracks
    assert (first.compute, second.mean_compute) == ({}, 0.0)
    assert [(each.reason, each.count) for each in chunk.rejections] == [("scale_undecided", 3)]


def test_generations_do_not_share_evidence():
    new, old = f"{RATIO}{{{NEW}}} 1 1", f"{RATIO}{{{OLD.replace('GPU-a', 'GPU-b')}}} 99 98"
    first, second = normalise(exposed(new, old)).tracks
    assert (first.mean_compute, second.mean_compute) == (1.0, pytest.approx(0.985))


def test_an_upgrade_half_way_leaves_one_device_without_a_step():
    (track,) = normalise(
        exposed(
            f"{UTIL}{{{OLD}}} 50 50 - -",
            f"{RATIO}{{{NEW}}} - - 0.5 0.5",
            f"{USED}{{{OLD}}} 2048 2048 - -",
            f"{USED}_BYTES{{{NEW}}} - - 2147483648 2147483648",
            f"{ENERGY}{{{OLD}}} 60000000 84000000 - -",
            f"{ENERGY}_JOULES_TOTAL{{{NEW}}} - - 108000 132000",
        )
    ).tracks
    assert track.node == "n1"
    assert track.compute[ComputeSource.UTILISATION].values.tolist() == [0.5] * 4
    assert set(track.memory_used.values.tolist()) == {2.0**31}
    assert track.energy.joules.tolist() == pytest.approx([24_000.0] * 3)


def test_pins_are_those_of_the_settings():
    assert Pins.of(DcgmSettings()) == Pins()
    given = DcgmSettings(
        exporter_version="4.8.2", utilisation="ratio", profiling="percent", memory="mib", energy="joules"
    )
    assert Pins.of(given) == Pins(
        exporter_version="4.8.2",
        utilisation=Unit.RATIO,
        profiling=Unit.PERCENT,
        memory=Unit.MIB,
        energy=Unit.JOULES,
    )
    with pytest.raises(Refused, match="it is like"):
        Pins.of(DcgmSettings(exporter_version="newest"))


def test_only_a_unit_of_its_quantity_can_be_pinned():
    with pytest.raises(Refused, match="memory"):
        Pins(memory=Unit.PERCENT)
    with pytest.raises(Refused, match="exporter_version"):
        Pins(exporter_version="latest")
