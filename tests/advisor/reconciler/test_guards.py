from datetime import timedelta

import pytest

from advisor.cluster.fields import BUDGETS, CONSOLIDATE_AFTER, GPU_LIMIT, REPLICAS, WEIGHT
from advisor.cluster.port import FIELD_MANAGER
from advisor.domain.nodepools import Budget
from advisor.domain.plans import Change, Mode
from advisor.reconciler import guards
from advisor.reconciler.actions import CHUNK_GPUS, SLICE_LENGTH, WARM_CHUNKS
from advisor.reconciler.budgets import budgets_to_text
from advisor.reconciler.guards import GuardContext, GuardRules
from advisor.reconciler.pacing import RecentWants
from tests.builders import NOON, a_node_pool

OBJECTS = {WARM_CHUNKS: "CapacityBuffer/slice-advisor-default", SLICE_LENGTH: "ConfigMap/slice-advisor-default"}
OBJECTS[CHUNK_GPUS] = OBJECTS[WARM_CHUNKS]


def a_change(field=CONSOLIDATE_AFTER, old="180s", new="300s", on=None):
    return Change(
        object=on or OBJECTS.get(field, "NodePool/default"),
        field=field,
        old=old,
        new=new,
        allowed=False,
        reasons=("why",),
    )


def a_limit(old, new):
    return a_change(GPU_LIMIT, old, new)


def a_context(**more):
    fields = {
        "now": NOON,
        "mode": Mode.APPLY,
        "pool": a_node_pool(),
        "observed_at": NOON,
        "history_as_of": NOON,
        "skilled": True,
        "rules": GuardRules(patch_pools=True),
    }
    return GuardContext(**{**fields, **more})


def test_a_sound_change_is_allowed_and_written():
    change = guards.judged(a_change(), a_context())

    assert change.allowed
    assert change.reasons == ("why",)
    assert guards.reasons_not_to_write(change, a_context()) == ()


def test_every_refusal_is_told_at_once():
    change = guards.judged(a_change(new="9h"), a_context(history_as_of=None, skilled=False))

    assert not change.allowed
    assert change.reasons[0] == "why"
    assert len(change.reasons) == 5  # history, skill, bounds, step


@pytest.mark.parametrize(
    "change",
    [
        a_change("spec.template.metadata.labels", None, "x"),
        a_change("spec.template.spec.expireAfter", "720h", "24h"),
        a_change("metadata.labels", None, "x"),
        a_change(REPLICAS, 4, 2, on="NodePool/default"),
        a_change(on="NodePool/other"),
        a_change(on="Node/node-1"),
        a_change("spec.replicas", 1, 2, on="Deployment/web"),
        a_change("spec.replicas", 1, 2, on="CapacityBuffer/somebody-elses"),
        a_change("spec.podTemplateRef", "a", "b", on="CapacityBuffer/slice-advisor-default"),
    ],
)
def test_what_could_disrupt_or_belongs_to_others_is_refused(change):
    assert guards.disruption_safe(change, a_context()) is not None
    assert not guards.judged(change, a_context()).allowed


@pytest.mark.parametrize(
    "change", [a_change(), a_limit("8", "16"), a_change(WARM_CHUNKS, None, 1), a_change(SLICE_LENGTH)]
)
def test_fields_that_replace_no_node_pass(change):
    assert guards.disruption_safe(change, a_context()) is None


def test_nothing_is_proposed_while_observing():
    assert "Observe" in guards.observing_only(a_change(), a_context(mode=Mode.OBSERVE))
    assert guards.observing_only(a_change(), a_context(mode=Mode.RECOMMEND)) is None


@pytest.mark.parametrize(
    "guard, source, minutes",
    [
        (guards.fresh_look, "observed_at", 5),
        (guards.fresh_history, "history_as_of", 30),
        (guards.fresh_telemetry, "telemetry_as_of", 30),
    ],
)
def test_what_is_too_old_freezes_decisions(guard, source, minutes):
    at_the_limit = a_context(**{source: NOON - timedelta(minutes=minutes)})
    beyond = a_context(**{source: NOON - timedelta(minutes=minutes, seconds=1)})

    assert guard(a_change(), at_the_limit) is None
    assert "stale" in guard(a_change(), beyond)


def test_an_empty_history_decides_nothing_and_no_telemetry_is_no_gap():
    assert guards.fresh_history(a_change(), a_context(history_as_of=None)) is not None
    assert guards.fresh_telemetry(a_change(), a_context(telemetry_as_of=None)) is None


@pytest.mark.parametrize("change", [a_change(), a_limit("8", "16"), a_change(WARM_CHUNKS, None, 1)])
def test_without_skill_the_forecast_moves_nothing(change):
    assert "no skill" in guards.skilled(change, a_context(skilled=False))
    assert guards.skilled(change, a_context()) is None


def test_slice_lengths_do_not_hang_on_the_demand_forecast():
    assert guards.skilled(a_change(SLICE_LENGTH, "15m", "20m"), a_context(skilled=False)) is None


@pytest.mark.parametrize("field, new", [(GPU_LIMIT, "16"), (WEIGHT, 5), (CONSOLIDATE_AFTER, "300s")])
def test_a_static_pool_takes_none_of_these(field, new):
    assert guards.static_pool(a_change(field, None, new), a_context(pool=a_node_pool(replicas=4))) is not None
    assert guards.static_pool(a_change(field, None, new), a_context()) is None


@pytest.mark.parametrize("change", [a_limit("8", "16"), a_change(WARM_CHUNKS, None, 1)])
def test_limits_of_shared_gpus_are_left_to_a_person(change):
    """Field report A25: advice counts physical GPUs, and Karpenter would count shares."""
    assert "4 ways" in guards.physical_gpus(change, a_context(pool=a_node_pool(sharing_factor=4)))
    assert guards.physical_gpus(change, a_context()) is None


@pytest.mark.parametrize(
    "change, allowed",
    [
        (a_change(new="30s"), True),
        (a_change(new="29s"), False),
        (a_change(new="2h"), True),
        (a_change(new="2h1s"), False),
        (a_change(new="Never"), False),
        (a_change(SLICE_LENGTH, "15m", "1m"), True),
        (a_change(SLICE_LENGTH, "15m", "59s"), False),
        (a_change(SLICE_LENGTH, "15m", "25h"), False),
        (a_limit("8", "8"), True),
        (a_limit("8", "0"), False),
        (a_limit("8", "100008"), False),
        (a_change(WARM_CHUNKS, 1, 8), True),
        (a_change(WARM_CHUNKS, 1, 9), False),
        (a_change(WARM_CHUNKS, 1, 0), True),
        (a_change(old="10h", new="5h"), True),
        (a_change(old="1s", new="2s"), True),
        (a_change(old="10h", new="20h"), False),
    ],
)
def test_numbers_stay_in_bounds_or_come_nearer_to_them(change, allowed):
    assert (guards.within_bounds(change, a_context()) is None) is allowed


@pytest.mark.parametrize(
    "change, allowed",
    [
        (a_change(new="360s"), True),
        (a_change(new="361s"), False),
        (a_change(new="90s"), True),
        (a_change(new="89s"), False),
        (a_change(old="30s", new="60s"), True),
        (a_change(old="30s", new="61s"), False),
        (a_change(old="0s", new="30s"), True),
        (a_change(old="0s", new="31s"), False),
        (a_change(SLICE_LENGTH, "15m", "30m"), True),
        (a_change(SLICE_LENGTH, "15m", "449s"), False),
        (a_change(SLICE_LENGTH, None, "8h"), True),
        (a_limit("8", "16"), True),
        (a_limit("8", "24"), False),
        (a_limit("64", "128"), True),
        (a_limit("64", "136"), False),
        (a_limit("64", "24"), False),
        (a_limit(None, "1024"), True),
        (a_change(WARM_CHUNKS, 0, 1), True),
        (a_change(WARM_CHUNKS, 0, 2), False),
        (a_change(WARM_CHUNKS, 4, 0), True),
        (a_change(WARM_CHUNKS, None, 8), True),
        (a_change(CHUNK_GPUS, 1, 8), True),
    ],
)
def test_no_number_moves_further_than_one_step(change, allowed):
    assert (guards.one_step(change, a_context()) is None) is allowed


def test_a_limit_is_lowered_only_after_a_quiet_while():
    """Field report A23: up at once, down only to what was enough for 30 minutes."""
    early = RecentWants().remembering(NOON - timedelta(minutes=30), "default", 24.0, 30)
    quiet = early.remembering(NOON, "default", 24.0, 30)
    busy = early.remembering(NOON - timedelta(minutes=1), "default", 32.0, 30)
    down = a_limit("32", "24")

    assert guards.quiet_while(down, a_context(wants=quiet)) is None
    assert "32 GPUs were wanted" in guards.quiet_while(down, a_context(wants=busy))
    assert "do not reach back" in guards.quiet_while(down, a_context(wants=RecentWants()))
    assert guards.quiet_while(a_limit("24", "32"), a_context(wants=busy)) is None
    assert guards.quiet_while(down, a_context(wants=None)) is None


def test_a_field_rests_after_a_change():
    rested = a_context(last_applied=NOON - timedelta(minutes=30))
    tired = a_context(last_applied=NOON - timedelta(minutes=29))

    assert guards.cool_down(a_change(), rested) is None
    assert "rests for 30 min" in guards.cool_down(a_change(), tired)
    assert guards.cool_down(a_limit("32", "24"), tired) is not None


def test_capacity_that_is_needed_does_not_wait_for_a_rest():
    tired = a_context(last_applied=NOON)

    assert guards.cool_down(a_limit("24", "32"), tired) is None
    assert guards.cool_down(a_change(WARM_CHUNKS, 2, 0), tired) is None


def test_a_limit_between_two_nodes_is_refused():
    """Field report A01."""
    assert "no multiple of the 8" in guards.whole_nodes(a_limit("8", "10"), a_context())
    assert guards.whole_nodes(a_limit("8", "16"), a_context()) is None
    assert guards.whole_nodes(a_limit("8", "12"), a_context(pool=a_node_pool(node_gpus=(1, 4)))) is None


def test_never_is_somebodys_word():
    assert guards.deliberate_never(a_change(old="Never"), a_context()) is not None
    assert guards.deliberate_never(a_change(), a_context()) is None


def test_warm_capacity_fits_beneath_the_limit():
    pool = a_node_pool(limits={"nvidia.com/gpu": "32"})

    assert guards.warm_fits_limit(a_change(WARM_CHUNKS, 1, 2), a_context(pool=pool, busy_gpus=16)) is None
    assert "beyond" in guards.warm_fits_limit(a_change(WARM_CHUNKS, 1, 2), a_context(pool=pool, busy_gpus=17))
    assert guards.warm_fits_limit(a_change(WARM_CHUNKS, 1, 0), a_context(pool=pool, busy_gpus=99)) is None
    assert guards.warm_fits_limit(a_change(WARM_CHUNKS, 1, 2), a_context(busy_gpus=99)) is None


@pytest.mark.parametrize(
    "budgets, allowed",
    [
        ((Budget("10%"), Budget("0", schedule="0 9 * * mon-fri", duration="8h")), True),
        ((Budget("0", schedule="0 9 * * mon-fri", duration="8h"),), False),
        ((), False),
        ((Budget("10%"), Budget("0", schedule="0 0 * * sat-sun", duration="24h")), False),
        ((Budget("10%"), Budget("110%")), False),
    ],
)
def test_budgets_are_readable_and_carried_whole(budgets, allowed):
    """Field report A02: refused before any write."""
    refusal = guards.sound_budgets(a_change(BUDGETS, None, budgets_to_text(budgets)), a_context())

    assert (refusal is None) is allowed


def test_a_placeholder_below_the_cutoff_is_refused():
    """Field report A05."""
    change = a_change(guards.PRIORITY, None, -11, on="PriorityClass/slice-advisor")

    assert "will not scale up" in guards.scalable_placeholder(change, a_context())
    assert guards.scalable_placeholder(change, a_context(rules=GuardRules(placeholder_cutoff=-100))) is None
    assert guards.scalable_placeholder(a_change(), a_context()) is None


@pytest.mark.parametrize("mode", [Mode.RECOMMEND, Mode.OBSERVE])
def test_only_apply_writes(mode):
    assert guards.apply_mode(a_change(), a_context(mode=mode)) is not None
    assert guards.apply_mode(a_change(), a_context()) is None


def test_the_kill_switch_stops_writing_and_not_thinking():
    paused = a_context(paused=True)

    assert guards.judged(a_change(), paused).allowed
    assert any("paused" in reason for reason in guards.reasons_not_to_write(a_change(), paused))


def test_a_pool_of_others_is_written_only_by_opting_in():
    plain = a_context(rules=GuardRules())

    assert "opted in" in guards.opted_in(a_change(), plain)
    assert guards.opted_in(a_change(WARM_CHUNKS, None, 1), plain) is None
    assert guards.opted_in(a_change(), a_context(rules=GuardRules(), pool=a_node_pool(owned=True))) is None
    assert guards.opted_in(a_change(), a_context()) is None


def test_a_field_that_somebody_claimed_is_theirs():
    theirs = a_node_pool(field_managers={CONSOLIDATE_AFTER: ("argocd", FIELD_MANAGER)})
    ours = a_node_pool(field_managers={CONSOLIDATE_AFTER: (FIELD_MANAGER,)})

    assert "claimed by argocd" in guards.unclaimed(a_change(), a_context(pool=theirs))
    assert guards.unclaimed(a_limit("8", "16"), a_context(pool=theirs)) is None
    assert guards.unclaimed(a_change(), a_context(pool=ours)) is None
    assert guards.unclaimed(a_change(), a_context(pool=theirs, rules=GuardRules(take_over=True))) is None


def test_every_guard_is_asked():
    listed = {guard.__name__ for guard in (*guards.SAFETY_GUARDS, *guards.WRITE_GUARDS)}
    written = {
        name
        for name, thing in vars(guards).items()
        if callable(thing) and getattr(thing, "__module__", "") == guards.__name__ and "change" in getattr(
            thing, "__annotations__", {}
        ) and not name.startswith("_")
    }  # fmt: skip

    assert written - listed == {"judged", "reasons_not_to_write"}
