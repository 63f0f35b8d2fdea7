-- One row a run: its ranks, its figures, and what they are against those of the fewest ranks.
-- :sweep names the sweep whose points are wanted; NULL: every run in the store.
WITH
named AS MATERIALIZED (
  SELECT
    result, point_id, family, layers * hidden * hidden AS size, model, precision, seq_length, ranks, batch_size,
    communicator, provenance, emulated, device_name,
    -- Runs are compared only where all this is the same: of a setup what software it is, since cores and nodes grow with
    -- the ranks. Ranks on one machine share its cores, so the processor is told without them.
    json_array(provenance, emulated,
               CASE WHEN instr(device_name, ' (') > 0 THEN substr(device_name, 1, instr(device_name, ' (') - 1)
                    ELSE device_name END, campaign, version, seed, setup -> '$.kubernetes.image',
               setup -> '$.slurm.container', setup -> '$.slurm.modules') AS alike,
    steady_tokens_per_s_low, steady_tokens_per_s_high, cold_tokens_per_s_low,
    cold_tokens_per_s_high, steady_tokens_per_s, cold_tokens_per_s, step_median_ns, step_cv,
    campaign, machine, trainer, version, planned_peak_bytes, rss_peak_bytes, message, environment, command, status = 'ok' AS ok,
    all_steps_ns, warmup_steps, steps, repeats, device_peak_bytes, cores_others_share, cores_throttles,
    gpu_throttled_share, gpu_others, gpu_ecc_uncorrected,
    out_of_memory, too_few,
    communicator <> 'virtual' AS real,
    -- As predicted, or the mean over the ranks of a measured run.
    coalesce(CAST(evidence ->> '$.exposed_ns' AS REAL),
             (SELECT avg(CAST(value AS REAL))
              FROM json_each(iif(json_valid(evidence ->> '$.rank_wait_ns'), evidence ->> '$.rank_wait_ns', '[]')))
            ) AS exposed_ns,
    CAST(evidence ->> '$.communication_ns' AS REAL) AS communication_ns,
    CAST(evidence ->> '$.step_low_ns' AS REAL) AS step_least_ns, CAST(evidence ->> '$.step_high_ns' AS REAL) AS step_most_ns,
    CAST(evidence ->> '$.usd_per_billion_tokens' AS REAL) AS usd_per_billion_tokens,
    evidence ->> '$.basis' AS basis,
    CASE shard WHEN 'none' THEN 'replicated' WHEN 'full' THEN 'sharded' ELSE 'sharded ' || shard END
      || CASE communicator WHEN 'virtual' THEN ', virtual' ELSE '' END AS way,
    CASE shard WHEN 'none' THEN 0 WHEN 'optimizer' THEN 1 ELSE 2 END
      + CASE communicator WHEN 'virtual' THEN 3 ELSE 0 END AS way_rank,
    -- Everything that changes a rank's work but how parameters are shared; what is usual is left unsaid.
    model_words
      || ', ' || format
      || ', batch ' || batch_size || ' of ' || seq_length || ' a rank'
      || CASE checkpointing WHEN 'none' THEN '' ELSE ', checkpointing ' || checkpointing END
      || parallel_words
      || step_words
      || place_words AS panel,
    failure
  FROM runs
  WHERE :sweep IS NULL
     OR (point_id, setup) IN (SELECT point_id, setup FROM sweep_cells WHERE sweep = :sweep)
     -- What is predicted of its points, on whichever device.
     OR (setup ->> '$.predicted_on' IS NOT NULL AND point_id IN (SELECT point_id FROM sweep_points WHERE sweep = :sweep))
),
-- What a run is compared with: the fewest ranks of its panel that are alike; where those ran in several ways, the way
-- that shares least. Of virtual ranks one is there, which moves no bytes: its speed says nothing of how ranks scale.
-- (SQLite takes the columns beside a lone min() from the row that has it.)
firsts AS (
  SELECT
    panel, alike, min(printf('%08d %d %s', ranks, way_rank, point_id)) AS rank, result AS first_result,
    ranks AS first_ranks, steady_tokens_per_s AS first_tokens_per_s
  FROM named
  WHERE ok AND real
  GROUP BY panel, alike
),
figured AS (
  SELECT
    *,
    CASE WHEN ok AND real THEN steady_tokens_per_s / first_tokens_per_s END AS speedup,
    CASE WHEN ok AND real
         THEN 100.0 * (steady_tokens_per_s / ranks) / (first_tokens_per_s / first_ranks) END AS efficiency_percent
  FROM named
  LEFT JOIN firsts USING (panel, alike)
  -- A panel of one number of ranks says nothing of scaling.
  WHERE panel IN (SELECT panel FROM named GROUP BY panel HAVING count(DISTINCT ranks) > 1)
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
  result, panel, model, precision, seq_length, batch_size, ranks, way, communicator,
  ranks || CASE WHEN ranks = 1 AND real THEN ' rank' WHEN ranks = 1 THEN ' rank, ' || way
                ELSE ' ranks, ' || way END AS run,
  first_ranks || CASE WHEN first_ranks = 1 THEN ' rank' ELSE ' ranks' END AS first_words,
  failure, coalesce(failure, 'ok') AS outcome, ok, ranks > first_ranks AS is_more,
  steady_tokens_per_s, cold_tokens_per_s, steady_tokens_per_s / ranks AS rank_tokens_per_s, speedup, efficiency_percent,
  step_median_ns, step_median_ns / 1e6 AS step_ms, step_cv, step_least_ns, step_most_ns, exposed_ns, 100.0 * exposed_ns / step_median_ns AS exposed_percent,
  CASE WHEN ranks = 1 THEN 0 WHEN exposed_ns BETWEEN 0 AND step_median_ns THEN exposed_ns / 1e6 END AS exposed_ms,
  CASE WHEN ranks = 1 THEN step_median_ns / 1e6
       WHEN exposed_ns BETWEEN 0 AND step_median_ns THEN (step_median_ns - exposed_ns) / 1e6 END AS working_ms,
  communication_ns, usd_per_billion_tokens, basis, provenance = 'predicted' AND ok AS is_predicted, planned_peak_bytes, rss_peak_bytes, device_peak_bytes,
  out_of_memory, too_few, max(ok) OVER (PARTITION BY panel) AS any_ok, first_result, all_steps_ns, warmup_steps, steps,
  repeats, cores_others_share, cores_throttles, cores_others_share > 0.05 OR cores_throttles > 0 AS disturbed,
  gpu_throttled_share, gpu_others, gpu_ecc_uncorrected, gpu_throttled_share > 0.05 AS gpu_throttled, gpu_others > 0 AS gpu_shared,
  provenance, emulated, device_name, message, point_id, campaign, machine, trainer, version, environment, command
FROM figured
LEFT JOIN forecasts USING (result)
ORDER BY family, size, model, precision, seq_length, panel, way_rank, ranks, point_id
