package query

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func (e *postgres) answer() resultColumn { return resultColumn{oid: pgtype.BoolOID} }

const firstOwnOID = 16384

// Only texts with a deterministic collation are compared byte by byte. Pages are ordered by a type's
// default operators, and compared by those in search_path: both must be the same.
func (e *postgres) judge(ctx context.Context, conn tx.Conn, text string, args []any, keys []*resultColumn) error {
	for _, k := range keys {
		switch {
		case k.oid == pgtype.UUIDOID:
			k.exact = true
		case k.oid == pgtype.TextOID, k.oid == pgtype.VarcharOID, k.oid == pgtype.NameOID:
			exact, err := isDeterministic(ctx, conn, text, args, k.name)
			if err != nil {
				return fmt.Errorf("find the collation of key %s: %w", k.name, err)
			}
			k.exact = exact
		case k.oid >= firstOwnOID:
			if err := findOperators(ctx, conn, k); err != nil {
				return err
			}
		}
	}
	return nil
}

func isDeterministic(ctx context.Context, conn tx.Conn, text string, args []any, column string) (exact bool, err error) {
	err = conn.QueryRowContext(ctx, fmt.Sprintf(`select coalesce((select c.collisdeterministic from pg_catalog.pg_collation c
		where c.oid = pg_catalog.pg_collation_for(q.%s)::pg_catalog.regcollation), false)
		from (values (1)) one left join (select * from (%s) q limit 0) q on true`, quoted(column), "\n"+text+"\n"), args...).Scan(&exact)
	return exact, err
}

// With a type's operators outside the search path, the comparison with the last key would use another
// type's, and rows would be lost.
func findOperators(ctx context.Context, conn tx.Conn, k *resultColumn) error {
	var schemas *string
	err := conn.QueryRowContext(ctx, `select string_agg(distinct pg_catalog.quote_ident(n.nspname), ', ')
		from pg_catalog.pg_opclass c
		join pg_catalog.pg_am a on a.oid = c.opcmethod and a.amname = 'btree'
		join pg_catalog.pg_amop p on p.amopfamily = c.opcfamily and p.amoplefttype = c.opcintype and p.amoprighttype = c.opcintype
		join pg_catalog.pg_operator o on o.oid = p.amopopr
		join pg_catalog.pg_namespace n on n.oid = o.oprnamespace
		where c.opcdefault and c.opcintype = $1 and not pg_catalog.pg_operator_is_visible(o.oid)`, k.oid).Scan(&schemas)
	if err != nil {
		return fmt.Errorf("find the operators of key %s: %w", k.name, err)
	}
	if schemas != nil {
		return fmt.Errorf("key %s: the operators of its type are in the schema %s, which is not in search_path: add ?search_path=... to the URL, or cast the column to text",
			k.name, strings.TrimSpace(*schemas))
	}
	return nil
}
