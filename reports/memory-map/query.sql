-- One row a run, or a prediction: which batch and sequence fit, a map for each model, format and policy.
-- :sweep names the sweep whose points are wanted; NULL: every run in the store.
WITH
named AS (
  SELECT
    result, point_id, family, layers * hidden * hidden AS size, model, format, checkpointing, seq_length, batch_size,
    status = 'ok' AS ok, status IN ('oom_device', 'oom_host', 'skipped_predicted_oom') AS out_of_memory, failure,
    planned_peak_bytes, rss_peak_bytes, device_peak_bytes,
    coalesce(device_peak_bytes, planned_peak_bytes, rss_peak_bytes) AS peak_bytes,
    CASE WHEN status IN ('oom_device', 'oom_host', 'skipped_predicted_oom')
         THEN coalesce(CAST(evidence ->> '$.wanted_bytes' AS INTEGER), planned_peak_bytes) END AS wanted_bytes,
    CASE WHEN status IN ('oom_device', 'oom_host', 'skipped_predicted_oom')
         THEN CAST(evidence ->> '$.available_bytes' AS INTEGER) END AS available_bytes,
    steady_tokens_per_s, provenance, emulated, device_name, campaign, machine, trainer, version, message, environment,
    command,
    model_words || ', ' || format
      || CASE checkpointing WHEN 'none' THEN ', no activation checkpointing'
                            ELSE ', activation checkpointing ' || checkpointing END
      || step_words || ranks_words || place_words AS panel,
    CASE checkpointing WHEN 'none' THEN 0 WHEN 'selective' THEN 1 WHEN 'full' THEN 2
                       ELSE 2 + CAST(substr(checkpointing, 6) AS INTEGER) END AS policy_rank
  FROM runs
  WHERE :sweep IS NULL
     OR (point_id, setup) IN (SELECT s.point_id, ifnull(s.setup, w.setup)
                              FROM sweep_points AS s JOIN sweeps AS w ON w.name = s.sweep WHERE s.sweep = :sweep)
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
