package query

import "github.com/jackc/pgx/v5/pgtype"

// IsPadded reports, after Open, whether a field comes from a column of type char(n), which ignores trailing
// blanks.
func (r *reader) IsPadded(field int) bool {
	return field < len(r.columns) && r.columns[field].oid == pgtype.BPCharOID
}
