"""Files as tools export them, one kind each, of any length: the same for the same length and seed.

Each is one UTC day (a month for bills) of a company that is written by a single statement of DuckDB, so that millions
of lines take seconds. What is slow to read in real ones is in them: nested JSON, long labels, quoted text, units.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from tests.bench import bill

DAY = ("2026-01-05", "2026-01-06")
MONTH = ("2026-01-01", "2026-02-01")
DAY_MS = 1_767_571_200_000
GPUS_PER_NODE = 8


@dataclass(frozen=True)
class Export:
    name: str
    file: str
    rows: int
    """Lines, samples or records, whatever the form counts."""
    source: dict[str, object]
    """The settings of its source, but name and path."""
    alone: str
    """How DuckDB reads the file by itself."""
    days: tuple[str, str] = DAY


_CSV = "read_csv('{file}', all_varchar = true)"
_LINES = "read_csv('{file}', columns = {{'line': 'varchar'}}, delim = '\\1', quote = '', escape = '', header = false)"
_CLUSTER = {"cluster": "titan"}
_BILL = {"area": "billing"}

EXPORTS = {
    "aws_csv": Export("AWS CUR, CSV", "cur.csv", 500_000, _BILL | {"kind": "aws_cur"}, _CSV, MONTH),
    "aws_parquet": Export(
        "AWS CUR, Parquet", "cur.parquet", 500_000, _BILL | {"kind": "aws_cur"}, "read_parquet('{file}')", MONTH
    ),
    "gcp": Export(
        "Google Cloud, JSON lines",
        *("gcp_2026-01_20260203T060000Z.json", 300_000),
        _BILL | {"kind": "gcp_export"},
        "read_ndjson('{file}')",
        MONTH,
    ),
    "azure": Export(
        "Azure, CSV",
        *("azure_2026-01_20260203T060000Z.csv", 500_000),
        _BILL | {"kind": "azure_cost"},
        _CSV,
        MONTH,
    ),
    "sacct_json": Export(
        "sacct --json, jobs",
        *("sacct_2026-01-05_20260106T001500Z.json", 100_000),
        _CLUSTER | {"area": "scheduler", "kind": "slurm"},
        "read_json('{file}', maximum_object_size = 1000000000)",
    ),
    "kubernetes": Export(
        "Kubernetes, scrapes as text, samples",
        *("ksm_2026-01-05_20260106T001500Z.prom", 720_000),
        _CLUSTER | {"area": "scheduler", "kind": "kubernetes"},
        _LINES,
    ),
    "dcgm_dump": Export(
        "DCGM, promtool dump, samples",
        *("dcgm_2026-01-05_20260106T001500Z.txt", 1_152_000),
        _CLUSTER | {"area": "telemetry", "kind": "dcgm", "interval_seconds": 30},
        _LINES,
    ),
    "dcgm_range": Export(
        "DCGM, query_range JSON, samples",
        *("dcgm_2026-01-05_20260106T001500Z.json", 1_152_000),
        _CLUSTER | {"area": "telemetry", "kind": "dcgm", "interval_seconds": 30},
        "read_json('{file}', maximum_object_size = 1000000000)",
    ),
    "nvidia_smi": Export(
        "nvidia-smi log, CSV",
        *("smi.csv", 691_200),
        _CLUSTER | {"area": "telemetry", "kind": "files", "timezone": "UTC", "node": "n00001"},
        _CSV,
    ),
    "storage": Export("storage use, CSV", "usage.csv", 500_000, {"area": "storage", "kind": "storage_usage"}, _CSV),
    "inventory": Export("inventory, CSV", "nodes.csv", 50_000, {"area": "inventory", "kind": "node_inventory"}, _CSV),
}


def write_export(key: str, target: Path) -> int:
    """Writes the file and returns how many rows it has."""
    export = EXPORTS[key]
    if key == "aws_csv":
        bill.write_bill(target, export.rows)
        return export.rows
    with duckdb.connect() as con:
        con.execute("set TimeZone = 'UTC'; set preserve_insertion_order = true; set enable_progress_bar = false")
        con.execute(
            f"copy ({_QUERIES[key].format(rows=export.rows, folder=target.parent)}) to '{target}' ({_FORMATS[key]})"
        )
    return export.rows


# One column, as it stands: neither quoted nor escaped.
_PLAIN = "format csv, header false, delimiter '\x01', quote '', escape ''"
_FORMATS = {
    "aws_parquet": "format parquet",
    "azure": "format csv, header",
    "storage": "format csv, header",
    "inventory": "format csv, header",
    "gcp": _PLAIN,
    "sacct_json": _PLAIN,
    "kubernetes": _PLAIN,
    "dcgm_dump": _PLAIN,
    "dcgm_range": _PLAIN,
    "nvidia_smi": _PLAIN,
}

_GCP = """
select to_json({{
    billing_account_id: '01A2B3-C4D5E6-F7A8B9',
    service: {{id: '6F81-5844-456A', description: 'Compute Engine'}},
    sku: {{id: printf('%04X-5D1A', noise % 400), description: 'A3 GPU in Americas ' || noise % 400}},
    usage_start_time: strftime(started, '%Y-%m-%d %H:%M:%S UTC'),
    usage_end_time: strftime(started + interval 1 hour, '%Y-%m-%d %H:%M:%S UTC'),
    project: {{id: 'project-' || noise % 30, number: (1000 + noise % 30)::varchar, name: 'Project ' || noise % 30}},
    labels: [
        {{key: 'team', value: 'team' || noise % 50}},
        {{key: 'experiment', value: 'experiment-' || noise % 700}}
    ],
    system_labels: [{{key: 'compute.googleapis.com/cores', value: (noise % 64)::varchar}}],
    location: {{location: 'us-west1', country: 'US', region: 'us-west1', zone: 'us-west1-b'}},
    resource: {{name: 'vm-' || noise % 2000,
        global_name: '//compute.googleapis.com/projects/p/instances/' || noise % 2000}},
    cost: (noise % 1000000007) / 1e7,
    cost_at_list: (noise % 1000000007) / 8e6,
    currency: 'USD',
    currency_conversion_rate: 1.0,
    usage: {{amount: noise % 3600, unit: 'seconds',
        amount_in_pricing_units: noise % 3600 / 3600, pricing_unit: 'hour'}},
    credits: case when noise % 3 = 0 then [
        {{name: 'Sustained use', full_name: 'Sustained use discount', type: 'SUSTAINED_USAGE_DISCOUNT',
          id: 's', amount: -(noise % 1000003) / 1e7}}
    ] else [] end,
    invoice: {{month: '202601'}},
    cost_type: 'regular'
}})
from (
    select (hash(range) // 16)::bigint as noise, timestamp '2026-01-02' + to_hours((range % 696)::int) as started
    from range({rows})
)
"""

_AZURE = """
select
    '1234567' as "BillingAccountId", '01/01/2026' as "BillingPeriodStartDate", '01/31/2026' as "BillingPeriodEndDate",
    'sub-' || noise % 20 as "SubscriptionId",
    strftime(date '2026-01-01' + (range % 31)::int, '%m/%d/%Y') as "Date",
    'NC24 v3, US East, per hour' as "Product",
    'meter-' || noise % 300 as "MeterId", 'Virtual Machines' as "MeterCategory",
    (noise % 24 + 1)::varchar as "Quantity", ((noise % 1000000007) / 1e7)::varchar as "Cost", '2' as "UnitPrice",
    'USD' as "BillingCurrency", 'EastUS' as "ResourceLocation",
    '/subscriptions/sub-' || noise % 20 || '/resourceGroups/Research/providers/Microsoft.Compute/virtualMachines/vm-'
        || noise % 5000 as "ResourceId",
    '"team": "team' || noise % 50 || '","experiment": "e' || noise % 900 || '"' as "Tags",
    '' as "ReservationId", 'MS-AZR-0017P' as "OfferId", 'Usage' as "ChargeType", 'UsageBased' as "Frequency",
    '2.5' as "PayGPrice", 'OnDemand' as "PricingModel", '' as "benefitId"
from (select range, (hash(range) // 16)::bigint as noise from range({rows}))
"""

_SACCT_JSON = """
select
    case when range > 0 then ''
        else '{{"meta": {{"plugin": {{"type": "openapi/dbv0.0.39"}}, "Slurm": {{"release": "23.02.7"}}}}, "jobs": ['
    end
    || to_json({{
        job_id: 1000 + range, "array": {{job_id: 0, task: null}}, het: {{job_id: 0, job_offset: null}},
        name: 'train-' || noise % 97, "user": 'user' || noise % 250, account: 'team' || noise % 50, cluster: 'titan',
        "partition": 'p' || noise % 4, qos: 'normal',
        state: {{"current": 'COMPLETED', reason: 'None'}},
        "time": {{submission: started - 60, "start": started, "end": started + 60 + noise % 7200,
                  elapsed: 60 + noise % 7200, suspended: 0, "limit": {{"set": true, infinite: false, number: 1440}}}},
        tres: {{allocated: [
            {{type: 'cpu', name: '', id: 1, count: gpus * 16}}, {{type: 'mem', name: '', id: 2, count: gpus * 131072}},
            {{type: 'node', name: '', id: 4, count: 1}}, {{type: 'gres', name: 'gpu', id: 1001, count: gpus}},
            {{type: 'gres', name: 'gpu:h100', id: 1002, count: gpus}}
        ]}},
        nodes: printf('n%05d', noise % 250),
        exit_code: {{status: 'SUCCESS', return_code: 0}},
        working_directory: '/home/user' || noise % 250 || '/projects/experiment-' || noise % 900,
        submit_line: 'sbatch --gres=gpu:h100:' || gpus || ' train.sh',
        steps: [{{step: {{id: (1000 + range) || '.batch', name: 'batch'}}, tres: {{allocated: [
            {{type: 'cpu', name: '', id: 1, count: gpus * 16}}, {{type: 'mem', name: '', id: 2, count: gpus * 131072}}
        ]}}}}]
    }})
    || case when range = {rows} - 1 then '], "errors": []}}' else ',' end
from (
    select
        range, (hash(range) // 16)::bigint as noise, 1 << (noise % 4) as gpus,
        1767571200 + range * 79000 // {rows} as started
    from range({rows})
)
order by range
"""

# 3,000 pods, scraped every twelve minutes, with two series each that never change in between.
_KUBERNETES = """
select
    case series
        when 0 then 'kube_pod_info{{' || ids || ',uid="' || uid || '",node="n' || pod % 250
            || '",created_by_kind="Job",created_by_name="job-' || pod // 2
            || '",host_ip="10.0.0.' || pod % 250 || '"}} 1 '
        else 'kube_pod_status_phase{{' || ids || ',uid="' || uid || '",phase="Running"}} 1 '
    end || {start} + scrape * 720000
from (
    select range % 2 as series, range // 2 % ({rows} // 240) as pod, range // 2 // ({rows} // 240) as scrape,
        'namespace="team' || pod % 50 || '",pod="job-' || pod // 2 || '-' || pod || '"' as ids,
        md5(pod::varchar) as uid
    from range({rows})
)
""".replace("{start}", str(DAY_MS))

_FIELDS = """[
    'DCGM_FI_DEV_GPU_UTIL', 'DCGM_FI_DEV_POWER_USAGE', 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION', 'DCGM_FI_DEV_FB_USED'
]"""
# 100 GPUs with four fields each, every thirty seconds.
_DCGM = """
    select
        *,
        case field
            when 'DCGM_FI_DEV_GPU_UTIL' then (noise % 101)::varchar
            when 'DCGM_FI_DEV_POWER_USAGE' then (72 + noise % 628) || '.' || noise % 1000
            when 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION' then (36775692000 + tick * 12000000)::varchar
            else (3 + noise % 80000)::varchar
        end as shown
    from (
        select
            series, tick, {fields}[1 + series % 4] as field, series // 4 as gpu,
            (hash(series * 2880 + tick) // 16)::bigint as noise
        from range({rows} // 2880) as all_series(series), range(2880) as ticks(tick)
    )
""".replace("{fields}", _FIELDS)
_DCGM_LABELS = {
    "gpu": "gpu % 8",
    "UUID": "'GPU-' || md5(gpu::varchar)",
    "device": "'nvidia' || gpu % 8",
    "modelName": "'NVIDIA H100 80GB HBM3'",
    "Hostname": "printf('n%05d', gpu // 8)",
    "hpc_job": "1000 + gpu",
    "instance": "'10.0.0.' || gpu // 8 || ':9400'",
    "job": "'dcgm'",
}
_DCGM_DUMP = """
select '{{__name__="' || field || '"' || {labels} || '}} ' || shown || ' ' || {start} + tick * 30000
from ({dcgm})
order by series, tick
"""
_DCGM_RANGE = """
select
    case when series = 0 then '{{"status":"success","data":{{"resultType":"matrix","result":[' else '' end
    || '{{"metric":{{"__name__":"' || any_value(field) || '"' || any_value({labels}) || '}},"values":['
    || string_agg('[' || {start} // 1000 + tick * 30 || ',"' || shown || '"]', ',' order by tick) || ']}}'
    || case when series = {rows} // 2880 - 1 then ']}}}}' else ',' end
from ({dcgm})
group by series
order by series
"""


def _labels(between: str) -> str:
    return " || ".join(f"'{between.format(name)}' || {value} || '\"'" for name, value in _DCGM_LABELS.items())


_NVIDIA_SMI = """
select line from (
    select -1 as place, 'timestamp, index, utilization.gpu [%], power.draw [W], memory.used [MiB]' as line
    union all
    select
        range,
        strftime(timestamp '2026-01-05' + to_seconds(range // 8), '%Y/%m/%d %H:%M:%S.000') || ', ' || range % 8 || ', '
        || noise % 101 || ' %, ' || printf('%.2f', 72 + noise % 62800 / 100) || ' W, ' || noise % 80000 || ' MiB'
    from (select range, (hash(range) // 16)::bigint as noise from range({rows}))
)
order by place
"""

_STORAGE = """
select
    'scratch' as filesystem, '/scratch/team' || range % 50 || '/user' || range % 5000 || '/set' || range as path,
    'user' || range % 5000 as owner, 'team' || range % 50 as "group",
    (hash(range) // 16 % 900000000000)::bigint as bytes,
    '2026-01-05' as date
from range({rows})
"""

_INVENTORY = """
select
    'titan' as cluster, printf('n%05d', range) as node, printf('i-%016x', hash(range)) as resource_id,
    'AWS' as provider,
    'p5.48xlarge' as instance_type, 'gpus' || range % 8 as pool, 'h100' as gpu_model, 8 as gpus, 192 as cores,
    2048 as memory_gib, '2025-01-01T00:00:00Z' as "from", null as "to"
from range({rows})
"""

_QUERIES = {
    # Made from the CSV file, which is written first.
    "aws_parquet": "from read_csv('{folder}/cur.csv', all_varchar = true)",
    "gcp": _GCP,
    "azure": _AZURE,
    "sacct_json": _SACCT_JSON,
    "kubernetes": _KUBERNETES,
    "dcgm_dump": _DCGM_DUMP.replace("{dcgm}", _DCGM)
    .replace("{labels}", _labels(', {}="'))
    .replace("{start}", str(DAY_MS)),
    "dcgm_range": _DCGM_RANGE.replace("{dcgm}", _DCGM)
    .replace("{labels}", _labels(',"{}":"'))
    .replace("{start}", str(DAY_MS)),
    "nvidia_smi": _NVIDIA_SMI,
    "storage": _STORAGE,
    "inventory": _INVENTORY,
}
