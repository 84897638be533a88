-- What a process that runs may not do here.
-- $1 schema, $2 parts: evaluate, work, purge
SELECT
    current_setting('transaction_read_only') = 'on' AS read_only,
    ARRAY(
        SELECT DISTINCT needed.relation || ' ' || needed.right
        FROM (VALUES
            ('evaluate', 'cron_jobs', 'SELECT'), ('evaluate', 'cron_jobs', 'INSERT'), ('evaluate', 'cron_jobs', 'UPDATE'),
            ('evaluate', 'cron_events', 'SELECT'), ('evaluate', 'cron_events', 'INSERT'),
            ('evaluate', 'jobs', 'SELECT'), ('evaluate', 'jobs', 'INSERT'),
            ('purge', 'jobs', 'DELETE'), ('purge', 'cron_events', 'DELETE'),
            ('work', 'jobs', 'SELECT'), ('work', 'jobs', 'UPDATE'), ('work', 'queue_meta', 'SELECT')
        ) AS needed (part, relation, "right")
        WHERE needed.part = ANY ($2::text[])
          -- sql/grants.sql gives some of these for single columns.
          AND NOT CASE needed.right
              WHEN 'DELETE' THEN has_table_privilege(format('%I.%I', $1::text, needed.relation), needed.right)
              ELSE has_any_column_privilege(format('%I.%I', $1::text, needed.relation), needed.right)
          END
        ORDER BY 1
    ) AS lacking
