-- One row a measurement of each history: a point with one setup on machines of one fingerprint, measured more than once.
-- :sweep names the sweep whose points are wanted; NULL: every measurement in the store.
WITH
measured AS (
  SELECT
    m.result, m.point_id, m.setup, ifnull(m.machine, '') AS machine, m.campaign, m.failure, m.version,
    coalesce(nullif(m.environment ->> '$.git_commit', ''), nullif(m.version, ''), m.campaign) AS built_of,
    ifnull(m.ended_unix_ns, 0) AS ended_unix_ns,
    row_number() OVER cell AS number,
    count(*) OVER (cell ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS times
  FROM measurements AS m
  WHERE m.status NOT IN ('infrastructure', 'cancelled', 'skipped_predicted_oom')
    AND (:sweep IS NULL
         OR (m.point_id, m.setup) IN (SELECT s.point_id, ifnull(s.setup, w.setup)
                                      FROM sweep_points AS s JOIN sweeps AS w ON w.name = s.sweep
                                      WHERE s.sweep = :sweep))
  WINDOW cell AS (PARTITION BY m.point_id, m.setup, ifnull(m.machine, '') ORDER BY ifnull(m.ended_unix_ns, 0), m.result)
),
placed AS MATERIALIZED (
  SELECT *, number - max(times - 500, 0) AS place
  FROM measured
  -- A year of nights, and some: a page shows no more, and what changed before is what it was.
  WHERE times > 1 AND number > times - 500
),
-- Each history is named once, by the first of its measurements that there is.
histories AS (
  SELECT point_id, setup, machine, min(result) AS one, min(built_of) <> max(built_of) AS of_builds
  FROM placed
  GROUP BY point_id, setup, machine
),
worded AS (
  SELECT
    o.*, m.seed, m.trainer, m.family, m.layers * m.hidden * m.hidden AS size, m.model, m.precision, m.seq_length,
    m.batch_size,
    m.model_words || ', ' || m.format || ', batch ' || m.batch_size || ' of ' || m.seq_length
      || CASE m.checkpointing WHEN 'none' THEN '' ELSE ', checkpointing ' || m.checkpointing END || m.step_words
      || m.ranks_words || m.place_words AS words
  FROM histories AS o JOIN measurements AS m ON m.result = o.one
),
panels AS (
  SELECT
    *,
    point_id || ' ' || setup || ' ' || machine AS history,
    -- Histories of the same words are told apart.
    words
      || iif(min(seed) OVER same <> max(seed) OVER same, ', seed ' || seed,
             iif(min(point_id) OVER same <> max(point_id) OVER same, ', point ' || substr(point_id, 1, 8), ''))
      || iif(min(machine) OVER same <> max(machine) OVER same, ', on ' || machine, '')
      || iif(min(setup) OVER same <> max(setup) OVER same, ', setup ' || setup, '') AS panel
  FROM worded
  WINDOW same AS (PARTITION BY words)
),
named AS MATERIALIZED (
  SELECT
    *,
    row_number() OVER (ORDER BY family, size, model, precision, seq_length, batch_size, panel, history) AS rank
  FROM panels
)
SELECT
  h.result, n.panel, n.history, h.place,
  -- Nights of one build are told apart by what they were for.
  iif(n.of_builds, substr(h.built_of, 1, 12), h.campaign) AS label,
  'each measurement' AS line, h.built_of AS "commit", h.campaign,
  strftime('%Y-%m-%d %H:%M', h.ended_unix_ns / 1000000000, 'unixepoch') AS measured, h.failure,
  coalesce(h.failure, 'ok') AS outcome, h.failure IS NULL AS ok, h.number = h.times AS is_last, h.times,
  r.step_median_ns, r.step_median_ns / 1e6 AS step_ms, r.steady_tokens_per_s, r.step_cv, r.planned_peak_bytes,
  r.rss_peak_bytes, r.device_peak_bytes, coalesce(r.device_peak_bytes, r.device_reserved_bytes, r.rss_peak_bytes) AS peak_bytes,
  r.cores_others_share, r.provenance, r.emulated, r.device_name, r.message, n.model, n.precision, n.seq_length,
  n.batch_size, h.point_id, h.setup, h.machine, n.trainer, h.version, NULL AS environment, NULL AS command,
  r.all_steps_ns, p.warmup_steps, p.steps, p.repeats
-- CROSS: SQLite knows not that there are few histories, and would look through all measurements for each of them.
FROM placed AS h
CROSS JOIN named AS n ON n.point_id = h.point_id AND n.setup = h.setup AND n.machine = h.machine
JOIN results AS r ON r.number = h.result
JOIN points AS p ON p.id = h.point_id
ORDER BY n.rank, h.place DESC
