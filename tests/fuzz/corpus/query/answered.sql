SELECT seed, status, :campaign AS campaign, value FROM latest LEFT JOIN json_each(loss) ORDER BY 1; -- all
