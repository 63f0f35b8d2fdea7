-- One row a run: what its batch gives over the smallest one of its policy, and from which batch on more buys little.
-- :sweep names the sweep whose points are wanted; NULL: every run in the store.
WITH
named AS MATERIALIZED (
  SELECT
    result, point_id, family, layers * hidden * hidden AS size, model, precision, seq_length, batch_size, checkpointing,
    provenance, emulated, device_name, campaign, machine, trainer, version, message, environment, command, failure,
    steady_tokens_per_s, steady_tokens_per_s_low, steady_tokens_per_s_high, cold_tokens_per_s_low,
    cold_tokens_per_s_high, cold_tokens_per_s, step_median_ns, step_cv, planned_peak_bytes, rss_peak_bytes,
    device_peak_bytes, all_steps_ns, warmup_steps, steps, repeats, cores_others_share, cores_throttles,
    gpu_throttled_share,
    -- Runs are compared only where all this is the same.
    json_array(provenance, emulated, device_name, campaign, machine, version, setup, seed) AS alike,
    status = 'ok' AS ok,
    out_of_memory, too_few, wanted_bytes,
    -- Everything that changes a step's work but its batch and its policy.
    model_words || ', ' || format || ', sequence ' || seq_length || step_words || ranks_words || place_words AS panel,
    CASE checkpointing WHEN 'none' THEN 'no activation checkpointing'
                       ELSE 'activation checkpointing ' || checkpointing END AS policy_words,
    policy_rank
  FROM runs
  WHERE :sweep IS NULL
     OR (point_id, setup) IN (SELECT point_id, setup FROM sweep_cells WHERE sweep = :sweep)
),
-- What a run is compared with: the same policy at its smallest batch.
-- (SQLite takes the columns beside a lone min() from the row that has it.)
firsts AS (
  SELECT
    panel, checkpointing, alike, min(printf('%08d %s', batch_size, point_id)) AS rank, result AS first_result,
    batch_size AS first_batch, steady_tokens_per_s AS first_tokens_per_s, planned_peak_bytes AS first_peak_bytes
  FROM named
  WHERE ok
  GROUP BY panel, checkpointing, alike
),
bests AS (
  SELECT panel, checkpointing, alike, max(steady_tokens_per_s) AS best_tokens_per_s
  FROM named
  WHERE ok
  GROUP BY panel, checkpointing, alike
),
-- The smallest batch that has nearly all of what the best one has.
enough AS (
  SELECT panel, checkpointing, alike, min(batch_size) AS enough_batch
  FROM named
  JOIN bests USING (panel, checkpointing, alike)
  WHERE ok AND steady_tokens_per_s >= 0.95 * best_tokens_per_s
  GROUP BY panel, checkpointing, alike
)
SELECT
  predicted_steady_tokens_per_s, predicted_steady_tokens_per_s_low, predicted_steady_tokens_per_s_high,
  predicted_cold_tokens_per_s, predicted_cold_tokens_per_s_low, predicted_cold_tokens_per_s_high, predicted_peak_bytes,
  steady_difference_percent, cold_difference_percent, memory_difference_percent, predicted_as, predicted_on,
  predicted_basis, steady_off_percent, cold_off_percent, memory_off_percent, ok AND provenance <> 'predicted' AND forecast IS NULL AS unsupported,
  sum(ok AND provenance <> 'predicted' AND forecast IS NULL) OVER (PARTITION BY panel) AS unsupported_runs,
  sum(ok AND forecast IS NOT NULL) OVER (PARTITION BY panel) AS compared_runs,
  sum(ok AND provenance <> 'predicted') OVER (PARTITION BY panel) AS comparable_runs,
  steady_tokens_per_s_low, steady_tokens_per_s_high, cold_tokens_per_s_low, cold_tokens_per_s_high,
  result, panel, model, precision, seq_length, checkpointing, batch_size,
  'batch ' || batch_size || ', ' || checkpointing AS run, policy_words,
  failure, coalesce(failure, 'ok') AS outcome, ok, out_of_memory, too_few, max(ok) OVER (PARTITION BY panel) AS any_ok,
  steady_tokens_per_s, cold_tokens_per_s, step_median_ns, step_cv,
  first_batch, batch_size > first_batch AS is_more, first_tokens_per_s, first_peak_bytes, first_result,
  CASE WHEN ok THEN steady_tokens_per_s / first_tokens_per_s END AS speedup,
  -- Of a sequence more than the smallest batch, what it costs.
  CASE WHEN ok AND batch_size > first_batch
       THEN (planned_peak_bytes - first_peak_bytes) / (batch_size - first_batch) END AS bytes_a_sequence,
  enough_batch, ok AND batch_size = enough_batch AS is_enough,
  enough_batch < max(iif(ok, batch_size, NULL)) OVER (PARTITION BY panel, checkpointing, alike) AS flattens,
  planned_peak_bytes, rss_peak_bytes, device_peak_bytes, wanted_bytes, cores_others_share, cores_throttles,
  cores_others_share > 0.05 OR cores_throttles > 0 AS disturbed, gpu_throttled_share,
  provenance, emulated, device_name, message, point_id, campaign, machine, trainer, version, environment, command,
  all_steps_ns, warmup_steps, steps, repeats
FROM named
LEFT JOIN forecasts USING (result)
LEFT JOIN firsts USING (panel, checkpointing, alike)
LEFT JOIN enough USING (panel, checkpointing, alike)
ORDER BY family, size, model, precision, seq_length, panel, policy_rank, batch_size, point_id
