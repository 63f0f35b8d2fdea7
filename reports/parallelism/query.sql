-- One row a run: how its ranks share the model, its figures, and what they are against those of the plainest split.
-- :sweep names the sweep whose points are wanted; NULL: every run in the store.
WITH
named AS MATERIALIZED (
  SELECT
    result, point_id, family, layers * hidden * hidden AS size, model, precision, seq_length, ranks, batch_size,
    grad_accumulation, checkpointing, tensor_parallel, sequence_parallel, pipeline_parallel, virtual_pipeline,
    context_parallel, expert_parallel, shard, shard_ranks, communicator, provenance, emulated, device_name,
    -- Runs are compared only where all this is the same.
    json_array(provenance, emulated, device_name, campaign, version, seed, setup -> '$.kubernetes.image',
               setup -> '$.slurm.container', setup -> '$.slurm.modules') AS alike,
    steady_tokens_per_s_low, steady_tokens_per_s_high, steady_tokens_per_s, step_median_ns, step_cv,
    campaign, machine, trainer, version, planned_peak_bytes, rss_peak_bytes, device_peak_bytes, message, environment,
    command, status = 'ok' AS ok, all_steps_ns, warmup_steps, steps, repeats, cores_others_share, cores_throttles,
    gpu_throttled_share, gpu_others, gpu_ecc_uncorrected, out_of_memory, wanted_bytes, too_few, disturbed_by_others,
    communicator <> 'virtual' AS real,
    CAST(evidence ->> '$.exposed_ns' AS REAL) AS exposed_ns,
    evidence ->> '$.basis' AS basis,
    -- Ranks with rows of their own, and the sequences of all of them in a step.
    ranks / (tensor_parallel * pipeline_parallel * context_parallel) AS data_parallel,
    batch_size * grad_accumulation * (ranks / (tensor_parallel * pipeline_parallel * context_parallel)) AS global_batch,
    CASE shard WHEN 'none' THEN 0 WHEN 'optimizer' THEN 1 WHEN 'gradients' THEN 2 ELSE 3 END AS shard_rank,
    substr(replace(parallel_words, ', shards of ' || shard_ranks, ''), 3) AS shared,
    model_words || ', ' || format || ', sequences of ' || seq_length
      || replace(step_words, ', accumulation ' || grad_accumulation, '') || place_words AS work,
    failure
  FROM runs
  WHERE :sweep IS NULL
     OR (point_id, setup) IN (SELECT point_id, setup FROM sweep_cells WHERE sweep = :sweep)
     -- What is predicted of its points, on whichever device.
     OR (setup ->> '$.predicted_on' IS NOT NULL AND point_id IN (SELECT point_id FROM sweep_points WHERE sweep = :sweep))
),
splits AS MATERIALIZED (
  SELECT
    *,
    -- Only a step with as many sequences does the same work.
    work || ', ' || ranks || ' ranks, ' || global_batch || CASE global_batch WHEN 1 THEN ' sequence' ELSE ' sequences' END
      || ' a step' AS panel,
    -- With one data-parallel rank there is nothing to split.
    CASE WHEN data_parallel = 1 THEN coalesce(nullif(shared, ''), 'one rank')
         ELSE CASE shard WHEN 'none' THEN 'replicated' WHEN 'full' THEN 'sharded' ELSE 'sharded ' || shard END
              || iif(shard_ranks > 0, ' over ' || shard_ranks, '') || iif(shared = '', '', ' with ' || shared) END
      || CASE communicator WHEN 'virtual' THEN ', virtual' ELSE '' END AS split,
    -- The same for charts, which have less room: what ranks share but for shards, and the field `shard`.
    coalesce(nullif(shared, ''), 'no TP') AS together,
    iif(data_parallel = 1, 'one copy', shard || iif(shard_ranks > 0, ' over ' || shard_ranks, ''))
      || CASE communicator WHEN 'virtual' THEN ', virtual' ELSE '' END AS shards,
    coalesce(planned_peak_bytes, device_peak_bytes) AS memory_bytes
  FROM named
  WHERE ranks > 1
),
-- The runs whose throughput is compared, each with those that are alike.
placed AS MATERIALIZED (
  SELECT
    result AS placed_result, panel AS placed_panel, alike AS placed_alike, split AS placed_split,
    steady_tokens_per_s AS placed_tokens_per_s,
    row_number() OVER fastest_first AS place,
    first_value(split) OVER fastest_first AS best_split,
    max(too_few) OVER (PARTITION BY panel, alike) AS any_too_few,
    max(disturbed_by_others IS NOT NULL) OVER (PARTITION BY panel, alike) AS any_disturbed,
    -- The split that shares the least, and where that has several runs, the one of the largest batch without recomputation.
    row_number() OVER (PARTITION BY panel, alike
                       ORDER BY tensor_parallel * pipeline_parallel * context_parallel, shard_rank,
                                shard_ranks > 0, checkpointing <> 'none', batch_size DESC, result) AS plainness,
    row_number() OVER (PARTITION BY panel, alike ORDER BY memory_bytes, result) AS least_place,
    memory_bytes AS placed_bytes
  FROM splits
  WHERE ok AND real AND steady_tokens_per_s IS NOT NULL
  WINDOW fastest_first AS (PARTITION BY panel, alike ORDER BY steady_tokens_per_s DESC, result)
),
-- The fastest runs of other splits than the fastest. A split may have several runs, of other batches for instance.
rivals AS MATERIALIZED (
  SELECT
    placed_result AS rival_result, placed_panel AS rival_panel, placed_alike AS rival_alike, placed_split AS rival_split,
    placed_tokens_per_s AS rival_tokens_per_s,
    row_number() OVER (PARTITION BY placed_panel, placed_alike ORDER BY place) AS rival_place
  FROM placed
  WHERE placed_split <> best_split
),
figured AS (
  SELECT
    splits.*,
    first.placed_result AS first_result, first.placed_split AS first_words,
    CASE WHEN ok AND real THEN steady_tokens_per_s / first.placed_tokens_per_s END AS speedup,
    own.place, own.least_place = 1 AND own.placed_bytes IS NOT NULL AS is_least,
    own.any_too_few, own.any_disturbed,
    -- Runs of a race of several splits.
    CASE WHEN own.place IS NOT NULL AND second.rival_result IS NOT NULL THEN provenance END AS race,
    best.placed_result AS best_result, best.placed_split AS best_words,
    split <> best.placed_split AS is_rival,
    CASE WHEN split <> best.placed_split AND own.place IS NOT NULL
         THEN 100 * (steady_tokens_per_s / best.placed_tokens_per_s - 1) END AS behind_percent,
    second.rival_result AS second_result, second.rival_split AS second_words,
    CASE WHEN own.place = 1 THEN steady_tokens_per_s / second.rival_tokens_per_s END AS lead
  FROM splits
  LEFT JOIN placed AS first ON first.placed_panel = panel AND first.placed_alike = alike AND first.plainness = 1
  LEFT JOIN placed AS best ON best.placed_panel = panel AND best.placed_alike = alike AND best.place = 1
  LEFT JOIN rivals AS second ON second.rival_panel = panel AND second.rival_alike = alike AND second.rival_place = 1
  LEFT JOIN placed AS own ON own.placed_result = result
  -- A panel of one split says nothing of which to take.
  WHERE panel IN (SELECT panel FROM splits GROUP BY panel HAVING count(DISTINCT split) > 1)
)
SELECT
  predicted_steady_tokens_per_s, predicted_steady_tokens_per_s_low, predicted_steady_tokens_per_s_high,
  predicted_peak_bytes, steady_difference_percent, memory_difference_percent, predicted_as, predicted_on,
  predicted_basis, steady_off_percent, memory_off_percent,
  ok AND provenance <> 'predicted' AND forecast IS NULL AS unsupported,
  sum(ok AND provenance <> 'predicted' AND forecast IS NULL) OVER (PARTITION BY panel) AS unsupported_runs,
  sum(ok AND forecast IS NOT NULL) OVER (PARTITION BY panel) AS compared_runs,
  sum(ok AND provenance <> 'predicted') OVER (PARTITION BY panel) AS comparable_runs,
  steady_tokens_per_s_low, steady_tokens_per_s_high, result, panel, model, precision, seq_length, ranks, data_parallel,
  global_batch, batch_size, grad_accumulation, checkpointing, tensor_parallel, sequence_parallel, pipeline_parallel,
  virtual_pipeline, context_parallel, expert_parallel, shard, shard_ranks, communicator, split, together, shards,
  iif(together = 'no TP', '', together || ', ') || shards AS brief, first_words,
  second_words, failure, coalesce(failure, 'ok') AS outcome, ok,
  steady_tokens_per_s, steady_tokens_per_s / ranks AS rank_tokens_per_s, speedup, lead, place,
  race, best_result, best_words, is_rival, behind_percent, place = 1 AND second_result IS NOT NULL AS is_best,
  -- Without an interval, a run may be as fast as the fastest.
  NOT any_too_few AS all_compared,
  -- Others slowed a run of the race, so nobody knows which is the fastest.
  place = 1 AND second_result IS NOT NULL AND NOT any_disturbed AS is_known_best,
  is_least AND split <> best_words AS is_least_of_others,
  ltrim(iif(place = 1 AND NOT any_disturbed, ', most tokens/s', '') || iif(is_least, ', least memory', ''), ', ') AS mark,
  -- Published steps were predicted about 10 % wrong on average (docs/prediction-accuracy.md), so a smaller predicted lead
  -- says nothing.
  lead >= 1.1 AS leads_clearly,
  step_median_ns, step_cv, exposed_ns, 100.0 * exposed_ns / step_median_ns AS exposed_percent, basis,
  provenance = 'predicted' AND ok AS is_predicted, memory_bytes, planned_peak_bytes, rss_peak_bytes, device_peak_bytes,
  out_of_memory, wanted_bytes, too_few, max(ok) OVER (PARTITION BY panel) AS any_ok, first_result, second_result, all_steps_ns,
  warmup_steps, steps, repeats, cores_others_share, cores_throttles,
  cores_others_share > 0.05 OR cores_throttles > 0 AS disturbed, gpu_throttled_share, gpu_others, gpu_ecc_uncorrected,
  gpu_throttled_share > 0.05 AS gpu_throttled, gpu_others > 0 AS gpu_shared, provenance, emulated, device_name, message,
  point_id, campaign, machine, trainer, version, environment, command
FROM figured
LEFT JOIN forecasts USING (result)
ORDER BY family, size, model, precision, seq_length, ranks, panel, tensor_parallel * pipeline_parallel * context_parallel,
  tensor_parallel, pipeline_parallel, shard_rank, shard_ranks, checkpointing, batch_size, point_id
