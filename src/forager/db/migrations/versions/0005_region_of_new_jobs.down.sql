-- Back to schema 0004.

DROP FUNCTION region_of_new_job(text, bigint);

CREATE OR REPLACE FUNCTION region_of_host(host text) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT d.region
      FROM domains d
     WHERE d.domain_name = host
        OR d.domain_name = ANY (ARRAY(
               SELECT array_to_string(labels[first:], '.')
                 FROM (SELECT string_to_array(host, '.') AS labels) AS split,
                      generate_series(2, array_length(labels, 1) - 1) AS first
           ))
     ORDER BY length(d.domain_name) DESC
     LIMIT 1
$$;
