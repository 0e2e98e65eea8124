package table

import (
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func hint(v row.Value, kind row.Kind) string {
	if v.Kind() != row.String {
		return ""
	}
	switch kind {
	case row.DateKind:
		return "expected yyyy-MM-dd; for another format declare the field as date, with its format"
	case row.Timestamp:
		return "expected yyyy-MM-ddTHH:mm:ss.SSSSSSXXX; for another format declare the field as timestamp, with its format"
	case row.Float:
		return "expected a number of at most 17 digits with a decimal point"
	case row.Int, row.DecimalKind:
		return "expected a number with a decimal point and no separators; for another format declare the field as " + kind.String()
	default:
		return ""
	}
}

func isArray(v row.Value) bool {
	return v.Kind() == row.String && (strings.HasPrefix(v.Str(), "{") || strings.HasPrefix(v.Str(), "[") && strings.Contains(v.Str(), "]={"))
}

func numberOf(v row.Value) row.Value {
	if d, err := row.ParseDecimal(string(v.JSON())); err == nil {
		return row.DecimalValue(d)
	}
	return row.Value{}
}

func isMultiple(d row.Decimal, zeros int) bool {
	text := d.String()
	return d.Scale() == 0 && (text == "0" || len(text)-len(strings.TrimRight(text, "0")) >= zeros)
}

func isInt64(d row.Decimal) bool {
	_, _, whole := d.Int()
	return whole
}
