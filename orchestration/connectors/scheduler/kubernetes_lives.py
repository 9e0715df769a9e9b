"""The life of a pod, from what kube-state-metrics told of it: the SQL behind `kubernetes_metrics`.

It reads ksm_known (what was told of each pod, and from when to when), ksm_pods and ksm_clocks (first and last scrape of
each file) and ends in rows of `pod_fields`, as pod records give them.
"""

from __future__ import annotations

from orchestration.connectors.sql import first_reason, literal

DELETED = "Deleted while running"
NODE_GROUPS = (
    "node_group",
    "eks_amazonaws_com_nodegroup",
    "alpha_eksctl_io_nodegroup_name",
    "cloud_google_com_gke_nodepool",
    "kubernetes_azure_com_agentpool",
    "agentpool",
    "karpenter_sh_nodepool",
)
"""Node labels that say which group a node belongs to; the first that is there counts."""


def own(label: str) -> str:
    """A label of the exporter; Prometheus renames it where the scraped target has one of the same name."""
    return f"coalesce(nullif(labels['exported_{label}'], ''), nullif(labels['{label}'], ''))"


def _named(label: str) -> str:
    """A label that kube-state-metrics fills with `<none>` where there is nothing."""
    return f"nullif({own(label)}, '<none>')"


def _latest(expression: str, condition: str) -> str:
    return f"arg_max({expression}, last_at) filter ({condition})"


def _recorded(metric: str) -> str:
    """A time that Kubernetes itself wrote down; the value of the metric."""
    return f"to_timestamp(max(value) filter (metric = '{metric}' and value > 0))"


_IS_PHASE = "metric = 'phase' and value = 1"
_IS_CONTROLLER = "metric = 'owner' and labels['owner_is_controller'] is distinct from 'false'"

LIVES = f"""
    with gathered as (
        select
            pod_number,
            {_latest(_named("node"), "metric = 'info'")} as node,
            {_latest("labels['host_network']", "metric = 'info'")} as host_network,
            coalesce(
                {_latest(_named("created_by_kind"), "metric = 'info'")}, {_latest(_named("owner_kind"), _IS_CONTROLLER)}
            ) as kind,
            coalesce(
                {_latest(_named("created_by_name"), "metric = 'info'")}, {_latest(_named("owner_name"), _IS_CONTROLLER)}
            ) as owner,
            {_recorded("created")} as created_at,
            coalesce({_recorded("scheduled")}, {_recorded("started")}) as recorded_start_at,
            {_recorded("completed")} as completed_at,
            min(first_at) filter (metric = 'info' and {_named("node")} is not null) as bound_at,
            {_latest("labels['phase']", _IS_PHASE)} as phase,
            min(first_at) filter ({_IS_PHASE}) as phase_at,
            min(first_at) filter ({_IS_PHASE} and labels['phase'] in ('Succeeded', 'Failed')) as finished_at,
            {_latest("labels['reason']", "metric = 'reason' and value = 1")} as reason,
            {_latest("labels", "metric = 'labels'")} as pod_labels,
            {_latest("labels", "metric = 'annotations'")} as annotations
        from ksm_known
        group by pod_number
    ),

    judged as (
        select
            p.*,
            g.* exclude (pod_number),
            c.as_of_at,
            c.usual_ms,
            -- A file that records starts and has none for a pod says that it has not started.
            coalesce(g.recorded_start_at, case when not c.has_starts then g.bound_at end) as start_at,
            g.phase in ('Succeeded', 'Failed') as is_finished,
            -- Exporters that share the work are scraped at different moments, up to one distance apart.
            coalesce(2 * date_diff('millisecond', p.last_at, c.as_of_at) >= 3 * c.usual_ms, false) as is_gone,
            g.finished_at = g.phase_at
                and date_diff('millisecond', c.begins_at, g.finished_at) <= coalesce(c.usual_ms, 0)
            as was_finished_before
        from ksm_pods as p
        join gathered as g using (pod_number)
        join ksm_clocks as c using (file)
    )

    select
        *,
        is_gone and not is_finished as is_deleted,
        case
            when is_finished then coalesce(completed_at, finished_at)
            when is_gone then last_at + to_milliseconds(usual_ms)
        end as end_at
    from judged
"""
"""When each pod held its node, and how it ended.

Kubernetes' own record of start and completion counts. A finished pod without one ended when it was first seen finished,
and one that is gone while scrapes went on ended one scrape after it was last seen. (A completion time alone says
nothing: it is there as soon as one of several containers is done.)
"""

_CONTAINERS = f"""
    with told as (
        select
            pod_number,
            starts_with(metric, 'init') as is_init,
            contains(metric, 'limits') as is_limit,
            coalesce({own("container")}, '') as container,
            coalesce(labels['resource'], split_part(metric, '/', 2)) as resource,
            arg_max(value, last_at) as amount
        from ksm_known
        where regexp_matches(metric, '^(init_)?(requests|limits)')
        group by all
    ),

    -- What a container may use at most and asks nothing for, it holds: Kubernetes takes the limit for the request.
    held as (
        select pod_number, is_init, container, resource,
            coalesce(max(amount) filter (not is_limit), max(amount)) as amount
        from told group by all
    ),

    containers as (
        select pod_number, is_init, container,
            map_from_entries(list({{'key': resource, 'value': cast(amount as varchar)}} order by resource)) as resources
        from held group by all
    )

    select
        pod_number,
        coalesce(list(resources order by container) filter (not is_init), []) as containers,
        coalesce(list(resources order by container) filter (is_init), []) as init_containers
    from containers
    group by pod_number
"""

_PLACES = """
    select file, {place} as place, arg_max(labels, last_at) as labels
    from ksm_facts where metric = '{metric}' group by all
"""


def _pairs(labels: str, prefix: str = "") -> str:
    """Kubernetes labels out of a series' labels, as entries of a map."""
    chosen = f"list_filter(map_entries({labels}), lambda e: starts_with(e.key, 'label_'))"
    return (
        f"coalesce(list_transform({chosen}, lambda e: {{'key': {literal(prefix)} || e.key[7:], 'value': e.value}}), [])"
    )


_GROUP = ", ".join(f"nullif(n.labels['label_{name}'], '')" for name in NODE_GROUPS)
_SKIP = first_reason(
    (
        "l.start_at is not null and l.is_finished and l.completed_at is null and l.was_finished_before",
        literal("finished before the first scrape of the file"),
    ),
    ("l.start_at is null", literal("not started")),
)

_FIELDS = f"""
    select
        l.file,
        l.line,
        true as is_object,
        l.namespace,
        l.pod,
        l.uid,
        l.node,
        l.kind,
        l.owner,
        cast(l.created_at as varchar) as created,
        cast(l.start_at as varchar) as started,
        cast(l.end_at as varchar) as ended,
        case when l.is_deleted and l.reason is not null then 'Failed' else l.phase end as phase,
        coalesce(l.reason, case when l.is_deleted then {literal(DELETED)} end) as reason,
        u.cpu_cores,
        u.memory_bytes,
        u.sent_bytes,
        nullif(l.pod_labels['label_apportion_io_user'], '') as user_label,
        nullif(l.pod_labels['label_user'], '') as plain_user_label,
        coalesce(nullif(l.pod_labels['label_node_group'], ''), {_GROUP}) as node_group,
        nullif(l.pod_labels['label_checkpoint_minutes'], '') as checkpoint,
        coalesce(
            nullif(l.annotations['annotation_gpu_fraction'], ''), nullif(l.pod_labels['label_gpu_fraction'], '')
        ) as gpu_fraction,
        case
            when r.pod_number is not null or gpu_fraction is not null then to_json({{
                'containers': coalesce(r.containers, []),
                'init_containers': coalesce(r.init_containers, []),
                'gpu_replicas': nullif(n.labels['label_nvidia_com_gpu_replicas'], ''),
                'gpu_fraction': gpu_fraction,
                'gpu_fraction_num_devices': nullif(l.annotations['annotation_gpu_fraction_num_devices'], '')
            }})
        end as requests,
        {_pairs("l.pod_labels")} || {_pairs("s.labels", "namespace/")} as pairs,
        case when pairs <> [] then to_json(map_from_entries(pairs)) end as labels,
        l.as_of_at as as_of,
        {_SKIP} as skip
    from ksm_lives as l
    left join ({_CONTAINERS}) as r using (pod_number)
    left join ksm_usage as u using (pod_number)
    left join ({_PLACES.format(place=own("namespace"), metric="namespace_labels")}) as s
        on s.file = l.file and s.place = l.namespace
    left join ({_PLACES.format(place=own("node"), metric="node_labels")}) as n on n.file = l.file and n.place = l.node
"""

POD_FIELDS = f"select * exclude (gpu_fraction, pairs) from ({_FIELDS})"
