"""What a run of some days would scan on BigQuery and cost, worked out from compiled queries and table sizes."""
