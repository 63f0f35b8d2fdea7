-- One row a point of a sweep, in the sweep's order, measured or not.
-- :sweep names the sweep; NULL: all of them.
-- Of the view what is needed alone, and long texts last: a join to its left builds it anew for this query.
WITH measured_now AS MATERIALIZED (
  SELECT
    result, point_id, setup, status, failure, provenance, emulated, device_name, steady_tokens_per_s, step_median_ns,
    planned_peak_bytes, rss_peak_bytes, device_peak_bytes, campaign, machine, trainer, version, warmup_steps, steps, repeats
  FROM runs
)
SELECT
  r.result, s.sweep || iif(ifnull(w.description, '') = '', '', ': ' || w.description) AS panel, s.sweep, s.ordinal + 1 AS place,
  p.model, p.precision, p.seq_length, p.batch_size, p.checkpointing, p.ranks,
  p.model || ', ' || p.precision || ', batch ' || p.batch_size || ' of ' || p.seq_length
    || CASE p.checkpointing WHEN 'none' THEN '' ELSE ', checkpointing ' || p.checkpointing END
    || CASE WHEN p.ranks > 1 THEN ', ' || p.ranks || ' ranks' ELSE '' END
    || iif(p.tensor_parallel > 1, ', TP ' || p.tensor_parallel || iif(p.sequence_parallel, '', ', no SP'), '')
    || iif(p.pipeline_parallel > 1, ', PP ' || p.pipeline_parallel, '')
    || iif(p.context_parallel > 1, ', CP ' || p.context_parallel, '')
    || iif(p.expert_parallel > 1, ', EP ' || p.expert_parallel, '')
    || iif(p.virtual_pipeline > 1, ', VP ' || p.virtual_pipeline, '') AS point,
  coalesce(r.failure, iif(r.result IS NULL, 'not measured yet', NULL)) AS failure,
  coalesce(r.failure, iif(r.result IS NULL, 'not measured yet', 'ok')) AS outcome,
  r.status = 'ok' AS ok,
  r.steady_tokens_per_s, r.step_median_ns, r.planned_peak_bytes, r.rss_peak_bytes, r.device_peak_bytes,
  predicted_steady_tokens_per_s, predicted_steady_tokens_per_s_low, predicted_steady_tokens_per_s_high,
  predicted_cold_tokens_per_s, predicted_cold_tokens_per_s_low, predicted_cold_tokens_per_s_high, predicted_peak_bytes,
  steady_difference_percent, cold_difference_percent, memory_difference_percent, predicted_as, predicted_on,
  predicted_basis, steady_off_percent, cold_off_percent, memory_off_percent,
  r.status = 'ok' AND r.provenance <> 'predicted' AND forecast IS NULL AS unsupported,
  sum(r.status = 'ok' AND r.provenance <> 'predicted' AND forecast IS NULL) OVER (PARTITION BY s.sweep) AS unsupported_runs,
  sum(r.status = 'ok' AND forecast IS NOT NULL) OVER (PARTITION BY s.sweep) AS compared_runs,
  sum(r.status = 'ok' AND r.provenance <> 'predicted') OVER (PARTITION BY s.sweep) AS comparable_runs,
  sum(r.status = 'ok') OVER (PARTITION BY s.sweep) AS ok_points, count(*) OVER (PARTITION BY s.sweep) AS all_points,
  sum(r.result IS NULL) OVER (PARTITION BY s.sweep) AS unmeasured, sum(r.failure IS NOT NULL) OVER (PARTITION BY s.sweep) AS failed_points,
  coalesce(r.provenance, 'measured') AS provenance, coalesce(r.emulated, 0) AS emulated, r.device_name, x.message,
  s.point_id, r.campaign, r.machine, r.trainer, r.version, e.environment, x.command,
  x.all_steps_ns, r.warmup_steps, r.steps, r.repeats
FROM sweep_points AS s
JOIN sweeps AS w ON w.name = s.sweep
JOIN points AS p ON p.id = s.point_id
LEFT JOIN measured_now AS r ON r.point_id = s.point_id AND r.setup = ifnull(s.setup, w.setup)
LEFT JOIN forecasts AS f ON f.result = r.result
LEFT JOIN results AS x ON x.number = r.result
LEFT JOIN environments AS e ON e.id = x.environment_id
WHERE :sweep IS NULL OR s.sweep = :sweep
ORDER BY w.created_unix_ns DESC, s.sweep, s.ordinal
