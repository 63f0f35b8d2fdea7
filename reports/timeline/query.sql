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
    -- Evidence is whatever a trainer wrote.
    iif(json_valid(r.evidence ->> '$.rank_step_ns'), r.evidence ->> '$.rank_step_ns', NULL) AS rank_step_ns,
    iif(json_valid(r.evidence ->> '$.rank_wait_ns'), r.evidence ->> '$.rank_wait_ns', NULL) AS rank_wait_ns,
    model_words || ', ' || format || ', sequence ' || seq_length || step_words || ranks_words || place_words AS panel,
    'batch ' || r.batch_size || CASE r.checkpointing WHEN 'none' THEN '' ELSE ', ' || r.checkpointing END AS run
  FROM runs AS r
  LEFT JOIN jobs AS j ON j.key = r.job_key
  WHERE r.status <> 'skipped_predicted_oom'
    AND (:sweep IS NULL
         OR (r.point_id, r.setup) IN (SELECT point_id, setup FROM sweep_cells WHERE sweep = :sweep))
),
-- What each rank of a run took for a step without waiting for the others, where it says so: the most is the straggler's.
ranks AS MATERIALIZED (
  SELECT
    n.result, s.key AS rank, s.value - w.value AS work_ns, w.value * 1.0 / s.value AS wait_share,
    row_number() OVER (PARTITION BY n.result ORDER BY s.value - w.value DESC, s.key) AS place
  FROM named AS n, json_each(n.rank_step_ns) AS s JOIN json_each(n.rank_wait_ns) AS w ON w.key = s.key
  WHERE n.rank_wait_ns IS NOT NULL
),
stragglers AS (
  SELECT
    result, json_group_array(work_ns / 1e6) AS rank_work_ms, max(iif(place = 1, rank, NULL)) AS straggler,
    max(work_ns) AS straggler_ns, max(work_ns) * count(*) * 1.0 / nullif(sum(work_ns), 0) AS straggler_factor,
    avg(wait_share) AS wait_share
  FROM (SELECT * FROM ranks ORDER BY result, rank)
  GROUP BY result
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
  rank_work_ms, straggler, 'rank ' || straggler AS slowest_rank, straggler_ns, straggler_factor, wait_share,
  launcher, cores_others_share, cores_throttles, cores_others_share > 0.05 OR cores_throttles > 0 AS disturbed,
  gpu_throttled_share, provenance, emulated, device_name, message, point_id, campaign, machine, trainer, version,
  environment, command
FROM named LEFT JOIN stragglers USING (result)
ORDER BY model, precision, seq_length, panel, batch_size, checkpointing, point_id
