-- products ----------------------------------------------------------------------------------------
CREATE TABLE product_replacements (
    product_id    bigint PRIMARY KEY REFERENCES products (id) ON DELETE CASCADE,
    product_name  text NOT NULL,
    sku           text,
    gtin          text,
    url           text NOT NULL,
    page          text,
    visits        integer NOT NULL DEFAULT 1,
    first_seen_at timestamptz NOT NULL DEFAULT now(),
    last_seen_at  timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE product_replacements IS
    'Another product that the page of a known product shows. The known product is kept until the other one is accepted.';
COMMENT ON COLUMN product_replacements.product_id IS 'The known product (`products.id`).';
COMMENT ON COLUMN product_replacements.product_name IS 'Name of the other product.';
COMMENT ON COLUMN product_replacements.sku IS 'SKU of the other product.';
COMMENT ON COLUMN product_replacements.gtin IS 'GTIN of the other product.';
COMMENT ON COLUMN product_replacements.url IS 'URL that showed it, after redirects.';
COMMENT ON COLUMN product_replacements.page IS 'Archive reference of the last page that showed it.';
COMMENT ON COLUMN product_replacements.visits IS 'Visits in a row that showed it.';
COMMENT ON COLUMN product_replacements.first_seen_at IS
    'Since when the page does not show the known product.';
COMMENT ON COLUMN product_replacements.last_seen_at IS 'When the page last showed the other product.';
