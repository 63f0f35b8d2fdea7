-- One row a run: its configuration, its figures, and what they are against its neighbours'.
-- :sweep names the sweep whose points are wanted; NULL: every run in the store.
WITH
named AS MATERIALIZED (
  SELECT
    result, point_id, family, layers * hidden * hidden AS size, model, precision, seq_length, ranks, batch_size, checkpointing,
    provenance, emulated, device_name, steady_tokens_per_s, steady_tokens_per_s_low, steady_tokens_per_s_high, cold_tokens_per_s_low,
    cold_tokens_per_s_high, cold_tokens_per_s, step_median_ns, step_p95_ns, step_cv,
    times_measured, steady_min_tokens_per_s, steady_max_tokens_per_s, campaign, machine, trainer, version,
    planned_peak_bytes, rss_peak_bytes, planned_parameters_bytes, planned_gradients_bytes, planned_optimizer_bytes,
    planned_activations_bytes, planned_workspace_bytes, planned_logits_bytes, message, environment, command,
    all_steps_ns, warmup_steps, steps, repeats, device_peak_bytes, observed_peak_bytes, device_bytes, device_bytes_kind, cores_others_share, cores_throttles,
    gpu_throttled_share, gpu_others, gpu_ecc_uncorrected,
    too_few,
    CASE provenance WHEN 'published' THEN evidence ->> '$.source' END AS source,
    CASE provenance WHEN 'predicted' THEN CAST(evidence ->> '$.first_ns' AS REAL) END AS first_ns,
    CASE provenance WHEN 'predicted' THEN evidence ->> '$.first_from' END AS first_from,
    CASE provenance WHEN 'predicted' THEN evidence ->> '$.basis' END AS basis,
    -- Runs are compared only where all this is the same.
    json_array(provenance, emulated, device_name, campaign, machine, version, setup, seed) AS alike,
    status = 'ok' AS ok,
    -- Everything that changes a step's work but the two axes compared here; what is usual is left unsaid.
    model_words
      || ', ' || format
      || ', sequence ' || seq_length
      || step_words
      || ranks_words
      || place_words AS panel,
    CASE checkpointing
      WHEN 'none' THEN 'no activation checkpointing'
      WHEN 'selective' THEN 'selective activation checkpointing'
      WHEN 'full' THEN 'full activation checkpointing'
      ELSE 'activation checkpointing ' || checkpointing
    END AS policy_words,
    policy_rank,
    failure,
    out_of_memory, wanted_bytes, available_bytes
  FROM runs
  LEFT JOIN spreads USING (point_id, setup, device_name, provenance, emulated)
  WHERE :sweep IS NULL
     OR (point_id, setup) IN (SELECT point_id, setup FROM sweep_cells WHERE sweep = :sweep)
),
-- What a run is compared with: no activation checkpointing at the same batch; …
-- (SQLite takes the columns beside a lone min() from the row that has it.)
no_checkpointing AS (
  SELECT
    panel, batch_size, alike, min(step_median_ns) AS none_step_ns, result AS none_result,
    device_bytes AS none_device_bytes, device_bytes_kind AS none_device_kind
  FROM named
  WHERE ok AND checkpointing = 'none'
  GROUP BY panel, batch_size, alike
),
-- … that one's plan, the same whether it was run, predicted, or did not fit; …
plans AS (
  SELECT panel, batch_size, min(coalesce(planned_peak_bytes, wanted_bytes)) AS none_peak_bytes
  FROM named
  WHERE checkpointing = 'none' AND provenance <> 'published'
  GROUP BY panel, batch_size
),
-- … and the same policy at its smallest batch.
firsts AS (
  SELECT
    panel, checkpointing, alike, min(printf('%08d %s', batch_size, point_id)) AS rank,
    result AS first_result, batch_size AS first_batch,
    steady_tokens_per_s AS first_steady_tokens_per_s, cold_tokens_per_s AS first_cold_tokens_per_s,
    planned_peak_bytes AS first_planned_peak_bytes
  FROM named
  WHERE ok
  GROUP BY panel, checkpointing, alike
),
sources_of AS (
  SELECT panel, group_concat(source, '; ') AS sources
  FROM (SELECT panel, source, min(result) FROM named WHERE source IS NOT NULL GROUP BY panel, source ORDER BY min(result))
  GROUP BY panel
),
figured AS (
  SELECT
    *,
    batch_size = first_batch AS is_first,
    CASE WHEN ok AND checkpointing <> 'none'
         THEN 100.0 * (step_median_ns - none_step_ns) / none_step_ns END AS recompute_overhead_percent,
    -- Of a trainer that plans nothing, what was measured.
    CASE WHEN ok AND checkpointing <> 'none' AND provenance <> 'published'
         THEN coalesce(100.0 * (none_peak_bytes - planned_peak_bytes) / none_peak_bytes,
                       iif(device_bytes_kind = none_device_kind, 100.0 * (none_device_bytes - device_bytes) / none_device_bytes, NULL))
       END AS memory_saved_percent,
    CASE WHEN planned_peak_bytes IS NULL THEN 'measured' ELSE 'planned' END AS memory_kind
  FROM named
  LEFT JOIN no_checkpointing USING (panel, batch_size, alike)
  LEFT JOIN plans USING (panel, batch_size)
  LEFT JOIN firsts USING (panel, checkpointing, alike)
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
  result, panel, model, precision, seq_length, ranks, checkpointing, batch_size, 'batch ' || batch_size AS batch,
  source, first_ns, first_from, basis,
  iif(ranks > 1, steady_tokens_per_s / ranks, NULL) AS rank_steady_tokens_per_s,
  iif(ranks > 1, cold_tokens_per_s / ranks, NULL) AS rank_cold_tokens_per_s,
  -- As others publish it: where somebody did.
  iif(max(provenance = 'published') OVER (PARTITION BY panel), cold_tokens_per_s / ranks, NULL) AS as_published,
  cold_tokens_per_s_low / ranks AS as_published_low, cold_tokens_per_s_high / ranks AS as_published_high,
  sources,
  failure, coalesce(failure, 'ok') AS outcome, out_of_memory, wanted_bytes, available_bytes,
  steady_tokens_per_s, cold_tokens_per_s, step_median_ns, step_p95_ns, step_cv,
  times_measured, steady_min_tokens_per_s, steady_max_tokens_per_s,
  recompute_overhead_percent, memory_saved_percent,
  CASE WHEN recompute_overhead_percent IS NOT NULL THEN batch_size END AS compared_batch,
  CASE WHEN ok THEN is_first END AS is_first,
  CASE WHEN ok THEN steady_tokens_per_s / first_steady_tokens_per_s END AS speedup,
  CASE WHEN ok THEN cold_tokens_per_s / first_cold_tokens_per_s END AS cold_speedup,
  memory_kind,
  iif(memory_saved_percent IS NULL, '',
      replace(printf(' and saves %.1f %% of the %s memory', memory_saved_percent, memory_kind), '-', '−'))
    AS and_saves,
  iif(memory_saved_percent IS NULL, '',
      replace(printf(' It saves %.1f %% of the %s memory.', memory_saved_percent, memory_kind), '-', '−'))
    AS it_saves,
  policy_words, first_batch, first_steady_tokens_per_s, first_planned_peak_bytes,
  planned_peak_bytes, rss_peak_bytes, device_peak_bytes, observed_peak_bytes AS observed_bytes,
  too_few, max(ok) OVER (PARTITION BY panel) AS any_ok,
  cores_others_share, cores_throttles, cores_others_share > 0.05 OR cores_throttles > 0 AS disturbed,
  gpu_throttled_share, gpu_others, gpu_ecc_uncorrected, gpu_throttled_share > 0.05 AS gpu_throttled, gpu_others > 0 AS gpu_shared,
  planned_parameters_bytes AS parameters_bytes, planned_gradients_bytes AS gradients_bytes,
  planned_optimizer_bytes AS optimizer_bytes, planned_activations_bytes AS activations_bytes,
  planned_workspace_bytes AS workspace_bytes, planned_logits_bytes AS logits_bytes,
  planned_peak_bytes - coalesce(planned_parameters_bytes, 0) - coalesce(planned_gradients_bytes, 0)
    - coalesce(planned_optimizer_bytes, 0) - coalesce(planned_activations_bytes, 0)
    - coalesce(planned_workspace_bytes, 0) - coalesce(planned_logits_bytes, 0) AS other_bytes,
  provenance, emulated, device_name, message, point_id, campaign, machine, trainer, version, environment, command,
  result, none_result, first_result, all_steps_ns, warmup_steps, steps, repeats
FROM figured
LEFT JOIN sources_of USING (panel)
LEFT JOIN forecasts USING (result)
ORDER BY family, size, model, precision, seq_length, panel, batch_size, policy_rank, point_id
