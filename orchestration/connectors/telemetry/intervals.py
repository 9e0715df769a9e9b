"""How much time a sample stands for, where nobody says it: until the next sample of its GPU.

A gap is no data, so no sample reaches further than twice the usual distance. Over the same stretch of time the energy
counter says more than the power at one instant: where it has run on, the mean power of the stretch is taken from it,
so that power times time is the energy that was measured. A counter that began anew leaves the power as it was read.
"""

from __future__ import annotations

from orchestration.connectors.telemetry.samples import ROW

GPU = ("node_name", "gpu_index", "gpu_instance")
MOST = 2
"""Usual distances that a sample may stand for."""
BLANK = "1e15"
"""From here on, a number is DCGM's way of saying that there is none."""


def fixed(rows: str, seconds: int) -> str:
    return f"select *, cast({seconds * 1000} as bigint) as interval_ms from ({rows})"


def worked_out(rows: str) -> str:
    """SQL for the same rows with `interval_ms`; zero where there is only one sample to learn from."""
    same_gpu = " and ".join(f"s.{name} is not distinct from u.{name}" for name in GPU)
    counted = f"""
        s.gpu_instance is null and s.energy_counter_mj >= 0 and s.next_counter >= s.energy_counter_mj
        and s.next_counter < {BLANK} and s.distance_ms > 0 and s.distance_ms <= {MOST} * u.usual_ms
    """
    columns = ", ".join(f"s.{name}" for name in ROW if name != "power_watts")
    return f"""
        (
            with distances as (
                select {", ".join(ROW)},
                    epoch_ms(lead(sampled_at) over gpu) - epoch_ms(sampled_at) as distance_ms,
                    lead(energy_counter_mj) over gpu as next_counter
                from ({rows})
                window gpu as (
                    partition by bad_reason is null, {", ".join(GPU)} order by sampled_at, file, line
                )
            ),

            by_gpu as (
                select {", ".join(GPU)}, quantile_disc(distance_ms, 0.5) filter (distance_ms > 0) as usual_ms
                from distances where bad_reason is null group by all
            ),

            of_all as (select quantile_disc(usual_ms, 0.5) as usual_ms from by_gpu),

            usual as (
                select by_gpu.* replace (coalesce(by_gpu.usual_ms, of_all.usual_ms, 0) as usual_ms)
                from by_gpu cross join of_all
            )

            select {columns},
                case when {counted} then (s.next_counter - s.energy_counter_mj) / s.distance_ms else s.power_watts end
                    as power_watts,
                cast(least(coalesce(s.distance_ms, u.usual_ms), {MOST} * u.usual_ms) as bigint) as interval_ms
            from distances as s left join usual as u on {same_gpu}
        )
    """
