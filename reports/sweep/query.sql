-- One row a point of a sweep, in the sweep's order, measured or not.
-- :sweep names the sweep; NULL: all of them.
SELECT
  r.result, s.sweep || iif(ifnull(w.description, '') = '', '', ': ' || w.description) AS panel, s.sweep, s.ordinal + 1 AS place,
  p.model, p.precision, p.seq_length, p.batch_size, p.checkpointing, p.ranks,
  p.model || ', ' || p.precision || ', batch ' || p.batch_size || ' of ' || p.seq_length
    || CASE p.checkpointing WHEN 'none' THEN '' ELSE ', checkpointing ' || p.checkpointing END
    || CASE WHEN p.ranks > 1 THEN ', ' || p.ranks || ' ranks' ELSE '' END AS point,
  coalesce(r.failure, iif(r.result IS NULL, 'not measured yet', NULL)) AS failure,
  coalesce(r.failure, iif(r.result IS NULL, 'not measured yet', 'ok')) AS outcome,
  r.status = 'ok' AS ok,
  r.steady_tokens_per_s, r.step_median_ns, r.planned_peak_bytes, r.rss_peak_bytes, r.device_peak_bytes,
  sum(r.status = 'ok') OVER (PARTITION BY s.sweep) AS ok_points, count(*) OVER (PARTITION BY s.sweep) AS all_points,
  sum(r.result IS NULL) OVER (PARTITION BY s.sweep) AS unmeasured, sum(r.failure IS NOT NULL) OVER (PARTITION BY s.sweep) AS failed_points,
  coalesce(r.provenance, 'measured') AS provenance, coalesce(r.emulated, 0) AS emulated, r.device_name, r.message,
  s.point_id, r.campaign, r.machine, r.trainer, r.version, r.environment, r.command,
  r.all_steps_ns, r.warmup_steps, r.steps, r.repeats
FROM sweep_points AS s
JOIN sweeps AS w ON w.name = s.sweep
JOIN points AS p ON p.id = s.point_id
LEFT JOIN runs AS r ON r.point_id = s.point_id AND r.setup = ifnull(s.setup, w.setup)
WHERE :sweep IS NULL OR s.sweep = :sweep
ORDER BY w.created_unix_ns DESC, s.sweep, s.ordinal
