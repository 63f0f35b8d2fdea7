-- One row a run: its throughput and its peak memory, and whether another is as quick in no more memory.
-- :sweep names the sweep whose points are wanted, with what is predicted of them; NULL: every run in the store.
WITH
named AS MATERIALIZED (
  SELECT
    result, point_id, family, layers * hidden * hidden AS size, model, format, precision, seq_length, batch_size,
    grad_accumulation, checkpointing, ranks, shard, provenance, emulated, device_name, campaign, machine, trainer,
    version, message, environment, command, failure, steady_tokens_per_s, cold_tokens_per_s, step_median_ns, all_steps_ns,
    warmup_steps, steps, repeats, planned_peak_bytes, rss_peak_bytes, device_peak_bytes,
    -- Runs are compared only where all this is the same.
    json_array(provenance, emulated, device_name, campaign, machine, version, setup) AS alike,
    status = 'ok' AS ok,
    coalesce(device_bytes, planned_peak_bytes, rss_peak_bytes,
             CAST(evidence ->> '$.wanted_bytes' AS INTEGER)) AS peak_bytes,
    -- What is trained, and on what; how is what is chosen among.
    model_words || ', sequence ' || seq_length || CASE WHEN ranks > 1 THEN ', ' || ranks || ' ranks' ELSE '' END || parallel_words
      || place_words AS panel,
    CASE checkpointing WHEN 'none' THEN 'no activation checkpointing'
                       ELSE 'activation checkpointing ' || checkpointing END AS policy_words,
    CASE checkpointing WHEN 'none' THEN 0 WHEN 'selective' THEN 1 WHEN 'full' THEN 2
                       ELSE 2 + CAST(substr(checkpointing, 6) AS INTEGER) END AS policy_rank
  FROM runs
  WHERE :sweep IS NULL
     OR (point_id, setup) IN (SELECT s.point_id, ifnull(s.setup, w.setup)
                              FROM sweep_points AS s JOIN sweeps AS w ON w.name = s.sweep WHERE s.sweep = :sweep)
     OR (setup ->> '$.predicted_on' IS NOT NULL AND point_id IN (SELECT point_id FROM sweep_points WHERE sweep = :sweep))
),
-- Of those before it in order of memory, none is as quick as one of the front.
ranked AS (
  SELECT
    result,
    max(steady_tokens_per_s) OVER (PARTITION BY panel, alike ORDER BY peak_bytes, steady_tokens_per_s DESC, point_id
                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS quickest_below
  FROM named
  WHERE ok AND steady_tokens_per_s > 0 AND peak_bytes > 0
),
judged AS (
  SELECT named.*, CASE WHEN ranked.result IS NULL THEN NULL
                       ELSE quickest_below IS NULL OR steady_tokens_per_s > quickest_below END AS is_front
  FROM named LEFT JOIN ranked USING (result)
)
SELECT
  result, panel, model, format, precision, seq_length, batch_size, grad_accumulation, checkpointing, ranks, shard,
  policy_words,
  'batch ' || batch_size || ', ' || format || CASE WHEN grad_accumulation > 1 THEN ', accumulation ' || grad_accumulation ELSE '' END
    || CASE WHEN shard <> 'none' THEN ', sharded' ELSE '' END AS run,
  'batch ' || batch_size || ' in ' || format || ', ' || policy_words AS run_words,
  failure, coalesce(failure, 'ok') AS outcome, ok, is_front, 1 - is_front AS is_dominated,
  sum(is_front) OVER (PARTITION BY panel) AS fronts, sum(1 - is_front) OVER (PARTITION BY panel) AS dominated,
  max(ok) OVER (PARTITION BY panel) AS any_ok,
  steady_tokens_per_s, cold_tokens_per_s, step_median_ns, all_steps_ns, warmup_steps, steps, repeats, peak_bytes,
  planned_peak_bytes, rss_peak_bytes, device_peak_bytes,
  provenance, emulated, device_name, message, point_id, campaign, machine, trainer, version, environment, command
FROM judged
-- A panel of one run leaves nothing to choose.
WHERE panel IN (SELECT panel FROM named GROUP BY panel HAVING count(DISTINCT point_id) > 1)
ORDER BY family, size, model, seq_length, ranks, panel, provenance, policy_rank, format, batch_size, point_id
