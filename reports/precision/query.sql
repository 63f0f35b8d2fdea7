-- One row a run: its precision, its figures, and what they are against bf16's.
-- :sweep names the sweep whose points are wanted; NULL: every run in the store.
WITH
named AS MATERIALIZED (
  SELECT
    result, point_id, family, layers * hidden * hidden AS size, model, precision, seq_length, ranks, batch_size,
    provenance, emulated, device_name, steady_tokens_per_s, steady_tokens_per_s_low, steady_tokens_per_s_high, cold_tokens_per_s_low,
    cold_tokens_per_s_high, cold_tokens_per_s, step_median_ns, step_cv,
    campaign, machine, trainer, version, planned_peak_bytes, rss_peak_bytes, planned_parameters_bytes, planned_gradients_bytes,
    planned_optimizer_bytes, planned_activations_bytes, planned_workspace_bytes, planned_logits_bytes, message,
    environment, command, status = 'ok' AS ok, all_steps_ns, warmup_steps, steps, repeats, device_peak_bytes, observed_peak_bytes, device_bytes, device_bytes_kind,
    cores_others_share, cores_throttles,
    gpu_throttled_share, gpu_others, gpu_ecc_uncorrected,
    out_of_memory, too_few,
    -- Runs are compared only where all this is the same; their plans, whatever of it.
    json_array(provenance, device_name, campaign, machine, version, setup, seed) AS alike,
    format,
    -- The widest first.
    CASE precision WHEN 'fp32' THEN 0 WHEN 'tf32' THEN 1 WHEN 'bf16' THEN 2 WHEN 'fp16' THEN 3 WHEN 'fp8' THEN 4
                   WHEN 'mxfp8' THEN 5 WHEN 'nvfp4' THEN 6 ELSE 7 END AS format_rank,
    -- Everything that changes a step's work but the precision and the batch; what is usual is left unsaid.
    model_words
      || ', sequence ' || seq_length
      || CASE checkpointing WHEN 'none' THEN '' ELSE ', checkpointing ' || checkpointing END
      || step_words
      || ranks_words
      || place_words AS panel,
    failure,
    wanted_bytes
  FROM runs
  WHERE :sweep IS NULL
     OR (point_id, setup) IN (SELECT point_id, setup FROM sweep_cells WHERE sweep = :sweep)
),
-- What a run is compared with: bf16 at the same batch. Its speed only where neither is emulated: an emulated run's says
-- nothing about its format. (SQLite takes the columns beside a lone min() from the row that has it.)
bf16 AS (
  SELECT
    panel, batch_size, alike, min(step_median_ns) AS bf16_step_ns, result AS bf16_result,
    device_bytes AS bf16_device_bytes, device_bytes_kind AS bf16_device_kind
  FROM named
  WHERE ok AND format = 'bf16' AND emulated = 0
  GROUP BY panel, batch_size, alike
),
-- Its memory always: the plan is the format's.
bf16_plans AS (
  SELECT panel, batch_size, min(planned_peak_bytes) AS bf16_peak_bytes
  FROM named
  WHERE format = 'bf16' AND provenance <> 'published'
  GROUP BY panel, batch_size
),
-- The formats of a panel that were not emulated, where there are several, all alike: those rank.
ranks_of AS (
  SELECT panel
  FROM named
  WHERE ok AND emulated = 0
  GROUP BY panel
  HAVING count(DISTINCT format) > 1 AND count(DISTINCT alike) = 1
),
emulated_of AS (
  SELECT panel, group_concat(format, '; ') AS emulated_formats
  FROM (SELECT panel, format FROM named WHERE ok AND emulated = 1 GROUP BY panel, format_rank, format
        ORDER BY panel, format_rank, format)
  GROUP BY panel
),
figured AS (
  SELECT
    *,
    CASE WHEN ok AND emulated = 0 AND format <> 'bf16'
         THEN CAST(bf16_step_ns AS REAL) / step_median_ns END AS bf16_speedup,
    -- Of a trainer that plans nothing, what was measured.
    CASE WHEN ok AND format <> 'bf16' AND provenance <> 'published'
         THEN coalesce(100.0 * (planned_peak_bytes - bf16_peak_bytes) / bf16_peak_bytes,
                       iif(device_bytes_kind = bf16_device_kind, 100.0 * (device_bytes - bf16_device_bytes) / bf16_device_bytes, NULL))
       END AS bf16_memory_percent,
    CASE WHEN planned_peak_bytes IS NULL THEN 'measured' ELSE 'planned' END AS memory_kind
  FROM named
  LEFT JOIN bf16 USING (panel, batch_size, alike)
  LEFT JOIN bf16_plans USING (panel, batch_size)
  LEFT JOIN emulated_of USING (panel)
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
  result, panel, model, seq_length, ranks, format, precision, batch_size, 'batch ' || batch_size AS batch, failure,
  coalesce(failure, 'ok') AS outcome, ok, wanted_bytes, steady_tokens_per_s, cold_tokens_per_s, step_median_ns, step_cv,
  bf16_speedup, bf16_memory_percent,
  CASE WHEN bf16_memory_percent IS NOT NULL
       THEN printf('%.1f %% %s %s memory', abs(bf16_memory_percent),
                   CASE WHEN bf16_memory_percent < 0 THEN 'less' ELSE 'more' END, memory_kind) END AS bf16_memory_words,
  iif(bf16_memory_percent IS NULL, '',
      printf(' It takes %.1f %% %s %s memory.', abs(bf16_memory_percent),
             CASE WHEN bf16_memory_percent < 0 THEN 'less' ELSE 'more' END, memory_kind)) AS it_takes,
  out_of_memory, too_few, max(ok) OVER (PARTITION BY panel) AS any_ok, bf16_result, all_steps_ns, warmup_steps, steps, repeats,
  CASE WHEN ok AND emulated = 0 AND panel IN (SELECT panel FROM ranks_of)
       THEN steady_tokens_per_s END AS ranked_tokens_per_s,
  emulated_formats,
  planned_peak_bytes, rss_peak_bytes, device_peak_bytes, observed_peak_bytes AS observed_bytes,
  planned_parameters_bytes AS parameters_bytes, planned_gradients_bytes AS gradients_bytes,
  planned_optimizer_bytes AS optimizer_bytes, planned_activations_bytes AS activations_bytes,
  planned_workspace_bytes AS workspace_bytes, planned_logits_bytes AS logits_bytes,
  planned_peak_bytes - planned_parameters_bytes - coalesce(planned_gradients_bytes, 0)
    - coalesce(planned_optimizer_bytes, 0) - coalesce(planned_activations_bytes, 0)
    - coalesce(planned_workspace_bytes, 0) - coalesce(planned_logits_bytes, 0) AS other_bytes,
  cores_others_share, cores_throttles, cores_others_share > 0.05 OR cores_throttles > 0 AS disturbed,
  gpu_throttled_share, gpu_others, gpu_ecc_uncorrected, gpu_throttled_share > 0.05 AS gpu_throttled, gpu_others > 0 AS gpu_shared,
  provenance, emulated, device_name, message, point_id, campaign, machine, trainer, version, environment, command
FROM figured
LEFT JOIN forecasts USING (result)
ORDER BY family, size, model, seq_length, panel, batch_size, format_rank, format, point_id
