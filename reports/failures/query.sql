-- One row an attempt that did not end ok, also where a later one did: how, where, and the proof.
-- :sweep names the sweep whose points are wanted; NULL: every result in the store.
WITH
ended AS (
  SELECT
    r.*, p.model, p.precision, p.seq_length, p.checkpointing, p.batch_size, p.ranks, p.tensor_parallel,
    p.sequence_parallel, p.pipeline_parallel, p.context_parallel, p.expert_parallel, p.virtual_pipeline, e.environment, e.machine,
    e.version, j.launcher, j.native_id,
    iif(p.trainer = 'ridgeline', (SELECT group_concat(value, ' ') FROM json_each(r.setup, '$.trainer')), p.trainer)
      AS trainer,
    r.status || iif(r.status = 'infrastructure', ' (' || r.reason || ')', '') AS end,
    (SELECT l.status FROM latest AS l WHERE l.point_id = r.point_id AND l.setup = r.setup) AS latest
  FROM results AS r
  JOIN points AS p ON p.id = r.point_id
  LEFT JOIN environments AS e ON e.id = r.environment_id
  LEFT JOIN jobs AS j ON j.key = r.job_key
  WHERE r.status <> 'ok'
    AND (:sweep IS NULL
         OR (r.point_id, r.setup) IN (SELECT point_id, setup FROM sweep_cells WHERE sweep = :sweep))
)
SELECT
  number AS result,
  CASE status
    WHEN 'oom_device' THEN 'Out of the device''s memory'
    WHEN 'oom_host' THEN 'Out of the host''s memory'
    WHEN 'skipped_predicted_oom' THEN 'Predicted out of memory, not run'
    WHEN 'timeout' THEN 'Past the time limit'
    WHEN 'infrastructure' THEN 'Infrastructure: ' || reason
    WHEN 'diverged' THEN 'Diverged'
    WHEN 'crashed' THEN 'Crashed'
    WHEN 'invalid' THEN 'No valid result'
    WHEN 'cancelled' THEN 'Cancelled'
    ELSE status END AS panel,
  model || ', ' || precision || ', batch ' || batch_size || ' of ' || seq_length
    || CASE checkpointing WHEN 'none' THEN '' ELSE ', checkpointing ' || checkpointing END
    || CASE WHEN ranks > 1 THEN ', ' || ranks || ' ranks' ELSE '' END
    || iif(tensor_parallel > 1, ', TP ' || tensor_parallel || iif(sequence_parallel, '', ', no SP'), '')
    || iif(pipeline_parallel > 1, ', PP ' || pipeline_parallel, '')
    || iif(context_parallel > 1, ', CP ' || context_parallel, '')
    || iif(expert_parallel > 1, ', EP ' || expert_parallel, '')
    || iif(virtual_pipeline > 1, ', VP ' || virtual_pipeline, '') AS point,
  model, precision, seq_length, batch_size, checkpointing, ranks,
  end AS failure, status, reason, attempt, message, hint,
  CASE WHEN latest = 'ok' THEN 'measured since' WHEN latest = status THEN 'stands' ELSE latest END AS since,
  evidence ->> '$.node' AS node, launcher, native_id AS job,
  CAST(evidence ->> '$.wanted_bytes' AS INTEGER) AS wanted_bytes,
  CAST(evidence ->> '$.available_bytes' AS INTEGER) AS available_bytes,
  evidence ->> '$.exit_code' AS exit_code, evidence ->> '$.signal' AS signal,
  nullif(json_remove(evidence, '$.log_tail', '$.node', '$.wanted_bytes', '$.available_bytes', '$.exit_code', '$.signal'),
         '{}') AS evidence,
  evidence ->> '$.log_tail' AS log_tail,
  count(*) OVER () AS all_failures, count(*) OVER (PARTITION BY status, reason) AS alike,
  count(*) OVER (PARTITION BY status, reason, evidence ->> '$.node') AS alike_on_node,
  datetime(ended_unix_ns / 1000000000, 'unixepoch') || ' UTC' AS ended,
  provenance, emulated, device_name, point_id, campaign, machine, trainer, version, environment, command
FROM ended
ORDER BY CASE status WHEN 'infrastructure' THEN 1 ELSE 0 END, panel, ended_unix_ns DESC, number DESC
