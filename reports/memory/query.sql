-- One row a run, or a prediction: where its planned peak of memory goes, by model.
-- :sweep names the sweep whose points are wanted; NULL: every run in the store.
WITH
named AS MATERIALIZED (
  SELECT
    result, point_id, family, layers * hidden * hidden AS size, model, format, seq_length, batch_size, checkpointing,
    ranks, parameters, provenance, emulated, device_name, campaign, machine, trainer, version, message, environment,
    command,
    -- What was not run as it does not fit here has its plan all the same.
    CASE WHEN status = 'skipped_predicted_oom' AND planned_peak_bytes IS NOT NULL THEN NULL ELSE failure END AS failure,
    planned_peak_bytes, rss_peak_bytes, device_peak_bytes, observed_peak_bytes, planned_parameters_bytes,
    planned_gradients_bytes, planned_optimizer_bytes, planned_activations_bytes, planned_workspace_bytes,
    planned_logits_bytes,
    status = 'ok' AS ok,
    out_of_memory, wanted_bytes, available_bytes,
    model_words || ', ' || format || ', batch ' || batch_size
      || CASE checkpointing WHEN 'none' THEN '' ELSE ', checkpointing ' || checkpointing END AS run,
    -- What models are compared at: the same sequence, ranks and place.
    'Sequence ' || seq_length || step_words || ranks_words || place_words AS panel,
    policy_rank
  FROM runs
  WHERE :sweep IS NULL
     OR (point_id, setup) IN (SELECT point_id, setup FROM sweep_cells WHERE sweep = :sweep)
)
SELECT
  result, panel, model, format, checkpointing, batch_size, seq_length, ranks, run,
  format || CASE checkpointing WHEN 'none' THEN '' ELSE ', ' || checkpointing END || ', batch ' || batch_size AS way,
  parameters, failure, coalesce(failure, iif(ok, 'ok', 'planned, not run')) AS outcome, ok, out_of_memory, wanted_bytes, available_bytes,
  planned_peak_bytes, planned_peak_bytes * 1.0 / parameters AS bytes_a_parameter, rss_peak_bytes, device_peak_bytes,
  observed_peak_bytes AS observed_bytes,
  planned_parameters_bytes AS parameters_bytes, planned_gradients_bytes AS gradients_bytes,
  planned_optimizer_bytes AS optimizer_bytes, planned_activations_bytes AS activations_bytes,
  planned_workspace_bytes AS workspace_bytes, planned_logits_bytes AS logits_bytes,
  planned_peak_bytes - coalesce(planned_parameters_bytes, 0) - coalesce(planned_gradients_bytes, 0)
    - coalesce(planned_optimizer_bytes, 0) - coalesce(planned_activations_bytes, 0)
    - coalesce(planned_workspace_bytes, 0) - coalesce(planned_logits_bytes, 0) AS other_bytes,
  100.0 * planned_activations_bytes / planned_peak_bytes AS activations_percent,
  100.0 * (coalesce(planned_parameters_bytes, 0) + coalesce(planned_gradients_bytes, 0)
           + coalesce(planned_optimizer_bytes, 0)) / planned_peak_bytes AS state_percent,
  max(planned_peak_bytes IS NOT NULL) OVER (PARTITION BY panel) AS any_planned,
  provenance, emulated, device_name, message, point_id, campaign, machine, trainer, version, environment, command
FROM named
ORDER BY seq_length, panel, size, model, format, policy_rank, batch_size, point_id
