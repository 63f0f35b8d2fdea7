-- One row a run, beside the runs of the same work by others: campaigns, commits, launchers, devices, trainers.
-- :sweep names the sweep whose points are wanted; NULL: every run in the store.
WITH
named AS MATERIALIZED (
  SELECT
    r.result, r.point_id, r.family, r.layers * r.hidden * r.hidden AS size, r.model, r.precision, r.seq_length,
    r.batch_size, r.checkpointing, r.ranks, r.provenance, r.emulated, r.device_name, r.campaign, r.machine, r.trainer,
    r.version, r.environment ->> '$.git_commit' AS git_commit, coalesce(j.launcher, '') AS launcher, r.message,
    r.environment, r.command, r.failure,
    r.status = 'ok' AS ok, r.steady_tokens_per_s, r.step_median_ns, r.step_cv, r.planned_peak_bytes, r.rss_peak_bytes,
    r.device_peak_bytes, r.all_steps_ns, r.warmup_steps, r.steps, r.repeats, r.cores_others_share, r.cores_throttles,
    r.started_unix_ns,
    -- The work itself, whoever does it.
    model_words || ', ' || format || ', batch ' || r.batch_size || ' of ' || r.seq_length
      || CASE r.checkpointing WHEN 'none' THEN '' ELSE ', checkpointing ' || r.checkpointing END || step_words
      || ranks_words AS panel
  FROM runs AS r
  LEFT JOIN jobs AS j ON j.key = r.job_key
  WHERE :sweep IS NULL
     OR (r.point_id, r.setup) IN (SELECT point_id, setup FROM sweep_cells WHERE sweep = :sweep)
),
sides AS (
  SELECT
    *,
    ltrim(iif(min(campaign) OVER work <> max(campaign) OVER work, ', ' || campaign, '')
          || iif(min(git_commit) OVER work <> max(git_commit) OVER work, ', ' || substr(git_commit, 1, 7), '')
          || iif(min(device_name) OVER work <> max(device_name) OVER work, ', ' || device_name, '')
          || iif(min(launcher) OVER work <> max(launcher) OVER work, ', ' || launcher, '')
          || iif(min(trainer) OVER work <> max(trainer) OVER work, ', ' || trainer, ''), ', ') AS said,
    first_value(result) OVER first AS first_result,
    first_value(steady_tokens_per_s) OVER first AS first_tokens_per_s,
    count(*) OVER work AS runs_of_work
  FROM named
  WINDOW
    work AS (PARTITION BY panel),
    -- What the others are compared with: the first that was measured and ended well.
    first AS (PARTITION BY panel ORDER BY ok DESC, started_unix_ns, result)
)
SELECT
  result, panel, model, precision, seq_length, batch_size, checkpointing, ranks, iif(said = '', campaign, said) AS side,
  git_commit, launcher, failure, coalesce(failure, 'ok') AS outcome, ok, steady_tokens_per_s, step_median_ns, step_cv,
  result = first_result AS is_first, iif(result = first_result, NULL, first_result) AS compared_result,
  iif(ok AND result <> first_result, steady_tokens_per_s / first_tokens_per_s, NULL) AS ratio,
  first_value(iif(said = '', campaign, said)) OVER (PARTITION BY panel ORDER BY ok DESC, started_unix_ns, result) AS first_side,
  predicted_steady_tokens_per_s, predicted_steady_tokens_per_s_low, predicted_steady_tokens_per_s_high,
  predicted_cold_tokens_per_s, predicted_cold_tokens_per_s_low, predicted_cold_tokens_per_s_high, predicted_peak_bytes,
  steady_difference_percent, cold_difference_percent, memory_difference_percent, predicted_as, predicted_on,
  predicted_basis, steady_off_percent, cold_off_percent, memory_off_percent, ok AND provenance <> 'predicted' AND forecast IS NULL AS unsupported,
  sum(ok AND provenance <> 'predicted' AND forecast IS NULL) OVER (PARTITION BY panel) AS unsupported_runs,
  sum(ok AND forecast IS NOT NULL) OVER (PARTITION BY panel) AS compared_runs,
  sum(ok AND provenance <> 'predicted') OVER (PARTITION BY panel) AS comparable_runs,
  planned_peak_bytes, rss_peak_bytes, device_peak_bytes, cores_others_share,
  cores_others_share > 0.05 OR cores_throttles > 0 AS disturbed,
  provenance, emulated, device_name, message, point_id, campaign, machine, trainer, version, environment, command,
  all_steps_ns, warmup_steps, steps, repeats
FROM sides
LEFT JOIN forecasts USING (result)
-- Work that one run did has nothing beside it.
WHERE runs_of_work > 1
ORDER BY family, size, model, precision, seq_length, panel, started_unix_ns, result
