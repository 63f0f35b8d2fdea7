-- One row a measured run of which there is a prediction: how far off that was. Of runs that were profiled, one row an op
-- beside: the mean of what it took in their steps.
-- :sweep names the sweep whose points are wanted; NULL: every run in the store.
-- A run that others disturbed has its row, and no part in any mean or rank.
-- A prediction as another trainer than the run's says nothing of it.
WITH
predicted AS (
  SELECT
    point_id, trainer, ifnull(setup ->> '$.trainer[0]', 'ridgeline-train') AS program,
    setup ->> '$.predicted_on' AS predicted_on, step_median_ns AS step_ns, steady_tokens_per_s,
    planned_peak_bytes, CAST(evidence ->> '$.step_low_ns' AS REAL) AS low_ns,
    CAST(evidence ->> '$.step_high_ns' AS REAL) AS high_ns, evidence ->> '$.op_ns' AS op_ns
  FROM runs
  WHERE provenance = 'predicted' AND status = 'ok' AND step_median_ns > 0
),
audited AS MATERIALIZED (
  SELECT
    m.result, m.point_id, m.model, m.family, m.format, m.precision, m.checkpointing, m.batch_size, m.seq_length, m.ranks,
    m.shard, m.provenance, m.emulated, m.device_name, m.campaign, m.machine, m.trainer, m.version, m.environment,
    m.command, m.step_median_ns, m.all_steps_ns, m.warmup_steps, m.steps, m.repeats, m.steady_tokens_per_s,
    m.cores_others_share, m.disturbed_by_others IS NOT NULL AS disturbed, m.planned_peak_bytes,
    p.predicted_on, p.step_ns AS predicted_ns, p.low_ns AS predicted_ns_low, p.high_ns AS predicted_ns_high,
    p.steady_tokens_per_s AS predicted_tokens_per_s, p.planned_peak_bytes AS predicted_peak_bytes,
    100 * (1.0 * p.step_ns / m.step_median_ns - 1) AS error_percent,
    100 * abs(1.0 * p.step_ns / m.step_median_ns - 1) AS off_percent,
    m.step_median_ns BETWEEN p.low_ns AND p.high_ns AS held,
    iif(json_valid(m.evidence ->> '$.op_ns'), m.evidence ->> '$.op_ns', '{}') AS op_ns,
    iif(json_valid(p.op_ns), p.op_ns, '{}') AS predicted_op_ns,
    'Predicted on ' || ifnull(p.predicted_on, 'an unknown device') AS panel
  FROM runs AS m JOIN predicted AS p USING (point_id)
  WHERE m.provenance = 'measured' AND m.status = 'ok' AND m.step_median_ns > 0
    AND (m.trainer = p.trainer OR m.setup ->> '$.trainer[0]' = p.program)
    AND (:sweep IS NULL
         OR (m.point_id, m.setup) IN (SELECT s.point_id, ifnull(s.setup, w.setup)
                                      FROM sweep_points AS s JOIN sweeps AS w ON w.name = s.sweep WHERE s.sweep = :sweep))
),
-- In order of what was off, so that the ninth of ten is a row.
placed AS (
  SELECT
    *, count(*) FILTER (WHERE NOT disturbed) OVER every AS points,
    iif(disturbed, NULL, row_number() OVER (PARTITION BY panel, disturbed ORDER BY off_percent, result)) AS place,
    avg(off_percent) FILTER (WHERE NOT disturbed) OVER every AS mean_off_percent,
    avg(error_percent) FILTER (WHERE NOT disturbed) OVER every AS bias_percent,
    100.0 * avg(held) FILTER (WHERE NOT disturbed) OVER every AS held_percent,
    avg(error_percent) FILTER (WHERE NOT disturbed) OVER of_format AS format_bias_percent,
    avg(off_percent) FILTER (WHERE NOT disturbed) OVER of_format AS format_off_percent
  FROM audited
  WINDOW every AS (PARTITION BY panel), of_format AS (PARTITION BY panel, format)
),
-- Kendall's tau of throughput, of panels that are few enough to hold every pair against each other.
ranked AS (
  SELECT a.panel,
    sum(CASE WHEN (a.steady_tokens_per_s - b.steady_tokens_per_s) * (a.predicted_tokens_per_s - b.predicted_tokens_per_s) > 0
             THEN 1.0
             WHEN (a.steady_tokens_per_s - b.steady_tokens_per_s) * (a.predicted_tokens_per_s - b.predicted_tokens_per_s) < 0
             THEN -1.0 ELSE 0 END) / count(*) AS tau
  FROM placed AS a JOIN placed AS b ON a.panel = b.panel AND a.place < b.place
  WHERE a.points <= 1000
  GROUP BY a.panel
),
profiled AS MATERIALIZED (
  SELECT
    a.panel || ', by op' AS panel, a.step_median_ns AS step_ns, o.key AS op, CAST(o.value AS REAL) AS ns,
    CAST(q.value AS REAL) AS predicted_ns, a.emulated, a.device_name, a.trainer, a.version
  FROM audited AS a JOIN json_each(a.op_ns) AS o JOIN json_each(a.predicted_op_ns) AS q ON q.key = o.key
  WHERE NOT a.disturbed
),
ops AS (
  SELECT
    panel, op, avg(ns) AS ns, avg(predicted_ns) AS predicted_ns, count(*) AS points,
    100 * (sum(predicted_ns) / sum(ns) - 1) AS error_percent,
    100 * sum(abs(predicted_ns - ns)) / sum(ns) AS off_percent,
    100 * sum(ns) / sum(step_ns) AS share_percent,
    100 * sum(predicted_ns - ns) / sum(step_ns) AS of_step_percent,
    100 * (sum(sum(predicted_ns)) OVER every / sum(sum(ns)) OVER every - 1) AS all_bias_percent,
    100 * sum(sum(abs(predicted_ns - ns))) OVER every / sum(sum(ns)) OVER every AS all_off_percent,
    max(emulated) AS emulated, max(device_name) AS device_name, max(trainer) AS trainer, max(version) AS version
  FROM profiled
  GROUP BY panel, op
  HAVING sum(ns) > 0
  WINDOW every AS (PARTITION BY panel)
)
SELECT
  result, panel, point_id, model, family, format, precision, checkpointing, batch_size, seq_length, ranks, shard,
  model || ', batch ' || batch_size || ' x ' || seq_length || ', ' || format
    || CASE checkpointing WHEN 'none' THEN '' ELSE ', checkpointing ' || checkpointing END
    || CASE WHEN ranks > 1 THEN ', ' || ranks || ' ranks, shard ' || shard ELSE '' END AS run,
  CASE checkpointing WHEN 'none' THEN 'none' ELSE checkpointing END AS policy,
  step_median_ns, predicted_ns, predicted_ns_low, predicted_ns_high, error_percent, off_percent, held,
  steady_tokens_per_s, predicted_tokens_per_s, planned_peak_bytes, predicted_peak_bytes, points,
  place = (9 * points + 9) / 10 AS is_p90, place = points AS is_worst, mean_off_percent, bias_percent, held_percent,
  format_bias_percent, format_off_percent, tau, all_steps_ns, warmup_steps, steps, repeats, cores_others_share,
  step_median_ns / 1e6 AS measured_ms, predicted_ns / 1e6 AS predicted_ms, predicted_ns_low / 1e6 AS predicted_ms_low,
  predicted_ns_high / 1e6 AS predicted_ms_high, 'of steps' AS kind, NULL AS op_off_percent, NULL AS op_share_percent,
  NULL AS op_of_step_percent, NULL AS op_place,
  NULL AS failure, provenance, emulated, device_name, campaign, machine, trainer, version, environment, command
FROM placed LEFT JOIN ranked USING (panel)
UNION ALL
SELECT
  NULL, panel, NULL, NULL, NULL, 'all ops', NULL, NULL, NULL, NULL, NULL, NULL, op, 'all ops', ns, predicted_ns, NULL, NULL,
  error_percent, off_percent, NULL, NULL, NULL, NULL, NULL, points, NULL, NULL, NULL, NULL, NULL, all_bias_percent,
  all_off_percent, NULL, NULL, NULL, NULL, NULL, NULL, ns / 1e6, predicted_ns / 1e6, NULL, NULL, 'of ops',
  off_percent, share_percent, of_step_percent,
  row_number() OVER (PARTITION BY panel ORDER BY abs(of_step_percent) DESC, op), NULL, 'measured', emulated, device_name,
  NULL, NULL, trainer, version, NULL, NULL
FROM ops
ORDER BY panel, op_place, family, model, format, checkpointing, ranks, shard, batch_size, seq_length, result
