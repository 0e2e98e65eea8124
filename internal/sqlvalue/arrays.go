package sqlvalue

import "github.com/surfin-batch/surfin/pkg/batch/core/row"

// ListKind is the kind of PostgreSQL's arrays with an oid; Null if none.
func ListKind(oid uint32) row.Kind {
	switch oid {
	case 1005, 1007, 1016: // int2[], int4[], int8[]
		return row.ListOf(row.Int)
	case 1021, 1022: // float4[], float8[]
		return row.ListOf(row.Float)
	case 1009, 1014, 1015: // text[], bpchar[], varchar[]
		return row.ListOf(row.String)
	case 1000: // bool[]
		return row.ListOf(row.Bool)
	case 1182: // date[]
		return row.ListOf(row.DateKind)
	case 1115, 1185: // timestamp[], timestamptz[]
		return row.ListOf(row.Timestamp)
	case 1231: // numeric[]
		return row.ListOf(row.DecimalKind)
	case 2951: // uuid[]
		return row.ListOf(row.UUIDKind)
	}
	return row.Null
}
