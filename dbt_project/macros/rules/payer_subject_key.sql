{#
    The key under which `int_payers` knows somebody who uses something: pass the columns that the record has, in
    SQL. A job says cluster, account, user, namespace and labels; a stored path says account, user and path; a
    seat says account and user; a bill line says its tags.
#}
{% macro payer_subject_key(cluster_id="null", account="null", user_name="null", namespace="null", path="null", labels="null", tags="null") -%}
    {{ text_of([cluster_id, account, user_name, namespace, path, labels, tags]) }}
{%- endmacro %}
