-- One row a prediction: its speed against bf16 of the same model, with an interval, and whether that tells a gain.
-- :sweep names the sweep whose points are wanted; NULL: every prediction in the store.
WITH
named AS MATERIALIZED (
  SELECT
    result, point_id, parameters, family, model, precision,
    precision || iif(primary_weights = 'quantized', ', weights quantized', '') AS format, seq_length, ranks, batch_size, checkpointing,
    provenance, emulated, device_name, campaign, machine, trainer, version, message, environment, command, failure,
    status = 'ok' AS ok, parameters <= 15e9 AS is_small,
    steady_tokens_per_s, steady_tokens_per_s_low, steady_tokens_per_s_high, cold_tokens_per_s, cold_tokens_per_s_low,
    cold_tokens_per_s_high, step_median_ns, planned_peak_bytes, evidence ->> '$.basis' AS basis,
    CAST(evidence ->> '$.first_ns' AS REAL) AS first_ns, evidence ->> '$.first_from' AS first_from,
    -- The logarithm of the factor, either way, of the step's interval.
    ln(CAST(evidence ->> '$.step_high_ns' AS REAL) / CAST(evidence ->> '$.step_low_ns' AS REAL)) / 2 AS spread,
    -- How the state is kept, and what else is not the model or the format, is the panel's.
    -- A trainer that has no field says nothing of it.
    'Family ' || ifnull(family, 'unknown') || iif(state_precision <> 'fp32', ', ' || state_precision || ' state', '')
      || ifnull(', batch ' || batch_size || ' of ' || seq_length || ' a rank', '')
      || iif(checkpointing <> 'none', ', checkpointing ' || checkpointing, '')
      || ifnull(step_words, '') || ifnull(ranks_words, '') || ', on ' || ifnull(device_name, 'an unknown device')
      || iif(trainer <> 'ridgeline-train', ', by ' || trainer, '') AS panel,
    CASE precision WHEN 'bf16' THEN 0 WHEN 'fp16' THEN 1 WHEN 'fp8' THEN 2 WHEN 'mxfp8' THEN 3 WHEN 'nvfp4' THEN 4
                   ELSE 5 END AS format_rank
  FROM runs
  WHERE provenance = 'predicted' AND setup ->> '$.predicted_on' IS NOT NULL
    AND (:sweep IS NULL OR point_id IN (SELECT point_id FROM sweep_points WHERE sweep = :sweep))
),
-- (SQLite takes the columns beside a lone min() from the row that has it.)
bf16 AS (
  SELECT panel, model, min(step_median_ns) AS bf16_step_ns, steady_tokens_per_s AS bf16_steady,
    cold_tokens_per_s AS bf16_cold, spread AS bf16_spread
  FROM named
  WHERE ok AND precision = 'bf16' AND emulated = 0 AND step_median_ns > 0
  GROUP BY panel, model
),
emulated_of AS (
  SELECT panel, group_concat(format, '; ') AS emulated_formats
  FROM (SELECT panel, format FROM named WHERE ok AND emulated = 1 GROUP BY panel, format_rank, format
        ORDER BY panel, format_rank, format)
  GROUP BY panel
),
-- Errors of both steps count as independent. Of cold throughput, a step's error counts by the share that steps have of
-- all time, which is cold over steady.
compared AS (
  SELECT
    *, ok AND emulated = 0 AND precision <> 'bf16' AND bf16_step_ns IS NOT NULL AS is_compared,
    steady_tokens_per_s / bf16_steady AS steady_gain, cold_tokens_per_s / bf16_cold AS cold_gain,
    -- The same where the first iteration takes twice as long.
    (2 / bf16_cold - 1 / bf16_steady) / (2 / cold_tokens_per_s - 1 / steady_tokens_per_s) AS colder_gain,
    exp(sqrt(spread * spread + bf16_spread * bf16_spread)) AS steady_factor,
    exp(sqrt(pow(spread * cold_tokens_per_s / steady_tokens_per_s, 2) + pow(bf16_spread * bf16_cold / bf16_steady, 2)))
      AS cold_factor
  FROM named
  LEFT JOIN bf16 USING (panel, model)
),
told AS (
  SELECT
    *,
    -- The fastest of a model's formats over its slowest, bf16 left out.
    max(cold_gain) FILTER (WHERE is_compared) OVER model / min(cold_gain) FILTER (WHERE is_compared) OVER model
      AS cold_among,
    count(*) FILTER (WHERE is_compared) OVER model AS formats,
    iif(is_compared, steady_gain, NULL) AS bf16_speedup,
    iif(is_compared, steady_gain / steady_factor, NULL) AS bf16_speedup_low,
    iif(is_compared, steady_gain * steady_factor, NULL) AS bf16_speedup_high,
    iif(is_compared, cold_gain, NULL) AS bf16_cold_speedup,
    -- A first iteration that is assumed may take nothing, or twice as long.
    iif(is_compared, iif(first_from = 'assumed', min(cold_gain, colder_gain), cold_gain) / cold_factor, NULL)
      AS bf16_cold_speedup_low,
    iif(is_compared, iif(first_from = 'assumed', max(cold_gain * cold_factor, steady_gain * steady_factor),
                         cold_gain * cold_factor), NULL) AS bf16_cold_speedup_high
  FROM compared
  WINDOW model AS (PARTITION BY panel, model)
),
-- A tenth is what counts as little here.
judged AS (
  SELECT
    *,
    CASE WHEN NOT is_compared THEN NULL WHEN bf16_speedup_high < 1 THEN 'loss' WHEN bf16_speedup_high < 1.1 THEN 'little'
         WHEN bf16_speedup_low > 1.1 THEN 'gain' ELSE 'undecided' END AS steady_verdict,
    CASE WHEN NOT is_compared THEN NULL WHEN bf16_cold_speedup_high < 1 THEN 'loss'
         WHEN bf16_cold_speedup_high < 1.1 THEN 'little' WHEN bf16_cold_speedup_low > 1.1 THEN 'gain'
         ELSE 'undecided' END AS cold_verdict
  FROM told
),
counted AS (
  SELECT
    *, row_number() OVER (PARTITION BY panel ORDER BY is_compared DESC, parameters, bf16_speedup DESC, format_rank) = 1 AND is_compared
      AS is_smallest,
    row_number() OVER (PARTITION BY panel ORDER BY is_compared DESC, parameters DESC, bf16_speedup DESC, format_rank) = 1 AND is_compared
      AS is_largest,
    count(*) FILTER (WHERE is_compared) OVER size AS of_size,
    count(*) FILTER (WHERE steady_verdict IN ('little', 'loss')) OVER size AS steady_little,
    count(*) FILTER (WHERE steady_verdict = 'gain') OVER size AS steady_gains,
    count(*) FILTER (WHERE cold_verdict IN ('little', 'loss')) OVER size AS cold_little,
    count(*) FILTER (WHERE cold_verdict = 'gain') OVER size AS cold_gains,
    -- Large models gain most where each surely gains more than any small one.
    min(bf16_cold_speedup_low) FILTER (WHERE is_small) OVER panels AS small_low,
    max(bf16_cold_speedup_high) FILTER (WHERE is_small) OVER panels AS small_high,
    min(bf16_cold_speedup_low) FILTER (WHERE NOT is_small) OVER panels AS large_low,
    max(bf16_cold_speedup_high) FILTER (WHERE NOT is_small) OVER panels AS large_high
  FROM judged
  WINDOW panels AS (PARTITION BY panel), size AS (PARTITION BY panel, is_small)
)
SELECT
  result, panel, model, parameters, parameters / 1e9 AS billions, precision, format, seq_length, ranks, batch_size,
  checkpointing, failure, coalesce(failure, 'ok') AS outcome, ok, is_compared, is_small, is_smallest, is_largest,
  model || ', ' || format AS run,
  steady_tokens_per_s, steady_tokens_per_s_low, steady_tokens_per_s_high, cold_tokens_per_s, cold_tokens_per_s_low,
  cold_tokens_per_s_high, step_median_ns, planned_peak_bytes,
  bf16_speedup, bf16_speedup_low, bf16_speedup_high, steady_verdict,
  bf16_cold_speedup, bf16_cold_speedup_low, bf16_cold_speedup_high, cold_verdict, of_size,
  iif(of_size = 1, 'prediction', 'predictions') AS of_size_words,
  steady_little, steady_gains, of_size - steady_little - steady_gains AS steady_untold,
  cold_little, cold_gains, of_size - cold_little - cold_gains AS cold_untold,
  CASE WHEN is_small AND cold_gains > 0 THEN 'This contradicts it'
       WHEN is_small AND cold_little = of_size THEN 'This supports it'
       WHEN is_small THEN 'This neither supports nor contradicts it'
       WHEN large_low > small_high THEN 'This supports it'
       WHEN large_high < small_low THEN 'This contradicts it'
       ELSE 'This neither supports nor contradicts it' END AS cold_judgement,
  iif(is_compared AND formats > 1, cold_among, NULL) AS cold_among, cold_among / cold_factor AS cold_among_low,
  cold_among * cold_factor AS cold_among_high,
  CASE WHEN cold_among * cold_factor < 1.1 THEN 'They are alike'
       WHEN cold_among / cold_factor > 1.1 THEN 'They are not alike' ELSE 'This does not tell whether they are alike' END AS cold_among_words,
  emulated_formats, basis, first_ns, first_from, provenance, emulated, device_name, message, point_id, campaign, machine, trainer, version,
  environment, command
FROM counted
LEFT JOIN emulated_of USING (panel)
ORDER BY panel, parameters, model, format_rank, format, point_id
