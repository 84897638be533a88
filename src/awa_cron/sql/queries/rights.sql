-- What a process that runs may not do here.
-- $1 schema
SELECT
    current_setting('transaction_read_only') = 'on' AS read_only,
    ARRAY(
        SELECT needed.relation || ' ' || needed.right
        FROM (VALUES
            ('cron_jobs', 'SELECT'), ('cron_jobs', 'INSERT'), ('cron_jobs', 'UPDATE'),
            ('cron_events', 'SELECT'), ('cron_events', 'INSERT'),
            ('jobs', 'SELECT'), ('jobs', 'INSERT'), ('jobs', 'UPDATE')
        ) AS needed (relation, "right")
        WHERE NOT has_table_privilege(format('%I.%I', $1::text, needed.relation), needed.right)
    ) AS lacking
