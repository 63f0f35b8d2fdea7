-- One row a run that trained on text: its curves, what they end in, and what its format does over all seeds.
-- :sweep names the sweep whose points are wanted; NULL: every run in the store.
WITH
named AS MATERIALIZED (
  SELECT
    result, point_id, family, layers * hidden * hidden AS size, precision, seed, loss, grad_norm, skipped_steps, provenance,
    emulated, device_name, campaign, trainer, version, message, environment, command,
    warmup_steps + steps * iif(repeat > 0, 1, repeats) AS total_steps,
    status = 'ok' AND data <> 'synthetic' AND warmup_steps + steps * iif(repeat > 0, 1, repeats) >= 100 AS ok,
    CASE WHEN data = 'synthetic' THEN 'synthetic tokens hold nothing to learn'
         WHEN warmup_steps + steps * iif(repeat > 0, 1, repeats) < 100
         THEN (warmup_steps + steps * iif(repeat > 0, 1, repeats)) || ' steps, and convergence takes 100'
    END AS left_out,
    format,
    -- The widest first.
    CASE precision WHEN 'fp32' THEN 0 WHEN 'tf32' THEN 1 WHEN 'bf16' THEN 2 WHEN 'fp16' THEN 3 WHEN 'fp8' THEN 4
                   WHEN 'mxfp8' THEN 5 WHEN 'nvfp4' THEN 6 ELSE 7 END AS format_rank,
    -- Everything that changes what is learnt but the format and the seed; what is usual is left unsaid.
    model_words
      || ' on ' || data || ', batch ' || batch_size || ' of ' || seq_length
      || CASE WHEN grad_accumulation > 1 THEN ', accumulation ' || grad_accumulation ELSE '' END
      || CASE WHEN ranks > 1 THEN ', ' || ranks || ' ranks' ELSE '' END || parallel_words
      || ', ' || (warmup_steps + steps * iif(repeat > 0, 1, repeats)) || ' steps'
      || CASE WHEN optimizer <> 'adamw' THEN ', ' || optimizer ELSE '' END
      || ', learning rate ' || printf('%g', learning_rate)
      || CASE WHEN schedule <> 'constant' THEN ' (' || schedule || ' to ' || printf('%g', learning_rate_min) || ')'
              ELSE '' END
      || CASE WHEN lr_warmup_steps > 0 THEN ', warm-up ' || lr_warmup_steps ELSE '' END
      || CASE WHEN grad_clip > 0 THEN ', clip ' || printf('%g', grad_clip) ELSE '' END
      || CASE WHEN dropout > 0 THEN ', dropout ' || dropout ELSE '' END
      || CASE WHEN weight_decay <> 0.1 THEN ', weight decay ' || weight_decay ELSE '' END
      || CASE WHEN trainer <> 'ridgeline-train' THEN ', by ' || trainer ELSE '' END AS panel,
    failure
  FROM runs
  -- What is left out is a row that says why. Of a whole store that would be every measurement of speed.
  WHERE (data <> 'synthetic' OR :sweep IS NOT NULL)
    AND (:sweep IS NULL
         OR (point_id, setup) IN (SELECT point_id, setup FROM sweep_cells WHERE sweep = :sweep))
),
losses AS MATERIALIZED (
  SELECT result, key + 1 AS step, value AS loss FROM named, json_each(named.loss)
),
-- What a run is compared with: fp32 with the same seed, and so the same weights to begin with and the same text.
pairs AS (
  SELECT n.result, r.reference
  FROM named AS n
  JOIN (SELECT panel, seed, min(result) AS reference FROM named WHERE ok AND format = 'fp32' AND emulated = 0
        GROUP BY panel, seed) AS r ON r.panel = n.panel AND r.seed = n.seed
  WHERE n.format <> 'fp32'
),
gaps AS (
  SELECT result, json_group_array(gap) AS gap_by_step
  FROM (SELECT p.result, a.step, a.loss - b.loss AS gap
        FROM pairs AS p
        JOIN losses AS a ON a.result = p.result
        JOIN losses AS b ON b.result = p.reference AND b.step = a.step
        ORDER BY p.result, a.step)
  GROUP BY result
),
finals AS (
  SELECT n.result, avg(l.loss) AS final_loss
  FROM named AS n JOIN losses AS l ON l.result = n.result
  WHERE n.ok AND l.step > n.total_steps - 20
  GROUP BY n.result
),
figured AS MATERIALIZED (
  SELECT
    n.*, f.final_loss, f.final_loss - r.final_loss AS final_gap,
    (SELECT max(value) FROM json_each(n.grad_norm)) AS max_grad_norm
  FROM named AS n
  LEFT JOIN finals AS f ON f.result = n.result
  LEFT JOIN pairs AS p ON p.result = n.result
  LEFT JOIN finals AS r ON r.result = p.reference
),
means AS MATERIALIZED (
  SELECT panel, format, emulated, avg(final_loss) AS mean_loss, avg(final_gap) AS mean_gap
  FROM figured
  GROUP BY panel, format, emulated
),
-- Sample standard deviations; of a single run there is none. What is summed has nine decimals, more than a loss of fp32 has:
-- the last digits of a double are the way of summing, in which SQLite's releases differ.
formats AS MATERIALIZED (
  SELECT
    r.panel, r.format, precision, format_rank, r.emulated, sum(ok) AS ok_runs, count(*) AS all_runs,
    round(mean_loss, 9) AS format_loss,
    round(sqrt(sum((final_loss - mean_loss) * (final_loss - mean_loss)) / nullif(count(final_loss) - 1, 0)), 9)
      AS format_loss_sd,
    round(mean_gap, 9) + 0.0 AS format_gap, -- no -0
    round(sqrt(sum((final_gap - mean_gap) * (final_gap - mean_gap)) / nullif(count(final_gap) - 1, 0)), 9)
      AS format_gap_sd,
    sum(skipped_steps) AS format_skipped_steps,
    max(max_grad_norm) AS format_max_grad_norm
  FROM figured AS r
  JOIN means AS m ON m.panel = r.panel AND m.format = r.format AND m.emulated = r.emulated
  GROUP BY r.panel, r.format, r.emulated
),
judged AS (
  SELECT f.*, n.format_loss_sd AS noise, f.ok_runs = f.all_runs AND abs(f.format_gap) <= n.format_loss_sd AS within
  FROM formats AS f JOIN formats AS n ON n.panel = f.panel AND n.format = 'fp32' AND n.emulated = 0
  WHERE f.format <> 'fp32' AND n.format_loss_sd IS NOT NULL AND (f.format_gap IS NOT NULL OR f.ok_runs < f.all_runs)
  ORDER BY f.panel, f.format_rank, f.format
),
verdicts AS (
  SELECT
    panel, sum(ifnull(within, 0)) || ' of ' || count(*) || ' formats' AS within_count,
    ifnull(group_concat(CASE WHEN within THEN format || CASE WHEN emulated THEN ' (emulated)' ELSE '' END END, ', '),
           'none') AS within_words,
    group_concat(CASE WHEN within THEN NULL
                      WHEN ok_runs < all_runs THEN format || ' (' || (all_runs - ok_runs) || ' of ' || all_runs
                        || ' runs failed)'
                      ELSE format || ' (' || printf('%+.3f', format_gap) || CASE WHEN emulated THEN ', emulated'
                        ELSE '' END || ')' END, ', ') AS beyond_words
  FROM judged
  GROUP BY panel
),
-- An answer has room for a few names.
answers AS (
  SELECT *, length(within_words) - length(replace(within_words, ' ', '')) > 8 AS many
  FROM verdicts
),
-- What another seed changes, and whether there is anything to compare.
panels AS (
  SELECT panel, max(CASE WHEN format = 'fp32' AND NOT emulated THEN format_loss_sd END) AS noise,
         max(CASE WHEN format = 'fp32' AND NOT emulated THEN ok_runs END) > 0 AS any_fp32, sum(ok_runs) > 0 AS any_ok
  FROM formats
  GROUP BY panel
)
SELECT
  f.result, f.panel, f.format || ', seed ' || f.seed AS run, f.format, f.seed, f.failure,
  coalesce(f.failure, 'left out: ' || f.left_out, 'ok') AS outcome, f.total_steps,
  round(f.final_loss, 9) AS final_loss, round(f.final_gap, 9) + 0.0 AS final_gap, f.max_grad_norm, f.skipped_steps,
  CASE WHEN f.left_out IS NULL THEN nullif(f.loss, '[]') END AS loss_by_step, g.gap_by_step,
  CASE WHEN f.left_out IS NULL THEN nullif(f.grad_norm, '[]') END AS grad_norm_by_step,
  CASE WHEN f.left_out IS NULL THEN m.ok_runs || ' of ' || m.all_runs END AS format_runs,
  m.format_loss, m.format_loss_sd, m.format_gap, m.format_gap_sd,
  m.format_skipped_steps, m.format_max_grad_norm,
  j.within AS within_noise,
  m.ok_runs, n.noise, ifnull(n.any_fp32, 0) AS any_fp32, n.any_ok,
  max(CASE WHEN f.failure IS NULL THEN f.left_out END) OVER (PARTITION BY f.panel) AS why_left_out,
  abs(round(f.final_gap, 9)) AS gap_size, CASE WHEN a.many THEN a.within_count ELSE a.within_words END AS within_answer,
  CASE WHEN a.many THEN a.within_words END AS within_names, a.beyond_words,
  f.provenance, f.emulated, f.device_name, f.campaign, f.trainer, f.version, f.message, f.point_id, f.environment, f.command
FROM figured AS f
LEFT JOIN gaps AS g ON g.result = f.result
JOIN formats AS m ON m.panel = f.panel AND m.format = f.format AND m.emulated = f.emulated
LEFT JOIN judged AS j ON j.panel = f.panel AND j.format = f.format AND j.emulated = f.emulated
JOIN panels AS n ON n.panel = f.panel
LEFT JOIN answers AS a ON a.panel = f.panel
ORDER BY f.family, f.size, f.panel, f.format_rank, f.format, f.seed, f.point_id
