-- One row a run, or a prediction: which batch and sequence fit, a map for each model, format and policy.
-- :sweep names the sweep whose points are wanted; NULL: every run in the store.
WITH
named AS (
  SELECT
    result, point_id, family, layers * hidden * hidden AS size, model, format, checkpointing, seq_length, batch_size,
    status = 'ok' AS ok, out_of_memory, failure,
    planned_peak_bytes, rss_peak_bytes, device_peak_bytes,
    coalesce(device_bytes, planned_peak_bytes, rss_peak_bytes) AS peak_bytes,
    wanted_bytes, available_bytes,
    steady_tokens_per_s, provenance, emulated, device_name, campaign, machine, trainer, version, message, environment,
    command,
    model_words || ', ' || format
      || CASE checkpointing WHEN 'none' THEN ', no activation checkpointing'
                            ELSE ', activation checkpointing ' || checkpointing END
      || step_words || ranks_words || place_words AS panel,
    policy_rank
  FROM runs
  WHERE :sweep IS NULL
     OR (point_id, setup) IN (SELECT point_id, setup FROM sweep_cells WHERE sweep = :sweep)
     -- What is predicted of its points, on whichever device.
     OR (setup ->> '$.predicted_on' IS NOT NULL AND point_id IN (SELECT point_id FROM sweep_points WHERE sweep = :sweep))
)
SELECT
  result, panel, model, format, checkpointing, batch_size, seq_length, batch_size * seq_length AS tokens,
  'batch ' || batch_size || ' of ' || seq_length AS run, failure, coalesce(failure, 'ok') AS outcome, ok, out_of_memory,
  max(ok) OVER (PARTITION BY panel) AS any_ok, peak_bytes, planned_peak_bytes, rss_peak_bytes, device_peak_bytes,
  wanted_bytes, available_bytes, steady_tokens_per_s, provenance, emulated, device_name, message, point_id, campaign,
  machine, trainer, version, environment, command
FROM named
ORDER BY family, size, model, format, policy_rank, panel, seq_length, batch_size, point_id
