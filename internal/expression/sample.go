package expression

import "github.com/surfin-batch/surfin/pkg/batch/core/row"

func sample(kind row.Kind) string {
	switch kind {
	case row.String:
		return "''"
	case row.Bool:
		return "false"
	case row.DateKind:
		return "date('2000-01-01')"
	case row.Timestamp:
		return "timestamp('2000-01-01T00:00:00Z')"
	case row.JSONKind:
		return "json('{}')"
	case row.UUIDKind:
		return "uuid('00000000-0000-0000-0000-000000000000')"
	case row.BytesKind:
		return "decode('', 'hex')"
	case kindDuration:
		return "duration('0s')"
	default:
		if elem, ok := kind.Elem(); ok {
			return "[" + sample(elem) + "]"
		}
		return "0"
	}
}
