-- One row a run: its steps' times one after the other, and how long it waited before.
-- :sweep names the sweep whose points are wanted; NULL: every run in the store.
WITH
named AS (
  SELECT
    r.result, r.point_id, r.model, r.precision, r.seq_length, r.batch_size, r.checkpointing, r.ranks, r.provenance,
    r.emulated, r.device_name, r.campaign, r.machine, r.trainer, r.version, r.message, r.environment, r.command,
    r.failure, r.status, r.all_steps_ns, r.warmup_steps, r.steps, r.repeats, r.step_median_ns, r.step_p95_ns, r.step_cv,
    r.cores_others_share, r.cores_throttles, r.gpu_throttled_share, r.started_unix_ns, r.ended_unix_ns,
    j.submitted_unix_ns, j.started_unix_ns AS job_started_unix_ns, j.launcher,
    model_words || ', ' || format || ', sequence ' || seq_length || step_words || ranks_words || place_words AS panel,
    'batch ' || r.batch_size || CASE r.checkpointing WHEN 'none' THEN '' ELSE ', ' || r.checkpointing END AS run
  FROM runs AS r
  LEFT JOIN jobs AS j ON j.key = r.job_key
  WHERE r.status <> 'skipped_predicted_oom'
    AND (:sweep IS NULL
         OR (r.point_id, r.setup) IN (SELECT s.point_id, ifnull(s.setup, w.setup)
                                      FROM sweep_points AS s JOIN sweeps AS w ON w.name = s.sweep
                                      WHERE s.sweep = :sweep))
)
SELECT
  result, panel, model, precision, seq_length, batch_size, checkpointing, ranks, run, failure,
  coalesce(failure, 'ok') AS outcome, status = 'ok' AS ok,
  iif(all_steps_ns = '[]', NULL, (SELECT json_group_array(value / 1e6) FROM json_each(all_steps_ns))) AS step_ms,
  step_median_ns, step_p95_ns, step_cv, all_steps_ns ->> '$[0]' AS first_step_ns,
  (SELECT max(value) FROM json_each(all_steps_ns) WHERE key >= warmup_steps) AS slowest_step_ns,
  (SELECT 1 + key FROM json_each(all_steps_ns) WHERE key >= warmup_steps ORDER BY value DESC LIMIT 1) AS slowest_step,
  (SELECT max(value) FROM json_each(all_steps_ns) WHERE key >= warmup_steps) * 1.0 / step_median_ns AS slowest_factor,
  job_started_unix_ns - submitted_unix_ns AS waited_ns, ended_unix_ns - started_unix_ns AS ran_ns,
  (job_started_unix_ns - submitted_unix_ns) / 1e9 AS waited_s, (ended_unix_ns - started_unix_ns) / 1e9 AS ran_s,
  launcher, cores_others_share, cores_throttles, cores_others_share > 0.05 OR cores_throttles > 0 AS disturbed,
  gpu_throttled_share, provenance, emulated, device_name, message, point_id, campaign, machine, trainer, version,
  environment, command
FROM named
ORDER BY model, precision, seq_length, panel, batch_size, checkpointing, point_id
