"""The metrics of runs by another path than `weir.derive`: DuckDB's SQL over the files of their folders.

It reads the documented columns of `requests.parquet` and `block.parquet` (docs/reference/columns.md), the
classes and times of `run.json`, and the time at which a simulation was given up (`observed.json`). No code of
the package computes here.
"""

from pathlib import Path

import duckdb

QUANTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99, "p999": 0.999}

_RUNS = r"""
create macro run_of(filename) as regexp_extract(filename, '([^/]+)/[^/]+$', 1);

create table given_up as
select run_of(filename) as run, (content->>'$.simulator.saturation.at_s')::double as at_s
from read_text('{folder}/*/observed.json');

create table run as
select id as run, low, high, case when at_s is null then high
    else greatest(low, least(high, round(at_s * 1e9)::bigint)) end as measured_high,
    (measured_high - low) / 1e9 as measured_s, (high - low) / 1e9 as duration_s, classes
from (
    select content->>'$.id' as id, round((content->>'$.warmup_s')::double * 1e9)::bigint as low,
        low + round((content->>'$.duration_s')::double * 1e9)::bigint as high, content->'$.classes' as classes
    from read_text('{folder}/*/run.json')
) left join given_up on given_up.run = id;

create table class as
select run, c->>'$.name' as class, (c->>'$.clients')::bigint as clients,
    coalesce(c->>'$.engine', 'replay') as engine,
    (c->>'$.objective.response_ms.quantile')::double as response_quantile,
    (c->>'$.objective.response_ms.at_most')::double as response_at_most,
    (c->>'$.objective.deadline_miss_share')::double as most_missed,
    (c->>'$.objective.rate_mb_s')::double as rate, (c->>'$.objective.share')::double as share
from (select run, unnest(from_json(classes, '["JSON"]')) as c from run);
"""

_REQUESTS = """
create table request as
select q.run, q.class, q.request, q.client, q.size_bytes, q.intended_ns, q.completed_ns, q.deadline_ns,
    q.served_ns, q.status, q.warmup, low, measured_high, measured_s,
    q.status = 0 and q.completed_ns is not null as ok,
    case when ok then (q.completed_ns - q.intended_ns) / 1e6 else 'inf'::double end as response_ms,
    ok and q.completed_ns >= low and q.completed_ns < measured_high as in_window,
    case when engine = 'fio' and q.completed_ns is not null
        then q.completed_ns >= low and q.completed_ns < high else not q.warmup end as sampled
from (
    select * exclude (class), class::varchar as class, run_of(filename) as run
    from read_parquet('{folder}/*/requests.parquet', filename = true)
) q join run using (run) join class using (run, class);

-- Responses in the order of asking (i) and of their length (rank), both from 0.
create table response as
select run, class, response_ms as x, count(*) over all_of as n,
    row_number() over (partition by run, class order by intended_ns, request) - 1 as i,
    row_number() over (partition by run, class order by response_ms, intended_ns, request) - 1 as rank,
    max(isinf(response_ms)::int) over all_of = 1 as endless
from request where sampled window all_of as (partition by run, class);

create macro rank_of(q, n) as greatest(ceil(q * n - 1e-9), 1) - 1;
create macro too_few(q, n) as q < 1 and n * (1 - q) < 1 - 1e-9;

create table simple as
select run, class,
    count(*) filter (sampled) as requests,
    count(*) filter (sampled and status <> 0) as failed,
    count(*) filter (sampled and completed_ns is null) as unfinished,
    avg(response_ms) filter (sampled) as response_mean_ms,
    max(response_ms) filter (sampled) as response_max_ms,
    avg((served_ns - intended_ns) / 1e6) filter (sampled and ok) as queueing_mean_ms,
    avg((completed_ns - served_ns) / 1e6) filter (sampled and ok) as service_mean_ms,
    count(deadline_ns) filter (sampled) as deadlines,
    avg((not (ok and completed_ns <= deadline_ns))::int) filter (sampled and deadline_ns is not null)
        as deadline_miss_share,
    case when any_value(run.measured_s) > 0
        then coalesce(sum(size_bytes) filter (not warmup), 0) / 1e6 / any_value(run.measured_s) end
        as offered_mb_s,
    case when any_value(run.measured_s) > 0 and any_value(engine) <> 'access'
        then coalesce(sum(size_bytes) filter (in_window), 0) / 1e6 / any_value(run.measured_s) end
        as throughput_mb_s,
    case when any_value(run.measured_s) > 0 and any_value(engine) <> 'access'
        then count(*) filter (in_window) / any_value(run.measured_s) end as requests_per_s,
from class join run using (run) left join request using (run, class) group by all;

create table client_fairness as
select run, class, sum(x) ** 2 / (count(*) * sum(x ** 2)) as jain_clients
from (
    select run, class, client, coalesce(bytes, 0)::double as x
    from (select run, class, unnest(range(clients)) as client from class)
    left join (
        select run, class, client, sum(size_bytes) as bytes from request where in_window group by all
    ) using (run, class, client)
) group by all having sum(x) > 0;

-- Arrivals in each whole interval of 100 ms.
create table burst as
select run, class, max(n) / avg(n) as arrival_peak_to_mean,
    case when count(*) > 1 then var_samp(n) / avg(n) end as arrival_dispersion
from (
    select run, class, slot, count(intended_ns) as n
    from (
        select run, class, low, unnest(range((measured_high - low) // 100000000)) as slot
        from class join run using (run)
    ) left join (
        select run, class, intended_ns, floor((intended_ns - low) / 100000000)::bigint as slot
        from request where not warmup
    ) using (run, class, slot) group by all
) group by all having sum(n) > 0;
"""

# Series whose autocorrelation time is asked: `values` in the order of asking, less their mean.
_STEADINESS = """
-- The autocorrelations at lags 2 j and 2 j + 1 together: `w` holds each value plus the next.
create macro pair_at(v, w, n, j) as
    list_inner_product(v[1:n - 2 * j], w[1 + 2 * j:n]) / list_inner_product(v, v);
create macro autocorrelation_times(series) as table
with centred as (
    select key, list(x order by i) as v, list(x + next order by i) as w, count(*) as n
    from (
        select *, lead(x, 1, 0) over (partition by key order by i) as next
        from (select key, i, x - avg(x) over (partition by key) as x from query_table(series))
    ) group by all
),
-- Few series are still correlated after 256 responses: only of these are longer lags computed.
near as (
    select key, j, pair_at(v, w, n, j) as pair
    from (
        select *, unnest(range(least(n // 2, 128))) as j
        from centred where list_inner_product(v, v) > 1e-300
    )
),
far as (
    select key, j, pair_at(v, w, n, j) as pair
    from (
        select *, unnest(range(128, n // 2)) as j
        from centred semi join (select key from near group by key having min(pair) > 0) using (key)
    )
),
kept as (
    select key, min(pair) over (partition by key order by j) as pair,
        min(pair) over (partition by key order by j) > 0 as positive
    from (from near union all from far)
)
select centred.key as key, n,
    greatest(coalesce(2 * sum(pair) filter (positive) - 1, 1), 1) as time
from centred left join kept on kept.key = centred.key group by all;

create table size_series as
select (run, class) as key, i, case when endless then rank::double else x end as x from response;
create table size as
select key[1] as run, key[2] as class, case when n < 2 then n else n / time end as effective_requests
from autocorrelation_times('size_series');

create table beyond_series as
select (run, class, q) as key, i, (x > quantile)::int::double as x
from (
    select *, max(x) filter (rank = rank_of(q, n)) over (partition by run, class, q) as quantile
    from response, (select unnest([0.95, 0.99, 0.999]::double[]) as q)
);
create table beyond as
select key[1] as run, key[2] as class, key[3] as q,
    case when n < 2 then 0 when above > 0 then above / time else n * (1 - q) end as beyond
from autocorrelation_times('beyond_series')
join (select key, sum(x) as above from beyond_series group by all) using (key);

-- Logarithms and their place from -0.5 to 0.5; unfinished requests count as the longest response.
create table line as
select *, -0.5 + i / (n - 1) as place, y - avg(y) over of_class as y0, place * place as place2,
    sum(place * y) over of_class / sum(place2) over of_class as slope
from (
    select run, class, i, n, ln(least(greatest(x, lowest), highest)) as y, lowest, highest
    from response join (
        select run, class, min(x) as lowest, max(x) as highest, count(*) as finite
        from response where isfinite(x) and x > 0 group by all
    ) using (run, class) where finite >= 2
) window of_class as (partition by run, class);
create table residual_series as
select (run, class) as key, i, y0 - slope * place as x from line where lowest < highest;

create table batch as
select run, class, batches, b, avg(y) as mean, -0.5 + b / (batches - 1) as unit,
    (-0.5 + b / (batches - 1)) * (1 - 1 / batches) as place
from (
    select line.run, line.class, y, batches, (i - (n - batches * (n // batches))) // (n // batches) as b
    from line join (
        select key[1] as run, key[2] as class, floor(least(n / (8 * time), 64))::bigint as batches
        from autocorrelation_times('residual_series')
    ) using (run, class)
    where batches >= 8 and i >= n - batches * (n // batches)
) group by all;
create table fitted as
select run, class, batches, slope,
    sqrt(sum((mean - grand - slope * place) ** 2) / any_value(p2 * (batches - 2))) as error
from (
    select *, avg(mean) over of_class as grand, sum(place * place) over of_class as p2,
        sum(place * mean) over of_class / p2 as slope
    from batch window of_class as (partition by run, class)
) group by all;

-- Student's t by Simpson's rule: P(|T| > t) is the part below atan(sqrt(v) / t) of the area of
-- sin(a)^(v - 1).
create macro area(upto, v) as list_sum(list_transform(range(0, 4001), lambda k:
    (case when k in (0, 4000) then 1 when k % 2 = 1 then 4 else 2 end)
    * sin(upto * k / 4000) ** (v - 1))) * upto / 12000;
create table drift as
select run, class, exp(slope) as drift_ratio,
    area(atan2(sqrt(batches - 2), abs(slope) / error), batches - 2) / area(pi() / 2, batches - 2) as drift_p
from fitted
union all
select distinct run, class, 1.0, 1.0 from line where lowest = highest;
"""

_OBJECTIVES = """
create table whole as
select run, sum(throughput_mb_s) as throughput_mb_s, sum(requests_per_s) as requests_per_s,
    case when count(*) > 1 and sum(throughput_mb_s) > 0
        then sum(throughput_mb_s) ** 2 / (count(*) * sum(throughput_mb_s ** 2)) end as jain_classes,
    case when count(*) > 1 and count(share) = count(*) and min(share) > 0 and sum(throughput_mb_s) > 0
        then sum(throughput_mb_s / share) ** 2 / (count(*) * sum((throughput_mb_s / share) ** 2)) end
        as jain_classes_weighted
from simple join class using (run, class) group by all;

create table objective as
select run, class, share_of_run as throughput_share, value as objective_value, bound as objective_limit,
    case when value is null then null when at_least then value >= bound else value <= bound end
        as objective_attained,
    within as within_objective_share, case when at_least then (value - bound) / bound end as share_error
from (
    select c.run, c.class, s.throughput_mb_s / nullif(whole.throughput_mb_s, 0) as share_of_run,
        (rate is not null or share is not null) and response_at_most is null and most_missed is null
            as at_least,
        coalesce(response_at_most, most_missed, share, rate) as bound,
        case when response_at_most is not null then asked.x when most_missed is not null
            then s.deadline_miss_share when share is not null then share_of_run
            when rate is not null then s.throughput_mb_s end as value,
        case when response_at_most is not null then asked.within when most_missed is not null
            then 1 - s.deadline_miss_share end as within
    from class c join simple s using (run, class) join whole using (run)
    left join (
        select run, class, avg((x <= response_at_most)::int) as within,
            any_value(x) filter (rank = rank_of(response_quantile, n) and not too_few(response_quantile, n))
                as x
        from response join class using (run, class) group by all
    ) asked using (run, class)
);
"""

_BLOCK = """
create table block as
select *, coalesce(queued_ns, inserted_ns, issued_ns) as there_ns,
    coalesce(there_ns, issued_ns, completed_ns) is not null and there_ns is not null
        and issued_ns is not null and completed_ns is not null as seen,
    seen and queued_ns >= low and queued_ns < high as split
from (
    select run_of(filename) as run, {host} || device::varchar as device, size_bytes, op::varchar as op,
        queued_ns, inserted_ns, issued_ns, completed_ns, status
    from read_parquet('{folder}/*/block.parquet', filename = true, union_by_name = true)
) join run using (run) where op in ('read', 'write');

create macro length_within(a, b, low, high) as
    greatest(least(b, high), low) - greatest(least(a, high), low);
-- The time that is covered by some interval from `a` to `b`.
create macro covered(intervals) as table
select run, device, sum(greatest(b - greatest(a, coalesce(reached, a)), 0)) as ns
from (
    select run, device, a, b, max(b) over (
        partition by run, device order by a, b rows between unbounded preceding and 1 preceding
    ) as reached
    from (
        select run, device, greatest(least(a, high), low) as a, greatest(least(b, high), low) as b
        from query_table(intervals)
    )
) group by all;
create table busy as select run, device, low, high, issued_ns as a, completed_ns as b from block where seen;
create table backlog as select run, device, low, high, there_ns as a, completed_ns as b from block where seen;

create table device as
select run, device, count(*) as requests, count(*) filter (completed_ns is null) as lost,
    count(*) filter (status <> 0) as failed,
    avg((issued_ns - queued_ns) / 1e6) filter (split) as queueing_mean_ms,
    avg((completed_ns - issued_ns) / 1e6) filter (split) as service_mean_ms,
    any_value(busy_ns) / any_value(high - low) as utilisation,
    any_value(busy_ns) / nullif(any_value(backlog_ns), 0) as work_conservation,
    coalesce(sum(length_within(issued_ns, completed_ns, low, high)) filter (seen), 0) / any_value(high - low)
        as mean_depth,
    coalesce(sum(length_within(there_ns, issued_ns, low, high)) filter (seen), 0) / any_value(high - low)
        as mean_waiting,
    coalesce(sum(size_bytes) filter (seen and completed_ns >= low and completed_ns < high), 0) / 1e6
        / any_value(duration_s) as throughput_mb_s,
    count(*) filter (seen and completed_ns >= low and completed_ns < high) / any_value(duration_s)
        as requests_per_s
from block
join (select run, device, ns as busy_ns from covered('busy')) using (run, device)
join (select run, device, ns as backlog_ns from covered('backlog')) using (run, device)
group by all;
"""


def recomputed(folder: Path) -> dict[str, dict]:
    """The metrics of every run of a study's folder, in the form of `metrics.json`."""
    sql = duckdb.connect()
    for script in (_RUNS, _REQUESTS, _STEADINESS, _OBJECTIVES):
        sql.execute(script.replace("{folder}", str(folder)))
    metrics = {
        run: {"classes": {}, "devices": {}, "run": values} for run, values in _rows(sql, "from whole", 1)
    }
    for name, q in QUANTILES.items():
        sql.execute(
            f"create table {name} as select run, class, any_value(x) as response_{name}_ms from response "
            f"where rank = rank_of({q}::double, n) and not too_few({q}::double, n) group by all"
        )
    of_beyond = ", ".join(
        f"any_value(beyond) filter (q = {QUANTILES[name]}::double) as response_{name}_beyond"
        for name in ("p95", "p99", "p999")
    )
    sql.execute(f"create table tail as select run, class, {of_beyond} from beyond group by all")
    parts = (*QUANTILES, "client_fairness", "burst", "size", "tail", "drift", "objective")
    joined = " ".join(f"left join {name} using (run, class)" for name in parts)
    for run, name, values in _rows(sql, f"from simple {joined}", 2):
        metrics[run]["classes"][name] = values
    if any(folder.glob("*/block.parquet")):
        _devices(sql, folder, metrics)
    return metrics


def _devices(sql: duckdb.DuckDBPyConnection, folder: Path, metrics: dict[str, dict]) -> None:
    table = f"read_parquet('{folder}/*/block.parquet', union_by_name = true)"
    columns = {row[0] for row in sql.execute(f"describe from {table}").fetchall()}
    host = "coalesce(host::varchar || ':', '')" if "host" in columns else "''"
    sql.execute(_BLOCK.replace("{folder}", str(folder)).replace("{host}", host))
    for part in ("queueing", "service"):
        begin, end = ("queued_ns", "issued_ns") if part == "queueing" else ("issued_ns", "completed_ns")
        sql.execute(
            f"create table {part} as select run, device, any_value(x) as {part}_p95_ms from ("
            f"select run, device, ({end} - {begin}) / 1e6 as x, "
            "count(*) over (partition by run, device) as n, "
            "row_number() over (partition by run, device order by x) - 1 as rank from block where split"
            ") where rank = rank_of(0.95::double, n) and not too_few(0.95::double, n) group by all"
        )
    joined = "left join queueing using (run, device) left join service using (run, device)"
    for run, name, values in _rows(sql, f"from device {joined}", 2):
        metrics[run]["devices"][name] = values


def _rows(sql: duckdb.DuckDBPyConnection, query: str, keys: int) -> list[tuple]:
    """Each row as its keys and the other columns by name."""
    found = sql.execute(query)
    names = [column[0] for column in found.description]
    return [(*row[:keys], dict(zip(names[keys:], row[keys:], strict=True))) for row in found.fetchall()]
